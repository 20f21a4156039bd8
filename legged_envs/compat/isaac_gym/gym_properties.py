"""Functions of Isaac Gym for the properties of actors: masses, friction and drives."""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from legged_envs.compat.isaac_gym.actor import Actor
from legged_envs.compat.isaac_gym.enums import DofDriveMode
from legged_envs.compat.isaac_gym.gym_assets import make_shape_properties, read_friction
from legged_envs.compat.isaac_gym.inertia import find_principal_axes, make_matrices
from legged_envs.compat.isaac_gym.records import RigidBodyProperties, RigidShapeProperties
from legged_envs.compat.isaac_gym.sim import Env

NOT_NEGATIVE_FIELDS = ("velocity", "stiffness", "damping", "effort", "armature", "friction")
"""Properties of a joint that must be finite and at least 0."""


class PropertyFunctions:
    """Functions that get and set the properties of an actor.

    A call that is refused changes nothing.
    """

    def get_actor_rigid_shape_properties(self, env: Env, handle: int) -> list[RigidShapeProperties]:
        """Return the properties of the shapes of an actor."""
        actor = env.actor(handle)
        return make_shape_properties(actor.friction, actor.shape_filters)

    def set_actor_rigid_shape_properties(
        self, env: Env, handle: int, props: Sequence[RigidShapeProperties]
    ) -> bool:
        """Set the properties of the shapes of an actor.

        Filters must be the same in all environments, and stay after ``prepare_sim``.

        Raises:
            ValueError: If the number of shapes or a friction does not fit, or a filter changes
                after ``prepare_sim``.
        """
        shapes = list(props)
        actor = env.actor(handle)
        friction = _keep_digits(read_friction(shapes, len(actor.friction)), actor.friction)
        filters = tuple(int(shape.filter) for shape in shapes)
        if filters != actor.shape_filters and env.sim.state is not None:
            raise ValueError(
                f"set_actor_rigid_shape_properties: filters stay {actor.shape_filters} "
                f"after prepare_sim, got {filters}: set them before"
            )
        actor.shape_filters = filters
        return env.sim.set_actor(env, handle, friction=friction)

    def get_actor_dof_properties(self, env: Env, handle: int) -> np.ndarray:
        """Return a copy of the properties of the joints of an actor."""
        return env.actor(handle).dofs.copy()

    def set_actor_dof_properties(self, env: Env, handle: int, props: np.ndarray) -> bool:
        """Set the properties of the joints of an actor."""
        given = np.array(props)
        _check_dof_properties(given, env.actor(handle).dofs)
        return env.sim.set_actor(env, handle, dofs=given)

    def enable_actor_dof_force_sensors(self, env: Env, handle: int) -> bool:
        """Return True: the forces of joints are always measured."""
        return bool(env.actor(handle))

    def get_actor_rigid_body_properties(self, env: Env, handle: int) -> list[RigidBodyProperties]:
        """Return the properties of the bodies of an actor."""
        actor = env.actor(handle)
        matrices = make_matrices(actor.get_inertia(), actor.axes)
        properties = []
        for mass, com, matrix in zip(actor.mass, actor.com, matrices, strict=True):
            # Most scripts do not read the matrices, and making them takes most of the time.
            properties.append(RigidBodyProperties.from_arrays(mass, com, matrix))
        return properties

    def set_actor_rigid_body_properties(
        self,
        env: Env,
        handle: int,
        props: Sequence[RigidBodyProperties],
        recomputeInertia: bool = False,
    ) -> bool:
        """Set masses, centers of mass and inertias.

        An inertia that was not changed grows with the mass, as does any with ``recomputeInertia``.

        Args:
            env: The environment.
            handle: Handle of the actor.
            props: Properties of each body.
            recomputeInertia: Derive the inertias from the masses.

        Raises:
            ValueError: If the number of bodies, a mass or an inertia does not fit.
        """
        bodies = list(props)
        actor = env.actor(handle)
        mass = np.array([body.mass for body in bodies])
        if len(mass) != len(actor.mass) or not (mass > 0).all():
            raise ValueError(
                f"set_actor_rigid_body_properties: expected {len(actor.mass)} bodies "
                f"with masses above 0, got {mass.tolist()}"
            )
        com = np.array([body.com.values for body in bodies])
        inertia = None
        if not recomputeInertia:
            inertia = _read_inertia(bodies, actor)
        return env.sim.set_actor(
            env,
            handle,
            mass=_keep_digits(mass, actor.mass),
            com=_keep_digits(com, actor.com),
            inertia=inertia,
        )

    def get_actor_tendon_properties(self, *args: object) -> NoReturn:
        """Raise a NotImplementedError."""
        raise NotImplementedError("get_actor_tendon_properties: actors have no tendons")

    def set_actor_tendon_properties(self, *args: object) -> NoReturn:
        """Raise a NotImplementedError."""
        raise NotImplementedError("set_actor_tendon_properties: actors have no tendons")

    def set_actor_scale(self, *args: object) -> NoReturn:
        """Raise a NotImplementedError."""
        raise NotImplementedError(
            "set_actor_scale: all environments have one model, in which sizes are fixed: "
            "scale the sizes in the file of the robot, or those given to create_box"
        )


