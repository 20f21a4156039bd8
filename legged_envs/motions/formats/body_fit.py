"""Compares the bodies of a motion file with the bodies of a robot's model."""

from collections.abc import Sequence

import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import body_names, forward_kinematics
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.motions.orders import known_orders
from legged_envs.motions.recording import Recording
from legged_envs.robots import RobotCfg

BODY_TOLERANCE = 0.05
"""Largest distance of a robot's body from the nearest body in a file, m.

Two models of the same robot differ by less. A wrong order of joints gives larger distances.
"""
FRAMES_TO_COMPARE = 16
"""Number of frames, spread over a clip, in which the orders of joints are compared."""


def fitting_order(recording: Recording, file_pos: torch.Tensor, robot: RobotCfg) -> tuple[str, ...]:
    """Return the known order of joints that brings the robot's bodies nearest to the file's."""
    number = len(file_pos)
    spread = torch.linspace(0, number - 1, min(FRAMES_TO_COMPARE, number)).long()
    rest = torch.cat((recording.root_pos_w, recording.root_quat), dim=1)[spread]
    best = robot.joint_names
    smallest = torch.inf
    for order in known_orders(robot).values():
        columns = [order.index(joint) for joint in robot.joint_names]
        qpos = torch.cat((rest, recording.joint_pos[spread][:, columns]), dim=1)
        velocities = torch.zeros(len(qpos), 6 + robot.num_joints)
        bodies = forward_kinematics(robot, qpos, velocities)["body_pos_w"]
        distance = _distances(bodies, file_pos[spread], robot).max().item()
        # A small step must be worth it: a robot at rest fits in several orders.
        if distance < smallest - 1e-6:
            smallest = distance
            best = order
    return best


def _distances(bodies: torch.Tensor, file_pos: torch.Tensor, robot: RobotCfg) -> torch.Tensor:
    """Return the distance of each body, without feet, from the nearest body of the file, m.

    The nearest counts, because the files have no names of bodies, or others than the model's.

    Args:
        bodies: Positions of the robot's bodies. Shape: (T, number of bodies, 3).
        file_pos: Positions of the file's bodies. Shape: (T, B, 3).
        robot: The robot.

    Returns:
        Shape: (T, number of bodies that are not feet).
    """
    return torch.cdist(bodies[:, _without_feet(robot)].double(), file_pos.double()).amin(2)


def _without_feet(robot: RobotCfg) -> list[int]:
    """Return the indices of the robot's bodies that these files have: all but the feet."""
    indices = []
    for index, name in enumerate(body_names(robot)):
        if name not in robot.foot_names:
            indices.append(index)
    return indices


def check_bodies(motion: Motion, file_pos: torch.Tensor, robot: RobotCfg) -> None:
    """Raise a MotionError unless each body of the robot is near a body of the file.

    Args:
        motion: The motion, with computed bodies.
        file_pos: Positions of the bodies in the file, m. Shape: (T, B, 3).
        robot: The robot.
    """
    distance = _distances(motion.body_pos_w, file_pos, robot)
    if distance.max() > BODY_TOLERANCE:
        bodies: Sequence[int] = _without_feet(robot)
        frame, body = divmod(int(distance.argmax()), len(bodies))
        raise MotionError(
            f"{motion.origin}: frame {frame}: body_pos_w has no body within {BODY_TOLERANCE:g} m "
            f"of robot {robot.name!r}'s {motion.body_names[bodies[body]]!r} "
            f"({distance.max():.2f} m to the nearest): the file is of another robot, or its joints "
            "are in another order; give their order with --motion.order (order=…, joint_names=…)"
        )


def check_sides(
    feet: torch.Tensor, motion: Motion, robot: RobotCfg, joint_names: Sequence[str]
) -> None:
    """Raise a MotionError if a foot of the file is on another side than the robot's foot.

    Args:
        feet: Feet of the file in the base frame, m. Shape: (T, num_feet, 3).
        motion: The motion of the robot.
        robot: The robot.
        joint_names: Joints of the file, with the name of their leg before the first underscore.
    """
    legs = list(dict.fromkeys(name.split("_")[0] for name in joint_names))
    bodies = []
    for leg in legs:
        for foot in robot.foot_names:
            if foot.startswith(leg):
                bodies.append(motion.body_names.index(foot))
    if not len(legs) == len(bodies) == feet.shape[1]:
        # The joints are not called after their legs, so their order cannot be checked.
        return
    from_base = motion.body_pos_w[:, bodies] - motion.root_pos_w.unsqueeze(1)
    in_base = rotation.rotate_inverse(motion.root_quat_w, from_base)
    robot_side = in_base.mean(0)[:, 1].tolist()
    file_side = feet.mean(0)[:, 1].tolist()
    for k, leg in enumerate(legs):
        # Left of the base is y > 0.
        if robot_side[k] * file_side[k] < 0.0:
            raise MotionError(
                f"{motion.origin}: foot {k} of the file lies at y = {file_side[k]:.3f} m "
                f"in the base frame, but leg {leg!r} of {robot.name!r} puts it at "
                f"{robot_side[k]:.3f} m: the file's joints are not in the order "
                f"{', '.join(legs)}; give their order with --motion.order (order=…, joint_names=…)"
            )
