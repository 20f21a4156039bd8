"""Some bodies of every robot, and indices of columns."""

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.sim.simulation import Simulation
from legged_envs.tables import TableRepr


def index_of(ids: list[int], device: torch.device) -> slice | Tensor:
    """Return an index of columns: a slice if they are evenly spaced, because a view is free.

    Args:
        ids: Columns, in increasing order if they are evenly spaced.
        device: Device of the index if it is a tensor. Shape: (n,), int64.
    """
    if not ids:
        return slice(0, 0)
    stride = 1
    if len(ids) > 1:
        stride = ids[1] - ids[0]
    end = ids[-1] + 1
    if ids == list(range(ids[0], end, stride)):
        return slice(ids[0], end, stride)
    return torch.tensor(ids, device=device)


class Bodies(TableRepr):
    """Some bodies of every robot; `RobotState.bodies` makes them and keeps them current.

    Args:
        sim: Simulation of the robot.
        names: Names of the bodies, one or more.

    Raises:
        ValueError: There are no names, or the robot has no body of one of the names.
    """

    pos_b: Tensor
    """Positions in the base frame, m, of body and base in the last physics step. Shape: (num_envs,
    num_bodies, 3)."""

    def __init__(self, sim: Simulation, names: tuple[str, ...]):
        self.sim = sim
        """Simulation of the robot."""
        if not names:
            raise ValueError(
                f"bodies needs the names of one or more bodies; bodies: {', '.join(sim.body_names)}"
            )
        self._base = sim.body_ids((sim.robot.base_body,))[0]
        self._ids = index_of(sim.body_ids(names), sim.device)
        self.read()
        self.compute()

    def _describe(self) -> str:
        return f"{self.sim}"

    def read(self) -> None:
        """Take the simulation's tensors of this moment, for `compute`."""
        self._body_pos_w = self.sim.body_pos_w
        self._body_quat_w = self.sim.body_quat_w

    def compute(self) -> None:
        """Compute the positions of every environment from what was read."""
        self.pos_b = self._in_base_frame(self._body_pos_w, self._body_quat_w)

    def refresh(self, env_ids: Tensor) -> None:
        """Read the simulation again, and compute the positions of ``env_ids`` (n,)."""
        self.read()
        pos_b = self._in_base_frame(self._body_pos_w[env_ids], self._body_quat_w[env_ids])
        self.pos_b = self.pos_b.index_copy(0, env_ids, pos_b)

    def _in_base_frame(self, body_pos_w: Tensor, body_quat_w: Tensor) -> Tensor:
        # Base and bodies of the same physics step: `root_pos_w`, which does not lag, would be that
        # of another one.
        from_base = body_pos_w[:, self._ids] - body_pos_w[:, self._base, None]
        return rotation.rotate_inverse(body_quat_w[:, self._base], from_base)
