"""Code written for Isaac Gym runs here, on ``mujoco.batch``: the part of ``isaacgym`` that legged robots use.

Nothing takes the name ``isaacgym`` by itself: :func:`install` does, or ``python -m legged_envs.isaacgym train.py …``.
docs/isaacgym.md has the table of what is there and how it differs from the original."""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from legged_envs.isaacgym.bridge import as_vector_env

__all__ = ["as_vector_env", "install"]
MODULES = ("gymapi", "gymtorch", "gymutil", "terrain_utils", "torch_utils")
"""What ``from isaacgym import …`` finds."""


def install() -> None:
    """Let ``import isaacgym`` find this package from here on. ImportError where NVIDIA's own can be imported."""
    if sys.modules.get("isaacgym") is sys.modules[__name__]:
        return
    if found := sys.modules.get("isaacgym") or find_spec("isaacgym"):
        wrong = f"there is another isaacgym, {found!r}, which legged_envs.isaacgym does not replace"
        raise ImportError(f"{wrong}: use that one, or an environment of Python without it")
    for name in MODULES:
        sys.modules[f"isaacgym.{name}"] = import_module(f"{__name__}.{name}")
    sys.modules["isaacgym"] = sys.modules[__name__]


def refuse(owner: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of something that has a part of Isaac Gym alone: AttributeError, which tools that look for a
    name in all modules expect."""

    def getattr_(name: str) -> Any:
        wrong = f"{owner}.{name} of Isaac Gym is not in legged_envs.isaacgym"
        raise AttributeError(f"{wrong}; docs/isaacgym.md lists what is: ask for more in an issue of legged-envs")

    return getattr_


_refuse = refuse("isaacgym")


def __getattr__(name: str) -> Any:
    """What needs MuJoCo or Gymnasium is imported when it is asked for."""
    if name == "as_vector_env":
        return import_module(f"{__name__}.bridge").as_vector_env
    return import_module(f"{__name__}.{name}") if name in MODULES else _refuse(name)
