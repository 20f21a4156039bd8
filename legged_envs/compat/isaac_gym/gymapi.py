"""`isaacgym.gymapi`: records of parameters, enumerations, and :func:`acquire_gym`."""

from functools import cache
from typing import NoReturn

from legged_envs.compat.isaac_gym.gym import Gym
from legged_envs.compat.isaac_gym.missing import make_missing_name_error
from legged_envs.compat.isaac_gym.records import (
    DOF_DTYPE,
    DOF_MODE_EFFORT,
    DOF_MODE_NONE,
    DOF_MODE_POS,
    DRIVE_MODES,
    IMAGE_COLOR,
    KEY_ESCAPE,
    KEY_R,
    KEY_V,
    LARGEST,
    MESH_VISUAL,
    SIM_FLEX,
    SIM_PHYSX,
    UP_AXIS_Y,
    UP_AXIS_Z,
    AssetOptions,
    CameraProperties,
    ContactCollection,
    CoordinateSpace,
    HeightFieldParams,
    PhysXParams,
    PlaneParams,
    Quat,
    Record,
    RigidBodyProperties,
    RigidShapeProperties,
    SimParams,
    Transform,
    TriangleMeshParams,
    Vec3,
)

__all__ = [
    "DOF_DTYPE",
    "DOF_MODE_EFFORT",
    "DOF_MODE_NONE",
    "DOF_MODE_POS",
    "DRIVE_MODES",
    "IMAGE_COLOR",
    "KEY_ESCAPE",
    "KEY_R",
    "KEY_V",
    "LARGEST",
    "MESH_VISUAL",
    "SIM_FLEX",
    "SIM_PHYSX",
    "UP_AXIS_Y",
    "UP_AXIS_Z",
    "AssetOptions",
    "CameraProperties",
    "ContactCollection",
    "CoordinateSpace",
    "HeightFieldParams",
    "PhysXParams",
    "PlaneParams",
    "Quat",
    "Record",
    "RigidBodyProperties",
    "RigidShapeProperties",
    "SimParams",
    "Transform",
    "TriangleMeshParams",
    "Vec3",
    "acquire_gym",
]


@cache
def acquire_gym() -> Gym:
    """Return the only object of :class:`~legged_envs.compat.isaac_gym.gym.Gym`."""
    return Gym()


def __getattr__(name: str) -> NoReturn:
    raise make_missing_name_error(f"gymapi.{name}")
