"""Raises the gains of a robot until it stands on them."""

from dataclasses import replace

from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.gains import settle

MAX_RAISES = 12
"""Largest number of times that the gains of a robot are raised."""

RAISE_FACTOR = 1.25
"""Factor by which kp and kd are multiplied in each raise."""

ENOUGH_SINKING = 0.03
"""Height loss of the base below which gains are not raised, as a fraction of ``base_height``."""


def raise_gains(robot: RobotCfg) -> RobotCfg:
    """Return a copy of a robot with kp and kd raised in steps of 25 % until it stands.

    The robot stands if its base, held upright for 2 s, sinks by less than 3 % of ``base_height``.
    The gains are raised at most twelve times, so the returned robot can still sink by more.
    """
    for _ in range(MAX_RAISES):
        if settle(robot).sinking < ENOUGH_SINKING * robot.base_height:
            break
        robot = replace(robot, kp=_raise(robot.kp), kd=_raise(robot.kd))
    return robot


def _raise(gains: tuple[float, ...]) -> tuple[float, ...]:
    # Three digits: the gains are written to a file that people read.
    return tuple(float(f"{RAISE_FACTOR * gain:.3g}") for gain in gains)
