"""Boxes, balls and capsules without a file, against their volumes and a table of their heights."""

import math

import pytest
import torch
from isaac_gym_dogs import gym, make_params, read

from legged_envs.compat.isaac_gym import gymapi

BALL = 4.0 / 3.0 * math.pi * 0.2**3


def make_shapes(options=None):
    return {
        "box": gym.create_box(None, 0.2, 0.4, 0.6, options),
        "sphere": gym.create_sphere(None, 0.2, options),
        "capsule": gym.create_capsule(None, 0.2, 0.5, options),
    }


def test_shapes_have_the_mass_of_their_volume_and_rest_on_the_ground() -> None:
    shapes = make_shapes(gymapi.AssetOptions(density=500.0))
    volumes = {"box": 0.048, "sphere": BALL, "capsule": BALL + 0.5 * math.pi * 0.2**2}
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, make_params())
    gym.add_ground(sim, gymapi.PlaneParams(normal=gymapi.Vec3(0.0, 0.0, 1.0)))
    env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
    for i, (name, asset) in enumerate(shapes.items()):
        assert gym.get_asset_rigid_body_names(asset) == [name]
        assert gym.get_asset_dof_count(asset) == 0
        gym.create_actor(env, asset, gymapi.Transform(gymapi.Vec3(2.0 * i, 0.0, 0.4)), name, 0, 0)
        mass = gym.get_actor_rigid_body_properties(env, i)[0].mass
        assert mass == pytest.approx(500.0 * volumes[name], rel=1e-5)
    gym.prepare_sim(sim)
    for _ in range(400):
        gym.simulate(sim)
    heights = read(sim, "actor_root_state")[:, 2]
    # The capsule lies along x.
    assert heights == pytest.approx(torch.tensor([0.3, 0.2, 0.2]), abs=2e-3)
    weights = read(sim, "net_contact_force")[:, 2]
    expected = 9.81 * 500.0 * torch.tensor(list(volumes.values()))
    assert weights == pytest.approx(expected, rel=0.02)


def test_a_fixed_box_stays_where_it_is_put() -> None:
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, make_params())
    box = gym.create_box(sim, 1.0, 1.0, 1.0, gymapi.AssetOptions(fix_base_link=True))
    env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
    gym.create_actor(env, box, gymapi.Transform(gymapi.Vec3(1.0, 2.0, 3.0)), "box", 0, 0)
    gym.prepare_sim(sim)
    gym.simulate(sim)
    assert read(sim, "actor_root_state")[0, :3].tolist() == [1.0, 2.0, 3.0]


def test_sizes_that_are_not_positive_are_named() -> None:
    with pytest.raises(ValueError, match=r"create_sphere.*got -1"):
        gym.create_sphere(None, -1.0)
    with pytest.raises(ValueError, match=r"create_box.*got 0"):
        gym.create_box(None, 1.0, 1.0, 1.0, gymapi.AssetOptions(density=0.0))
