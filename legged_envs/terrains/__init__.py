"""Height fields to walk on: tiles of several kinds and difficulties, an array, an image or a
mesh."""

from legged_envs.terrains.cfg import KindCfg, TerrainCfg
from legged_envs.terrains.generators import GENERATORS, register_kind
from legged_envs.terrains.grid import Grid
from legged_envs.terrains.terrain import Terrain, check_terrain, make_terrain

__all__ = [
    "GENERATORS",
    "Grid",
    "KindCfg",
    "Terrain",
    "TerrainCfg",
    "check_terrain",
    "make_terrain",
    "register_kind",
]
