"""Simulations of the test dog for the tests of Isaac Gym's interface."""

from pathlib import Path

import torch

from legged_envs.compat.isaac_gym import gymapi, gymtorch

FOLDER = Path(__file__).parent
gym = gymapi.acquire_gym()
INERTIAL = (
    '<inertial><mass value="1"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def make_params(**values) -> gymapi.SimParams:
    return gymapi.SimParams(dt=0.005, substeps=1, gravity=gymapi.Vec3(0.0, 0.0, -9.81), **values)


def load_dog(**options):
    defaults = {"collapse_fixed_joints": True, "default_dof_drive_mode": 3}
    return gym.load_asset(
        None, str(FOLDER), "legacy_dog.urdf", gymapi.AssetOptions(**{**defaults, **options})
    )


def make_sim(num_envs=1, height=0.42, asset=None, ground=True, prepare=True, gravity=-9.81):
    """A simulation with a dog in each environment, on a plane or in the air."""
    params = make_params()
    params.gravity = gymapi.Vec3(0.0, 0.0, gravity)
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
    if ground:
        gym.add_ground(sim, gymapi.PlaneParams(normal=gymapi.Vec3(0.0, 0.0, 1.0)))
    asset = asset or load_dog()
    for i in range(num_envs):
        env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
        gym.create_actor(env, asset, gymapi.Transform(gymapi.Vec3(0.0, 0.0, height)), "dog", i, 1)
    if prepare:
        gym.prepare_sim(sim)
    return sim


def read(sim, name):
    """A tensor of a simulation with its present values."""
    wrapped = gymtorch.wrap_tensor(getattr(gym, f"acquire_{name}_tensor")(sim))
    getattr(gym, f"refresh_{name}_tensor")(sim)
    return wrapped


def unwrap(values, dtype=torch.float32):
    return gymtorch.unwrap_tensor(torch.as_tensor(values, dtype=dtype).contiguous())
