"""``isaacgym.gymapi``: records of parameters, enumerations, and :func:`acquire_gym`."""

import copy
from enum import IntEnum
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

from legged_envs.checks import did_you_mean
from legged_envs.compat.isaac_gym import refuse

if TYPE_CHECKING:
    from legged_envs.compat.isaac_gym.gym import Gym

LARGEST = 3.4028234663852886e38
"""What Isaac Gym has in place of infinity: the largest float32."""
ContactCollection = IntEnum(
    "ContactCollection", {"CC_NEVER": 0, "CC_LAST_SUBSTEP": 1, "CC_ALL_SUBSTEPS": 2}
)
CoordinateSpace = IntEnum("CoordinateSpace", {"ENV_SPACE": 0, "LOCAL_SPACE": 1, "GLOBAL_SPACE": 2})
SIM_PHYSX, SIM_FLEX, UP_AXIS_Y, UP_AXIS_Z, DOF_MODE_NONE, DOF_MODE_POS, DOF_MODE_EFFORT = (
    0,
    1,
    0,
    1,
    0,
    1,
    3,
)
DRIVE_MODES = DOF_MODE_NONE, DOF_MODE_POS, DOF_MODE_EFFORT
IMAGE_COLOR, MESH_VISUAL, KEY_ESCAPE, KEY_R, KEY_V = 0, 1, 256, 82, 86

DOF_DTYPE = [("hasLimits", "?"), ("lower", "f4"), ("upper", "f4"), ("driveMode", "i4")]
DOF_DTYPE += [
    (name, "f4") for name in ("velocity", "effort", "stiffness", "damping", "friction", "armature")
]
"""Fields of the NumPy array of a DOF's properties."""