def _keep_digits(given: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return given values, with the present one where a given value is its float32.

    Records hold float32. Values that a script reads and writes back must not change.
    """
    is_unchanged = given == present.astype(np.float32)
    return np.where(is_unchanged, present, given)


def _read_inertia(
    bodies: Sequence[RigidBodyProperties], actor: Actor
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return which bodies have another inertia than before, and their moments and axes.

    Returns:
        A mask, (num_bodies,), principal moments, (num_bodies, 3), and axes as quaternions
        (w, x, y, z), (num_bodies, 4). None: all inertias are as before.
    """
    if not any(body.reads_inertia() for body in bodies):
        return None
    given = np.array([body.inertia.to_array() for body in bodies])
    present = make_matrices(actor.get_inertia(), actor.axes).astype(np.float32)
    is_changed = (given != present).any(axis=(1, 2))
    # Records that a script made by itself have no inertia.
    is_changed &= given.any(axis=(1, 2))
    if not is_changed.any():
        return None
    for index in np.flatnonzero(is_changed):
        moments = np.linalg.eigvalsh(given[index])
        if moments[0] <= 0:
            raise ValueError(
                f"set_actor_rigid_body_properties: the inertia of body {int(index)} "
                f"has the principal moments {moments.tolist()}, and all must be above 0: "
                "scale all of the matrix alike"
            )
    moments_of_bodies, axes = find_principal_axes(given)
    return is_changed, moments_of_bodies, axes


def _check_dof_properties(given: np.ndarray, present: np.ndarray) -> None:
    if given.dtype != present.dtype or given.shape != present.shape:
        raise ValueError(
            f"set_actor_dof_properties: got {given.dtype} of shape {given.shape}, "
            f"expected what get_asset_dof_properties gives, of shape {present.shape}"
        )
    for name in NOT_NEGATIVE_FIELDS:
        # An infinite stiffness or effort would become NaN in the engine.
        values = given[name]
        if not ((values >= 0) & np.isfinite(values)).all():
            raise ValueError(
                f"set_actor_dof_properties: {name} must be finite and not negative, "
                f"got {values.tolist()}"
            )
    # Limits of a joint without limits are not read, so they may be in any order.
    is_unlimited = ~given["hasLimits"]
    if not (is_unlimited | (given["lower"] <= given["upper"])).all():
        raise ValueError(
            "set_actor_dof_properties: lower must not be above upper, "
            f"got {given['lower'].tolist()} and {given['upper'].tolist()}"
        )
    if not np.isin(given["driveMode"], list(DofDriveMode)).all():
        raise ValueError(
            "set_actor_dof_properties: driveMode must be one of gymapi.DofDriveMode, 0 to 3, "
            f"got {given['driveMode'].tolist()}"
        )
