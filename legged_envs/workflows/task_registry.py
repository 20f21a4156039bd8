"""Tasks by their LeggedGym-Ex names."""

import copy
from functools import partial
from typing import Any

from legged_envs import registration
from legged_envs.checks import check_known


class TaskRegistry(dict[str, tuple[Any, Any, Any]]):
    """Class, configuration and configuration of the training of each task, by LeggedGym-Ex's name of it."""

    def register(self, name: str, task_class: Any, env_cfg: Any, train_cfg: Any = None) -> None:
        """Register a task, also with Gymnasium as ``LeggedGym/<name>-v0``."""
        self[name] = task_class, env_cfg, train_cfg
        registration.register(f"LeggedGym/{name}-v0", task_class, partial(copy.deepcopy, env_cfg))

    def __missing__(self, name: str) -> Any:
        check_known("there is no task", (name,), self, "tasks")

    def get_task_class(self, name: str) -> Any:
        return self[name][0]

    def get_cfgs(self, name: str) -> tuple[Any, ...]:
        """Copies of the configurations of environment and training."""
        return copy.deepcopy(self[name][1:])

    def make_env(self, name: str, args: Any = None, env_cfg: Any = None) -> tuple[Any, Any]:
        """The task and its configuration. ``args`` may have ``num_envs``, ``seed``, ``sim_device``, ``headless``."""
        cfg = env_cfg or self.get_cfgs(name)[0]
        cfg.env.num_envs = getattr(args, "num_envs", None) or cfg.env.num_envs
        env = self[name][0](cfg, {}, getattr(args, "sim_device", "cpu"), getattr(args, "headless", True))
        env.reset(getattr(args, "seed", None))
        return env, cfg


task_registry = TaskRegistry()
