"""Generators of rough ground: functions that return the heights of a square tile.

Each function makes one kind of tile, such as stairs. Its first arguments are a difficulty d in
[0, 1), a random stream and a :class:`Grid` with the points of the tile. It returns the heights of
the points, m, with shape (n, n), and raises a ValueError for parameters outside of their ranges.

A parameter that is a pair of numbers has the first value at d = 0 and changes linearly to the
second value at d = 1. Robots start on a flat platform in the middle of the tile. The parameter
``platform`` is its side as a fraction of the tile's side: 3/8 are 3 m of 8 m.

**Tiles meet at height 0.** The outermost points of each tile are set to 0, so that there is no
step between any two tiles. Ground that climbs outwards (``slope_up``, ``stairs_up``, ``pit``)
therefore has its middle below 0, and ground that descends outwards has its middle above 0. Walls
are not vertical: they fall over the distance ``horizontal_scale`` between two points. A gap of n
points is n cells wide at half of its depth. Only stairs can have vertical walls, as boxes
(``TerrainCfg.vertical_risers``).

Formulas and defaults follow LeggedGym-Ex. Kinds that LeggedGym-Ex does not have follow Isaac Lab's
rough terrains.
"""

import numpy as np

from legged_envs.checks import check_number
from legged_envs.terrains.boxes import (
    PLATFORM,
    STEP_HEIGHT,
    STEP_WIDTH,
    stairs_down_boxes,
    stairs_up_boxes,
)
from legged_envs.terrains.grid import CELL_TOLERANCE, Array, Grid, Pair, value_at
from legged_envs.terrains.kinds import GENERATORS as GENERATORS
from legged_envs.terrains.kinds import Random
from legged_envs.terrains.kinds import make_tile as make_tile
from legged_envs.terrains.kinds import register_kind as register_kind


def flat(difficulty: float, random: Random, grid: Grid) -> Array:
    """Return the heights of flat ground: 0 at every point and every difficulty.

    Args:
        difficulty: Not used.
        random: Not used.
        grid: Points of the tile.
    """
    return np.zeros(grid.x.shape)


def slope_down(
    difficulty: float,
    random: Random,
    grid: Grid,
    slope: Pair = (0.0, 0.4),
    platform: float = 3 / 8,
) -> Array:
    """Return the heights of a pyramid: ground that falls outwards with the slope 0.4 d.

    ``slope_up`` is the same upside down, which robots climb.

    Args:
        difficulty: Difficulty d in [0, 1).
        random: Not used.
        grid: Points of the tile.
        slope: Slopes at d = 0 and d = 1.
        platform: Side of the flat platform in the middle, as a fraction of the tile's side.
    """
    around = grid.half - np.maximum(grid.ring, grid.middle(platform))
    return value_at(difficulty, slope) * around


def slope_up(
    difficulty: float,
    random: Random,
    grid: Grid,
    slope: Pair = (0.0, 0.4),
    platform: float = 3 / 8,
) -> Array:
    """Return the heights of a funnel: ground that climbs outwards with the slope 0.4 d.

    It is ``slope_down`` upside down, with the same parameters.
    """
    return -slope_down(difficulty, random, grid, slope, platform)


def rough(
    difficulty: float,
    random: Random,
    grid: Grid,
    spread: Pair = (0.02, 0.1),
    spacing: float = 0.2,
) -> Array:
    """Return the heights of uneven ground: random heights from −``spread`` / 2 to ``spread`` / 2.

    Heights between the random points are linear. The platform is 1/8 of the tile's side. The
    default spreads are the ends of Isaac Lab's range; at d = 1 they give LeggedGym-Ex's ± 0.05 m.

    Args:
        difficulty: Difficulty d in [0, 1).
        random: Random stream of the tile.
        grid: Points of the tile.
        spread: Differences between the highest and the lowest random height at d = 0 and d = 1, m.
        spacing: Distance between neighbouring random points, m.
    """
    # Highest multiple of the vertical scale within the spread.
    steps = int(value_at(difficulty, spread) / 2 / grid.vertical_scale + CELL_TOLERANCE)
    # Random points are not closer than the grid's.
    cells = max(spacing / grid.horizontal_scale, 1.0)
    nodes = np.arange(np.ceil(grid.cells / cells - CELL_TOLERANCE) + 1)
    points = np.arange(grid.cells + 1)[:, None]
    # Hat functions: the weight of each random point falls to 0 at its neighbours.
    weights = np.maximum(0.0, 1.0 - abs(points / cells - nodes))
    noise = random.integers(-steps, steps + 1, (len(nodes), len(nodes)))
    noise = weights @ noise @ weights.T
    return noise * grid.vertical_scale * grid.beyond(grid.middle(1 / 8))


