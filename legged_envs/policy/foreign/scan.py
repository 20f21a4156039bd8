"""Height scans of policies of other frameworks: a grid of points around the base."""

import math
from dataclasses import dataclass

from torch import Tensor

from legged_envs.mdp import observations
from legged_envs.mdp.context import Env
from legged_envs.policy.foreign.fields import Fields

MOST_POINTS = 10_000
"""Largest number of points of a scan. Those of Isaac Lab's tasks have 187."""

USUAL_OFFSET = 0.5
"""Height of the base for which a scan is 0, m, if a file does not specify it: Isaac Lab's."""

NO_GRID = (
    "the file does not define its points: add size, [length, width], and resolution of the "
    "task's RayCasterCfg, m, to its params"
)
"""Reason for a scan that cannot be mapped, for errors."""

SLACK = 1e-6
"""Part of a point's distance by which a grid may be too short for its last point. Sizes such as 1.6
are not multiples of 0.1 in floating point."""


@dataclass(frozen=True)
class HeightScan:
    """Height of the base above the ground at a grid of points, minus an offset, as in Isaac Lab.

    The grid is centred on the base and turns with its heading. Points with the same y are
    neighbours.
    """

    x: tuple[float, ...]
    """Distances of the points ahead of the base, m."""
    y: tuple[float, ...]
    """Distances of the points to the left of the base, m."""
    offset: float
    """Height of the base above the ground for which the value is 0, m."""

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.x) * len(self.y)

    def __call__(self, env: Env) -> Tensor:
        """Return the scan of each robot. Shape: (num_envs, size)."""
        values = observations.height_scan(
            env, self.x, self.y, self.offset, limit=math.inf, lookup="height"
        )
        # Ours has points with the same x as neighbours.
        by_x = values.unflatten(1, (len(self.x), len(self.y)))
        return by_x.transpose(1, 2).flatten(1)


def grid_lines(size: float, resolution: float) -> tuple[float, ...]:
    """Return the distances of the points of a grid from its middle, m.

    Args:
        size: Length of the grid, m.
        resolution: Distance of neighbouring points, m.
    """
    count = math.floor(size / resolution + SLACK) + 1
    return tuple(-0.5 * size + number * resolution for number in range(count))


def says_grid(term: Fields) -> bool:
    """Return True if the parameters of an observation term give `size` and `resolution`.

    They define the grid of a height scan. unitree_rl_lab does not write them into its deploy.yaml,
    so users of a policy with a height scan have to add them.
    """
    params = term.values.get("params")
    return isinstance(params, dict) and "size" in params and "resolution" in params


def read_scan(term: Fields, offset: float = USUAL_OFFSET) -> HeightScan:
    """Read where a height scan looks from the parameters of its term.

    Args:
        term: Entry of the term.
        offset: Height of the base for which a value is 0, m, if the parameters have no `offset`.

    Raises:
        ValueError: If a number is missing or wrong, or there are too many points.
    """
    params = term.section("params")
    resolution = params.positive("resolution")
    length, width = params.numbers("size", 2)
    most = MOST_POINTS * resolution
    if not (0.0 <= length < most and 0.0 <= width < most):
        raise ValueError(
            f"{params.path('size')} must be 0 to {most:g} m, got {[length, width]}: correct it"
        )
    x = grid_lines(length, resolution)
    y = grid_lines(width, resolution)
    if len(x) * len(y) > MOST_POINTS:
        raise ValueError(
            f"{params.path('resolution')} = {resolution:g} makes {len(x) * len(y):,} points, and "
            f"at most {MOST_POINTS:,} are looked at: correct it"
        )
    return HeightScan(x=x, y=y, offset=params.number("offset", offset))
