"""Report on a terrain: a table of its tiles, a picture of them and a file of their heights."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from legged_envs.terrains.cfg import TerrainCfg
from legged_envs.terrains.generators import make_tile
from legged_envs.terrains.grid import Array, Grid, steepest_step
from legged_envs.terrains.terrain import column_kinds, make_terrain


def report(
    cfg: TerrainCfg, levels: range, picture: Path | None = None, array: Path | None = None
) -> None:
    """Print a table of a terrain's tiles, and write a picture and a file of their heights.

    Each kind and level has a row in the table: lowest and highest point, largest step between
    neighbouring points, and the time to make a tile.

    Args:
        cfg: Configuration of a terrain with ``border=0``.
        levels: Successive levels of difficulty to report on.
        picture: File (.png) for a picture of the tiles. None: no picture.
        array: File (.npy) for the heights of the tiles, m, indexed [x, y]. None: no file.
    """
    grid = Grid(cfg.size, cfg.horizontal_scale, cfg.vertical_scale)
    kinds = column_kinds(cfg)
    first = levels[0] * grid.cells
    last = (levels[-1] + 1) * grid.cells
    # With vertical risers, equal columns would be one column of the field.
    heights = make_terrain(replace(cfg, vertical_risers=False)).heights[first : last + 1]
    Console().print(_make_table(cfg, grid, levels, kinds))
    if picture is not None:
        picture.parent.mkdir(parents=True, exist_ok=True)
        _draw(heights, cfg.size, levels, kinds, picture)
    if array is not None:
        array.parent.mkdir(parents=True, exist_ok=True)
        np.save(array, heights)


def _make_table(cfg: TerrainCfg, grid: Grid, levels: range, kinds: Sequence[str]) -> Table:
    table = Table(
        "kind", "level", "lowest, m", "highest, m", "steepest step, m", "time to make, ms"
    )
    for kind in dict.fromkeys(kinds):
        columns = [column for column, each in enumerate(kinds) if each == kind]
        for level in levels:
            # Timed again here, because make_terrain makes all kinds together.
            start = perf_counter()
            tiles = [make_tile(cfg, grid, kind, level, column) for column in columns]
            time_per_tile = 1e3 * (perf_counter() - start) / len(tiles)
            steepest = max(steepest_step(tile) for tile in tiles)
            table.add_row(
                kind,
                str(level),
                f"{np.min(tiles):.3f}",
                f"{np.max(tiles):.3f}",
                f"{steepest:.3f}",
                f"{time_per_tile:.3f}",
            )
    return table


def _draw(heights: Array, size: float, levels: range, kinds: Sequence[str], path: Path) -> None:
    """Draw tiles of ``size``, m, from above, under a low sun: levels to the right, kinds
    upwards."""
    from matplotlib import cm, colors, figure

    width = len(levels)
    height = len(kinds)
    # Large fields get small tiles, so that a picture has a side of about 16 inches at most.
    inches_per_tile = min(1.2, 16 / max(width, height))
    figure_size = (inches_per_tile * width + 2.6, max(inches_per_tile * height, 1.6) + 0.6)
    drawing = figure.Figure(figure_size, layout="constrained")
    axis = drawing.subplots()
    # At least 5 cm, so that flat ground does not divide by 0.
    highest = max(float(abs(heights).max()), 0.05)
    colours = cm.ScalarMappable(colors.Normalize(-highest, highest), "coolwarm")
    spacing = width * size / (len(heights) - 1)
    # The sun is in the north-west. dy is negative because the first row of the picture is the
    # lowest.
    sun = colors.LightSource(azdeg=315, altdeg=40)
    shade = sun.hillshade(heights.T, dx=spacing, dy=-spacing)
    rgb = colours.to_rgba(heights.T)[..., :3]
    picture = rgb * (0.35 + 0.65 * shade[..., None])
    axis.imshow(picture, origin="lower", extent=(0, width, 0, height), interpolation="antialiased")
    axis.set(xticks=np.arange(width) + 0.5, xticklabels=levels, xlabel="level")
    axis.set(yticks=np.arange(height) + 0.5, yticklabels=kinds)
    drawing.colorbar(colours, ax=axis, label="height, m")
    drawing.savefig(path, dpi=140)
