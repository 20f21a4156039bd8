"""Jacobians and mass matrices, against plain MuJoCo and the kinetic energy."""

import mujoco
import numpy as np
import pytest
import torch
from isaac_gym_dogs import gym, load_dog, make_sim, read, unwrap

from legged_envs.compat.isaac_gym import gymtorch


def moving_sim(fixed: bool):
    """Two dogs in the air that turn, with joints at random; the second has a heavier base."""
    sim = make_sim(2, asset=load_dog(fix_base_link=fixed), ground=False)
    generator = torch.Generator().manual_seed(3)
    roots = read(sim, "actor_root_state").clone()
    roots[:, 3:7] = torch.nn.functional.normalize(torch.randn(2, 4, generator=generator))
    if not fixed:
        roots[:, 7:] = torch.randn(2, 6, generator=generator)
    gym.set_actor_root_state_tensor(sim, unwrap(roots))
    gym.set_dof_state_tensor(sim, unwrap(torch.randn(16, 2, generator=generator)))
    bodies = gym.get_actor_rigid_body_properties(sim.envs[1], 0)
    bodies[0].mass += 2.0
    bodies[0].com.x += 0.05
    gym.set_actor_rigid_body_properties(sim.envs[1], 0, bodies, True)
    dofs = gym.get_actor_dof_properties(sim.envs[1], 0)
    dofs["armature"][2] = 0.3
    gym.set_actor_dof_properties(sim.envs[1], 0, dofs)
    return sim


def refreshed(sim, name):
    tensor = gymtorch.wrap_tensor(getattr(gym, f"acquire_{name}_tensor")(sim, "dog"))
    assert getattr(gym, f"refresh_{name}_tensors")(sim)
    return tensor


def plain_mujoco(sim, env_id):
    """The model and data of an environment, evaluated by MuJoCo alone."""
    batch = sim.state.batch
    model = batch.get_model(env_id)
    data = batch.get_data(env_id)
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize("fixed", [False, True])
def test_jacobians_map_the_velocities_of_joints_to_those_of_bodies(fixed: bool) -> None:
    sim = moving_sim(fixed)
    jacobian = refreshed(sim, "jacobian")
    num_bodies = len(sim.envs[0].actors[0].asset.body_names)
    shape = (2, num_bodies - 1, 6, 8) if fixed else (2, num_bodies, 6, 14)
    descriptor = gym.acquire_jacobian_tensor(sim, "dog")
    assert jacobian.shape == shape == descriptor.shape and descriptor.ndim == 4
    velocities = read(sim, "dof_state").view(2, 8, 2)[..., 1]
    bodies = read(sim, "rigid_body_state").view(2, num_bodies, 13)[..., 7:]
    if fixed:
        bodies = bodies[:, 1:]
    else:
        velocities = torch.cat((read(sim, "actor_root_state")[:, 7:], velocities), dim=1)
    found = (jacobian @ velocities[:, None, :, None]).squeeze(-1)
    assert found == pytest.approx(bodies, abs=1e-4)


def test_columns_of_joints_are_those_of_plain_mujoco() -> None:
    sim = moving_sim(fixed=True)
    jacobian = refreshed(sim, "jacobian")
    for env_id in range(2):
        model, data = plain_mujoco(sim, env_id)
        for row, body in enumerate(range(2, model.nbody)):
            linear = np.zeros((3, model.nv))
            angular = np.zeros((3, model.nv))
            mujoco.mj_jacBodyCom(model, data, linear, angular, body)
            expected = torch.from_numpy(np.concatenate((linear, angular)))
            assert jacobian[env_id, row].double() == pytest.approx(expected, abs=1e-6)


def test_the_mass_matrix_is_that_of_plain_mujoco() -> None:
    sim = moving_sim(fixed=True)
    matrix = refreshed(sim, "mass_matrix")
    for env_id in range(2):
        model, data = plain_mujoco(sim, env_id)
        expected = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, expected)
        assert matrix[env_id].numpy() == pytest.approx(expected, abs=1e-6)
    assert matrix[1, 2, 2] - matrix[0, 2, 2] > 0.2


def test_the_mass_matrix_gives_the_kinetic_energy_of_a_free_robot() -> None:
    sim = moving_sim(fixed=False)
    matrix = refreshed(sim, "mass_matrix")
    gym.simulate(sim)
    gym.refresh_mass_matrix_tensors(sim)
    velocities = torch.cat(
        (
            read(sim, "actor_root_state")[:, 7:],
            read(sim, "dof_state").view(2, 8, 2)[..., 1],
        ),
        dim=1,
    )
    energy = 0.5 * (velocities[:, None] @ matrix @ velocities[..., None]).flatten()
    for env_id in range(2):
        model, data = plain_mujoco(sim, env_id)
        mujoco.mj_energyVel(model, data)
        assert energy[env_id].item() == pytest.approx(data.energy[1], rel=1e-4)


def test_actors_of_another_name_are_named() -> None:
    sim = moving_sim(fixed=False)
    with pytest.raises(ValueError, match=r"'cat'.*'dog'"):
        gym.acquire_jacobian_tensor(sim, "cat")


def test_the_mass_matrix_of_a_box_is_its_mass_and_inertia() -> None:
    sim = make_sim(asset=gym.create_box(None, 0.1, 0.2, 0.3))
    matrix = refreshed(sim, "mass_matrix")[0]
    squares = torch.tensor([0.2**2 + 0.3**2, 0.1**2 + 0.3**2, 0.1**2 + 0.2**2])
    expected = 6.0 * torch.cat((torch.ones(3), squares / 12.0))
    assert matrix == pytest.approx(torch.diag(expected), abs=1e-5)
