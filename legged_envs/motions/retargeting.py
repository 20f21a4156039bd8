"""Carries the key points of a robot or a human over to another robot's joints.

mink (Zakka 2024) solves the joints frame by frame, within their ranges and speed limits.
"""

import torch

from legged_envs import rotation
from legged_envs.motions.goals import make_goals
from legged_envs.motions.key_points import KeyPoints
from legged_envs.motions.kinematics import motion_from_coordinates
from legged_envs.motions.limbs import limbs_of
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.robots import RobotCfg
from legged_envs.system_checks import check_installed


def retarget(points: KeyPoints, robot: RobotCfg) -> Motion:
    """Return the motion of a robot that follows key points.

    Args:
        points: Key points of another robot or of a human.
        robot: The robot that will move.

    Raises:
        ModuleNotFoundError: mink or its solver is not installed.
        MotionError: The robot has legs that the key points lack.
    """
    check_installed("mink", "daqp", extra="retarget")
    # It imports mink, which is not installed everywhere.
    from legged_envs.motions.inverse_kinematics import solve_frames

    limbs = limbs_of(robot)
    legs = [role for role in limbs if role.endswith("leg")]
    missing = [role for role in legs if role not in points.limbs]
    if missing:
        raise MotionError(
            f"motion {points.name!r}: lacks the {missing[0]} of robot {robot.name!r}; it has "
            f"{', '.join(points.limbs)}: choose a robot with as many legs"
        )
    common = {}
    for role, limb in limbs.items():
        if role in points.limbs:
            common[role] = limb
    goals = make_goals(points, robot, common)
    frames = solve_frames(goals, robot, common, points.frame_rate, points.loop)
    qpos = torch.from_numpy(frames)
    loop = points.loop and close_loop(qpos)
    return motion_from_coordinates(
        robot,
        name=points.name,
        frame_rate=points.frame_rate,
        root_pos_w=qpos[:, :3],
        root_quat_w=qpos[:, 3:7],
        joint_pos=qpos[:, 7:],
        loop=loop,
    )


def close_loop(qpos: torch.Tensor, tolerance: float = 0.05) -> bool:
    """Make the last frame of a loop the first one, moved, if they are nearly so.

    Args:
        qpos: Coordinates over time. Joints and height of the last frame are changed in place.
            Shape: (T, 7 + J).
        tolerance: Largest difference that is mended, m and rad.

    Returns:
        True if the loop is closed.
    """
    first = qpos[0]
    last = qpos[-1]
    # Height, then joints.
    compared = [2, *range(7, len(first))]
    difference = last[compared] - first[compared]
    if difference.abs().max() > tolerance:
        return False
    last[compared] = first[compared]
    start = first[3:7]
    whole = rotation.multiply(last[3:7], rotation.conjugate(start))
    turn = rotation.twist_about_z(whole)
    last[3:7] = rotation.multiply(rotation.from_yaw(turn), start)
    return True
