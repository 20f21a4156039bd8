"""own_robot: a small dog, and its tasks for legged-envs."""

from own_robot.own_robot import OWN_ROBOT

__all__ = ["OWN_ROBOT"]
