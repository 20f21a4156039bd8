"""Ranges of velocity commands for robots that start on some kinds of tiles."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from legged_envs.sim.ground import Ground

VELOCITY_RANGES = ("lin_vel_x", "lin_vel_y", "ang_vel_z")
"""Names of the ranges of vx, vy and ωz, in this order."""


class KindRanges:
    """Bounds of velocity commands (vx, vy, ωz) by the kind of tile on which a robot starts.

    Args:
        ranges: Kind of tile → name of a range, one of :data:`VELOCITY_RANGES` → the range.
        ground: The ground. None: a plane, where no range applies.
        device: Device of the commands.
    """

    def __init__(
        self,
        ranges: Mapping[str, Mapping[str, tuple[float, float]]],
        ground: "Ground | None",
        device: torch.device,
    ):
        self._ground = ground
        # Of each kind: columns of its tiles, (k,), and bounds (low, high), (3,). A bound is NaN
        # where the kind has the range of all tiles.
        self._kinds: list[tuple[Tensor, Tensor, Tensor]] = []
        if ground is None:
            return
        for kind, own in ranges.items():
            columns = [i for i, name in enumerate(ground.terrain.kinds) if name == kind]
            spans = [own.get(name, (torch.nan, torch.nan)) for name in VELOCITY_RANGES]
            bounds = torch.tensor(spans, dtype=torch.float32, device=device)
            low, high = bounds.unbind(1)
            self._kinds.append((torch.tensor(columns, device=device), low, high))

    def bounds(
        self, low: Tensor, high: Tensor, env_ids: Tensor | slice = slice(None)
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the bounds of the commands of some robots.

        Args:
            low: Lower bounds where the kind of a tile gives none. Shape: (3,).
            high: Upper bounds where the kind of a tile gives none. Shape: (3,).
            env_ids: Environments of the robots, shape (n,), or a slice.

        Returns:
            True for robots on tiles with ranges of their own, and lower and upper bounds. Shapes:
            (n, 1), (n, 3), (n, 3); (1,), (3,), (3,) on a plane or without ranges.
        """
        has_own = torch.zeros(1, dtype=torch.bool, device=low.device)
        own_low = low
        own_high = high
        for columns, kind_low, kind_high in self._kinds:
            assert self._ground is not None
            is_on_kind = torch.isin(self._ground.columns[env_ids], columns).unsqueeze(1)
            has_own = has_own | is_on_kind
            own_low = torch.where(is_on_kind & ~kind_low.isnan(), kind_low, own_low)
            own_high = torch.where(is_on_kind & ~kind_high.isnan(), kind_high, own_high)
        return has_own, own_low, own_high
