"""LeggedGym-Ex's way to write a task: ``LeggedRobot``, its configuration and the registry."""

from legged_envs.compat.legged_gym.base_task import Action, BaseTask, EnvIds, ObsBuf, Reward
from legged_envs.compat.legged_gym.cfg import LeggedRobotCfg
from legged_envs.compat.legged_gym.legged_robot import LeggedRobot
from legged_envs.compat.legged_gym.task_registry import TaskRegistry, task_registry

__all__ = [
    "Action",
    "BaseTask",
    "EnvIds",
    "LeggedRobot",
    "LeggedRobotCfg",
    "ObsBuf",
    "Reward",
    "TaskRegistry",
    "task_registry",
]
