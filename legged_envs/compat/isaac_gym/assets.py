"""Robots from URDF and MJCF files, with the bodies, joints and names that Isaac Gym gives them."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from legged_envs.compat.isaac_gym.actuators import Actuator, read_actuators
from legged_envs.compat.isaac_gym.enums import DofDriveMode
from legged_envs.compat.isaac_gym.index_range import IndexRange
from legged_envs.compat.isaac_gym.record import LARGEST
from legged_envs.compat.isaac_gym.records import DOF_DTYPE, AssetOptions, ForceSensorProperties
from legged_envs.compat.isaac_gym.vectors import Transform
from legged_envs.robots.reading.inertia import LEAST_INERTIA
from legged_envs.robots.reading.mjcf import read_mjcf
from legged_envs.robots.reading.root import free_root
from legged_envs.robots.reading.urdf import LEAST_MASS, read_urdf
from legged_envs.tables import shorten

GROUP_OF_VISIBLE = 2
"""Group of shapes that pictures show."""

GROUP_OF_HIDDEN = 3
"""Group of shapes that pictures do not show."""

ERROR_LENGTH = 400
"""Largest number of characters of a reader's error that is passed on."""


@dataclass
class ForceSensor:
    """A force sensor of a robot."""

    body: int
    """Index of its body in the robot."""
    pose: Transform
    """Its pose in the frame of the body."""
    properties: ForceSensorProperties
    """Quantity that it measures."""


