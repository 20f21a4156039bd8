"""The task that calls the methods of a user's object, and its configuration."""

import copy
import dataclasses
import random
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from gymnasium.vector.utils import create_empty_array
from torch import Tensor

from legged_envs.checks import check_known
from legged_envs.compat.origins import TerrainOrigins
from legged_envs.compat.rows import others_unchanged
from legged_envs.envs import CoreVectorEnv, Spaces
from legged_envs.envs.arguments import MAX_LISTED_ENVS, check_same_structure
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.changes import Changes, apply_changes, carry_changes
from legged_envs.envs.manager_set import ManagerSet
from legged_envs.envs.manager_task import ManagerTask
from legged_envs.envs.task import Action, Info, Task
from legged_envs.state import (
    State,
    copy_state,
    map_tree,
    preserve_contents,
    replace_in_place,
)

if TYPE_CHECKING:
    from legged_envs.compat.user_task import UserTask

OwnCfg: TypeAlias = Any
"""Configuration in the format of another framework; each framework has separate classes."""
FLAG_DTYPES = (torch.bool, torch.int32, torch.int64)
"""Dtypes of flags that a method may return."""


@dataclass
class AdapterCfg(TaskCfg):
    """Configuration of a task in the words of another framework."""

    user_class: Any = None
    """Class with the methods of the task, which the user wrote.

    It is a subclass of :class:`~legged_envs.compat.user_task.UserTask`.
    """
    own_cfg: OwnCfg = None
    """Configuration in the words of the framework, which the other fields were made from."""

    @property
    def is_reconfigurable(self) -> bool:
        """False: the user's methods evaluate the task."""
        return False

    def make_task(self) -> "AdapterTask":
        """Return a new task, which makes an object of the user's class when it is attached."""
        task: AdapterTask = self.user_class.ADAPTER(self)
        return task

    def with_changes(self, changes: Changes) -> TaskCfg:
        """Return a copy with fields replaced; the framework's own fields come first.

        Own fields are translated again. Earlier changes of the other fields are kept, except for
        fields that the new own fields give another value.
        """
        own_names = [name for name in dir(self.own_cfg) if not name.startswith("_")]
        field_names = [field.name for field in dataclasses.fields(TaskCfg)]
        first_names = [str(path).partition(".")[0] for path in changes]
        known = [*own_names, *field_names]
        check_known("cfg: the task has no", first_names, known, "it has")
        own_changes = {}
        other_changes = {}
        for path, first in zip(changes, first_names, strict=True):
            if first in own_names:
                own_changes[path] = changes[path]
            else:
                other_changes[path] = changes[path]
        cfg: TaskCfg = self
        if own_changes:
            before: TaskCfg = self.user_class.task_cfg(self.own_cfg)
            after: TaskCfg = self.user_class.task_cfg(apply_changes(self.own_cfg, own_changes))
            cfg = carry_changes(before, copy.deepcopy(self), after)
        return apply_changes(cfg, other_changes)

    def from_own_cfg(self, cfg: object) -> TaskCfg:
        own_class = type(self.own_cfg)
        if not isinstance(cfg, own_class):
            raise TypeError(
                f"cfg must be a {own_class.__name__}, a TaskCfg or a mapping of changes, "
                f"got {type(cfg).__name__}"
            )
        translated: TaskCfg = self.user_class.task_cfg(cfg)
        return translated


