"""LeggedGym-Ex's registry of tasks."""

import copy
from functools import partial
from typing import Any, NamedTuple

import legged_envs
from legged_envs.compat.legged_gym.cfg import LeggedRobotCfg


class RegisteredTask(NamedTuple):
    """A task of the registry."""

    task_class: Any
    """Class of the task, a subclass of ``LeggedRobot``."""
    env_cfg: LeggedRobotCfg
    """Its configuration."""
    train_cfg: object
    """Configuration of its training."""


class TaskRegistry(dict[str, RegisteredTask]):
    """Tasks by LeggedGym-Ex's names."""

    def register(
        self, name: str, task_class: Any, env_cfg: LeggedRobotCfg, train_cfg: object = None
    ) -> None:
        """Register a task here, and with Gymnasium as ``LeggedGym/<name>-v0``.

        Args:
            name: Name of the task.
            task_class: Its class.
            env_cfg: Its configuration.
            train_cfg: Configuration of its training.
        """
        self[name] = RegisteredTask(task_class, env_cfg, train_cfg)
        # Each environment gets a copy: its changes must not reach the registered configuration.
        make_cfg = partial(copy.deepcopy, env_cfg)
        legged_envs.register(f"LeggedGym/{name}-v0", task_class, make_cfg)

    def get_cfgs(self, name: str) -> tuple[LeggedRobotCfg, Any]:
        """Return copies of the configurations of a task and of its training."""
        task = self[name]
        return copy.deepcopy(task.env_cfg), copy.deepcopy(task.train_cfg)

    def make_env(
        self, name: str, args: object = None, env_cfg: LeggedRobotCfg | None = None
    ) -> tuple[Any, LeggedRobotCfg]:
        """Make a task and reset it.

        Args:
            name: Name of the task.
            args: May have ``num_envs``, ``seed``, ``sim_device`` and ``headless``.
            env_cfg: Configuration instead of the registered one.

        Returns:
            The task, and its configuration.
        """
        cfg = env_cfg or self.get_cfgs(name)[0]
        cfg.env.num_envs = getattr(args, "num_envs", None) or cfg.env.num_envs
        device = getattr(args, "sim_device", "cpu")
        headless = getattr(args, "headless", True)
        env = self[name].task_class(cfg, {}, device, headless)
        env.reset(getattr(args, "seed", None))
        return env, cfg


task_registry = TaskRegistry()
"""The registry of all tasks."""
