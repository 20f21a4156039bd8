"""Raises the gains of a robot until it stands on them."""

from dataclasses import replace

from legged_envs.robot_check.motions import stands_when_nudged
from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.gains import settle

MAX_RAISES = 12
"""Largest number of times that the gains of a robot are raised."""

RAISE_FACTOR = 1.25
"""Factor by which kp and kd are multiplied in each raise."""

ENOUGH_SINKING = 0.03
"""Height loss of the base below which gains are not raised, as a fraction of ``base_height``."""

WEAK_FACTOR = 0.8
"""Factor on kp with which a robot must stand after a start as that of a task."""

FEET_TO_STAND = 4
"""Number of feet from which a robot stands without a policy that balances it."""


def raise_gains(robot: RobotCfg) -> RobotCfg:
    """Return a copy of a robot with kp and kd raised in steps of 25 % until it stands.

    The robot stands if its base, held upright for 2 s, sinks by less than 3 % of ``base_height``. A
    robot with four feet or more must also stand after starts as those of a task, with its base
    free. The gains are raised at most twelve times, so the returned robot can still sink by more.
    If twelve raises do not let it stand with a free base, the gains are those with which its held
    base does not sink.
    """
    held = robot
    stands_held = False
    for _ in range(MAX_RAISES + 1):
        if settle(robot).sinking < ENOUGH_SINKING * robot.base_height:
            if not stands_held:
                held = robot
            stands_held = True
            if len(robot.foot_names) < FEET_TO_STAND or stands_when_nudged(_weaken(robot)):
                return robot
        if not stands_held:
            held = robot
        robot = replace(robot, kp=_raise(robot.kp), kd=_raise(robot.kd))
    return held


def _weaken(robot: RobotCfg) -> RobotCfg:
    """Return the robot with gains as weak as events and payloads of a task make them."""
    return replace(robot, kp=tuple(WEAK_FACTOR * gain for gain in robot.kp))


def _raise(gains: tuple[float, ...]) -> tuple[float, ...]:
    # Three digits: the gains are written to a file that people read.
    return tuple(float(f"{RAISE_FACTOR * gain:.3g}") for gain in gains)