class AdapterTask(TerrainOrigins, Task):
    """A task that calls the methods of a user's object, and also has terms.

    The managers of commands, actions and events exist while the constructor of the object runs.
    The other managers, which may evaluate its methods, are built afterwards.

    Args:
        cfg: Configuration of the task.
        user: The user's object, if its constructor makes the environment. None: the task makes
            the object when it is attached to its environment.
    """

    # Tensors that a user's methods keep may be changed outside of a step, which inference tensors
    # forbid.
    uses_inference_mode = False

    cfg: AdapterCfg

    def __init__(self, cfg: AdapterCfg, user: "UserTask | None" = None):
        super().__init__(cfg)
        self.is_complete = user is None
        self._makes_user = user is None

        # Only allocated here: its constructor needs the environment, which is not attached yet.
        self.user: Any = cfg.user_class.__new__(cfg.user_class) if user is None else user
        """The user's object."""

    @property
    def context(self) -> Any:
        """Object that the terms of the managers get as ``env``."""
        return self.env

    def attach(self, env: CoreVectorEnv) -> None:
        super().attach(env)
        # Only now: the environment has given the task its own copy of the configuration.
        self.terms = ManagerTask(self.cfg)
        """The part of the task that managers evaluate."""
        self.terms.attach(env)
        # The object gets the environment first: terms and its constructor look everything up there.
        self.user.core = env
        self.managers = ManagerSet(env, self.context)
        self.terms.managers = self.managers
        self.managers.build_motion(self.cfg)
        self.prepare()
        if self._makes_user:
            # A copy: the object may change what it is given, and a pickled environment is made
            # again from the original.
            self.user.construct(copy.deepcopy(self.cfg.own_cfg))
            if "extras" not in vars(self.user):
                name = type(self.user).__name__
                base = type(self.user).__mro__[1].__name__
                raise TypeError(f"{name}.__init__ must call {base}.__init__")

    def prepare(self) -> None:
        """Make what the constructor of the user's object may read."""

    def build(self) -> Spaces:
        self.user.check_methods()
        with torch.no_grad():
            return self.build_evaluation()

    def build_evaluation(self) -> Spaces:
        """Build the managers that evaluate terms, and return the spaces."""
        spaces = self.terms.build_evaluation()
        self.cost_names = self.terms.cost_names
        self.cost_limits = self.terms.cost_limits
        self.log_names = self.terms.log_names
        return spaces

    def verify(self) -> None:
        """Begin episodes and take a step, so that methods that do not fit are found at once.

        Everything that this changes is restored.
        """
        env = self.env
        # Users draw from the global generators too; these must not depend on this check.
        python = random.getstate()
        numpy = np.random.get_state()
        with (
            torch.no_grad(),
            torch.random.fork_rng([]),
            env.preserved(),
            preserve_contents(vars(self.user)),
        ):
            # Seed 0, because nothing is seeded yet and the check must be the same in every run.
            env.start_episodes(env.all_ids, 0)
            self.observe(env.all_ids)
            zeros = create_empty_array(env.single_action_space, env.num_envs, np.zeros)
            self.act(map_tree(torch.from_numpy, zeros))
            for robot in env.robots.values():
                robot.read()
            self.evaluate()
            self.observe(None)
        random.setstate(python)
        np.random.set_state(numpy)

    def first_seed(self) -> int:
        seed = self.user.initial_seed
        return super().first_seed() if seed is None else seed

    def act(self, action: Action) -> None:
        self.terms.act(action)

    def advance(self) -> None:
        self.terms.advance()

    def place(self, env_ids: Tensor, seeded: bool) -> None:
        if seeded:
            self.terms.randomize(env_ids)
        self.choose_start(env_ids)

    def choose_start(self, env_ids: Tensor) -> None:
        """Draw commands and first poses of ``env_ids``, shape (n,)."""
        self.managers.commands.reset(env_ids)
        self.managers.events.reset(env_ids)

    def begin_episodes(self, env_ids: Tensor) -> None:
        self.terms.begin_episodes(env_ids)

    def end_episodes(self, env_ids: Tensor, steps: Tensor) -> Tensor:
        return self.terms.end_episodes(env_ids, steps)

    def forget_last_observation(self) -> None:
        self.terms.forget_last_observation()

    def check_result(
        self,
        method: str,
        what: str,
        value: object,
        *size: int,
        flags: bool = False,
        least: float = -inf,
    ) -> Tensor:
        """Check what a method of the user's object made.

        Args:
            method: Name of the method, for errors.
            what: Name of the value, for errors.
            value: The value.
            size: Expected shape without ``num_envs``.
            flags: True if bools or integers are expected, otherwise float32.
            least: Smallest allowed number.

        Returns:
            The value.

        Raises:
            ValueError: If shape or dtype are wrong, or a number is not finite or too small, except
                where the physics was bad in this step.
        """
        dtypes = FLAG_DTYPES if flags else (torch.float32,)
        shape = (self.env.num_envs, *size)
        if not isinstance(value, Tensor) or value.shape != shape or value.dtype not in dtypes:
            given = repr(value)
            if isinstance(value, Tensor):
                given = f"{value.dtype} {tuple(value.shape)}"
            raise ValueError(
                f"{type(self.user).__name__}.{method} must give {what} of shape {shape}, "
                f"{dtypes}, got {given}"
            )
        self.check_numbers(method, what, value, least)
        return value

    def check_numbers(self, method: str, what: str, value: Tensor, least: float = -inf) -> None:
        """Check that numbers are finite and at least ``least``: see :meth:`check_result`."""
        # One sum is faster than a flag per number; with a least number each one is compared.
        if least == -inf and isfinite(value.sum().item()):
            return
        is_bad = ~(value.isfinite() & (value >= least)).reshape(len(value), -1).all(1)
        recovered = self.env.recovered
        if recovered is not None and len(is_bad) == self.env.num_envs:
            is_bad &= ~recovered
        env_ids = is_bad.nonzero()[:MAX_LISTED_ENVS, 0].tolist()
        if env_ids:
            or_below = f", or below {least}" if isfinite(least) else ""
            raise ValueError(
                f"{type(self.user).__name__}.{method} gave {what} that is not finite{or_below}, "
                f"in environments {env_ids}: guard divisions, roots and logarithms"
            )

    def observe_first(self, env_ids: Tensor, observe_all: Callable[[], None]) -> None:
        """Observe new episodes, and keep the observations of the other environments.

        Args:
            env_ids: Environments with a new episode, shape (n,).
            observe_all: Method of the user's object, which observes whole batches.
        """
        # Methods compute whole batches, and may change histories of environments that run on.
        with others_unchanged(self.user, env_ids):
            for group in self.managers.shown_groups:
                rows = group.compute_rows(env_ids)
                group.value = group.value.index_copy(0, env_ids, rows)
            observe_all()

    def take_log(self) -> Info:
        log: Info = {}
        for kind in ("episode", "log"):
            log.update(self.user.extras.pop(kind, {}))
        return log

    def state(self) -> State:
        # A namespace is compared as a whole: attributes may exist at some times only.
        own = SimpleNamespace(**copy_state(self.user.stateful_attributes()))
        return {**self.terms.state(), "task": own}

    def state_template(self) -> State:
        return {**self.terms.state_template(), "task": SimpleNamespace()}

    def check_state(self, state: State) -> None:
        given = vars(state["task"])
        expected = {}
        for name, value in self.user.stateful_attributes().items():
            if isinstance(value, Tensor) and isinstance(given.get(name), Tensor):
                expected[name] = value
        tensors = {name: given[name] for name in expected}
        check_same_structure(tensors, expected, f"the state of {type(self.user).__name__}")

    def load_changes(self, state: State) -> None:
        self.terms.load_changes(state)

    def load_state(self, state: State) -> None:
        self.terms.load_state(state)
        for name, value in vars(state["task"]).items():
            # In place: other attributes, or a learner, may hold views of the same tensors.
            present = vars(self.user).get(name)
            setattr(self.user, name, replace_in_place(present, value))

    def close(self) -> None:
        # Extras may hold large tensors.
        self.user.extras = {}
        self.terms.close()
        del self.managers
        del self.env
