"""Physics engines: one file per engine, and functions that find an engine by its name.

An engine's module is imported when the engine is first used.
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
