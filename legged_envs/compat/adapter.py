"""What the workflows share: an object with methods in the words of its framework, and the core that calls them."""

import copy
import random
from abc import ABCMeta, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium.vector.utils import create_empty_array
from torch import Tensor

from legged_envs.envs import CoreVectorEnv, LeggedVectorEnv
from legged_envs.envs.arguments import check_same_structure
from legged_envs.envs.cfg import TaskCfg
from legged_envs.mdp.curricula import move_levels
from legged_envs.state import (
    copy_rows,
    copy_state,
    is_state,
    map_tree,
    preserve_contents,
    replace_in_place,
    restore_rows,
)
from legged_envs.tables import TableRepr
from legged_envs.wrappers import AutoReset, TimeLimit

_GIVEN: ContextVar[dict[str, Any] | None] = ContextVar("_GIVEN", default=None)
"""The arguments of a core that is made by its id: the constructors of other frameworks have no place for them."""
_NO_STATE = ("core", "cfg", "extras", "_stack")
ORIGINS = ("env_origins", "terrain_levels", "terrain_types", "terrain_origins", "max_terrain_level")
"""Where robots begin, in other frameworks' words: attributes of the core."""


class WorkflowCore(LeggedVectorEnv):
    """The vector environment of a :class:`Workflow`, its ``task``. The managers of commands, actions and events are
    there when the task's constructor goes on, the others, which may evaluate the task's methods, after it."""

    INFERENCE = False

    def __init__(self, task: "Workflow", cfg: TaskCfg, num_envs: int, **arguments: Any):
        self.task, task.core = task, self
        super().__init__(cfg, num_envs, **arguments)

    env_origins = property(
        lambda self: self.ground.origins if self.ground else torch.zeros_like(self.robot.root_pos_w)
    )
    """Where robots begin on rough ground, m, else 0: every environment is a world of its own. Shape: (num_envs, 3)."""
    terrain_levels, terrain_types = (
        property(lambda c: c.ground.levels),
        property(lambda c: c.ground.columns),
    )
    terrain_origins, update_env_origins = property(lambda c: c.ground.tile_origins), move_levels
    max_terrain_level = property(lambda c: len(c.ground.tile_origins))

    def _set_up(self) -> None:
        with torch.inference_mode(False):
            self._move_and_command(self.task.context)

    def finish(self) -> None:
        """Build what needs the task whose constructor has returned, and try its methods."""
        with torch.inference_mode(False), torch.no_grad():
            self.task._check()
            super()._set_up()
            self._try_out()

    def _try_out(self) -> None:
        """Begin episodes and take a step, which shows what the task's methods do, and put back what that changed."""
        state = {"sim": self.sim.get_state(), "random": copy_state(self.random), **self._state()}
        python, numpy, seeded = (
            random.getstate(),
            np.random.get_state(),
            (self._np_random, self._np_random_seed),
        )
        with torch.random.fork_rng([]), preserve_contents(vars(self.task)):
            self._start_episodes(self._all_ids, 0)
            self._observe(self._all_ids)
            self._act(
                map_tree(
                    torch.from_numpy,
                    create_empty_array(self.single_action_space, self.num_envs, np.zeros),
                )
            )
            for robot in self.robots.values():
                robot.read()
            self._evaluate()
            self._observe(None)
        random.setstate(python)
        np.random.set_state(numpy)
        self._np_random, self._np_random_seed = seeded
        self.set_state(state)
        self._begun = False

    def check(
        self,
        method: str,
        what: str,
        value: Any,
        *size: int,
        flags: bool = False,
        least: float = -inf,
    ) -> Tensor:
        """What a method of the task made; ValueError, naming both, unless it is a float32 tensor (num_envs, *size),
        finite and at least ``least`` but where physics was bad in this step; with ``flags`` of bools or integers."""
        dtypes = (torch.bool, torch.int32, torch.int64) if flags else (torch.float32,)
        shape, where = (self.num_envs, *size), f"{type(self.task).__name__}.{method}"
        if not isinstance(value, Tensor) or value.shape != shape or value.dtype not in dtypes:
            given = (
                f"{value.dtype} {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)
            )
            raise ValueError(f"{where} must give {what} of shape {shape}, {dtypes}, got {given}")
        self.check_numbers(method, what, value, least)
        return value

    def check_numbers(self, method: str, what: str, value: Tensor, least: float = -inf) -> None:
        if isfinite(value.sum().item()) and least == -inf:
            return
        bad = ~(value.isfinite() & (value >= least)).reshape(len(value), -1).all(1)
        if self._recovered is not None and len(bad) == self.num_envs:
            bad &= ~self._recovered
        if env_ids := bad.nonzero()[:8, 0].tolist():
            low = f", or below {least}" if isfinite(least) else ""
            wrong = f"{type(self.task).__name__}.{method} gave {what} that is not finite{low}"
            raise ValueError(
                f"{wrong}, in environments {env_ids}: guard divisions, roots and logarithms"
            )

    def _observe_new(self, env_ids: Tensor, look: Callable[[], None]) -> None:
        """Let the managers' groups, and ``look``, which is for whole batches, take in the rows of ``env_ids`` alone."""
        with others_unchanged(self.task, env_ids):
            for group in self._groups:
                group.value = group.value.index_copy(0, env_ids, group.compute_rows(env_ids))
            look()

    def _report_log(self) -> dict[str, Any]:
        info = super()._report_log()
        own = {
            key: value
            for kind in ("episode", "log")
            for key, value in self.task.extras.pop(kind, {}).items()
        }
        exported = {k: self._export(v) if isinstance(v, Tensor) else v for k, v in own.items()}
        return {**info, "log": {**info.get("log", {}), **exported}} if own else info

    def _own_state(self) -> dict[str, Any]:
        return {
            **super()._own_state(),
            "task": SimpleNamespace(**copy_state(self.task._stateful())),
        }

    def _check_own_state(self, state: dict[str, Any]) -> None:
        given = vars(
            state["task"]
        )  # of which what is no tensor may be longer, or there at some times only
        own = {
            name: value
            for name, value in self.task._stateful().items()
            if isinstance(value, Tensor)
        }
        own = {name: value for name, value in own.items() if isinstance(given.get(name), Tensor)}
        check_same_structure(
            {name: given[name] for name in own}, own, f"the state of {type(self.task).__name__}"
        )

    def _load_own_state(self, state: dict[str, Any]) -> None:
        super()._load_own_state({name: part for name, part in state.items() if name != "task"})
        for name, value in vars(state["task"]).items():
            setattr(self.task, name, replace_in_place(vars(self.task).get(name), value))

    def close_extras(self, **kwargs: Any) -> None:
        super().close_extras(**kwargs)
        self.task.extras = {}

    def __reduce__(self) -> Any:
        make = partial(type(self.task).make_core, self.cfg, self.num_envs, **self._arguments)
        return make, (), {**self.__getstate__(), "made_from": None}