def rough_slope(
    difficulty: float,
    random: Random,
    grid: Grid,
    slope: Pair = (0.0, 0.4),
    spread: Pair = (0.1, 0.1),
) -> Array:
    """Return the heights of a pyramid with uneven ground: ``slope_down`` plus ``rough``.

    The unevenness is ± 0.05 m, as in legged_gym. The platform is 3/8 of the tile's side.

    Args:
        difficulty: Difficulty d in [0, 1).
        random: Random stream of the tile.
        grid: Points of the tile.
        slope: Slopes at d = 0 and d = 1.
        spread: Differences between the highest and the lowest random height at d = 0 and d = 1, m.
    """
    noise = rough(difficulty, random, grid, spread) * grid.beyond(grid.middle(3 / 8))
    return slope_down(difficulty, random, grid, slope) + noise


def rubble(
    difficulty: float,
    random: Random,
    grid: Grid,
    height: Pair = (0.02, 0.1),
    width: float = 0.3,
) -> Array:
    """Return the heights of rubble: ``boxes`` plus ``rough``. The numbers are this package's.

    Args:
        difficulty: Difficulty d in [0, 1).
        random: Random stream of the tile.
        grid: Points of the tile.
        height: Largest absolute heights of the boxes at d = 0 and d = 1, m.
        width: Side of a box, m.
    """
    # The boxes draw their random numbers before the noise.
    blocks = boxes(difficulty, random, grid, height, width)
    return blocks + rough(difficulty, random, grid)


def stairs_down(
    difficulty: float,
    random: Random,
    grid: Grid,
    height: Pair = STEP_HEIGHT,
    width: float = STEP_WIDTH,
    platform: float = PLATFORM,
) -> Array:
    """Return the heights of square stairs around the platform that lead down outwards.

    There are as many steps as fit around the platform, which is enlarged by the rest. ``stairs_up``
    are the same upside down, which robots climb.

    Args:
        difficulty: Difficulty d in [0, 1).
        random: Not used.
        grid: Points of the tile.
        height: Heights of a step at d = 0 and d = 1, m.
        width: Width of a step, m.
        platform: Side of the flat platform in the middle, as a fraction of the tile's side.
    """
    middle = grid.middle(platform)
    check_number("width", width, grid.horizontal_scale, grid.half - middle)
    around = grid.half - np.maximum(grid.ring, middle)
    return grid.rounded(value_at(difficulty, height)) * np.floor(around / width + CELL_TOLERANCE)


def stairs_up(
    difficulty: float,
    random: Random,
    grid: Grid,
    height: Pair = STEP_HEIGHT,
    width: float = STEP_WIDTH,
    platform: float = PLATFORM,
) -> Array:
    """Return the heights of square stairs around the platform that lead up outwards.

    They are ``stairs_down`` upside down, with the same parameters.
    """
    return -stairs_down(difficulty, random, grid, height, width, platform)


def obstacles(
    difficulty: float,
    random: Random,
    grid: Grid,
    height: Pair = (0.05, 0.2),
    side: Pair = (1.0, 2.0),
    count: int = 20,
) -> Array:
    """Return the heights of flat ground with random raised and sunken rectangles.

    The height of a rectangle is −h, −h/2, h/2 or h, where h is ``height``. Where two overlap, the
    later one counts. The platform is 3/8 of the tile's side.

    Args:
        difficulty: Difficulty d in [0, 1).
        random: Random stream of the tile.
        grid: Points of the tile.
        height: Values of h at d = 0 and d = 1, m.
        side: Shortest and longest side of a rectangle, m, at any difficulty.
        count: Number of rectangles.
    """
    check_number("side", max(side), grid.horizontal_scale, 2 * grid.half)
    shortest, longest = sorted(round(length / grid.horizontal_scale) for length in side)
    # The order of the draws is part of the terrain: another order is another field for each seed.
    sizes = random.integers(shortest, longest + 1, (count, 2))
    starts = random.integers(0, grid.cells + 2 - sizes)
    factors = random.choice((-1.0, -0.5, 0.5, 1.0), count)
    heights = np.zeros(grid.x.shape)
    for start, size, factor in zip(starts, sizes, factors, strict=True):
        i, j = start
        length, width = size
        heights[i : i + length, j : j + width] = factor * value_at(difficulty, height)
    return heights * grid.beyond(grid.middle(3 / 8))


