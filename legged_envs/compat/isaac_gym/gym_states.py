"""Functions of Isaac Gym for the states of single actors, bodies and joints, as arrays of NumPy.

Each raises a RuntimeError before ``prepare_sim``.
"""

from collections.abc import Sequence

import numpy as np
import torch

from legged_envs.compat.isaac_gym.enums import DofDriveMode, StateFlag
from legged_envs.compat.isaac_gym.records import DofState, RigidBodyState
from legged_envs.compat.isaac_gym.sim import Env, Sim
from legged_envs.compat.isaac_gym.vectors import Quat, Transform, Vec3

DOF_STATE_DTYPE = DofState.dtype
"""Fields of the state of a joint."""

BODY_STATE_DTYPE = RigidBodyState.dtype
"""Fields of the state of a body."""


class StateFunctions:
    """Functions that read and write the state of one actor. Tensors do so for all at once."""

    def get_actor_rigid_body_states(
        self, env: Env, handle: int, flags: int = StateFlag.STATE_ALL
    ) -> np.ndarray:
        """Return the state of each body, with the fields ``pose`` and ``vel``."""
        rows = read_rows(env, "rigid_body_state", env.locate_bodies(handle))
        return rows.view(BODY_STATE_DTYPE)[:, 0]

    def get_env_rigid_body_states(self, env: Env, flags: int = StateFlag.STATE_ALL) -> np.ndarray:
        """Return the state of each body of an environment, with the fields ``pose`` and ``vel``."""
        rows = read_rows(env, "rigid_body_state", range(env.count_bodies()))
        return rows.view(BODY_STATE_DTYPE)[:, 0]

    def get_sim_rigid_body_states(self, sim: Sim, flags: int = StateFlag.STATE_ALL) -> np.ndarray:
        """Return the state of each body of all environments, with ``pose`` and ``vel``."""
        values = sim.running("get_sim_rigid_body_states").read("rigid_body_state")
        rows = np.ascontiguousarray(values.flatten(0, 1).numpy().astype(np.float32))
        return rows.view(BODY_STATE_DTYPE)[:, 0]

    def get_vec_actor_dof_states(
        self, envs: Sequence[Env], handle: int | Sequence[int], flags: int = StateFlag.STATE_ALL
    ) -> np.ndarray:
        """Return the state of each joint of one actor of several environments, one after another.

        With a list of handles, of the actor of each environment.
        """
        handles = list(handle) if isinstance(handle, Sequence) else [handle] * len(envs)
        # Read once for all environments.
        values = envs[0].sim.running("get_vec_actor_dof_states").read("dof_state")
        states = []
        for env, own in zip(envs, handles, strict=True):
            place = env.locate_dofs(own)
            states.append(values[env.index, place.start : place.stop])
        rows = np.ascontiguousarray(torch.cat(states).numpy().astype(np.float32))
        return rows.view(DOF_STATE_DTYPE)[:, 0]

    def get_rigid_transform(self, env: Env, handle: int) -> Transform:
        """Return the pose of a body, by its index in the environment."""
        row = _read_body(env, handle)
        position = Vec3(*row[:3])
        return Transform(position, Quat(*row[3:7]))

    def get_rigid_linear_velocity(self, env: Env, handle: int) -> Vec3:
        """Return the velocity of the center of mass of a body, m/s."""
        row = _read_body(env, handle)
        return Vec3(*row[7:10])

    def get_rigid_angular_velocity(self, env: Env, handle: int) -> Vec3:
        """Return the angular velocity of a body, rad/s."""
        row = _read_body(env, handle)
        return Vec3(*row[10:13])

    def get_actor_dof_states(
        self, env: Env, handle: int, flags: int = StateFlag.STATE_ALL
    ) -> np.ndarray:
        """Return the state of each joint of an actor, with the fields ``pos`` and ``vel``."""
        rows = read_rows(env, "dof_state", env.locate_dofs(handle))
        return rows.view(DOF_STATE_DTYPE)[:, 0]

    def get_actor_dof_forces(self, env: Env, handle: int) -> np.ndarray:
        """Return the force of each joint of an actor, N·m. Shape: (num_dofs,)."""
        return read_rows(env, "dof_force", env.locate_dofs(handle))[:, 0]

    def set_actor_dof_states(
        self, env: Env, handle: int, states: np.ndarray, flags: int = StateFlag.STATE_ALL
    ) -> bool:
        """Set the state of each joint of an actor.

        Args:
            env: The environment.
            handle: Handle of the actor.
            states: States with the fields ``pos`` and ``vel``. Shape: (num_dofs,).
            flags: Whether positions, velocities or both are set, a ``StateFlag``.

        Raises:
            ValueError: If the shape or the fields do not fit.
        """
        place = env.locate_dofs(handle)
        given = np.asarray(states)
        if given.shape != (len(place),) or given.dtype != DOF_STATE_DTYPE:
            raise ValueError(
                f"set_actor_dof_states: got {given.dtype} of shape {given.shape}, "
                f"expected what get_actor_dof_states gives, of shape ({len(place)},)"
            )
        rows = read_rows(env, "dof_state", place)
        if flags & StateFlag.STATE_POS:
            rows[:, 0] = given["pos"]
        if flags & StateFlag.STATE_VEL:
            rows[:, 1] = given["vel"]
        state = env.sim.running("set_actor_dof_states")
        states_of_all = torch.zeros(state.num_envs, env.count_dofs(), 2)
        states_of_all[env.index, place.start : place.stop] = torch.from_numpy(rows)
        state.write_dofs(states_of_all, _get_row(env, handle))
        return True

    def set_actor_dof_position_targets(self, env: Env, handle: int, targets: np.ndarray) -> bool:
        """Set the targets of the joints of an actor in mode POS, rad. Shape: (num_dofs,)."""
        function = "set_actor_dof_position_targets"
        return _drive_actor(env, handle, targets, DofDriveMode.DOF_MODE_POS, function)

    def set_actor_dof_velocity_targets(self, env: Env, handle: int, targets: np.ndarray) -> bool:
        """Set the targets of the joints of an actor in mode VEL, rad/s. Shape: (num_dofs,)."""
        function = "set_actor_dof_velocity_targets"
        return _drive_actor(env, handle, targets, DofDriveMode.DOF_MODE_VEL, function)

    def apply_actor_dof_efforts(self, env: Env, handle: int, efforts: np.ndarray) -> bool:
        """Set the forces of the joints of an actor for the next step, N·m. Shape: (num_dofs,)."""
        function = "apply_actor_dof_efforts"
        return _drive_actor(env, handle, efforts, DofDriveMode.DOF_MODE_EFFORT, function)


