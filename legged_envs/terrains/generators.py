"""Kinds of tiles: functions that give the heights of a tile at a difficulty d.

A kind is a function of a difficulty, a random stream and a grid. It returns heights, m, at the
points of the grid, (n, n) float32. It raises a ValueError for parameters outside of their ranges.

A parameter that is a pair of numbers has the first value at d = 0 and changes linearly towards the
second at d = 1. Robots start on a flat platform in the middle. Its side is a part of the tile's
side: 3/8 are 3 m of 8 m.

**Tiles meet at height 0.** The outermost points of each tile are set to 0, so that any two tiles
fit without a wall. What climbs outwards (``slope_up``, ``stairs_up``, ``pit``) therefore has its
middle below 0, and what descends outwards has it above. Where heights jump, the wall is not
vertical: it falls over the ``horizontal_scale`` between two points. A gap of n points is n cells
wide half way down.

Formulas and defaults are those of LeggedGym-Ex, and those of Isaac Lab's rough terrains for kinds
that LeggedGym-Ex lacks.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from legged_envs.checks import check_known, check_number
from legged_envs.terrains.cfg import TerrainCfg
from legged_envs.terrains.grid import CELL_TOLERANCE, Array, Grid, check_heights

Random = np.random.Generator
"""A random stream."""
Pair = tuple[float, float]
"""Values of a parameter at d = 0 and at d = 1."""
Generator = Callable[..., Array]
"""A kind of tile: ``kind(difficulty, random, grid, **parameters)`` → heights, m, (n, n)."""
GENERATORS: dict[str, Generator] = {}
"""Name of a kind → the checked function ``kind(difficulty, random, grid, **parameters)``, which
gives the heights, m. Shape: (n, n), float32."""


def register_kind(name: str, function: Generator) -> None:
    """Add a kind that :class:`~legged_envs.terrains.TerrainCfg` can name, or replace it.

    The heights of ``function`` are rounded to ``vertical_scale``, and those of the outermost points
    become 0. A parameter with a number, or a tuple of numbers, as its default must be given in the
    same form and must not be negative.

    The function in ``GENERATORS`` raises a ValueError for a difficulty outside of [0, 1), for
    unknown parameters, and for heights that are not finite, have another shape or differ by more
    than 10 m between neighbouring points.

    Args:
        name: Name of the kind.
        function: ``function(difficulty, random, grid, **parameters)``, which returns heights, m, at
            the points of ``grid``. Shape: (n, n).
    """
    parameters = list(inspect.signature(function).parameters.values())
    # The first three are difficulty, random and grid.
    defaults = {parameter.name: parameter.default for parameter in parameters[3:]}

    @wraps(function)
    def kind(difficulty: float, random: Random, grid: Grid, **params: Any) -> Array:
        check_number("difficulty", difficulty, 0.0, below=1.0)
        check_known(f"{name!r} has no parameter", params, defaults, "it has")
        _check_params(params, defaults)
        raw = np.asarray(function(difficulty, random, grid, **params))
        check_heights(f"heights of {name!r}", raw, grid.x.shape)
        # Adding 0 turns −0 into 0, so that equal tiles have equal bytes.
        rounded = grid.rounded(raw) + 0.0
        is_outermost = grid.beyond(grid.half - grid.horizontal_scale / 2)
        heights = np.where(is_outermost, 0.0, rounded)
        # Once more, because the edge at 0 can make a new wall.
        check_heights(f"heights of {name!r}", heights)
        return heights.astype(np.float32)

    GENERATORS[name] = kind


def _check_params(params: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    for name, value in params.items():
        default = np.asarray(defaults[name])
        # Strings, None and other defaults are for the function itself to check.
        if default.dtype.kind not in "if":
            continue
        given = np.asarray(value)
        # A count (default 20) must be whole, a length (default 0.4) may be.
        allowed_kinds = "iu" if default.dtype.kind == "i" else "iuf"
        fits = given.shape == default.shape and given.dtype.kind in allowed_kinds
        if not fits or not np.isfinite(given).all() or (given < 0).any():
            raise ValueError(
                f"{name} must be like {defaults[name]!r}, finite and not negative, got {value!r}"
            )


def make_tile(cfg: TerrainCfg, grid: Grid, kind: str, row: int, column: int) -> Array:
    """Make the heights of one tile, m.

    Args:
        cfg: The terrain.
        grid: Points of the tile.
        kind: One of ``cfg.kinds``.
        row: Level of the tile.
        column: Column of the tile. It chooses the random stream, not the kind.

    Returns:
        The heights, m. Shape: (n, n), float32.

    Raises:
        ValueError: The tile cannot be made. The message names the kind.
    """
    # A kind without a generator is called after it.
    generator = cfg.kinds[kind].generator or kind
    check_known("TerrainCfg.kinds has no kind", [generator], GENERATORS, "there are")
    difficulty = row / cfg.rows
    try:
        # A stream for each tile: a tile does not depend on the size of the field.
        random = np.random.default_rng((cfg.seed, row, column))
        return GENERATORS[generator](difficulty, random, grid, **cfg.kinds[kind].params)
    except ValueError as error:
        # The generator knows its parameter, only this place knows the field of the configuration.
        raise ValueError(f"TerrainCfg.kinds[{kind!r}]: {error}") from error


def _at(difficulty: float, pair: Pair) -> float:
    easiest, hardest = pair
    return easiest + difficulty * (hardest - easiest)


def slope_down(
    difficulty: float,
    random: Random,
    grid: Grid,
    slope: Pair = (0.0, 0.4),
    platform: float = 3 / 8,
) -> Array:
    """Make a pyramid that falls outwards with ``slope`` 0.4 d.

    ``slope_up`` is the same upside down, to be climbed.
    """
    around = grid.half - np.maximum(grid.ring, grid.middle(platform))
    return _at(difficulty, slope) * around


def slope_up(
    difficulty: float,
    random: Random,
    grid: Grid,
    slope: Pair = (0.0, 0.4),
    platform: float = 3 / 8,
) -> Array:
    """Make a funnel that climbs outwards with ``slope`` 0.4 d: ``slope_down`` upside down."""
    return -slope_down(difficulty, random, grid, slope, platform)


def rough(
    difficulty: float,
    random: Random,
    grid: Grid,
    spread: Pair = (0.02, 0.1),
    spacing: float = 0.2,
) -> Array:
    """Make noise: random multiples of ``vertical_scale`` in ± ``spread`` / 2, m.

    The random points are ``spacing`` apart, m. Heights between them are linear. The spread is from
    the ends of Isaac Lab's range; at d = 1 it is LeggedGym-Ex's ± 0.05 m. The platform is 1/8.
    """
    # Highest multiple of the vertical scale within the spread.
    steps = int(_at(difficulty, spread) / 2 / grid.vertical_scale + CELL_TOLERANCE)
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
    """Make ``slope_down`` with the noise of ``rough``, ± 0.05 m (legged_gym). The platform is
    3/8."""
    noise = rough(difficulty, random, grid, spread) * grid.beyond(grid.middle(3 / 8))
    return slope_down(difficulty, random, grid, slope) + noise


def rubble(
    difficulty: float,
    random: Random,
    grid: Grid,
    height: Pair = (0.02, 0.1),
    width: float = 0.3,
) -> Array:
    """Make ``boxes`` of 0.3 m between ± ``height`` 0.02 + 0.08 d, m, with the noise of ``rough``.

    The numbers are this package's.
    """
    # The boxes draw their random numbers before the noise.
    blocks = boxes(difficulty, random, grid, height, width)
    return blocks + rough(difficulty, random, grid)


def stairs_down(
    difficulty: float,
    random: Random,
    grid: Grid,
    height: Pair = (0.05, 0.2),
    width: float = 0.4,
    platform: float = 3 / 8,
) -> Array:
    """Make square stairs that lead down outwards, with steps of ``height`` 0.05 + 0.15 d, m.

    A step is ``width`` wide, m. There are as many steps as fit around the platform. The platform
    gets the rest. ``stairs_up`` are the same upside down, to be climbed.
    """
    middle = grid.middle(platform)
    check_number("width", width, grid.horizontal_scale, grid.half - middle)
    around = grid.half - np.maximum(grid.ring, middle)
    return grid.rounded(_at(difficulty, height)) * np.floor(around / width + CELL_TOLERANCE)


def stairs_up(
    difficulty: float,
    random: Random,
    grid: Grid,
    height: Pair = (0.05, 0.2),
    width: float = 0.4,
    platform: float = 3 / 8,
) -> Array:
    """Make square stairs that lead up outwards: ``stairs_down`` upside down."""
    return -stairs_down(difficulty, random, grid, height, width, platform)


def obstacles(
    difficulty: float,
    random: Random,
    grid: Grid,
    height: Pair = (0.05, 0.2),
    side: Pair = (1.0, 2.0),
    count: int = 20,
) -> Array:
    """Make ``count`` rectangles, later ones over earlier ones, with sides in the range ``side``, m.

    Their heights are −h, −h/2, h/2 or h with h = ``height`` 0.05 + 0.15 d, m. The platform is 3/8.
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
        heights[i : i + length, j : j + width] = factor * _at(difficulty, height)
    return heights * grid.beyond(grid.middle(3 / 8))


