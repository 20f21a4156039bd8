"""What the workflows share: an object with methods in the words of its framework, and the core that calls them."""

import copy
import pickle
from abc import ABCMeta, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from torch import Tensor

from legged_envs.envs import CoreVectorEnv, LeggedVectorEnv
from legged_envs.envs.arguments import check_same_structure
from legged_envs.envs.cfg import TaskCfg
from legged_envs.state import copied, is_state, replaced_in_place
from legged_envs.tables import Shown
from legged_envs.wrappers import AutoReset, TimeLimit

_GIVEN: ContextVar[dict[str, Any] | None] = ContextVar("_GIVEN", default=None)
"""The arguments of a core that is made by its id: the constructors of other frameworks have no place for them."""
_NO_STATE = ("core", "cfg", "extras", "_stack")


class WorkflowCore(LeggedVectorEnv):
    """The vector environment of a :class:`Workflow`, its ``task``. The managers of commands, actions and events are
    there when the task's constructor goes on, the others, which may evaluate the task's methods, after it."""

    INFERENCE = False

    def __init__(self, task: "Workflow", cfg: TaskCfg, num_envs: int, **arguments: Any):
        self.task, task.core = task, self
        super().__init__(cfg, num_envs, **arguments)

    def _set_up(self) -> None:
        with torch.inference_mode(False):
            self._move_and_command(self.task.context)

    def finish(self) -> None:
        """Build what needs the task whose constructor has returned."""
        with torch.inference_mode(False), torch.no_grad():
            self.task._check()
            super()._set_up()

    def _report_log(self) -> dict[str, Any]:
        info = super()._report_log()
        own = {key: value for kind in ("episode", "log") for key, value in self.task.extras.pop(kind, {}).items()}
        exported = {k: self._export(v) if isinstance(v, Tensor) else v for k, v in own.items()}
        return {**info, "log": {**info.get("log", {}), **exported}} if own else info

    def _own_state(self) -> dict[str, Any]:
        return {**super()._own_state(), "task": SimpleNamespace(**copied(self.task._stateful()))}

    def _check_own_state(self, state: dict[str, Any]) -> None:
        given = vars(state["task"])  # of which what is no tensor may be longer, or there at some times only
        own = {name: value for name, value in self.task._stateful().items() if isinstance(value, Tensor)}
        own = {name: value for name, value in own.items() if isinstance(given.get(name), Tensor)}
        check_same_structure({name: given[name] for name in own}, own, f"the state of {type(self.task).__name__}")

    def _load_own_state(self, state: dict[str, Any]) -> None:
        super()._load_own_state({name: part for name, part in state.items() if name != "task"})
        put_back(self.task, vars(state["task"]))

    def close_extras(self, **kwargs: Any) -> None:
        super().close_extras(**kwargs)
        self.task.extras = {}

    def __reduce__(self) -> Any:
        make = partial(type(self.task).make_core, self.cfg, self.num_envs, **self._arguments)
        return make, (), {**self.__getstate__(), "made_from": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.spec = state["spec"]
        if state["state"] is not None:
            self.set_state(pickle.loads(state["state"]))


class _Finished(ABCMeta):
    """Finishes the core of an object after its whole constructor, those of subclasses too."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        task = super().__call__(*args, **kwargs)
        if vars(task).get("core") is None:
            raise TypeError(
                f"{cls.__name__}.__init__ must call that of its base class: {cls.__mro__[1].__name__}.__init__"
            )
        task.core.finish()
        return task


class Workflow(Shown, metaclass=_Finished):
    """A task as a user writes it: methods with the names of another framework. It is no environment of Gymnasium's,
    ``core`` is, and what this object has no attribute for is looked up in that: ``robot``, ``sim``, ``random``,
    ``num_envs``, ``device``, ``step_dt``, … So it serves as ``env`` of the terms of ``mdp/`` and of managers."""

    CORE: ClassVar[type[WorkflowCore]] = WorkflowCore
    core: WorkflowCore
    cfg: Any
    """The configuration in the words of the framework; ``core.cfg`` is the :class:`TaskCfg` made from it."""
    extras: dict[str, Any]
    """What the task reports; ``extras["log"]`` and ``extras["episode"]`` of a reset join ``info["log"]``."""

    def _make_core(self, cfg: Any, num_envs: int, **arguments: Any) -> None:
        """Make ``core`` from the framework's ``cfg``. What is given to :meth:`make_core` has precedence."""
        self.cfg, self.extras = cfg, {}
        given = {"num_envs": num_envs, "array": "torch", "observations": "dict", **arguments, **(_GIVEN.get() or {})}
        self.CORE(self, given.pop("cfg", None) or self.task_cfg(cfg), **given)

    @classmethod
    def make_core(cls, cfg: TaskCfg, num_envs: int, **arguments: Any) -> CoreVectorEnv:
        """The vector environment of a task of this class, without time limit and without autoreset."""
        assert cfg.workflow is not None
        given = {"array": "numpy", "observations": "policy", "cfg": cfg, "num_envs": num_envs, **arguments}
        token = _GIVEN.set(given)
        try:
            return cls._construct(copy.deepcopy(cfg.workflow[1])).core
        finally:
            _GIVEN.reset(token)

    @classmethod
    def task_cfg(cls, cfg: Any) -> TaskCfg:
        """What a configuration in the words of the framework says in ours."""
        return replace(cls._translate(cfg), workflow=(cls, cfg))

    @classmethod
    @abstractmethod
    def _translate(cls, cfg: Any) -> TaskCfg:
        """The robot, simulation, time limit and terms of ``cfg``."""

    @classmethod
    def _construct(cls, cfg: Any) -> "Workflow":
        """An object as the framework makes it."""
        return cls(cfg)  # type: ignore[call-arg]

    context = property(lambda self: self)
    """What the terms of the managers see as ``env``."""

    def _check(self) -> None:
        """Raise an exception, naming class and method, if the task lacks what it needs."""

    @property
    def stack(self) -> AutoReset:
        """The environment with the time limit of the task and autoreset in the same step."""
        if "_stack" not in vars(self):
            core, steps = self.core, self.core.max_episode_length
            finite = core.cfg.is_finite_horizon
            self._stack = AutoReset(core if steps is None else TimeLimit(core, steps, is_finite_horizon=finite))
        return self._stack

    def _stateful(self) -> dict[str, Any]:
        """The attributes that a saved state holds: tensors, numbers and objects with a state, also in dicts, lists."""
        return {name: value for name, value in vars(self).items() if name not in _NO_STATE and is_state(value)}

    def _describe(self) -> str:
        return f"{self.core}" if "core" in vars(self) else ""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and hasattr(vars(self).get("core"), name):
            return getattr(self.core, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def put_back(task: "Workflow", state: dict[str, Any]) -> None:
    """Give the attributes of ``task`` the values of a ``state``, a copy of some of :meth:`Workflow._stateful`."""
    for name, value in state.items():
        setattr(task, name, replaced_in_place(vars(task).get(name), value))


@contextmanager
def others_unchanged(task: "Workflow", env_ids: Tensor) -> Iterator[None]:
    """Keep the rows of all environments but ``env_ids`` of what ``task`` has, also in dicts and lists: its methods are
    for whole batches."""
    before = _rows(task._stateful(), task.num_envs)
    yield
    _put_back_rows(vars(task), before, torch.ones(task.num_envs, dtype=torch.bool).index_fill(0, env_ids.cpu(), False))


def _rows(values: Any, num_envs: int) -> dict[Any, Any]:
    """The tensors with a row per environment, each with a copy, by name or index."""
    kept: dict[Any, Any] = {}
    for name, value in values.items() if isinstance(values, dict) else enumerate(values):
        if isinstance(value, (dict, list, deque)):
            kept[name] = _rows(value, num_envs)
        elif isinstance(value, Tensor) and value.shape[:1] == (num_envs,):
            kept[name] = value, value.clone()
    return kept


def _put_back_rows(values: Any, before: dict[Any, Any], rows: Tensor) -> None:
    for name, old in before.items():
        if isinstance(old, dict):
            _put_back_rows(values[name], old, rows)
        elif values[name].shape == old[1].shape:
            if values[name] is not old[0]:
                values[name] = values[name].clone()  # what took its place may be a view of another's
            values[name][rows] = old[1][rows]
