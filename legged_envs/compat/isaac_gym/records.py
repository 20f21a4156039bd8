"""Records of parameters and properties of `isaacgym.gymapi`."""

from typing import ClassVar, Self

import numpy as np

from legged_envs.compat.isaac_gym.enums import (
    ContactCollection,
    DofDriveMode,
    MeshNormalMode,
    UpAxis,
)
from legged_envs.compat.isaac_gym.record import Record
from legged_envs.compat.isaac_gym.vectors import Mat33, Transform, Vec3, Velocity

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


class FlexParams(Record):
    """Parameters of FleX, which is not here. They have no effect."""

    FIELDS: ClassVar = {
        "solver_type": 5,
        "num_outer_iterations": 4,
        "num_inner_iterations": 20,
        "relaxation": 0.75,
        "warm_start": 0.4,
        "shape_collision_distance": 0.0,
        "shape_collision_margin": 0.1,
        "deterministic_mode": False,
        "contact_regularization": 0.0,
        "geometric_stiffness": 0.0,
        "static_friction": 0.0,
        "dynamic_friction": 0.0,
        "particle_friction": 0.0,
        "friction_mode": 2,
        "max_rigid_contacts": 0,
        "max_soft_contacts": 0,
        "return_contacts": True,
    }


class SimParams(Record):
    """Parameters of a simulation, such as its time step ``dt``, s, and ``gravity``, m/s²."""

    FIELDS: ClassVar = {
        "dt": 1 / 60,
        "substeps": 2,
        "up_axis": UpAxis.UP_AXIS_Y,
        "gravity": Vec3(0.0, -9.8, 0.0),
        "use_gpu_pipeline": False,
        "num_client_threads": 0,
        "physx": PhysXParams(),
        "flex": FlexParams(),
        "enable_actor_creation_warning": True,
        "stress_visualization": False,
        "stress_visualization_min": 0.0,
        "stress_visualization_max": 0.0,
    }

    def check(self, function: str) -> None:
        """Check that the time step can be divided into the substeps.

        Args:
            function: Name of the function that was called, for the error.

        Raises:
            ValueError: If ``dt`` or ``substeps`` is not positive, or ``substeps`` is not whole.
        """
        # YAML files may have 2.0 for 2.
        is_count = int(self.substeps) == self.substeps >= 1
        if not (self.dt > 0 and is_count):
            raise ValueError(
                f"{function}: dt must be above 0, substeps 1 or more, "
                f"got {self.dt}, {self.substeps}"
            )


class VhacdParams(Record):
    """Parameters of a convex decomposition. They have no effect: each mesh is one convex shape."""

    FIELDS: ClassVar = {
        "resolution": 100000,
        "concavity": 0.0025,
        "alpha": 0.04,
        "beta": 0.05,
        "convex_hull_approximation": True,
        "convex_hull_downsampling": 4,
        "max_convex_hulls": 64,
        "max_num_vertices_per_ch": 64,
        "min_volume_per_ch": 0.0001,
        "mode": 0,
        "ocl_acceleration": True,
        "pca": 0,
        "plane_downsampling": 4,
        "project_hull_vertices": True,
    }


