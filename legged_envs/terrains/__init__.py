"""Height fields to walk on: kinds of terrain in levels of difficulty, or heights from an array, an image or a mesh."""

from importlib import import_module
from typing import Any

from legged_envs.terrains.cfg import KindCfg, TerrainCfg

__all__ = [
    "GENERATORS",
    "Grid",
    "KindCfg",
    "Terrain",
    "TerrainCfg",
    "make_terrain",
    "register_kind",
]


def __getattr__(name: str) -> Any:
    """What needs NumPy is imported when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "terrain" if name in ("Terrain", "make_terrain") else "generators"
    return getattr(import_module(f"{__name__}.{module}"), name)
