"""Lets a robot stand after random starts as in a velocity task, on its own gains."""

from typing import NamedTuple

import mujoco
import numpy as np

from legged_envs.robot_check.motions import MovingRobot, start, upright, wild_joints
from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.gains import set_gains

NUM_NUDGES = 32
"""Number of random starts from which a robot must come to stand."""

FEET_TO_STAND = 4
"""Number of feet from which a robot stands without a policy that balances it."""

UPRIGHT_AFTER_NUDGE = 0.99
"""Smallest height of the z axis of the base, a unit vector, after such a start."""

HIGH_AFTER_NUDGE = 0.95
"""Smallest height of the base after such a start, as a fraction of ``base_height``."""

FALLEN = 0.5
"""Height of the z axis of the base below which no robot comes to stand again."""

WATCH_INTERVAL = 0.1
"""Time between two looks at whether the robot has fallen, s."""


# The three as in ``velocity_task``.
PAYLOAD = (-1.0, 2.0)
"""Bounds of the mass that is added to the base, kg."""

MOST_PAYLOAD = 0.6
"""Largest change of the base's mass, as a fraction of this mass."""

SHIFT = 0.03
"""Largest shift of the base's centre of mass along each axis, m. It is smaller for robots lower
than 0.25 m, in proportion to their height."""

FULL_HEIGHT = 0.25
"""Height of the base from which shifts are scaled for larger robots, m."""


class Nudge(NamedTuple):
    """Size of a random start, and the time after it in which the robot must come to stand."""

    speed: float
    """Largest speed of the base along and about each axis, m/s and rad/s."""
    angle: float
    """Largest offset of a joint from the default pose, rad."""
    duration: float
    """Time for which the robot is watched, s."""


# Both as in ``velocity_task``.
NUDGE = Nudge(speed=0.3, angle=0.2, duration=3.0)
"""Start of a robot with four feet or more."""

GENTLE_NUDGE = Nudge(speed=0.1, angle=0.05, duration=4.0)
"""Start of a robot with fewer feet, which cannot make a step. It falls slowly."""


def count_stands(moving: MovingRobot, robot: RobotCfg) -> int:
    """Return after how many of ``NUM_NUDGES`` random starts a robot stands.

    The mass and the centre of mass of its base differ from start to start.

    Args:
        moving: The robot on a free base.
        robot: The same robot, possibly with other gains, which its model then has.
    """
    set_gains(moving.model, robot)
    nudge = NUDGE if len(robot.foot_names) >= FEET_TO_STAND else GENTLE_NUDGE
    random = np.random.default_rng(0)
    model = moving.model
    base = model.body(robot.base_body).id
    mass = float(model.body_mass[base])
    centre = model.body_ipos[base].copy()
    count = 0
    for _ in range(NUM_NUDGES):
        _load_at_random(moving, base, mass, centre, random)
        _start_at_random(moving, nudge, random)
        count += _comes_to_stand(moving, nudge.duration)
    model.body_mass[base] = mass
    model.body_ipos[base] = centre
    return count


def _load_at_random(
    moving: MovingRobot, base: int, mass: float, centre: np.ndarray, random: np.random.Generator
) -> None:
    """Change the mass and the centre of mass of the base from ``mass`` and ``centre``."""
    low, high = PAYLOAD
    share = min(1.0, MOST_PAYLOAD * mass / high)
    moving.model.body_mass[base] = mass + share * random.uniform(low, high)
    size = min(1.0, moving.cfg.base_height / FULL_HEIGHT)
    moving.model.body_ipos[base] = centre + size * random.uniform(-SHIFT, SHIFT, 3)


def _start_at_random(moving: MovingRobot, nudge: Nudge, random: np.random.Generator) -> None:
    robot = moving.cfg
    data = moving.data
    start(moving)
    data.qpos[2] = robot.base_height
    data.qvel[:6] = random.uniform(-nudge.speed, nudge.speed, 6)
    offsets = random.uniform(-nudge.angle, nudge.angle, robot.num_joints)
    for i, name in enumerate(robot.joint_names):
        joint = moving.model.joint(name)
        position = robot.default_joint_pos[i] + offsets[i]
        # The range of a joint without limits is (0, 0) in MuJoCo.
        if joint.limited:
            position = np.clip(position, *joint.range)
        data.joint(name).qpos = position


def _comes_to_stand(moving: MovingRobot, duration: float) -> bool:
    data = moving.data
    num_steps = round(WATCH_INTERVAL / moving.model.opt.timestep)
    for _ in range(round(duration / WATCH_INTERVAL)):
        mujoco.mj_step(moving.model, data, num_steps)
        if upright(data) < FALLEN or wild_joints(moving):
            return False
    is_high = data.qpos[2] > HIGH_AFTER_NUDGE * moving.cfg.base_height
    return bool(is_high and upright(data) > UPRIGHT_AFTER_NUDGE)