def stones(
    difficulty: float,
    random: Random,
    grid: Grid,
    size: Pair = (1.575, 0.075),
    gap: float = 0.1,
    depth: float = 1.0,
) -> Array:
    """Make square stones at height 0, of ``size`` 1.5 (1.05 − d), m, and at least one cell.

    They lie in lines along y, each of which is shifted at random. The gaps between them are whole
    cells, ``gap`` wide and ``depth`` deep, m. There are no gaps at d = 0: LeggedGym-Ex's are 0.05 m
    there, which cells of 0.1 m round to nothing. The depth is this package's. The platform is 1/2.
    """
    stone = int(_at(difficulty, size) / grid.horizontal_scale + CELL_TOLERANCE)
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
    """Make a ditch around the platform, ``width`` 1.0 d and ``depth`` deep, m.

    The depth is this package's.
    """
    inner = grid.middle(platform)
    across = _at(difficulty, width)
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
    """Make a platform ``depth`` 0.3 d below the ground, m, to be climbed out of."""
    is_pit = ~grid.beyond(grid.middle(platform))
    return -_at(difficulty, depth) * is_pit


def wave(
    difficulty: float,
    random: Random,
    grid: Grid,
    amplitude: Pair = (0.0, 0.2),
    waves: float = 4.0,
) -> Array:
    """Make waves A/2 (cos ky + sin kx), ``waves`` of them to a tile (Isaac Lab).

    The amplitude A, m, is this package's. The waves rise within a quarter of a wavelength from the
    platform, 1/8, and from the edge of the tile.
    """
    k = np.pi * waves / grid.half
    # Distance to the nearest flat ground, so that the waves meet it without a step.
    to_flat_ground = np.minimum(grid.ring - grid.middle(1 / 8), grid.half - grid.ring)
    rise = to_flat_ground * 2 * waves / grid.half
    surface = np.cos(k * grid.y) + np.sin(k * grid.x)
    return _at(difficulty, amplitude) / 2 * surface * np.clip(rise, 0.0, 1.0)