def stones(
    difficulty: float,
    random: Random,
    grid: Grid,
    size: Pair = (1.575, 0.075),
    gap: float = 0.1,
    depth: float = 1.0,
) -> Array:
    """Return the heights of stepping stones: squares at height 0 with deep gaps between them.

    The stones are in lines along y. Each line is shifted at random. The platform is 1/2 of the
    tile's side. At d = 0 there are no gaps: the gaps of LeggedGym-Ex are then 0.05 m wide, which
    cells of 0.1 m round to 0. The default depth is this package's.

    Args:
        difficulty: Difficulty d in [0, 1).
        random: Random stream of the tile.
        grid: Points of the tile.
        size: Sides of a stone at d = 0 and d = 1, m. A stone has at least one cell of the grid.
        gap: Width of the gaps, m, rounded down to whole cells.
        depth: Depth of the gaps, m.
    """
    stone = int(value_at(difficulty, size) / grid.horizontal_scale + CELL_TOLERANCE)
    # Without the bound, coarse grids would have holes only.
    stone = max(stone, 1)
    hole = 0
    if difficulty > 0.0:
        hole = int(gap / grid.horizontal_scale + CELL_TOLERANCE)
    period = stone + hole
    line = np.arange(grid.cells + 1)
    # One draw for each possible line, used or not, so that later draws do not depend on the period.
    shifts = random.integers(0, period, len(line))[line // period, None]
    between_lines = (line % period >= stone)[:, None]
    within_lines = (line + shifts) % period >= stone
    is_hole = (between_lines | within_lines) & grid.beyond(grid.middle(1 / 2))
    return -depth * is_hole


def gap(
    difficulty: float,
    random: Random,
    grid: Grid,
    width: Pair = (0.0, 1.0),
    depth: float = 1.0,
    platform: float = 3 / 8,
) -> Array:
    """Return the heights of flat ground with a square ditch around the platform.

    The default depth is this package's.

    Args:
        difficulty: Difficulty d in [0, 1).
        random: Not used.
        grid: Points of the tile.
        width: Widths of the ditch at d = 0 and d = 1, m.
        depth: Depth of the ditch, m.
        platform: Side of the flat platform in the middle, as a fraction of the tile's side.
    """
    inner = grid.middle(platform)
    across = value_at(difficulty, width)
    # At least a cell of flat ground remains between the ditch and the edge.
    check_number("width", across, 0.0, grid.half - inner - grid.horizontal_scale)
    is_ditch = grid.beyond(inner) & ~grid.beyond(inner + across)
    return -depth * is_ditch


def pit(
    difficulty: float,
    random: Random,
    grid: Grid,
    depth: Pair = (0.0, 0.3),
    platform: float = 1 / 2,
) -> Array:
    """Return the heights of flat ground with a sunken platform, from which robots climb out.

    Args:
        difficulty: Difficulty d in [0, 1).
        random: Not used.
        grid: Points of the tile.
        depth: Depths of the platform below the ground at d = 0 and d = 1, m.
        platform: Side of the platform in the middle, as a fraction of the tile's side.
    """
    is_pit = ~grid.beyond(grid.middle(platform))
    return -value_at(difficulty, depth) * is_pit


def wave(
    difficulty: float,
    random: Random,
    grid: Grid,
    amplitude: Pair = (0.0, 0.2),
    waves: float = 4.0,
) -> Array:
    """Return the heights of waves, A/2 (cos ky + sin kx), as in Isaac Lab.

    Within a quarter of a wavelength from the platform, which is 1/8 of the tile's side, and from
    the edge of the tile, the waves are lower. The default amplitude A is this package's.

    Args:
        difficulty: Difficulty d in [0, 1).
        random: Not used.
        grid: Points of the tile.
        amplitude: Amplitudes A at d = 0 and d = 1, m.
        waves: Number of wavelengths along the tile's side, 2π / k each.
    """
    k = np.pi * waves / grid.half
    # Distance to the nearest flat ground, so that the waves meet it without a step.
    to_flat_ground = np.minimum(grid.ring - grid.middle(1 / 8), grid.half - grid.ring)
    rise = to_flat_ground * 2 * waves / grid.half
    surface = np.cos(k * grid.y) + np.sin(k * grid.x)
    return value_at(difficulty, amplitude) / 2 * surface * np.clip(rise, 0.0, 1.0)


def boxes(
    difficulty: float,
    random: Random,
    grid: Grid,
    height: Pair = (0.05, 0.2),
    width: float = 0.45,
) -> Array:
    """Return the heights of square boxes side by side, each with a random height.

    It is the random grid of Isaac Lab. There are as many boxes as fit into the tile. The ground
    around them is flat. The platform is 1/4 of the tile's side.

    Args:
        difficulty: Difficulty d in [0, 1).
        random: Random stream of the tile.
        grid: Points of the tile.
        height: Largest absolute heights of a box at d = 0 and d = 1, m.
        width: Side of a box, m.
    """
    check_number("width", width, grid.horizontal_scale, 2 * grid.half)
    count = int(2 * grid.half / width + CELL_TOLERANCE)
    column = np.floor(grid.x[:, 0] / width + count / 2 + CELL_TOLERANCE)
    # Indices 0 and count + 1 are the flat ground around the boxes.
    index = np.clip(column, -1, count).astype(int) + 1
    heights = random.uniform(-1.0, 1.0, (count, count)) * value_at(difficulty, height)
    with_margin = np.pad(heights, 1)
    return with_margin[np.ix_(index, index)] * grid.beyond(grid.middle(1 / 4))


# In the order in which the command line lists them.
register_kind("slope_down", slope_down)
register_kind("rough_slope", rough_slope)
register_kind("rough", rough)
register_kind("rubble", rubble)
register_kind("stairs_down", stairs_down, stairs_down_boxes)
register_kind("obstacles", obstacles)
register_kind("stones", stones)
register_kind("gap", gap)
register_kind("pit", pit)
register_kind("wave", wave)
register_kind("boxes", boxes)
register_kind("slope_up", slope_up)
register_kind("stairs_up", stairs_up, stairs_up_boxes)
register_kind("flat", flat)