class AssetOptions(Record):
    """Options of reading a robot file.

    Options without a counterpart in MuJoCo are accepted without effect. docs/isaacgym.md lists
    them.
    """

    FIELDS: ClassVar = {
        "default_dof_drive_mode": DofDriveMode.DOF_MODE_NONE,
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
        "override_com": False,
        "override_inertia": False,
        "convex_decomposition_from_submeshes": False,
        "vhacd_enabled": False,
        "vhacd_params": VhacdParams(),
        "mesh_normal_mode": MeshNormalMode.FROM_ASSET,
        "slices_per_cylinder": 20,
        "min_particle_mass": 1e-12,
        "tendon_limit_stiffness": 1.0,
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


HeightFieldProperties = HeightFieldParams
"""The name of earlier versions of Isaac Gym."""


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

    ``friction`` and ``filter`` have an effect. The others are accepted.
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
    """Properties of a body.

    ``mass`` is in kg. ``com`` is the center of mass in the frame of the body, m. ``inertia`` is the
    matrix of inertia about the center of mass, along the axes of the body, kg m². ``invMass`` and
    ``invInertia`` are read only: writing has no effect.
    """

    FIELDS: ClassVar = {
        "mass": 0.0,
        "com": Vec3(),
        "inertia": Mat33(),
        "invMass": 0.0,
        "invInertia": Mat33(),
        "flags": 0,
    }

    @classmethod
    def from_arrays(cls, mass: float, com: np.ndarray, matrix: np.ndarray) -> Self:
        """Return the properties of a body; their matrices are made when they are read.

        Args:
            mass: Mass, kg.
            com: Center of mass, m. Shape: (3,).
            matrix: Matrix of inertia, kg m². Shape: (3, 3).
        """
        body = cls.__new__(cls)
        body.mass = mass
        body.com = Vec3(*com)
        body.invMass = 1.0 / mass
        body.flags = 0
        object.__setattr__(body, "_matrix", matrix)
        return body

    def reads_inertia(self) -> bool:
        """Return True if the inertia was read or set, so that it may have been changed."""
        return "_inertia" in vars(self)

    @property
    def inertia(self) -> Mat33:
        """Matrix of inertia, kg m²."""
        if not self.reads_inertia():
            object.__setattr__(self, "_inertia", Mat33.from_array(self._matrix))
        matrix: Mat33 = self._inertia
        return matrix

    @inertia.setter
    def inertia(self, value: Mat33) -> None:
        object.__setattr__(self, "_inertia", value)

    @property
    def invInertia(self) -> Mat33:
        """Inverse of the matrix of inertia, 1/(kg m²), as it was when the body was read."""
        if "_inverse" not in vars(self):
            inverse = Mat33.from_array(np.linalg.inv(self._matrix))
            object.__setattr__(self, "_inverse", inverse)
        matrix: Mat33 = self._inverse
        return matrix

    @invInertia.setter
    def invInertia(self, value: Mat33) -> None:
        object.__setattr__(self, "_inverse", value)


class ForceSensorProperties(Record):
    """Quantities that a force sensor measures.

    ``enable_constraint_solver_forces`` adds the forces of contacts,
    ``enable_forward_dynamics_forces`` all others: of gravity, of joints, and applied forces. With
    both, a body at rest has none.
    """

    FIELDS: ClassVar = {
        "enable_forward_dynamics_forces": True,
        "enable_constraint_solver_forces": True,
        "use_world_frame": False,
    }


class ActuatorProperties(Record):
    """A motor of a robot's file."""

    FIELDS: ClassVar = {
        "control_limited": False,
        "force_limited": False,
        "kp": 0.0,
        "kv": 0.0,
        "lower_control_limit": 0.0,
        "lower_force_limit": 0.0,
        "motor_effort": 0.0,
        "upper_control_limit": 0.0,
        "upper_force_limit": 0.0,
    }


class DofState(Record):
    """State of a joint. Arrays of states have the type ``DofState.dtype``."""

    FIELDS: ClassVar = {"pos": 0.0, "vel": 0.0}
    dtype: ClassVar = np.dtype([("pos", "<f4"), ("vel", "<f4")])


class RigidBodyState(Record):
    """State of a body. Arrays of states have the type ``RigidBodyState.dtype``."""

    FIELDS: ClassVar = {"pose": Transform(), "vel": Velocity()}
    dtype: ClassVar = np.dtype([("pose", Transform.dtype), ("vel", Velocity.dtype)])


class Version(Record):
    """Version of Isaac Gym."""

    FIELDS: ClassVar = {"major": 1, "minor": 0}


class CameraProperties(Record):
    """Size of a picture, pixels, its horizontal field of view, degrees, and the range of distances
    that are drawn, m."""

    FIELDS: ClassVar = {
        "width": 1600,
        "height": 900,
        "horizontal_fov": 90.0,
        "enable_tensors": False,
        "near_plane": 0.001,
        "far_plane": 2000000.0,
        "supersampling_horizontal": 1,
        "supersampling_vertical": 1,
        "use_collision_geometry": False,
    }
