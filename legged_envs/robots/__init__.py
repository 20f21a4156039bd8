"""Robots: an MJCF model in primitive shapes and a :class:`RobotCfg` each."""

from legged_envs.robots.g1 import G1, G1_29
from legged_envs.robots.go2 import GO2
from legged_envs.robots.robot import RobotCfg

__all__ = ["G1", "G1_29", "GO2", "RobotCfg"]
