"""Limits of the speeds of DOFs.

The engine has none. In Isaac Gym ``velocity`` is the largest speed of a DOF. A torque of a script
holds for a whole step, so a light link under stiff gains swings between its limits of torque, and
this limit is then all that keeps its speed small.
"""

import torch
from torch import Tensor


def find_slice(columns: Tensor) -> Tensor | slice:
    """Return columns as a slice if they are consecutive: selecting by a slice copies nothing."""
    first = int(columns[0]) if len(columns) else 0
    consecutive = torch.arange(first, first + len(columns))
    if torch.equal(columns, consecutive):
        return slice(first, first + len(columns))
    return columns


class SpeedLimits:
    """Keeps DOFs at their largest speed or below it.

    Args:
        max_speeds: Largest speed of each DOF, rad/s or m/s. Shape: (num_envs, num_dofs).
        qpos_columns: Column of each DOF in ``qpos``. Shape: (num_dofs,).
        qvel_columns: Column of each DOF in ``qvel``. Shape: (num_dofs,).
        timestep: Time of a physics step, s.
    """

    def __init__(
        self, max_speeds: Tensor, qpos_columns: Tensor, qvel_columns: Tensor, timestep: float
    ):
        self.max_speeds = max_speeds
        """Largest speed of each DOF, rad/s or m/s. Shape: (num_envs, num_dofs)."""
        self._qpos_columns = qpos_columns
        self._qvel_columns = qvel_columns
        self._selected_speeds = find_slice(qvel_columns)
        self._timestep = timestep

    def stop_driving(self, forces: Tensor, qvel: Tensor, is_effort: Tensor) -> None:
        """Clear forces that would drive a DOF on which is at its largest speed.

        Args:
            forces: Force on each DOF, changed in place. Shape: (num_envs, num_dofs).
            qvel: Velocities. Shape: (num_envs, nv).
            is_effort: True for DOFs in mode EFFORT. Shape: (num_envs, num_dofs).
        """
        speeds = qvel[:, self._selected_speeds]
        is_at_limit = speeds.abs() >= self.max_speeds
        # A force against the motion still brakes.
        is_driven_on = speeds * forces > 0.0
        forces.masked_fill_(is_effort & is_at_limit & is_driven_on, 0.0)

    def apply(self, qpos: Tensor, qvel: Tensor) -> None:
        """Slow down what became too fast in the last physics step, and take back its excess way.

        Args:
            qpos: Positions, changed in place. Shape: (num_envs, nq).
            qvel: Velocities, changed in place. Shape: (num_envs, nv).
        """
        speeds = qvel[:, self._selected_speeds]
        is_too_fast = speeds.abs() > self.max_speeds
        # In most steps there is none.
        if not is_too_fast.any():
            return
        allowed = torch.minimum(torch.maximum(speeds, -self.max_speeds), self.max_speeds)
        envs, dofs = is_too_fast.nonzero(as_tuple=True)
        excess = (speeds - allowed)[envs, dofs]
        qpos[envs, self._qpos_columns[dofs]] -= self._timestep * excess
        qvel[envs, self._qvel_columns[dofs]] = allowed[envs, dofs]