class Record:
    """``FIELDS`` with defaults, given in their order or by name. What is given for a float, such as a tensor of one
    element, becomes one; AttributeError for a field that there is not, ValueError for a float that is not finite,
    TypeError for what is no record where the default is one."""

    FIELDS: ClassVar[dict[str, Any]]

    def __init__(self, *values: Any, **named: Any):
        if len(values) > len(self.FIELDS):
            raise TypeError(
                f"{type(self).__name__} has {len(self.FIELDS)} fields, got {len(values)} values"
            )
        given = dict(zip(self.FIELDS, values, strict=False)) | named
        for name in {**self.FIELDS, **given}:
            value = given.get(name)
            setattr(self, name, copy.deepcopy(self.FIELDS.get(name)) if value is None else value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.FIELDS:
            wrong = f"gymapi.{type(self).__name__} has no field {name!r}"
            raise AttributeError(
                f"{wrong}; {did_you_mean(name, self.FIELDS)}it has: {', '.join(self.FIELDS)}"
            )
        own, field = type(self.FIELDS[name]), f"gymapi.{type(self).__name__}.{name}"
        if own is float:
            value = float(value.item() if hasattr(value, "item") else value)
            if not isfinite(value):
                raise ValueError(f"{field} must be finite, got {value}")
        elif issubclass(own, Record) and not isinstance(value, own):
            raise TypeError(f"{field} must be a gymapi.{own.__name__}, got {value!r}")
        vars(self)[name] = value

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Vec3(Record):
    FIELDS: ClassVar = dict.fromkeys("xyz", 0.0)

    @property
    def values(self) -> tuple[float, float, float]:
        return self.x, self.y, self.z


class Quat(Record):
    FIELDS: ClassVar = dict.fromkeys("xyz", 0.0) | {"w": 1.0}


class Transform(Record):
    FIELDS: ClassVar = {"p": Vec3(), "r": Quat()}


class PhysXParams(Record):
    """Accepted as they are; only ``num_threads`` has an effect."""

    FIELDS: ClassVar = {
        "num_threads": 0,
        "solver_type": 1,
        "num_position_iterations": 4,
        "num_velocity_iterations": 1,
    }
    FIELDS |= {
        "contact_offset": 0.02,
        "rest_offset": 0.001,
        "bounce_threshold_velocity": 0.2,
        "num_subscenes": 0,
    }
    FIELDS |= {
        "max_depenetration_velocity": 100.0,
        "max_gpu_contact_pairs": 1024 * 1024,
        "use_gpu": False,
    }
    FIELDS |= {"default_buffer_size_multiplier": 2.0, "always_use_articulations": False}
    FIELDS |= {
        "contact_collection": ContactCollection.CC_ALL_SUBSTEPS,
        "friction_offset_threshold": 0.04,
    }
    FIELDS |= {"friction_correlation_distance": 0.025}


class SimParams(Record):
    FIELDS: ClassVar = {
        "dt": 1 / 60,
        "substeps": 2,
        "up_axis": UP_AXIS_Y,
        "gravity": Vec3(0.0, -9.8, 0.0),
    }
    FIELDS |= {
        "use_gpu_pipeline": False,
        "num_client_threads": 0,
        "physx": PhysXParams(),
        "flex": None,
    }

    def check(self, function: str) -> None:
        """Raise a ValueError unless time can be cut into such steps."""
        if not (self.dt > 0 and int(self.substeps) == self.substeps >= 1):
            wrong = f"dt must be above 0, substeps 1 or more, got {self.dt}, {self.substeps}"
            raise ValueError(f"{function}: {wrong}")


class AssetOptions(Record):
    """What has no counterpart in MuJoCo is accepted and has no effect; docs/isaacgym.md says which."""

    FIELDS: ClassVar = {
        "default_dof_drive_mode": DOF_MODE_NONE,
        "density": 1000.0,
        "armature": 0.0,
        "thickness": 0.02,
    }
    FIELDS |= {
        "collapse_fixed_joints": False,
        "replace_cylinder_with_capsule": False,
        "flip_visual_attachments": False,
    }
    FIELDS |= {"fix_base_link": False, "disable_gravity": False, "use_mesh_materials": False}
    FIELDS |= {"angular_damping": 0.5, "linear_damping": 0.0, "max_angular_velocity": 64.0}
    FIELDS |= {
        "max_linear_velocity": 1000.0,
        "enable_gyroscopic_forces": True,
        "use_physx_armature": True,
    }


class _GroundParams(Record):
    FIELDS: ClassVar = {
        "static_friction": 1.0,
        "dynamic_friction": 1.0,
        "restitution": 0.0,
        "segmentation_id": 0,
    }


class PlaneParams(_GroundParams):
    FIELDS: ClassVar = {"normal": Vec3(0.0, 1.0, 0.0), "distance": 0.0} | _GroundParams.FIELDS


class HeightFieldParams(_GroundParams):
    FIELDS: ClassVar = {
        "column_scale": 1.0,
        "row_scale": 1.0,
        "vertical_scale": 1.0,
        "nbRows": 0,
        "nbColumns": 0,
    }
    FIELDS |= {"transform": Transform()} | _GroundParams.FIELDS


class TriangleMeshParams(_GroundParams):
    FIELDS: ClassVar = {
        "nb_vertices": 0,
        "nb_triangles": 0,
        "transform": Transform(),
    } | _GroundParams.FIELDS


class RigidShapeProperties(Record):
    """``friction`` acts, the rest is accepted and has no effect, but for a ``filter``, which is refused."""

    FIELDS: ClassVar = {
        "friction": 1.0,
        "rolling_friction": 0.0,
        "torsion_friction": 0.0,
        "restitution": 0.0,
    }
    FIELDS |= {
        "compliance": 0.0,
        "contact_offset": 0.02,
        "rest_offset": 0.0,
        "thickness": 0.02,
        "filter": 0,
    }


class RigidBodyProperties(Record):
    """Mass, kg, and the centre of mass in the frame of the body, m."""

    FIELDS: ClassVar = {"mass": 0.0, "com": Vec3()}


class CameraProperties(Record):
    FIELDS: ClassVar = {
        "width": 1600,
        "height": 900,
        "horizontal_fov": 90.0,
        "enable_tensors": False,
    }


@cache
def acquire_gym() -> "Gym":
    """The one :class:`~legged_envs.compat.isaac_gym.gym.Gym`."""
    from legged_envs.compat.isaac_gym.gym import Gym

    return Gym()


__getattr__ = refuse("gymapi")
