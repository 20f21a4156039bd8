"""A task as a user writes it, in the words of another framework."""

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from legged_envs.compat.adapter import AdapterCfg, AdapterTask, OwnCfg
from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.task import Info
from legged_envs.state import State, is_state
from legged_envs.tables import TableRepr
from legged_envs.wrappers import AutoReset, TimeLimit
from legged_envs.wrappers.plumbing.layers import Env

NOT_STATE = ("core", "cfg", "extras", "_stack")
"""Attributes of a user's object that are not a part of its saved state."""


class UserTask(TableRepr, ABC):
    """A task as a user writes it: methods with the names of another framework.

    It is not an environment of Gymnasium; :attr:`core` is. Attributes that this object does not
    have are looked up in ``core`` and in its task: ``robot``, ``sim``, ``random``, ``num_envs``,
    ``device``, ``step_dt``, … So it serves as ``env`` of the terms of :mod:`legged_envs.mdp`.
    """

    ADAPTER: ClassVar[type[AdapterTask]]
    """Class of the task that calls the methods."""
    core: CoreVectorEnv
    """The vector environment."""
    cfg: OwnCfg
    """Configuration in the words of the framework; ``core.cfg`` is made from it."""
    extras: Info
    """Results that the task reports; ``extras["log"]`` and ``extras["episode"]`` join
    ``info["log"]``."""

    def make_core(self, cfg: OwnCfg, num_envs: int, **arguments: Any) -> None:
        """Make the environment, unless it exists because it makes this object.

        Args:
            cfg: Configuration in the words of the framework.
            num_envs: Number of environments.
            arguments: Keyword arguments of :class:`~legged_envs.envs.CoreVectorEnv`.
        """
        self.cfg = cfg
        self.extras = {}
        # make_vec has made the environment, and the environment makes this object.
        if "core" in vars(self):
            return
        task = self.ADAPTER(type(self).task_cfg(cfg), user=self)
        options = {"array": "torch", "observations": "dict", **arguments}
        CoreVectorEnv(task, num_envs, **options)

    @classmethod
    def task_cfg(cls, cfg: OwnCfg) -> AdapterCfg:
        """Translate a framework's configuration into the configuration of a task.

        Args:
            cfg: Configuration in the words of the framework, such as a ``DirectRLEnvCfg``.

        Returns:
            The configuration of this package with the same content.
        """
        translated = cls._translate(cfg)
        fields = {}
        for field in dataclasses.fields(TaskCfg):
            fields[field.name] = getattr(translated, field.name)
        return AdapterCfg(**fields, user_class=cls, own_cfg=cfg)

    @classmethod
    @abstractmethod
    def _translate(cls, cfg: OwnCfg) -> TaskCfg:
        """Return robot, simulation, time limit and terms of ``cfg``."""

    @property
    def initial_seed(self) -> int | None:
        """Seed of the first reset, if that has none; None: the operating system draws it."""
        return None

    def construct(self, cfg: OwnCfg) -> None:
        """Call the constructor as the framework does."""
        self.__init__(cfg)  # type: ignore[misc]

    def check_methods(self) -> None:
        """Check that the task has the methods that it needs.

        Raises:
            TypeError: If one is missing; the error names class and method.
        """

    @property
    def stack(self) -> AutoReset:
        """The environment with the task's time limit and autoreset in the same step."""
        if "_stack" not in vars(self):
            core = self.core
            env: Env = core  # the time limit is inside, so that autoreset sees its ends
            steps = core.max_episode_length
            if steps is not None:
                env = TimeLimit(env, steps, is_finite_horizon=core.cfg.is_finite_horizon)
            self._stack = AutoReset(env)
        return self._stack

    def stateful_attributes(self) -> State:
        """Return the attributes that a saved state holds, by name.

        These are tensors, numbers and objects with a state, also in dicts and lists.
        """
        return {
            name: value
            for name, value in vars(self).items()
            if name not in NOT_STATE and is_state(value)
        }

    def _describe(self) -> str:
        return f"{self.core}" if "core" in vars(self) else ""

    def __getattr__(self, name: str) -> Any:
        # vars, because getattr would call this method again. Names with two underscores are asked
        # for by copy and pickle, which must not find methods of another object.
        core = vars(self).get("core")
        if core is not None and not name.startswith("__"):
            for owner in (core, core.task):
                if hasattr(owner, name):
                    return getattr(owner, name)
        hint = "" if core is not None else "; __init__ must call super().__init__"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")
