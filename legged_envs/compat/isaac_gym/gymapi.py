"""`isaacgym.gymapi`: records of parameters, enumerations, and :func:`acquire_gym`."""

from enum import IntEnum
from functools import cache

from legged_envs.compat.isaac_gym.assets import Asset, ForceSensor
from legged_envs.compat.isaac_gym.enums import (
    CameraFollowMode,
    ContactCollection,
    CoordinateSpace,
    DofDriveMode,
    DofType,
    ImageType,
    IndexDomain,
    JointType,
    MeshNormalMode,
    MeshType,
    MouseInput,
    SimType,
    UpAxis,
    find_member,
    list_members,
)
from legged_envs.compat.isaac_gym.gym import Gym
from legged_envs.compat.isaac_gym.gymtorch import Descriptor as Tensor
from legged_envs.compat.isaac_gym.index_range import IndexRange
from legged_envs.compat.isaac_gym.keys import KeyboardInput
from legged_envs.compat.isaac_gym.missing import make_missing_name_error
from legged_envs.compat.isaac_gym.record import LARGEST, Record
from legged_envs.compat.isaac_gym.records import (
    DOF_DTYPE,
    ActuatorProperties,
    AssetOptions,
    CameraProperties,
    DofState,
    FlexParams,
    ForceSensorProperties,
    HeightFieldParams,
    HeightFieldProperties,
    PhysXParams,
    PlaneParams,
    RigidBodyProperties,
    RigidBodyState,
    RigidShapeProperties,
    SimParams,
    TriangleMeshParams,
    Version,
    VhacdParams,
)
from legged_envs.compat.isaac_gym.sim import Env, Sim
from legged_envs.compat.isaac_gym.vectors import (
    Mat33,
    Quat,
    SpatialForce,
    Transform,
    Vec3,
    Velocity,
)
from legged_envs.compat.isaac_gym.viewer import ActionEvent, Viewer

__all__ = [
    "DOF_DTYPE",
    "LARGEST",
    "ActionEvent",
    "ActuatorProperties",
    "Asset",
    "AssetOptions",
    "CameraFollowMode",
    "CameraProperties",
    "ContactCollection",
    "CoordinateSpace",
    "DofDriveMode",
    "DofState",
    "DofType",
    "Env",
    "FlexParams",
    "ForceSensor",
    "ForceSensorProperties",
    "Gym",
    "HeightFieldParams",
    "HeightFieldProperties",
    "ImageType",
    "IndexDomain",
    "IndexRange",
    "JointType",
    "KeyboardInput",
    "Mat33",
    "MeshNormalMode",
    "MeshType",
    "MouseInput",
    "PhysXParams",
    "PlaneParams",
    "Quat",
    "Record",
    "RigidBodyProperties",
    "RigidBodyState",
    "RigidShapeProperties",
    "Sim",
    "SimParams",
    "SimType",
    "SpatialForce",
    "Tensor",
    "Transform",
    "TriangleMeshParams",
    "UpAxis",
    "Vec3",
    "Velocity",
    "Version",
    "VhacdParams",
    "Viewer",
    "acquire_gym",
    *list_members(),
]


@cache
def acquire_gym() -> Gym:
    """Return the only object of :class:`~legged_envs.compat.isaac_gym.gym.Gym`."""
    return Gym()


def __getattr__(name: str) -> IntEnum:
    """Return the member of an enumeration, such as ``gymapi.KEY_ESCAPE``.

    Raises:
        AttributeError: If there is none with this name.
    """
    member = find_member(name)
    if member is None:
        raise make_missing_name_error(f"gymapi.{name}")
    return member
