"""Records of parameters, enumerations and constants of `isaacgym.gymapi`."""

import copy
from enum import IntEnum
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

from legged_envs.checks import did_you_mean

LARGEST = 3.4028234663852886e38
"""Value that stands for infinity in Isaac Gym: the largest float32."""


class ContactCollection(IntEnum):
    """Substeps whose contacts are collected. Accepted without effect."""

    CC_NEVER = 0
    CC_LAST_SUBSTEP = 1
    CC_ALL_SUBSTEPS = 2


class CoordinateSpace(IntEnum):
    """Frame of a force that is applied to a body."""

    ENV_SPACE = 0
    LOCAL_SPACE = 1
    GLOBAL_SPACE = 2


# The numbers are those of Isaac Gym, because codebases write some of them as numbers.
SIM_PHYSX = 0
SIM_FLEX = 1
UP_AXIS_Y = 0
UP_AXIS_Z = 1
DOF_MODE_NONE = 0
DOF_MODE_POS = 1
DOF_MODE_EFFORT = 3
IMAGE_COLOR = 0
MESH_VISUAL = 1
KEY_ESCAPE = 256
KEY_R = 82
KEY_V = 86

DRIVE_MODES = (DOF_MODE_NONE, DOF_MODE_POS, DOF_MODE_EFFORT)
"""Drive modes of a joint that the engine has."""

DOF_DTYPE = [
    ("hasLimits", "?"),
    ("lower", "f4"),
    ("upper", "f4"),
    ("driveMode", "i4"),
    ("velocity", "f4"),
    ("effort", "f4"),
    ("stiffness", "f4"),
    ("damping", "f4"),
    ("friction", "f4"),
    ("armature", "f4"),
]
"""Fields of the NumPy array of the properties of joints."""


class Record:
    """Named fields with defaults, which are given in their order or by name.

    A value for a float, such as a tensor of one element, is converted to a float. None stands for
    the default.

    Raises:
        AttributeError: If there is no such field.
        TypeError: If there are too many values, or a value is not the record that a field holds.
        ValueError: If a float is not finite.
    """

    FIELDS: ClassVar[dict[str, Any]]
    """Default of each field, by its name."""

    def __init__(self, *values: Any, **named: Any):
        if len(values) > len(self.FIELDS):
            raise TypeError(
                f"{type(self).__name__} has {len(self.FIELDS)} fields, got {len(values)} values"
            )
        given = dict(zip(self.FIELDS, values, strict=False))
        given.update(named)
        for name in {**self.FIELDS, **given}:
            value = given.get(name)
            if value is None:
                # Records may be fields of records, so each gets a copy of its own.
                value = copy.deepcopy(self.FIELDS.get(name))
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        record = type(self).__name__
        if name not in self.FIELDS:
            raise AttributeError(
                f"gymapi.{record} has no field {name!r}; "
                f"{did_you_mean(name, self.FIELDS)}it has: {', '.join(self.FIELDS)}"
            )
        expected = type(self.FIELDS[name])
        if expected is float:
            # Codebases write elements of tensors and NumPy scalars into records.
            value = float(value.item() if hasattr(value, "item") else value)
            if not isfinite(value):
                raise ValueError(f"gymapi.{record}.{name} must be finite, got {value}")
        elif issubclass(expected, Record) and not isinstance(value, expected):
            raise TypeError(
                f"gymapi.{record}.{name} must be a gymapi.{expected.__name__}, got {value!r}"
            )
        object.__setattr__(self, name, value)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Vec3(Record):
    """A vector with the components x, y and z."""

    FIELDS: ClassVar = {"x": 0.0, "y": 0.0, "z": 0.0}

    @property
    def values(self) -> tuple[float, float, float]:
        """The components (x, y, z)."""
        return self.x, self.y, self.z


class Quat(Record):
    """A quaternion with the components x, y, z and w."""

    FIELDS: ClassVar = {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}


class Transform(Record):
    """A pose: the position ``p``, m, and the orientation ``r``."""

    FIELDS: ClassVar = {"p": Vec3(), "r": Quat()}


