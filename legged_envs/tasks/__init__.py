"""Tasks: which robot, terms and weights make which registered id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from legged_envs.envs.cfg import TaskCfg


def _go2_flat() -> TaskCfg:
    from legged_envs.tasks.velocity import go2_flat

    return go2_flat()


def _g1_flat() -> TaskCfg:
    from legged_envs.tasks.velocity import g1_flat

    return g1_flat()


def _go2_mimic() -> TaskCfg:
    from legged_envs.tasks.mimic import go2_mimic

    return go2_mimic()


def _g1_mimic() -> TaskCfg:
    from legged_envs.tasks.mimic import g1_mimic

    return g1_mimic()


TASKS: dict[str, Callable[[], TaskCfg]] = {
    "Legged/Go2-Flat-v0": _go2_flat,
    "Legged/G1-Flat-v0": _g1_flat,
    "Legged/Go2-Mimic-v0": _go2_mimic,
    "Legged/G1-Mimic-v0": _g1_mimic,
}
"""Registered id → a function that makes a fresh configuration."""

EPISODE_STEPS = 1000
"""Time limit of the registered tasks, control steps (20 s)."""


def make_task_cfg(task_id: str) -> TaskCfg:
    """A fresh configuration of a registered task, to change and pass as ``cfg=``.

    Raises:
        ValueError: If no task has that id.
    """
    if task_id not in TASKS:
        raise ValueError(f"unknown task {task_id!r}; tasks: {', '.join(TASKS)}")
    return TASKS[task_id]()


def is_mimic(cfg: TaskCfg) -> bool:
    """Whether a task imitates motions: one of its commands is a motion."""
    from legged_envs.mdp.motion_command import MotionCommandCfg

    return any(isinstance(command, MotionCommandCfg) for command in cfg.commands.values())
