"""The points of a square tile of ground, and checks of their heights."""

from typing import Any

import numpy as np
import numpy.typing as npt

from legged_envs.checks import check_number

Array = npt.NDArray[Any]
"""Type of a NumPy array with elements of any type."""
Pair = tuple[float, float]
"""Type of a parameter that depends on the difficulty d: its values at d = 0 and at d = 1."""
MAX_HEIGHT_STEP = 10.0
"""Largest height difference between neighbouring points, m. Larger ones are probably heights in
other units."""
CELL_TOLERANCE = 1e-6
"""Tolerance of distances, as a fraction of a cell. It covers rounding errors in sums of lengths."""


class Grid:
    """The points of one square tile of ground. Generators of tiles return a height for each.

    There are n = ``size`` / ``horizontal_scale`` + 1 points along each side. The outermost points
    are shared with neighbouring tiles. A cell is the square between four neighbouring points.

    Args:
        size: Side of the tile, m.
        horizontal_scale: Distance between neighbouring points, m.
        vertical_scale: Resolution of heights, m.
    """

    def __init__(self, size: float, horizontal_scale: float, vertical_scale: float):
        self.horizontal_scale = horizontal_scale
        """Distance between neighbouring points, m."""
        self.vertical_scale = vertical_scale
        """Resolution of heights, m: heights of a tile are multiples of it."""
        self.cells = round(size / horizontal_scale)
        """Number of cells along each side: n − 1."""
        self.half = self.cells / 2 * horizontal_scale
        """Half of the tile's side, m."""
        line = (np.arange(self.cells + 1) - self.cells / 2) * horizontal_scale
        x, y = np.meshgrid(line, line, indexing="ij")

        self.x = x
        """x of each point relative to the middle of the tile, m. Shape: (n, n)."""
        self.y = y
        """y of each point relative to the middle of the tile, m. Shape: (n, n)."""
        self.ring = np.maximum(abs(x), abs(y))
        """Distance of each point from the middle, max(|x|, |y|), m. Shape: (n, n).

        It is constant on squares around the middle of the tile.
        """

    def beyond(self, distance: float) -> Array:
        """Return True for points outside of the square with half side ``distance``, m.

        The square is in the middle of the tile. Shape: (n, n), bool.
        """
        return self.ring > distance + CELL_TOLERANCE * self.horizontal_scale

    def middle(self, platform: float) -> float:
        """Return half of the side of the flat platform in the middle of the tile, m.

        Args:
            platform: Side of the platform as a fraction of the tile's side, in [0, 1).

        Raises:
            ValueError: ``platform`` is outside of [0, 1).
        """
        check_number("platform", platform, 0.0, below=1.0)
        return platform * self.half

    def rounded(self, heights: Any) -> Any:
        """Return ``heights``, m, rounded to multiples of ``vertical_scale``."""
        return np.round(heights / self.vertical_scale) * self.vertical_scale


def value_at(difficulty: float, pair: Pair) -> float:
    """Return the value of a terrain parameter at a difficulty, linear in between.

    Args:
        difficulty: Difficulty from 0 to 1.
        pair: Values of the parameter at the difficulties 0 and 1.
    """
    easiest, hardest = pair
    return easiest + difficulty * (hardest - easiest)


def check_heights(where: str, heights: Array, shape: tuple[int, ...] | None = None) -> None:
    """Check that heights are a two-dimensional array of finite numbers without spikes.

    Args:
        where: Name of the heights in error messages.
        heights: Heights, m.
        shape: Expected shape. None: any shape with two dimensions.

    Raises:
        ValueError: The heights are not numbers, have another shape, are not finite, or differ by
            more than ``MAX_HEIGHT_STEP`` between neighbouring points.
    """
    is_numeric = heights.dtype.kind in "iuf"
    # np.asarray makes an array of anything, also of objects and strings.
    has_shape = shape is None or heights.shape == shape
    if not is_numeric or heights.ndim != 2 or not has_shape:
        raise ValueError(
            f"{where} must be numbers of shape {shape or '(nx, ny)'}, "
            f"got {heights.dtype} {heights.shape}"
        )
    finite = np.isfinite(heights)
    if not finite.all():
        point = np.argwhere(~finite)[0]
        raise ValueError(
            f"{where} must be finite, that at {point.tolist()} is {heights[tuple(point)]}"
        )
    step = steepest_step(heights)
    if step > MAX_HEIGHT_STEP:
        raise ValueError(
            f"{where} must have steps of at most {MAX_HEIGHT_STEP:g} m between neighbours, "
            f"one is {step:g} m"
        )


def steepest_step(heights: Array) -> float:
    """Return the largest height difference between points that are neighbours along x or y, m."""
    # float32 would round differences of large heights.
    exact = heights.astype(np.float64, copy=False)
    along_x = abs(exact[1:] - exact[:-1]).max(initial=0.0)
    along_y = abs(exact[:, 1:] - exact[:, :-1]).max(initial=0.0)
    return max(float(along_x), float(along_y))
