"""Height fields of many tiles."""

from dataclasses import dataclass

import numpy as np

from legged_envs.terrains.cfg import TerrainCfg
from legged_envs.terrains.generators import Array, Grid, make_tile
from legged_envs.terrains.sources import load_source


@dataclass(frozen=True, eq=False, repr=False)
class Terrain:
    """A height field centred on (0, 0) of the world, and where robots start on it."""

    heights: Array
    """m; that at [i, j] is at x = ``low[0]`` + i · ``horizontal_scale``, y = ``low[1]`` + j · ``horizontal_scale``.
    Shape: (nx, ny), float32."""
    horizontal_scale: float
    """Distance of neighbouring points, m."""
    low: tuple[float, float]
    """x and y of the first point, m."""
    origins: Array
    """Middle of each tile, x and y, and the highest point of the square of 2 × 2 m around it, 1 × 1 m for tiles below
    4 m, m. Shape: (rows, columns, 3), float32."""
    kinds: tuple[str, ...]
    """Of each column."""
    size: float
    """Side of a tile, m; that of a source is the shorter one."""
    env_length = env_width = property(lambda self: self.size)
    """Side of a tile, m, in legged_gym's words."""
    slope_threshold: float = 0.75
    """Slope above which the way from a point to its neighbour is an edge."""
    first_levels: tuple[int, int] = (0, 0)
    """The levels at which robots begin, from the first to the second."""


def make_terrain(cfg: TerrainCfg) -> Terrain:
    """The terrain of a configuration, always the same. A tile is a function of its kind, its difficulty and (seed, row,
    column); the numbers of rows and columns change nothing else. ValueError if ``cfg`` is wrong."""
    cfg.check()
    if cfg.source is None:
        grid, kinds = Grid(cfg.size, cfg.horizontal_scale, cfg.vertical_scale), column_kinds(cfg)
        tiles = [
            [make_tile(cfg, grid, kind, row, j) for j, kind in enumerate(kinds)]
            for row in range(cfg.rows)
        ]
    else:
        tiles, kinds = [[load_source(cfg)]], ("source",)
    counts, cells, spacing = (
        np.array((len(tiles), len(kinds))),
        np.array(tiles[0][0].shape) - 1,
        cfg.horizontal_scale,
    )
    heights, origins = np.zeros(counts * cells + 1, np.float32), np.zeros((*counts, 3), np.float32)
    for row, column in np.ndindex(*counts):
        (i, j), tile = (row, column) * cells, tiles[row][column]
        heights[i : i + cells[0] + 1, j : j + cells[1] + 1] = tile
        origins[row, column] = *((i, j) + (1 - counts) * cells / 2) * spacing, _top(tile, spacing)
    heights = np.pad(heights, round(cfg.border / spacing), mode="edge")
    x, y = (1 - np.array(heights.shape)) / 2 * spacing
    low, high = (min(level, len(tiles) - 1) for level in cfg.first_levels)
    place, size = (float(x), float(y)), float(cells.min() * spacing)
    return Terrain(heights, spacing, place, origins, kinds, size, cfg.slope_threshold, (low, high))


def column_kinds(cfg: TerrainCfg) -> tuple[str, ...]:
    """The kind of each column: that in whose share its middle is, the earlier one where the middle is between two."""
    ends = np.cumsum([kind.proportion for kind in cfg.kinds.values()])
    middles = (np.arange(cfg.columns) + 0.5 - 1e-6) / cfg.columns * ends[-1]
    return tuple([*cfg.kinds][i] for i in np.searchsorted(ends, middles, side="right"))


def _top(tile: Array, spacing: float) -> float:
    """The highest point near the middle of a tile, m."""
    radius = 1.0 if (min(tile.shape) - 1) * spacing > 4.0 - 1e-6 else 0.5
    near = [abs(np.arange(n) - (n - 1) / 2) * spacing < radius + 1e-6 for n in tile.shape]
    return float(tile[np.ix_(*near)].max())