def boxes(
    difficulty: float,
    random: Random,
    grid: Grid,
    height: Pair = (0.05, 0.2),
    width: float = 0.45,
) -> Array:
    """Make boxes of ``width``, m, side by side, each between ± ``height`` 0.05 + 0.15 d, m.

    It is Isaac Lab's random grid. The ground is flat around as many boxes as fit. The platform is
    1/4.
    """
    check_number("width", width, grid.horizontal_scale, 2 * grid.half)
    count = int(2 * grid.half / width + CELL_TOLERANCE)
    column = np.floor(grid.x[:, 0] / width + count / 2 + CELL_TOLERANCE)
    # 0 and count + 1 stand for the flat ground around the boxes.
    index = np.clip(column, -1, count).astype(int) + 1
    heights = random.uniform(-1.0, 1.0, (count, count)) * _at(difficulty, height)
    with_margin = np.pad(heights, 1)
    return with_margin[np.ix_(index, index)] * grid.beyond(grid.middle(1 / 4))


# In the order in which the command line lists them.
register_kind("slope_down", slope_down)
register_kind("rough_slope", rough_slope)
register_kind("rough", rough)
register_kind("rubble", rubble)
register_kind("stairs_down", stairs_down)
register_kind("obstacles", obstacles)
register_kind("stones", stones)
register_kind("gap", gap)
register_kind("pit", pit)
register_kind("wave", wave)
register_kind("boxes", boxes)
register_kind("slope_up", slope_up)
register_kind("stairs_up", stairs_up)
