"""LeggedGym-Ex's way to write a task: ``LeggedRobot`` and its configuration."""

from legged_envs.compat.legged_gym.cfg import LeggedRobotCfg
from legged_envs.compat.legged_gym.legged_robot import BaseTask, LeggedRobot

__all__ = ["BaseTask", "LeggedRobot", "LeggedRobotCfg"]
