"""Rough ground as height fields, made of generated square tiles or of a user's array or file."""

from importlib import import_module
from typing import TYPE_CHECKING

from legged_envs.terrains.cfg import KindCfg, TerrainCfg

if TYPE_CHECKING:
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

_MODULES = {
    "GENERATORS": "generators",
    "Grid": "grid",
    "Terrain": "terrain",
    "check_terrain": "terrain",
    "make_terrain": "terrain",
    "register_kind": "generators",
}


def __getattr__(name: str) -> object:
    """Import a name that needs NumPy when it is first used.

    Configurations of terrains can so be made without NumPy.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"legged_envs.terrains.{_MODULES[name]}")
    return getattr(module, name)
