"""Looks at a task without PyTorch, whose import takes seconds: a mistake on the command line is found before it."""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from typing import Any

from legged_envs.errors import is_mistake
from legged_envs.tasks import TASKS, plain_id


class _Blank(type):
    """A class that stands for a module or anything in it: its attributes are blanks, and so is what a call returns."""

    def __getattr__(cls, name: str) -> "_Blank":
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __call__(cls, *args: Any, **kwargs: Any) -> "_Blank":
        return cls


class _BlankTorch:
    """Finds and loads a blank in place of each module of PyTorch."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "torch" else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> _Blank:
        return _Blank(spec.name, (), {})

    def exec_module(self, module: _Blank) -> None:
        pass


def check_without_torch(task_id: str, check: Callable[[], object]) -> None:
    """Call ``check``, which makes and changes the configuration of a task, as that only names functions, but does not
    compute. It raises mistakes; other errors are ignored, and what it imports is forgotten. Where PyTorch is there
    already, or the task is another package's, ``check`` is called with PyTorch."""
    if "torch" in sys.modules or not str(TASKS[plain_id(task_id)]).startswith("legged_envs."):
        check()
        return
    known, finder = set(sys.modules), _BlankTorch()
    sys.meta_path.insert(0, finder)
    try:
        check()
    except Exception as error:
        if is_mistake(error):
            raise
    finally:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - known:
            if name.split(".")[0] in ("torch", "legged_envs", "safetensors"):
                del sys.modules[name]
                folder, _, module = name.rpartition(".")
                if folder in known and hasattr(sys.modules[folder], module):
                    delattr(sys.modules[folder], module)
