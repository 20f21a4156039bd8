"""Kinds of tiles, each a function of difficulty d and a random stream that gives heights, m, (n, n) float32, at the
points of a grid; ValueError for parameters that cannot be.

A pair of numbers among the parameters is the value at d = 0, and that at d = 1, towards which it goes linearly. Robots
start on a flat platform in the middle, its side a part of the tile's: 3/8 are 3 m of 8 m.

**Tiles meet at height 0**: the outermost points of each are set to it, so that any two fit without a wall. What climbs
outwards (``slope_up``, ``stairs_up``, ``pit``) therefore has its middle below 0, and what descends above. Where heights
jump, the wall is not vertical but falls over the ``horizontal_scale`` between two points; a gap of n points is n cells
wide half way down.

Formulas and defaults are LeggedGym-Ex's, and where that has no such kind, those of Isaac Lab's rough terrains."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from legged_envs.checks import check_known, check_number
from legged_envs.terrains.cfg import TerrainCfg

MOST_SPIKE = 10.0
"""Most difference of neighbouring points, m."""
_EPS = 1e-6  # cells: distances that are sums of 0.1 m are not quite equal
Array = np.ndarray[Any, np.dtype[Any]]
Random = np.random.Generator
Pair = tuple[float, float]
Generator = Callable[..., Array]
GENERATORS: dict[str, Generator] = {}
"""Name of a kind → ``kind(difficulty, random, grid, **parameters)``, its heights. Shape: (n, n), float32, m."""


class Grid:
    """The points of a tile, n = ``size`` / ``horizontal_scale`` + 1 along each side; the outermost are shared with its
    neighbours."""

    def __init__(self, size: float, horizontal_scale: float, vertical_scale: float):
        self.horizontal_scale, self.vertical_scale = horizontal_scale, vertical_scale
        self.cells = round(size / horizontal_scale)
        self.half = self.cells / 2 * horizontal_scale
        """Half of the tile's side, m."""
        line = (np.arange(self.cells + 1) - self.cells / 2) * horizontal_scale
        self.x, self.y = np.meshgrid(line, line, indexing="ij")
        """Place of each point relative to the middle of the tile, m. Shape: (n, n)."""
        self.ring = np.maximum(abs(self.x), abs(self.y))
        """max(|x|, |y|), m: the points of a square around the middle have the same. Shape: (n, n)."""

    def beyond(self, distance: float) -> Array:
        """Whether each point's ``ring`` is larger than ``distance``, m. Shape: (n, n)."""
        return self.ring > distance + _EPS * self.horizontal_scale

    def middle(self, platform: float) -> float:
        """Half of the side of a platform, m, that is a part of the tile's; ValueError outside of [0, 1)."""
        check_number("platform", platform, 0.0, below=1.0)
        return platform * self.half

    def rounded(self, heights: Any) -> Any:
        """``heights``, m, as multiples of ``vertical_scale``."""
        return np.round(heights / self.vertical_scale) * self.vertical_scale


def register_kind(name: str, function: Generator) -> None:
    """Add a kind that :class:`~legged_envs.terrains.TerrainCfg` can name: ``function(difficulty, random, grid,
    **parameters)`` returns heights, m, at the points of ``grid``, shape (n, n). They are rounded to ``vertical_scale``,
    those of the outermost points become 0. Parameters whose defaults are numbers, or tuples of numbers, must be
    such and not negative. Registered again, a name has the new function. What stands in ``GENERATORS`` raises a
    ValueError for a difficulty outside of [0, 1), parameters that it has not got, and heights that are not finite, of
    another shape, or more than 10 m apart at neighbouring points."""
    defaults = {
        own.name: own.default for own in [*inspect.signature(function).parameters.values()][3:]
    }

    @wraps(function)
    def kind(difficulty: float, random: Random, grid: Grid, **params: Any) -> Array:
        check_number("difficulty", difficulty, 0.0, below=1.0)
        check_known(f"{name!r} has no parameter", params, defaults, "it has")
        _check_numbers(params, defaults)
        heights = np.asarray(function(difficulty, random, grid, **params))
        check_heights(f"heights of {name!r}", heights, grid.x.shape)
        # + 0: no point is at −0.
        heights = np.where(
            grid.beyond(grid.half - grid.horizontal_scale / 2), 0.0, grid.rounded(heights) + 0.0
        )
        check_heights(f"heights of {name!r}", heights)
        return heights.astype(np.float32)

    GENERATORS[name] = kind


