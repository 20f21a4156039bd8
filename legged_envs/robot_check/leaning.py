"""Moves the centre of mass of a biped forwards when its gains are raised."""

from dataclasses import replace

import mujoco

from legged_envs.robot_check.motions import MovingRobot, start
from legged_envs.robots.reading.balance import CENTRED, FEET_THAT_NEED_BALANCE, balance
from legged_envs.robots.reading.feet import Foot
from legged_envs.robots.reading.pose import Pose, ground_distances
from legged_envs.robots.reading.soles import DRAFTED_FACTOR
from legged_envs.robots.robot import RobotCfg


def is_balanced(moving: MovingRobot) -> bool:
    """Return True if the default pose of a biped is balanced for the gains of a draft.

    Poses that people chose, such as a keyframe of the file, are most often not.
    """
    robot = moving.cfg
    if robot.wheels or len(robot.foot_names) != FEET_THAT_NEED_BALANCE:
        return False
    return _positions(moving, DRAFTED_FACTOR, CENTRED) == _default(robot)


def lean(moving: MovingRobot, robot: RobotCfg, gain_factor: float) -> RobotCfg:
    """Return a copy of a robot with the default pose that is balanced for its gains.

    Stiff ankles give way less, so that the centre of mass is nearer to the middle of the soles.

    Args:
        moving: The robot with a pose that is balanced for the gains of a draft.
        robot: The same robot with its gains.
        gain_factor: These gains, as a multiple of the smallest that hold the robot upright.
    """
    low = _lowest(moving)
    positions = _positions(moving, gain_factor, centred=0.0)
    for joint, position in positions.items():
        moving.data.joint(joint).qpos = position
    mujoco.mj_forward(moving.model, moving.data)
    height = (
        moving.cfg.base_height + low - min(ground_distances(moving.model, moving.data).values())
    )
    return replace(
        robot,
        default_joint_pos=tuple(round(position, 4) for position in positions.values()),
        base_height=round(height, 4),
    )


def _lowest(moving: MovingRobot) -> float:
    """Put the robot into its default pose, and return the height of its lowest point, m."""
    start(moving)
    moving.data.qpos[2] = moving.cfg.base_height
    mujoco.mj_forward(moving.model, moving.data)
    return min(ground_distances(moving.model, moving.data).values())


def _positions(moving: MovingRobot, gain_factor: float, centred: float) -> dict[str, float]:
    """Return the joint positions, rad, by name, from :func:`balance` with these arguments."""
    robot = moving.cfg
    _lowest(moving)
    pose = Pose(moving.model, moving.data)
    feet = [Foot(body, []) for body in robot.foot_names]
    torques = dict(zip(robot.joint_names, robot.torque_limits, strict=True))
    return balance(pose, feet, _default(robot), torques, gain_factor, centred)


def _default(robot: RobotCfg) -> dict[str, float]:
    return dict(zip(robot.joint_names, robot.default_joint_pos, strict=True))
