"""Robots in environments, and the fields of the model in which they may differ."""

from dataclasses import dataclass

import mujoco
import numpy as np

from legged_envs.compat.isaac_gym.assets import Asset
from legged_envs.compat.isaac_gym.enums import DofDriveMode
from legged_envs.compat.isaac_gym.ground import Ground
from legged_envs.compat.isaac_gym.record import LARGEST
from legged_envs.compat.isaac_gym.scene import Part
from legged_envs.compat.isaac_gym.vectors import Transform

CONSTANT_INPUTS = {"body_mass", "body_inertia", "body_ipos", "body_iquat", "dof_armature"}
"""Fields of the model from which the engine derives others."""

Place = tuple[slice | np.ndarray | int, ...]
"""Index of the values of one actor in a field of the model."""


@dataclass
class ActorProperties:
    """Properties in which the actors of one robot may differ.

    Arrays of one actor have the shapes below. Those of an actor of every environment have one more
    dimension in front, (num_envs, …).
    """

    friction: np.ndarray
    """Coefficient of friction of each shape that collides. Shape: (num_shapes,)."""
    mass: np.ndarray
    """Mass of each body, kg. Shape: (num_bodies,)."""
    com: np.ndarray
    """Center of mass of each body in the body's frame, m. Shape: (num_bodies, 3)."""
    inertia: np.ndarray
    """Principal moments of inertia of each body, kg m². Shape: (num_bodies, 3)."""
    axes: np.ndarray
    """Principal axes of each body in the body's frame, quaternions (w, x, y, z).
    Shape: (num_bodies, 4)."""
    dofs: np.ndarray
    """Properties of each DOF, with the fields ``DOF_DTYPE``. Shape: (num_dofs,)."""


class Actor:
    """One robot in one environment.

    Args:
        asset: The robot.
        pose: Pose at the start.
        name: Name of the actor.
        group: Collision group.
        collision_filter: Bits of the collision filter. Negative numbers are 0.
        segmentation_id: Number of its bodies in pictures of segmentation.
    """

    __slots__ = (
        "_reference_inertia",
        "_reference_mass",
        "asset",
        "axes",
        "collision_filter",
        "com",
        "dofs",
        "friction",
        "group",
        "mass",
        "name",
        "pose",
        "segmentation_ids",
        "shape_filters",
    )

    def __init__(
        self,
        asset: Asset,
        pose: Transform,
        name: str,
        group: int,
        collision_filter: int,
        segmentation_id: int = 0,
    ):
        self.asset = asset
        """The robot."""
        self.name = name
        """Name of the actor."""
        self.group = group
        """Collision group."""
        self.collision_filter = max(collision_filter, 0)
        """Bits of the collision filter."""
        self.shape_filters = asset.shape_filters
        """Bits of the collision filter of each shape. If there are any, they count instead of
        ``collision_filter`` for the parts of the robot."""
        self.segmentation_ids: tuple[int, ...] = (segmentation_id,) * len(asset.body_names)
        """Number of each body in pictures of segmentation. Shape: (num_bodies,)."""
        self.pose: tuple[float, ...] = (
            *pose.p.values,
            pose.r.x,
            pose.r.y,
            pose.r.z,
            pose.r.w,
        )
        """Pose at the start: position, m, and quaternion (x, y, z, w)."""
        # Thousands of actors share the arrays of the asset. A setter replaces an array and never
        # writes into it.
        self.friction: np.ndarray = asset.friction
        """Coefficient of friction of each shape that collides. Shape: (num_shapes,)."""
        self.mass: np.ndarray = asset.mass
        """Mass of each body, kg. Shape: (num_bodies,)."""
        self.com: np.ndarray = asset.com
        """Center of mass of each body in the body's frame, m. Shape: (num_bodies, 3)."""
        self.axes: np.ndarray = asset.axes
        """Principal axes of each body in the body's frame, quaternions (w, x, y, z).
        Shape: (num_bodies, 4)."""
        self.dofs: np.ndarray = asset.dof_properties
        """Properties of each DOF, with the fields ``DOF_DTYPE``. Shape: (num_dofs,)."""
        # A body that gets heavier keeps its distribution of mass: the inertia for one mass gives
        # that for any.
        self._reference_mass: np.ndarray = asset.mass
        self._reference_inertia: np.ndarray = asset.inertia

    def collides_with(self, other: "Actor") -> bool:
        """Return True if two actors, or the parts of one, collide.

        Actors collide in one group, and with all of group −1, unless their filters have a bit in
        common. Filters of shapes count later, for each two bodies.
        """
        if self is other and any(self.shape_filters):
            return True
        meets = self.group == other.group or -1 in (self.group, other.group)
        return meets and not self.collision_filter & other.collision_filter

    def get_inertia(self) -> np.ndarray:
        """Return the principal moments of inertia of each body, kg m². Shape: (num_bodies, 3)."""
        return self._reference_inertia * (self.mass / self._reference_mass)[:, None]

    def set_inertia(self, bodies: np.ndarray, moments: np.ndarray, axes: np.ndarray) -> None:
        """Set the inertia of some bodies, for their present masses.

        Args:
            bodies: Bodies with an inertia to set. Shape: (num_bodies,), bool.
            moments: Principal moments, kg m². Shape: (num_bodies, 3).
            axes: Principal axes, quaternions (w, x, y, z). Shape: (num_bodies, 4).
        """
        columns = bodies[:, None]
        self._reference_mass = np.where(bodies, self.mass, self._reference_mass)
        self._reference_inertia = np.where(columns, moments, self._reference_inertia)
        self.axes = np.where(columns, axes, self.axes)

    def get_properties(self) -> ActorProperties:
        """Return the properties in which it may differ from others."""
        return ActorProperties(
            friction=self.friction,
            mass=self.mass,
            com=self.com,
            inertia=self.get_inertia(),
            axes=self.axes,
            dofs=self.dofs,
        )