class PhysXParams(Record):
    """Parameters of PhysX. Only ``num_threads`` has an effect."""

    FIELDS: ClassVar = {
        "num_threads": 0,
        "solver_type": 1,
        "num_position_iterations": 4,
        "num_velocity_iterations": 1,
        "contact_offset": 0.02,
        "rest_offset": 0.001,
        "bounce_threshold_velocity": 0.2,
        "num_subscenes": 0,
        "max_depenetration_velocity": 100.0,
        "max_gpu_contact_pairs": 1024 * 1024,
        "use_gpu": False,
        "default_buffer_size_multiplier": 2.0,
        "always_use_articulations": False,
        "contact_collection": ContactCollection.CC_ALL_SUBSTEPS,
        "friction_offset_threshold": 0.04,
        "friction_correlation_distance": 0.025,
    }


class SimParams(Record):
    """Parameters of a simulation, such as its time step ``dt``, s, and ``gravity``, m/s²."""

    FIELDS: ClassVar = {
        "dt": 1 / 60,
        "substeps": 2,
        "up_axis": UP_AXIS_Y,
        "gravity": Vec3(0.0, -9.8, 0.0),
        "use_gpu_pipeline": False,
        "num_client_threads": 0,
        "physx": PhysXParams(),
        "flex": None,
    }

    def check(self, function: str) -> None:
        """Check that the time step can be divided into the substeps.

        Args:
            function: Name of the function that was called, for the error.

        Raises:
            ValueError: If ``dt`` or ``substeps`` is not positive, or ``substeps`` is no integer.
        """
        # YAML files may have 2.0 for 2.
        is_count = int(self.substeps) == self.substeps >= 1
        if not (self.dt > 0 and is_count):
            raise ValueError(
                f"{function}: dt must be above 0, substeps 1 or more, "
                f"got {self.dt}, {self.substeps}"
            )


class AssetOptions(Record):
    """Options of reading a robot file.

    Options without a counterpart in MuJoCo are accepted without effect. docs/isaacgym.md lists
    them.
    """

    FIELDS: ClassVar = {
        "default_dof_drive_mode": DOF_MODE_NONE,
        "density": 1000.0,
        "armature": 0.0,
        "thickness": 0.02,
        "collapse_fixed_joints": False,
        "replace_cylinder_with_capsule": False,
        "flip_visual_attachments": False,
        "fix_base_link": False,
        "disable_gravity": False,
        "use_mesh_materials": False,
        "angular_damping": 0.5,
        "linear_damping": 0.0,
        "max_angular_velocity": 64.0,
        "max_linear_velocity": 1000.0,
        "enable_gyroscopic_forces": True,
        "use_physx_armature": True,
    }


class PlaneParams(Record):
    """Parameters of a plane as ground."""

    FIELDS: ClassVar = {
        "normal": Vec3(0.0, 1.0, 0.0),
        "distance": 0.0,
        "static_friction": 1.0,
        "dynamic_friction": 1.0,
        "restitution": 0.0,
        "segmentation_id": 0,
    }


class HeightFieldParams(Record):
    """Parameters of a height field as ground."""

    FIELDS: ClassVar = {
        "column_scale": 1.0,
        "row_scale": 1.0,
        "vertical_scale": 1.0,
        "nbRows": 0,
        "nbColumns": 0,
        "transform": Transform(),
        "static_friction": 1.0,
        "dynamic_friction": 1.0,
        "restitution": 0.0,
        "segmentation_id": 0,
    }


class TriangleMeshParams(Record):
    """Parameters of a triangle mesh as ground."""

    FIELDS: ClassVar = {
        "nb_vertices": 0,
        "nb_triangles": 0,
        "transform": Transform(),
        "static_friction": 1.0,
        "dynamic_friction": 1.0,
        "restitution": 0.0,
        "segmentation_id": 0,
    }


class RigidShapeProperties(Record):
    """Properties of a shape.

    Only ``friction`` has an effect. The others are accepted, except for a ``filter``, which is
    refused.
    """

    FIELDS: ClassVar = {
        "friction": 1.0,
        "rolling_friction": 0.0,
        "torsion_friction": 0.0,
        "restitution": 0.0,
        "compliance": 0.0,
        "contact_offset": 0.02,
        "rest_offset": 0.0,
        "thickness": 0.02,
        "filter": 0,
    }


class RigidBodyProperties(Record):
    """Mass of a body, kg, and its center of mass ``com`` in the frame of the body, m."""

    FIELDS: ClassVar = {"mass": 0.0, "com": Vec3()}


class CameraProperties(Record):
    """Size of a picture, pixels, and its horizontal field of view, degrees."""

    FIELDS: ClassVar = {
        "width": 1600,
        "height": 900,
        "horizontal_fov": 90.0,
        "enable_tensors": False,
    }
