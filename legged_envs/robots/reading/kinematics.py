"""Inverse kinematics of a robot's legs: joint angles that lift its feet."""

from functools import lru_cache
from typing import NamedTuple

import mujoco
import numpy as np

from legged_envs.robots import RobotCfg
from legged_envs.robots.reading.pose import body_path

NUM_ITERATIONS = 200
"""Number of iterations of the inverse kinematics."""

STEP_SIZE = 0.5
"""Fraction of the least-squares step that an iteration applies."""

DAMPING = 1e-4
"""Damping of the least squares, m². It keeps steps small while a leg is almost stretched."""

LEVEL_WEIGHTS = (0.3, 0.0)
"""Weights of the foot's orientation relative to its position, m/rad.

An error of 1 rad counts as much as this length. The second weight is tried if a leg cannot lift its
foot with the first, because it has too few joints to keep the foot level.
"""

TOLERANCE = 0.1
"""Largest position error of a lifted foot, as a fraction of the height by which it is lifted."""


@lru_cache
def is_leg_joint(robot: RobotCfg) -> tuple[bool, ...]:
    """Return True for each joint between the base and a foot, False for joints of arms and heads.

    Length: num_joints.
    """
    model = mujoco.MjModel.from_xml_path(str(robot.path))
    leg_bodies: set[int] = set()
    for foot in robot.foot_names:
        leg_bodies.update(body_path(model, model.body(foot).id))
    return tuple(model.joint(name).bodyid[0] in leg_bodies for name in robot.joint_names)


class _Leg(NamedTuple):
    """The joints that lift one foot."""

    foot: str
    """Name of the foot's body."""
    joints: list[int]
    """Indices of the joints in ``RobotCfg.joint_names``."""
    qpos: np.ndarray
    """Their indices in ``qpos``."""
    dofs: np.ndarray
    """Their indices in ``qvel``."""


@lru_cache
def leg_lift_angles(robot: RobotCfg, height: float) -> np.ndarray:
    """Return the changes of the joint angles that lift each foot straight up.

    A foot stays level if its leg has enough joints for this. The changes are computed by damped
    least squares (Buss 2004, "Introduction to inverse kinematics"), which finds small ones. Joints
    that move several feet, and joints without a position actuator, do not change.

    Args:
        robot: Robot in its default pose.
        height: Height by which each foot is lifted, m.

    Returns:
        Changes from the default pose, rad. Row i lifts foot i. Shape: (num_feet, num_joints).

    Raises:
        ValueError: A leg cannot lift its foot by this height.
    """
    model = mujoco.MjModel.from_xml_path(str(robot.path))
    data = mujoco.MjData(model)
    joint_qpos = [model.joint(name).qposadr[0] for name in robot.joint_names]
    default = data.qpos.copy()
    default[joint_qpos] = robot.default_joint_pos
    angles = np.zeros((len(robot.foot_names), robot.num_joints))
    for i, leg in enumerate(_find_legs(model, robot)):
        for level_weight in LEVEL_WEIGHTS:
            data.qpos[:] = default
            if _lift_foot(model, data, leg, height, level_weight):
                break
        else:
            raise ValueError(f"robot {robot.name!r} cannot lift {leg.foot!r} by {height:g} m")
        angles[i, leg.joints] = data.qpos[leg.qpos] - default[leg.qpos]
    return angles


def _find_legs(model: mujoco.MjModel, robot: RobotCfg) -> list[_Leg]:
    paths = [set(body_path(model, model.body(foot).id)) for foot in robot.foot_names]
    legs = []
    for i, foot in enumerate(robot.foot_names):
        other_paths = [*paths[:i], *paths[i + 1 :]]
        own_bodies = paths[i].difference(*other_paths)
        joints = []
        qpos = []
        dofs = []
        for j, name in enumerate(robot.joint_names):
            joint = model.joint(name)
            is_driven = robot.actuators[j] == "position"
            if is_driven and joint.bodyid[0] in own_bodies:
                joints.append(j)
                qpos.append(joint.qposadr[0])
                dofs.append(joint.dofadr[0])
        leg = _Leg(foot=foot, joints=joints, qpos=np.array(qpos), dofs=np.array(dofs))
        legs.append(leg)
    return legs


def _lift_foot(
    model: mujoco.MjModel, data: mujoco.MjData, leg: _Leg, height: float, level_weight: float
) -> bool:
    """Move the joints of a leg from the pose in ``data``, and return True if the foot is lifted."""
    mujoco.mj_kinematics(model, data)
    foot = data.body(leg.foot)
    up = np.array((0.0, 0.0, height))
    target = foot.xpos + up
    upright = foot.xmat.reshape(3, 3).copy()
    weights = np.repeat((1.0, level_weight), 3)[:, None]
    damping = DAMPING * np.eye(6)
    jacobian = np.zeros((6, model.nv))
    for _ in range(NUM_ITERATIONS):
        mujoco.mj_comPos(model, data)
        mujoco.mj_jacBody(model, data, jacobian[:3], jacobian[3:], foot.id)
        leg_jacobian = jacobian[:, leg.dofs] * weights
        # Small rotation from the present orientation to the upright one.
        orientation = foot.xmat.reshape(3, 3)
        tilt = 0.5 * np.cross(orientation, upright, axis=0).sum(1)
        position_error = target - foot.xpos
        error = [*position_error, *(level_weight * tilt)]
        damped = leg_jacobian @ leg_jacobian.T + damping
        solution = np.linalg.solve(damped, error)
        data.qpos[leg.qpos] += STEP_SIZE * leg_jacobian.T @ solution
        mujoco.mj_kinematics(model, data)
    largest_error = abs(foot.xpos - target).max()
    return bool(largest_error <= TOLERANCE * height)