def stack_properties(actors: list[Actor]) -> ActorProperties:
    """Return the properties of one actor of each environment, (num_envs, …) each."""
    return ActorProperties(
        friction=np.stack([actor.friction for actor in actors]),
        mass=np.stack([actor.mass for actor in actors]),
        com=np.stack([actor.com for actor in actors]),
        inertia=np.stack([actor.get_inertia() for actor in actors]),
        axes=np.stack([actor.axes for actor in actors]),
        dofs=np.stack([actor.dofs for actor in actors]),
    )


def mix_friction(friction: np.ndarray, ground: Ground | None) -> np.ndarray:
    """Return the friction of contacts with the ground from the friction of shapes.

    Tasks give shapes negative frictions, which a ground of friction 1 makes positive.

    Raises:
        ValueError: If the friction of a contact is negative.
    """
    mixed = friction
    if ground is not None:
        # PhysX takes the average of two shapes (legged_gym, anymal_c_flat_config).
        mixed = 0.5 * (friction + ground.friction)
    if (mixed < 0).any():
        least = float(friction.min())
        needed = 0.0 if ground is None else -ground.friction
        raise ValueError(
            f"rigid shape properties: friction {least:g} is too low for this ground: "
            f"give at least {needed:g}"
        )
    return mixed


@dataclass
class FieldValues:
    """Values of an actor in one field of the model."""

    name: str
    """Name of the field."""
    place: Place
    """Index of the values in the field."""
    values: np.ndarray
    """The values, of one environment or, with one more dimension in front, of each."""


def make_field_values(
    model: mujoco.MjModel, part: Part, ground: Ground | None, own: ActorProperties
) -> list[FieldValues]:
    """Return the fields of the model that the properties of an actor decide.

    The force of a DOF, limited by its effort, depends on its drive mode:

    * POS: ``kp (target − q) − (kd + kp h) v`` with the physics step h
    * VEL: ``kd (target − v)``
    * EFFORT: the force that is set, minus ``kd v``
    * NONE: ``−kd v``

    Args:
        model: The model.
        part: The actor's parts of its arrays.
        ground: The ground. None: there is no ground.
        own: Properties of the actor, in one environment or in each.
    """
    friction = mix_friction(own.friction, ground)
    mode = own.dofs["driveMode"]
    kd = own.dofs["damping"].astype(float)
    kp = np.where(mode == DofDriveMode.DOF_MODE_POS, own.dofs["stiffness"], 0.0)
    # The engine integrates damping implicitly and stiffness explicitly. The term kp h makes the
    # stiffness implicit too, as in PhysX.
    damping = -kd - kp * model.opt.timestep
    gain = np.where(mode == DofDriveMode.DOF_MODE_EFFORT, 1.0, kp)
    gain = np.where(mode == DofDriveMode.DOF_MODE_VEL, kd, gain)
    effort = own.dofs["effort"].astype(float)
    limits = np.stack((own.dofs["lower"], own.dofs["upper"]), axis=-1).astype(float)
    limits = np.where(own.dofs["hasLimits"][..., None], limits, (-LARGEST, LARGEST))
    columns = model.jnt_dofadr[part.joints]
    return [
        FieldValues("geom_friction", (part.geoms, 0), friction),
        FieldValues("body_mass", (part.bodies,), own.mass),
        FieldValues("body_inertia", (part.bodies,), own.inertia),
        FieldValues("body_ipos", (part.bodies,), own.com),
        FieldValues("body_iquat", (part.bodies,), own.axes),
        FieldValues("actuator_gainprm", (part.dofs, 0), gain),
        FieldValues("actuator_biasprm", (part.dofs, 1), -kp),
        FieldValues("actuator_biasprm", (part.dofs, 2), damping),
        FieldValues("actuator_forcerange", (part.dofs,), np.stack((-effort, effort), axis=-1)),
        FieldValues("dof_frictionloss", (columns,), own.dofs["friction"].astype(float)),
        FieldValues("dof_armature", (columns,), own.dofs["armature"].astype(float)),
        FieldValues("jnt_range", (part.joints,), limits),
    ]