class _Finished(ABCMeta):
    """Finishes the core of an object after its whole constructor, those of subclasses too."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        task = super().__call__(*args, **kwargs)
        if vars(task).get("core") is None:
            base = cls.__mro__[1].__name__
            raise TypeError(
                f"{cls.__name__}.__init__ must call that of its base class: {base}.__init__"
            )
        task.core.finish()
        return task


class Workflow(TableRepr, metaclass=_Finished):
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
        given = {
            "num_envs": num_envs,
            "array": "torch",
            "observations": "dict",
            **arguments,
            **(_GIVEN.get() or {}),
        }
        self.CORE(self, given.pop("cfg", None) or self.task_cfg(cfg), **given)

    @classmethod
    def make_core(cls, cfg: TaskCfg, num_envs: int, **arguments: Any) -> CoreVectorEnv:
        """The vector environment of a task of this class, without time limit and without autoreset."""
        assert cfg.workflow is not None
        given = {
            "array": "numpy",
            "observations": "policy",
            "cfg": cfg,
            "num_envs": num_envs,
            **arguments,
        }
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
            self._stack = AutoReset(
                core if steps is None else TimeLimit(core, steps, is_finite_horizon=finite)
            )
        return self._stack

    def _stateful(self) -> dict[str, Any]:
        """The attributes that a saved state holds: tensors, numbers and objects with a state, also in dicts, lists."""
        return {
            name: value
            for name, value in vars(self).items()
            if name not in _NO_STATE and is_state(value)
        }

    def _describe(self) -> str:
        return f"{self.core}" if "core" in vars(self) else ""

    def __getattr__(self, name: str) -> Any:
        if (
            name.startswith("__")
            or (value := getattr(vars(self).get("core"), name, _NO_STATE)) is _NO_STATE
        ):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return value


@contextmanager
def others_unchanged(task: "Workflow", env_ids: Tensor, **more: dict[str, Any]) -> Iterator[None]:
    """Keep the rows of all environments but ``env_ids`` of what ``task`` and ``more`` have, also in dicts and lists:
    methods are for whole batches."""
    before = copy_rows({**task._stateful(), **more}, task.num_envs)
    yield
    others = torch.ones(task.num_envs, dtype=torch.bool).index_fill(0, env_ids.cpu(), False)
    restore_rows(ChainMap(vars(task), more), before, others)
