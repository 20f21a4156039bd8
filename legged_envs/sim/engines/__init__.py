"""Engines, one file each, and the functions that find them.

An engine is imported when it is used.
"""

from legged_envs.sim.engines.find import (
    ENGINES,
    EXTRAS,
    find_device,
    find_engine,
    known_engines,
    make_simulation,
)

__all__ = [
    "ENGINES",
    "EXTRAS",
    "find_device",
    "find_engine",
    "known_engines",
    "make_simulation",
]
