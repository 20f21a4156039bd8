"""What a terrain is like: a table of its tiles, a picture and a file."""

from pathlib import Path
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from legged_envs.terrains.cfg import TerrainCfg
from legged_envs.terrains.generators import Array, Grid, make_tile, steepest_step
from legged_envs.terrains.terrain import column_kinds, make_terrain


def report(
    cfg: TerrainCfg, levels: range, picture: Path | None = None, array: Path | None = None
) -> None:
    """Print a table of the tiles of neighbouring ``levels``: of each kind all, and the mean time to make one. Draw
    them into ``picture``, a .png, write their heights, m, [x, y], to ``array``, a .npy. There must be no border."""
    grid, kinds = Grid(cfg.size, cfg.horizontal_scale, cfg.vertical_scale), column_kinds(cfg)
    heights = make_terrain(cfg).heights[levels[0] * grid.cells : (levels[-1] + 1) * grid.cells + 1]
    table = Table(
        "kind", "level", "lowest, m", "highest, m", "steepest step, m", "time to make, ms"
    )
    for kind, level in ((kind, level) for kind in dict.fromkeys(kinds) for level in levels):
        start = perf_counter()
        tiles = [
            make_tile(cfg, grid, kind, level, column)
            for column, each in enumerate(kinds)
            if each == kind
        ]
        time, steepest = 1e3 * (perf_counter() - start) / len(tiles), max(map(steepest_step, tiles))
        numbers = [f"{number:.3f}" for number in (np.min(tiles), np.max(tiles), steepest, time)]
        table.add_row(kind, str(level), *numbers)
    Console().print(table)
    for path in filter(None, (picture, array)):
        path.parent.mkdir(parents=True, exist_ok=True)
    if picture is not None:
        _draw(heights, cfg.size, levels, kinds, picture)
    if array is not None:
        np.save(array, heights)


def _draw(heights: Array, size: float, levels: range, kinds: tuple[str, ...], path: Path) -> None:
    """Tiles of ``size``, m, from above, in the light of a low sun: levels to the right, kinds upwards."""
    from matplotlib import cm, colors, figure

    (width, height), most = (len(levels), len(kinds)), max(float(abs(heights).max()), 0.05)
    inch = min(1.2, 16 / max(width, height))
    drawing = figure.Figure(
        (inch * width + 2.6, max(inch * height, 1.6) + 0.6), layout="constrained"
    )
    axis, spacing = drawing.subplots(), width * size / (len(heights) - 1)
    colours = cm.ScalarMappable(colors.Normalize(-most, most), "coolwarm")
    # The sun is in the north-west; dy is negative where the first row is the lowest.
    shade = colors.LightSource(azdeg=315, altdeg=40).hillshade(heights.T, dx=spacing, dy=-spacing)
    picture = colours.to_rgba(heights.T)[..., :3] * (0.35 + 0.65 * shade[..., None])
    axis.imshow(picture, origin="lower", extent=(0, width, 0, height), interpolation="antialiased")
    axis.set(xticks=np.arange(width) + 0.5, xticklabels=levels, xlabel="level")
    axis.set(yticks=np.arange(height) + 0.5, yticklabels=kinds)
    drawing.colorbar(colours, ax=axis, label="height, m")
    drawing.savefig(path, dpi=140)
