"""Raises the gains of a robot until it stands on them, and balances a biped for them."""

from dataclasses import replace

from legged_envs.robot_check.leaning import is_balanced, lean
from legged_envs.robot_check.motions import MovingRobot, make_moving
from legged_envs.robot_check.nudges import FEET_TO_STAND, NUM_NUDGES, count_stands
from legged_envs.robots.reading.soles import DRAFTED_FACTOR
from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.gains import StandingRobot, settle, stand

MAX_RAISES = 12
"""Largest number of times that the gains of a robot are raised."""

# 1.25⁶ is 3.8: with more, every action of a policy would reach the torque limits.
MAX_RAISES_TO_BALANCE = 6
"""Largest number of raises of a robot with fewer than four feet that stands with a held base."""

RAISE_FACTOR = 1.25
"""Factor by which kp and kd are multiplied in each raise."""

ENOUGH_SINKING = 0.03
"""Height loss of the base below which gains are not raised, as a fraction of ``base_height``."""

LEAST_REACH = 0.03
"""Deviation at which a raised servo reaches its torque limit at the least, rad.

A stiffer servo switches between its limits and swings: 16 of 64 GR1T1, with ankles of 15 N m, fell
with three times the gain of a draft in their ankles, and 4 with the gain of the draft.
"""

WEAK_FACTOR = 0.7
"""Factor on kp with which a robot must stand after a start as in a task."""


def raise_gains(robot: RobotCfg) -> RobotCfg:
    """Return a copy of a robot with kp and kd raised in steps of 25 % until it stands.

    The robot stands if its base, held upright for 2 s, sinks by less than 3 % of ``base_height``,
    and if it stands after random starts as in ``velocity_task``, with its base free. The gains are
    raised at most twelve times. For a robot with fewer than four feet they are raised at most six
    times after it stands with a held base. If the robot never stands after all starts, the gains
    are the first of those with which it stands after the most.

    No servo is raised so far that it reaches its torque limit within 0.03 rad. If gains alone do
    not hold a biped after all starts, its default pose is balanced anew for each gain, and kept
    where the robot stands after more starts.
    """
    # Both models are made once: compiling a robot with large meshes takes seconds.
    standing = stand(robot)
    drafted = make_moving(robot, is_held=False)
    best, stands = _raise_until_it_stands(robot, standing, drafted, leans=False)
    if stands < NUM_NUDGES and is_balanced(drafted):
        leaning, more_stands = _raise_until_it_stands(robot, standing, drafted, leans=True)
        if more_stands > stands:
            best = leaning
    return best


def _raise_until_it_stands(
    robot: RobotCfg, standing: StandingRobot, drafted: MovingRobot, *, leans: bool
) -> tuple[RobotCfg, int]:
    """Return the robot with the gains with which it stands after the most starts, and their number.

    Args:
        robot: The robot with the gains of a draft.
        standing: The robot with a held base.
        drafted: The robot with a free base.
        leans: If True, the default pose is balanced for each gain.
    """
    gain_factor = DRAFTED_FACTOR
    best = robot
    most_stands = -1
    num_raises_left = MAX_RAISES
    while True:
        sinking = settle(robot, standing=standing).sinking
        if sinking < ENOUGH_SINKING * robot.base_height:
            if most_stands < 0 and len(robot.foot_names) < FEET_TO_STAND:
                num_raises_left = min(num_raises_left, MAX_RAISES_TO_BALANCE)
            weak = _weaken(robot)
            stands = count_stands(drafted._replace(cfg=weak), weak)
            if stands > most_stands:
                most_stands = stands
                best = robot
        elif most_stands < 0:
            best = robot
        if most_stands == NUM_NUDGES or num_raises_left == 0:
            return best, most_stands
        num_raises_left -= 1
        robot = _raise(robot)
        gain_factor *= RAISE_FACTOR
        if leans:
            robot = lean(drafted, robot, gain_factor)


def _weaken(robot: RobotCfg) -> RobotCfg:
    """Return the robot with gains as weak as events and payloads of a task make them."""
    return replace(robot, kp=tuple(WEAK_FACTOR * gain for gain in robot.kp))


def _raise(robot: RobotCfg) -> RobotCfg:
    """Return a copy with raised gains, except for servos that would reach their torque limit within
    :data:`LEAST_REACH`."""
    kp = list(robot.kp)
    kd = list(robot.kd)
    for i, torque in enumerate(robot.torque_limits):
        raised = RAISE_FACTOR * kp[i]
        if raised * LEAST_REACH > torque:
            continue
        # Three significant digits: the gains are written to a file that people read.
        kp[i] = float(f"{raised:.3g}")
        kd[i] = float(f"{RAISE_FACTOR * kd[i]:.3g}")
    return replace(robot, kp=tuple(kp), kd=tuple(kd))