def read_rows(env: Env, name: str, place: range) -> np.ndarray:
    """Return present rows of a tensor of one environment. Shape: (rows, columns), float32."""
    state = env.sim.running(f"reading the {name}")
    values = state.read(name)
    rows = values[env.index, place.start : place.stop]
    array = rows.numpy().astype(np.float32)
    return np.ascontiguousarray(array)


def _read_body(env: Env, handle: int) -> np.ndarray:
    """Return the present state of one body, by its index in the environment. Shape: (13,)."""
    place = range(handle, handle + 1)
    return read_rows(env, "rigid_body_state", place)[0]


def _get_row(env: Env, handle: int) -> torch.Tensor:
    """Return the index of an actor among the actors of all environments."""
    num_before = env.index * len(env.actors)
    return torch.tensor([num_before + handle])


def _drive_actor(
    env: Env, handle: int, values: np.ndarray, mode: DofDriveMode, function: str
) -> bool:
    place = env.locate_dofs(handle)
    given = np.asarray(values, np.float32)
    if given.shape != (len(place),):
        raise ValueError(f"gym.{function}: got shape {given.shape}, expected ({len(place)},)")
    state = env.sim.running(function)
    values_of_all = torch.zeros(state.num_envs, env.count_dofs())
    values_of_all[env.index, place.start : place.stop] = torch.from_numpy(given)
    state.drive(values_of_all, mode, _get_row(env, handle))
    return True
