"""Cached constants of the joints of a robot."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import torch
from torch import Tensor

from legged_envs.sim.bodies import index_of
from legged_envs.sim.simulation import Simulation

Value = TypeVar("Value")


class JointTables:
    """Gives :class:`~legged_envs.sim.RobotState` constants that are computed at their first use."""

    sim: Simulation
    joint_pos_limits: Tensor
    _tables: dict[Hashable, Any]

    def joint_index(self, joints: tuple[int, ...]) -> slice | Tensor:
        """Return an index that selects joints by their numbers in ``RobotCfg.joint_names``.

        It is a slice if the numbers are evenly spaced, otherwise a tensor. Shape: (n,), int64.
        """
        return self.table(("joint_index", joints), lambda: index_of(list(joints), self.sim.device))

    def soft_joint_pos_limits(self, fraction: float) -> tuple[Tensor, Tensor]:
        """Return the lower and the upper end of each joint's range, narrowed to a fraction, rad.

        The narrowed range has the same middle. Joints without limits have ±inf. Shape:
        (num_joints,) each.

        Args:
            fraction: Width of the narrowed range divided by the width of the joint's range.
        """

        def shrink() -> tuple[Tensor, Tensor]:
            low, high = self.joint_pos_limits.unbind(1)
            middle = (low + high) / 2
            half_width = (high - low) / 2 * fraction
            is_limited = low.isfinite() & high.isfinite()
            soft_low = torch.where(is_limited, middle - half_width, low)
            soft_high = torch.where(is_limited, middle + half_width, high)
            return soft_low, soft_high

        return self.table(("soft_joint_pos_limits", fraction), shrink)

    def table(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return a cached value. The first call with a key computes it.

        Terms use it for constants, such as tensors that depend on the robot only.

        Args:
            key: Key of the value in the cache.
            make: Function that computes the value.
        """
        if key not in self._tables:
            self._tables[key] = make()
        return self._tables[key]
