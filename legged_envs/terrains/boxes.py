"""Boxes on a height field: steps of stairs with vertical faces.

The risers of a height field are not vertical, because they fall over the distance between two of
its points. A box has vertical faces. Where boxes cover the height field, the field is lowered, so
that robots collide with the boxes only.
"""

import numpy as np

from legged_envs.terrains.grid import CELL_TOLERANCE, Array, Grid, Pair, value_at

STEP_HEIGHT = (0.05, 0.2)
"""Default heights of a step of stairs at d = 0 and d = 1, m."""

STEP_WIDTH = 0.4
"""Default width of a step of stairs, m."""

PLATFORM = 3 / 8
"""Default side of the flat platform in the middle of stairs, as a fraction of the tile's side."""

BELOW_BOX = 0.005
"""Distance from the top of a box down to the height field inside it, m."""


def stairs_down_boxes(
    difficulty: float,
    grid: Grid,
    height: Pair = STEP_HEIGHT,
    width: float = STEP_WIDTH,
    platform: float = PLATFORM,
) -> Array:
    """Return the steps of ``stairs_down`` as boxes: a square box per step.

    The parameters are those of ``stairs_down``. Shape: (count, 6), see ``Terrain.boxes``.
    """
    step, sides = _steps(difficulty, grid, height, width, platform)
    boxes = [np.zeros((0, 6))]
    for number, half in enumerate(sides, start=1):
        boxes.append(_square(half, bottom=(number - 2) * step, top=number * step))
    return np.concatenate(boxes)


def stairs_up_boxes(
    difficulty: float,
    grid: Grid,
    height: Pair = STEP_HEIGHT,
    width: float = STEP_WIDTH,
    platform: float = PLATFORM,
) -> Array:
    """Return the steps of ``stairs_up`` as boxes: a frame of four boxes per step.

    The parameters are those of ``stairs_up``. Shape: (count, 6), see ``Terrain.boxes``.
    """
    step, sides = _steps(difficulty, grid, height, width, platform)
    boxes = [np.zeros((0, 6))]
    outer = grid.half
    for number, half in enumerate(sides):
        boxes.append(_frame(half, outer, bottom=-(number + 2) * step, top=-number * step))
        outer = half
    return np.concatenate(boxes)


def _steps(
    difficulty: float, grid: Grid, height: Pair, width: float, platform: float
) -> tuple[float, list[float]]:
    """Return the height of a step, m, and half of the side of each square step, m, outermost first.

    Without height there are no steps.
    """
    step = float(grid.rounded(value_at(difficulty, height)))
    around = grid.half - grid.middle(platform)
    count = int(around / width + CELL_TOLERANCE) if step > 0.0 else 0
    return step, [grid.half - number * width for number in range(1, count + 1)]


def _square(half: float, bottom: float, top: float) -> Array:
    """Return a square box around the middle of a tile. Shape: (1, 6), see ``Terrain.boxes``.

    Args:
        half: Half of the side of the square, m.
        bottom: Height of the lower face, m.
        top: Height of the upper face, m.
    """
    return np.array([[0.0, 0.0, (bottom + top) / 2, half, half, (top - bottom) / 2]])


def _frame(inner: float, outer: float, bottom: float, top: float) -> Array:
    """Return four boxes around a square hole. Shape: (4, 6), see ``Terrain.boxes``.

    Args:
        inner: Half of the side of the hole, m.
        outer: Half of the side of the frame, m.
        bottom: Height of the lower faces, m.
        top: Height of the upper faces, m.
    """
    middle = (inner + outer) / 2
    across = (outer - inner) / 2
    z = (bottom + top) / 2
    half_z = (top - bottom) / 2
    # Two boxes are as long as the frame, and two fit between them.
    return np.array(
        [
            [-middle, 0.0, z, across, outer, half_z],
            [middle, 0.0, z, across, outer, half_z],
            [0.0, -middle, z, inner, across, half_z],
            [0.0, middle, z, inner, across, half_z],
        ]
    )


def lowered(heights: Array, boxes: Array, x: Array, y: Array) -> Array:
    """Return the heights of a tile's points, m, lowered so that boxes stand out of them.

    The upper faces of the boxes have the heights of the tile. Each returned height is the lowest of
    a point and its eight neighbours, so that no riser of the height field is outside of a box.
    Points inside a box, with all their neighbours, are lowered further by ``BELOW_BOX``.

    Args:
        heights: Heights of the points, m. Shape: (n, n).
        boxes: Boxes on the tile, relative to its middle. Shape: (count, 6).
        x: x of each point relative to the middle of the tile, m. Shape: (n, n).
        y: y of each point relative to the middle of the tile, m. Shape: (n, n).
    """
    if not len(boxes):
        return heights
    is_covered = np.zeros(heights.shape, bool)
    for box_x, box_y, _, half_x, half_y, _ in boxes:
        is_covered |= (abs(x - box_x) <= half_x) & (abs(y - box_y) <= half_y)
    is_inside = _lowest_neighbour(is_covered)
    lowest = _lowest_neighbour(heights) - BELOW_BOX * is_inside
    # The points at the edge belong to the neighbouring tiles too.
    result = heights.copy()
    result[1:-1, 1:-1] = lowest[1:-1, 1:-1]
    return result


def _lowest_neighbour(values: Array) -> Array:
    """Return the smallest value of each point and its eight neighbours. Shape: (n, n)."""
    padded = np.pad(values, 1, mode="edge")
    squares = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    return squares.min(axis=(2, 3))
