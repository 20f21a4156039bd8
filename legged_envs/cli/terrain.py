"""Implements `legged-envs terrain`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from legged_envs.checks import check_known, whole_number
from legged_envs.system_checks import check_installed, check_output


@dataclass
class TerrainReportCfg:
    """Options of `legged-envs terrain`."""

    kinds: Annotated[tuple[str, ...], Positional, arg(metavar="KIND")] = ()
    """Kinds of terrain, such as stairs_up. Default: all."""
    level: int | None = None
    """The only level to show. The first is 0. Default: all levels."""
    rows: int = 10
    """Number of levels. The difficulty of level i is i / rows."""
    columns: int | None = None
    """Tiles of each level, distributed over the kinds. Default: one for each kind."""
    seed: int = 0
    """Seed of the random tiles."""
    picture: Path | None = None
    """Draw the heights from above into this .png."""
    array: Path | None = None
    """Write the heights, m, [x, y], to this .npy, which TerrainCfg.source reads."""


def terrain(cfg: TerrainReportCfg) -> None:
    """Generate kinds of terrain, and print and draw their heights."""
    # Help does not wait for this import.
    from legged_envs.terrains import GENERATORS, TerrainCfg
    from legged_envs.terrains.report import report

    check_known("unknown kind of terrain", cfg.kinds, GENERATORS, "kinds")
    # A kind that is named twice has its columns once.
    kinds = list(dict.fromkeys(cfg.kinds or GENERATORS))
    whole_number("--rows", cfg.rows)
    columns = len(kinds)
    if cfg.columns is not None:
        # With fewer columns than kinds, some kinds would be missing.
        columns = whole_number("--columns", cfg.columns, least=len(kinds))
    levels = range(cfg.rows)
    if cfg.level is not None:
        whole_number("--level", cfg.level, least=0, most=cfg.rows - 1)
        levels = range(cfg.level, cfg.level + 1)
    check_output("--picture", cfg.picture, endings=(".png",))
    check_output("--array", cfg.array, endings=(".npy",))
    if cfg.picture is not None:
        check_installed("matplotlib")
    terrain_cfg = TerrainCfg(
        kinds=dict.fromkeys(kinds, 1.0),
        rows=cfg.rows,
        columns=columns,
        # The flat ground around the tiles would count in heights and slopes.
        border=0.0,
        seed=cfg.seed,
    )
    report(terrain_cfg, levels, picture=cfg.picture, array=cfg.array)
