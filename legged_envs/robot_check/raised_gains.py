"""Gains with which a robot stands."""

from dataclasses import replace

from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.gains import settle

MAX_RAISES = 12
"""Largest number of times that the gains are raised."""

RAISE_FACTOR = 1.25
"""Factor of one raise."""

ENOUGH_SINKING = 0.03
"""Sinking below which gains are not raised, as a fraction of the robot's height."""


def raise_gains(robot: RobotCfg) -> RobotCfg:
    """Return a robot with gains raised by quarters until it stands, held upright.

    It stands if it sinks by less than 3 % of its height. After twelve raises it is returned as it
    is.
    """
    for _ in range(MAX_RAISES):
        if settle(robot).sinking < ENOUGH_SINKING * robot.base_height:
            break
        robot = replace(robot, kp=_raise(robot.kp), kd=_raise(robot.kd))
    return robot


def _raise(gains: tuple[float, ...]) -> tuple[float, ...]:
    # Three digits: the gains are written to a file that people read.
    return tuple(float(f"{RAISE_FACTOR * gain:.3g}") for gain in gains)
