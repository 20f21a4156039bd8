"""Positions of selected bodies of a robot in the base frame, and indices of columns."""

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.sim.simulation import Simulation
from legged_envs.tables import TableRepr


def index_of(ids: list[int], device: torch.device) -> slice | Tensor:
    """Return an index that selects columns of a tensor.

    It is a slice if the columns are evenly spaced, because a slice gives a view without a copy.
    Otherwise it is a tensor. Shape: (n,), int64.

    Args:
        ids: Numbers of the n columns, in the wanted order.
        device: Device of the index if it is a tensor.
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
    """Selected bodies of the robot in every environment, such as hands or feet.

    `RobotState.bodies` makes this object and updates it in every control step.

    Args:
        sim: Simulation of the robot.
        names: Names of the bodies, one or more.

    Raises:
        ValueError: There are no names, or the robot has no body with one of the names.
    """

    pos_b: Tensor
    """Positions of the bodies relative to the base, in the base frame, m.

    Bodies and base are those at the start of the last physics step. After a reset they are current.
    Shape: (num_envs, number of names, 3).
    """

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
        """Store the simulation's present poses of bodies, for `compute`."""
        self._body_pos_w = self.sim.body_pos_w
        self._body_quat_w = self.sim.body_quat_w

    def compute(self) -> None:
        """Compute ``pos_b`` of every environment from the poses that `read` has stored."""
        self.pos_b = self._in_base_frame(self._body_pos_w, self._body_quat_w)

    def refresh(self, env_ids: Tensor) -> None:
        """Read the simulation again, and compute ``pos_b`` of ``env_ids`` only. Shape: (n,)."""
        self.read()
        pos_b = self._in_base_frame(self._body_pos_w[env_ids], self._body_quat_w[env_ids])
        self.pos_b = self.pos_b.index_copy(0, env_ids, pos_b)

    def _in_base_frame(self, body_pos_w: Tensor, body_quat_w: Tensor) -> Tensor:
        # Base and bodies must be of the same physics step, so body_pos_w of the base is used.
        # `root_pos_w` does not lag: it is one physics step later.
        from_base = body_pos_w[:, self._ids] - body_pos_w[:, self._base, None]
        return rotation.rotate_inverse(body_quat_w[:, self._base], from_base)
