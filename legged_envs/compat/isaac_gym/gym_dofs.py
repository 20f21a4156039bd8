"""Functions of Isaac Gym for single joints, by the handles of ``find_actor_dof_handle``.

Each raises a RuntimeError before ``prepare_sim``.
"""

import numpy as np

from legged_envs.compat.isaac_gym.enums import DofDriveMode
from legged_envs.compat.isaac_gym.gym_states import read_rows
from legged_envs.compat.isaac_gym.sim import Env


class DofFunctions:
    """Functions that read and drive one joint. Tensors do so for all at once."""

    def get_dof_position(self, env: Env, handle: int) -> float:
        """Return the position of a joint, rad or m."""
        return float(_read_dof(env, handle)[0])

    def get_dof_velocity(self, env: Env, handle: int) -> float:
        """Return the velocity of a joint, rad/s or m/s."""
        return float(_read_dof(env, handle)[1])

    def get_joint_position(self, env: Env, handle: int) -> float:
        """Return the position of a joint, rad or m. The handles of joints are those of DOFs."""
        return self.get_dof_position(env, handle)

    def get_joint_velocity(self, env: Env, handle: int) -> float:
        """Return the velocity of a joint, rad/s or m/s."""
        return self.get_dof_velocity(env, handle)

    def get_dof_target_position(self, env: Env, handle: int) -> float:
        """Return the target of a joint in mode POS, rad or m; 0 in another mode."""
        return float(_read_targets(env, DofDriveMode.DOF_MODE_POS)[_check(env, handle)])

    def get_dof_target_velocity(self, env: Env, handle: int) -> float:
        """Return the target of a joint in mode VEL, rad/s or m/s; 0 in another mode."""
        return float(_read_targets(env, DofDriveMode.DOF_MODE_VEL)[_check(env, handle)])

    def set_dof_target_position(self, env: Env, handle: int, target: float) -> None:
        """Set the target of a joint in mode POS, rad or m."""
        _drive_dof(env, handle, target, DofDriveMode.DOF_MODE_POS, "set_dof_target_position")

    def set_dof_target_velocity(self, env: Env, handle: int, target: float) -> None:
        """Set the target of a joint in mode VEL, rad/s or m/s."""
        _drive_dof(env, handle, target, DofDriveMode.DOF_MODE_VEL, "set_dof_target_velocity")

    def apply_dof_effort(self, env: Env, handle: int, effort: float) -> None:
        """Set the force of a joint in mode EFFORT for the next step, N·m or N."""
        _drive_dof(env, handle, effort, DofDriveMode.DOF_MODE_EFFORT, "apply_dof_effort")

    def get_actor_dof_position_targets(self, env: Env, handle: int) -> np.ndarray:
        """Return the targets of an actor's joints, 0 of those not in mode POS. (num_dofs,)."""
        place = env.locate_dofs(handle)
        return _read_targets(env, DofDriveMode.DOF_MODE_POS)[place.start : place.stop]

    def get_actor_dof_velocity_targets(self, env: Env, handle: int) -> np.ndarray:
        """Return the targets of an actor's joints, 0 of those not in mode VEL. (num_dofs,)."""
        place = env.locate_dofs(handle)
        return _read_targets(env, DofDriveMode.DOF_MODE_VEL)[place.start : place.stop]


def _check(env: Env, handle: int) -> int:
    num_dofs = env.count_dofs()
    if not 0 <= handle < num_dofs:
        raise ValueError(
            f"the handle of a DOF must be 0 to {num_dofs - 1}, got {handle}: "
            "take it from find_actor_dof_handle"
        )
    return handle


def _read_dof(env: Env, handle: int) -> np.ndarray:
    """Return position and velocity of a joint. Shape: (2,)."""
    _check(env, handle)
    return read_rows(env, "dof_state", range(handle, handle + 1))[0]


def _read_targets(env: Env, mode: DofDriveMode) -> np.ndarray:
    """Return the targets of the joints of an environment, 0 in another mode. (num_dofs,)."""
    state = env.sim.running("reading targets of DOFs")
    controls = state.batch.bind("ctrl")[env.index]
    is_driven = state.modes[env.index].numpy() == int(mode)
    return np.where(is_driven, controls, 0.0).astype(np.float32)


def _drive_dof(env: Env, handle: int, value: float, mode: DofDriveMode, function: str) -> None:
    _check(env, handle)
    if not np.isfinite(value):
        raise ValueError(f"gym.{function}: needs a finite number, got {value}")
    env.sim.running(function).drive_one(env.index, handle, float(value), mode)
