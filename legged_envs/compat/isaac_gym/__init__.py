"""Code written for Isaac Gym runs here, on ``mujoco.batch``: the part of ``isaacgym`` that legged robots use.

Nothing takes the name ``isaacgym`` by itself: :func:`install` does, or ``python -m legged_envs.compat.isaac_gym train.py …``.
docs/isaacgym.md has the table of what is there and how it differs from the original."""

import dis
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from legged_envs.compat.isaac_gym.bridge import as_vector_env

__all__ = ["as_vector_env", "install"]
MODULES = ("gymapi", "gymtorch", "gymutil", "terrain_utils", "torch_utils")
"""What ``from isaacgym import …`` finds."""


_INSTALLED = ModuleType("isaacgym", __doc__)
"""What ``import isaacgym`` gives: the modules, and nothing else of this package."""


def install() -> None:
    """Let ``import isaacgym`` find this package from here on. ImportError where NVIDIA's own can be imported."""
    found = sys.modules.get("isaacgym") or find_spec("isaacgym")
    if found is _INSTALLED:
        return
    if isinstance(found, ModuleType) or (found is not None and found.loader is not None):
        wrong = f"there is another isaacgym, {found!r}, which legged_envs.compat.isaac_gym does not replace"
        raise ImportError(f"{wrong}: use that one, or an environment of Python without it")
    modules = {name: import_module(f"{__name__}.{name}") for name in MODULES}
    vars(_INSTALLED).update(modules, __path__=[], __getattr__=refuse("isaacgym"))
    sys.modules |= {
        "isaacgym": _INSTALLED,
        **{f"isaacgym.{name}": module for name, module in modules.items()},
    }
    if _Refusing not in sys.meta_path:
        sys.meta_path.insert(0, _Refusing)


class _Refusing:
    """Says what to do about modules of Isaac Gym that are not here."""

    @staticmethod
    def find_spec(name: str, *args: Any) -> None:
        if name.startswith("isaacgym.") and sys.modules.get("isaacgym") is _INSTALLED:
            raise ModuleNotFoundError(_missing(name), name=name)


def _missing(name: str) -> str:
    wrong = f"{name} of Isaac Gym is not in legged_envs.compat.isaac_gym"
    return f"{wrong}; docs/isaacgym.md lists what is: ask for more in an issue of legged-envs"


def refuse(owner: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of something that has a part of Isaac Gym alone: an AttributeError, which tools that look for
    a name in all modules expect, and for ``from … import`` an ImportError."""

    def getattr_(name: str) -> Any:
        caller = sys._getframe(1)
        imports = dis.opname[caller.f_code.co_code[caller.f_lasti]] == "IMPORT_FROM"
        raise (ImportError if imports else AttributeError)(_missing(f"{owner}.{name}"))

    return getattr_


def __getattr__(name: str) -> Any:
    """What needs MuJoCo or Gymnasium is imported when it is asked for."""
    if name == "as_vector_env":
        return import_module(f"{__name__}.bridge").as_vector_env
    if name in MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(_missing(f"isaacgym.{name}"))