class Asset:
    """A robot of a file.

    Bodies are in depth-first order. In a URDF the children of a body are in the order of the names
    of their joints, as in Isaac Gym.

    With ``collapse_fixed_joints`` links of fixed joints are merged into their parents, except for
    joints with ``dont_collapse``. A link without inertia gets the inertia of its collision shapes.
    An inertia that no body can have is replaced by the nearest possible one.

    Args:
        path: URDF or MJCF file.
        options: Options of reading.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If an option does not fit, or the file has something that cannot be kept.
    """

    def __init__(self, path: Path, options: AssetOptions):
        self.path = path
        """File of the robot."""
        self.options = options
        """Options with which it is read."""
        self._check_source()
        self._max_speeds: dict[str, float] = {}
        # Sets the speeds of the joints, too.
        self.spec = self.read(visuals=False)
        """Specification without the shapes that are only seen."""
        model = self.spec.compile()
        # Body 0 is the world.
        self.body_names = [model.body(i).name for i in range(1, model.nbody)]
        """Names of the bodies."""
        dof_joints = np.flatnonzero(model.jnt_type != mujoco.mjtJoint.mjJNT_FREE)
        # Isaac Gym does not count a free joint.
        self.dof_names = [model.joint(i).name for i in dof_joints]
        """Names of the joints, without the free joint."""
        self.mass: np.ndarray = model.body_mass[1:]
        """Mass of each body, kg. Shape: (num_bodies,)."""
        self.com: np.ndarray = model.body_ipos[1:]
        """Center of mass of each body in the body's frame, m. Shape: (num_bodies, 3)."""
        self.inertia: np.ndarray = model.body_inertia[1:]
        """Principal moments of inertia of each body, kg m². Shape: (num_bodies, 3)."""
        self.axes: np.ndarray = model.body_iquat[1:]
        """Principal axes of each body in the body's frame, quaternions (w, x, y, z).
        Shape: (num_bodies, 4)."""
        self.dof_slides = model.jnt_type[dof_joints] == mujoco.mjtJoint.mjJNT_SLIDE
        """True for the joints that slide. Shape: (num_dofs,)."""
        self.dof_properties = self._make_dof_properties(model, dof_joints)
        """Properties of the joints, with the fields ``DOF_DTYPE``. Shape: (num_dofs,)."""
        shapes = np.flatnonzero(model.geom_contype | model.geom_conaffinity)

        self.shape_bodies: np.ndarray = model.geom_bodyid[shapes] - 1
        """Index of the body of each shape that collides. Shape: (num_shapes,)."""
        self.shape_filters: tuple[int, ...] = (0,) * len(shapes)
        """Bits of the collision filter of each shape, for actors that are created next."""
        self.force_sensors: list[ForceSensor] = []
        """Force sensors of actors that are created next."""
        # A URDF has no friction, so each shape has Isaac Gym's default.
        self.friction: np.ndarray = np.ones(len(shapes))
        """Coefficient of friction of each shape that collides, for actors that are created next.
        Shape: (num_shapes,)."""
        if path.suffix == ".xml":
            self.friction = model.geom_friction[shapes, 0]

    @cached_property
    def actuators(self) -> list[Actuator]:
        """Motors of the file, which drive nothing."""
        return read_actuators(self.path)

    def list_shape_ranges(self) -> list[IndexRange]:
        """Return the shapes of each body that collide, as a range of indices."""
        ranges = []
        for body in range(len(self.body_names)):
            # MuJoCo sorts shapes by their bodies.
            start = int(np.searchsorted(self.shape_bodies, body))
            end = int(np.searchsorted(self.shape_bodies, body, side="right"))
            ranges.append(IndexRange(start, end - start))
        return ranges

    def read(self, visuals: bool) -> mujoco.MjSpec:
        """Read the file.

        Args:
            visuals: Keep the shapes that are only seen.

        Returns:
            The robot with a free base or, with ``fix_base_link``, a base with a mocap body.

        Raises:
            ValueError: If the file has something that cannot be kept. The error names it.
        """
        try:
            return self._read(visuals)
        except (ElementTree.ParseError, ValueError) as error:
            raise ValueError(
                f"load_asset: {str(self.path)!r}: {shorten(str(error), ERROR_LENGTH)}"
            ) from error

    def _check_source(self) -> None:
        """Check the options and that there is such a file."""
        check_options(self.options)
        if not self.path.is_file():
            raise FileNotFoundError(f"load_asset: there is no file {str(self.path)!r}")
        if self.path.suffix.lower() not in (".urdf", ".xml"):
            raise ValueError(
                f"load_asset reads .urdf and .xml (MJCF) files, got {str(self.path)!r}"
            )

    def _read(self, visuals: bool) -> mujoco.MjSpec:
        spec, not_collapsed = self._read_file(visuals)
        self._set_shapes(spec)
        base = spec.worldbody.bodies[0]
        # MuJoCo does not fuse a body that an exclusion of contacts names. The exclusions of links
        # that stay are deleted when the others are fused.
        exclusions = []
        for name in not_collapsed:
            exclusions.append(spec.add_exclude(bodyname1=name, bodyname2=base.name))
        # Without a free joint MuJoCo would fuse the base into the world.
        free_root(spec)
        spec.compiler.boundmass = LEAST_MASS
        spec.compiler.boundinertia = LEAST_INERTIA
        spec.compiler.fusestatic = self.options.collapse_fixed_joints
        spec.compile()
        for exclusion in exclusions:
            spec.delete(exclusion)
        # The scene is compiled from this specification, and must keep the links that stay.
        spec.compiler.fusestatic = False
        # Joint 0 is the free joint.
        for joint in spec.joints[1:]:
            joint.armature += self.options.armature
        if self.options.disable_gravity:
            for body in spec.bodies[1:]:
                body.gravcomp = 1.0
        if self.options.fix_base_link:
            _fix_base(spec)
        return spec

    def _read_file(self, visuals: bool) -> tuple[mujoco.MjSpec, list[str]]:
        """Return the specification and the names of the links that must not be collapsed."""
        if self.path.suffix.lower() == ".urdf":
            spec, max_speeds, not_collapsed = read_urdf(self.path, visuals, self.options.density)
            self._max_speeds = max_speeds
            return spec, not_collapsed
        return read_mjcf(self.path, visuals), []

    def _set_shapes(self, spec: mujoco.MjSpec) -> None:
        """Set group, mass and type of all shapes."""
        drawn_bodies = set()
        for geom in spec.geoms:
            if not _collides(geom):
                drawn_bodies.add(geom.parent.name)
        for geom in spec.geoms:
            if not _collides(geom):
                geom.group = GROUP_OF_VISIBLE
                # Parts that are only drawn must not change the physics.
                geom.mass = 0.0
                continue
            # Collision shapes are drawn if their body has nothing else to show.
            is_hidden = geom.parent.name in drawn_bodies
            geom.group = GROUP_OF_HIDDEN if is_hidden else GROUP_OF_VISIBLE
            is_cylinder = geom.type == mujoco.mjtGeom.mjGEOM_CYLINDER
            if is_cylinder and self.options.replace_cylinder_with_capsule:
                geom.type = mujoco.mjtGeom.mjGEOM_CAPSULE

    def _make_dof_properties(self, model: mujoco.MjModel, joints: np.ndarray) -> np.ndarray:
        """Return the properties of joints as in the file, and ``LARGEST`` for missing limits."""
        properties = np.zeros(len(joints), DOF_DTYPE)
        columns = model.jnt_dofadr[joints]
        is_limited = model.jnt_limited[joints] > 0
        properties["hasLimits"] = is_limited
        properties["driveMode"] = self.options.default_dof_drive_mode
        properties["lower"] = np.where(is_limited, model.jnt_range[joints, 0], -LARGEST)
        properties["upper"] = np.where(is_limited, model.jnt_range[joints, 1], LARGEST)
        # A limit of 0 in a file means that there is none.
        properties["velocity"] = [self._max_speeds.get(name) or LARGEST for name in self.dof_names]
        properties["effort"] = [effort or LARGEST for effort in model.jnt_actfrcrange[joints, 1]]
        properties["damping"] = model.dof_damping[columns]
        properties["friction"] = model.dof_frictionloss[columns]
        properties["armature"] = model.dof_armature[columns]
        return properties


def check_options(options: AssetOptions) -> None:
    """Check the options of an asset.

    Raises:
        ValueError: If one does not fit.
    """
    mode = options.default_dof_drive_mode
    if mode not in tuple(DofDriveMode):
        raise ValueError(
            "load_asset: default_dof_drive_mode must be one of gymapi.DofDriveMode, 0 to 3, "
            f"got {mode!r}"
        )
    if options.density < 0:
        raise ValueError(f"load_asset: density must not be negative, got {options.density:g}")


def _collides(geom: mujoco.MjsGeom) -> bool:
    return bool(geom.contype or geom.conaffinity)


def _fix_base(spec: mujoco.MjSpec) -> None:
    """Replace the free joint of the base by a mocap body, which a script can still place."""
    base = spec.worldbody.bodies[0]
    spec.delete(spec.joint("root"))
    base.mocap = True
    # The pose of the actor is the pose of the base.
    base.pos = [0, 0, 0]
    base.quat = [1, 0, 0, 0]
    # MuJoCo takes a fixed base for a part of the world, with which its children would collide.
    for child in base.bodies:
        spec.add_exclude(bodyname1=base.name, bodyname2=child.name)