def _check_numbers(params: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    for name, value in params.items():
        given, default = np.asarray(value), np.asarray(defaults[name])
        fits = given.shape == default.shape and given.dtype.kind in (
            "iu" if default.dtype.kind == "i" else "iuf"
        )
        if default.dtype.kind in "if" and not (
            fits and np.isfinite(given).all() and (given >= 0).all()
        ):
            raise ValueError(
                f"{name} must be like {defaults[name]!r}, finite and not negative, got {value!r}"
            )


def make_tile(cfg: TerrainCfg, grid: Grid, kind: str, row: int, column: int) -> Array:
    """Heights of one tile, m. Shape: (n, n), float32. ValueError that names the kind, if it cannot be made."""
    generator = cfg.kinds[kind].generator or kind
    check_known("TerrainCfg.kinds has no kind", [generator], GENERATORS, "there are")
    try:
        random = np.random.default_rng((cfg.seed, row, column))
        return GENERATORS[generator](row / cfg.rows, random, grid, **cfg.kinds[kind].params)
    except ValueError as error:
        raise ValueError(f"TerrainCfg.kinds[{kind!r}]: {error}") from error


def check_heights(where: str, heights: Array, shape: tuple[int, ...] | None = None) -> None:
    """Raise a ValueError unless ``heights`` are finite numbers of two dimensions, or of ``shape``, without spikes."""
    if (
        heights.dtype.kind not in "iuf"
        or heights.ndim != 2
        or heights.shape != (shape or heights.shape)
    ):
        raise ValueError(
            f"{where} must be numbers of shape {shape or '(nx, ny)'}, got {heights.dtype} {heights.shape}"
        )
    if len(wrong := np.argwhere(~np.isfinite(heights))):
        raise ValueError(
            f"{where} must be finite, that at {wrong[0].tolist()} is {heights[tuple(wrong[0])]}"
        )
    if (spike := steepest_step(heights)) > MOST_SPIKE:
        raise ValueError(
            f"{where} must have steps of at most {MOST_SPIKE:g} m between neighbours, one is {spike:g} m"
        )


def steepest_step(heights: Array) -> float:
    """The largest difference of neighbouring points, m."""
    return max(
        float(abs(np.diff(heights.astype(np.float64), axis=axis)).max(initial=0.0))
        for axis in (0, 1)
    )


def _at(d: float, pair: Pair) -> float:
    return pair[0] + d * (pair[1] - pair[0])


def slope_down(
    d: float, random: Random, grid: Grid, slope: Pair = (0.0, 0.4), platform: float = 3 / 8
) -> Array:
    """A pyramid of ``slope`` 0.4 d. ``slope_up`` is the same upside down, to be climbed."""
    return _at(d, slope) * (grid.half - np.maximum(grid.ring, grid.middle(platform)))


def rough(
    d: float, random: Random, grid: Grid, spread: Pair = (0.02, 0.1), spacing: float = 0.2
) -> Array:
    """Noise: random multiples of ``vertical_scale`` in ± ``spread`` / 2, m, at points ``spacing`` apart, m, linear in
    between: the ends of Isaac Lab's range, and at d = 1 LeggedGym-Ex's ± 0.05 m. The platform is 1/8."""
    steps, cells = (
        int(_at(d, spread) / 2 / grid.vertical_scale + _EPS),
        max(spacing / grid.horizontal_scale, 1.0),
    )
    nodes = np.arange(np.ceil(grid.cells / cells - _EPS) + 1)
    weights = np.maximum(0.0, 1.0 - abs(np.arange(grid.cells + 1)[:, None] / cells - nodes))
    noise = weights @ random.integers(-steps, steps + 1, (len(nodes), len(nodes))) @ weights.T
    return noise * grid.vertical_scale * grid.beyond(grid.middle(1 / 8))


def rough_slope(
    d: float, random: Random, grid: Grid, slope: Pair = (0.0, 0.4), spread: Pair = (0.1, 0.1)
) -> Array:
    """``slope_down`` with the noise of ``rough``, ± 0.05 m (legged_gym). The platform is 3/8."""
    return slope_down(d, random, grid, slope) + rough(d, random, grid, spread) * grid.beyond(
        grid.middle(3 / 8)
    )


def rubble(
    d: float, random: Random, grid: Grid, height: Pair = (0.02, 0.1), width: float = 0.3
) -> Array:
    """``boxes`` of 0.3 m between ± ``height`` 0.02 + 0.08 d, m, with the noise of ``rough`` on them; ours."""
    return boxes(d, random, grid, height, width) + rough(d, random, grid)


def stairs_down(
    d: float,
    random: Random,
    grid: Grid,
    height: Pair = (0.05, 0.2),
    width: float = 0.4,
    platform: float = 3 / 8,
) -> Array:
    """Square stairs up to the middle: steps of ``height`` 0.05 + 0.15 d and ``width``, m, as many as fit around the
    platform, which has what remains. ``stairs_up`` are the same upside down, to be climbed."""
    check_number("width", width, grid.horizontal_scale, grid.half - grid.middle(platform))
    around = grid.half - np.maximum(grid.ring, grid.middle(platform))
    return grid.rounded(_at(d, height)) * np.floor(around / width + _EPS)


def obstacles(
    d: float,
    random: Random,
    grid: Grid,
    height: Pair = (0.05, 0.2),
    side: Pair = (1.0, 2.0),
    count: int = 20,
) -> Array:
    """``count`` rectangles, later ones over earlier ones, with sides in the range ``side``, m, and
    heights of −h, −h/2, h/2 or h, h = ``height`` 0.05 + 0.15 d, m. The platform is 3/8."""
    check_number("side", max(side), grid.horizontal_scale, 2 * grid.half)
    least, most = sorted(round(each / grid.horizontal_scale) for each in side)
    sizes, heights = random.integers(least, most + 1, (count, 2)), np.zeros(grid.x.shape)
    starts, tall = (
        random.integers(0, grid.cells + 2 - sizes),
        random.choice((-1.0, -0.5, 0.5, 1.0), count),
    )
    for (i, j), (m, n), factor in zip(starts, sizes, tall, strict=True):
        heights[i : i + m, j : j + n] = factor * _at(d, height)
    return heights * grid.beyond(grid.middle(3 / 8))


def stones(
    d: float,
    random: Random,
    grid: Grid,
    size: Pair = (1.575, 0.075),
    gap: float = 0.1,
    depth: float = 1.0,
) -> Array:
    """Square stones at height 0, ``size`` 1.5 (1.05 − d), m, and at least a cell, in lines along y, each shifted at
    random. Between them, except at d = 0, are gaps of whole cells, ``gap`` wide and ``depth`` deep, m. The depth is
    ours. (LeggedGym-Ex's gaps at d = 0 are 0.05 m, which cells of 0.1 m round to none.) The platform is 1/2."""
    stone, hole = (
        int(each / grid.horizontal_scale + _EPS) for each in (_at(d, size), gap if d > 0.0 else 0.0)
    )
    stone, line = max(stone, 1), np.arange(grid.cells + 1)
    shifts = random.integers(0, stone + hole, len(line))[line // (stone + hole), None]
    holes = (line % (stone + hole) >= stone)[:, None] | ((line + shifts) % (stone + hole) >= stone)
    return -depth * (holes & grid.beyond(grid.middle(1 / 2)))


def gap(
    d: float,
    random: Random,
    grid: Grid,
    width: Pair = (0.0, 1.0),
    depth: float = 1.0,
    platform: float = 3 / 8,
) -> Array:
    """A ditch around the platform, ``width`` 1.0 d and ``depth``, m; the depth is ours."""
    inner, across = grid.middle(platform), _at(d, width)
    check_number("width", across, 0.0, grid.half - inner - grid.horizontal_scale)
    return -depth * (grid.beyond(inner) & ~grid.beyond(inner + across))


def pit(
    d: float, random: Random, grid: Grid, depth: Pair = (0.0, 0.3), platform: float = 1 / 2
) -> Array:
    """A platform ``depth`` 0.3 d below the ground, m, to be climbed out of."""
    return -_at(d, depth) * ~grid.beyond(grid.middle(platform))


def wave(
    d: float, random: Random, grid: Grid, amplitude: Pair = (0.0, 0.2), waves: float = 4.0
) -> Array:
    """A/2 (cos ky + sin kx), ``waves`` to a tile (Isaac Lab); the amplitude A, m, is ours. From the platform, 1/8, and
    from the edge of the tile they rise within a quarter of a wave."""
    k = np.pi * waves / grid.half
    rise = np.minimum(grid.ring - grid.middle(1 / 8), grid.half - grid.ring) * 2 * waves / grid.half
    return (
        _at(d, amplitude) / 2 * (np.cos(k * grid.y) + np.sin(k * grid.x)) * np.clip(rise, 0.0, 1.0)
    )


def boxes(
    d: float, random: Random, grid: Grid, height: Pair = (0.05, 0.2), width: float = 0.45
) -> Array:
    """Boxes of ``width``, m, side by side, each between ± ``height`` 0.05 + 0.15 d, m (Isaac Lab's random grid); around
    as many as fit it is flat. The platform is 1/4."""
    check_number("width", width, grid.horizontal_scale, 2 * grid.half)
    count = int(2 * grid.half / width + _EPS)
    index = np.clip(np.floor(grid.x[:, 0] / width + count / 2 + _EPS), -1, count).astype(int) + 1
    tall = np.pad(random.uniform(-1.0, 1.0, (count, count)) * _at(d, height), 1)
    return tall[np.ix_(index, index)] * grid.beyond(grid.middle(1 / 4))


def _upside_down(function: Generator) -> Any:
    return wraps(function)(lambda *args, **params: -function(*args, **params))


for _function in (
    slope_down,
    rough_slope,
    rough,
    rubble,
    stairs_down,
    obstacles,
    stones,
    gap,
    pit,
    wave,
    boxes,
):
    register_kind(_function.__name__, _function)
register_kind("slope_up", _upside_down(slope_down))
register_kind("stairs_up", _upside_down(stairs_down))
