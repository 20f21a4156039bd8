"""Reads motions of BeyondMimic, mjlab and holosoma, and of Isaac Lab's AMP (.npz).

``fps``, ``joint_pos`` and ``joint_vel`` (T, J), ``body_pos_w`` (T, B, 3), ``body_quat_w`` (T, B, 4)
(w, x, y, z), ``body_lin_vel_w``, ``body_ang_vel_w``. Newer programs add ``joint_names`` and
``body_names``; holosoma puts the base before the joints, and the world before the bodies. Without
names, body 0 is the base, and the bodies tell which order the joints have: mjlab numbers them limb
by limb as MuJoCo does, Isaac Lab level by level.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from legged_envs import rotation
from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.archives import (
    archive_names,
    convert_entry,
    read_arrays,
    read_names,
)
from legged_envs.motions.kinematics import body_names, forward_kinematics
from legged_envs.motions.motion import FIELDS, Motion, MotionError, check_frames, require
from legged_envs.motions.orders import G1_LIMB_BY_LIMB, G1_WITHOUT_WRISTS, known_orders
from legged_envs.motions.recording import Recording, motion_of
from legged_envs.robots import RobotCfg

KINDS = {"fps": "number", **dict.fromkeys(FIELDS["body"] + FIELDS["joint"], "numbers")}
"""Keys of these files and the kind of each value."""
ISAAC_LAB_KEYS = {
    "dof_positions": "joint_pos",
    "dof_velocities": "joint_vel",
    "body_positions": "body_pos_w",
    "body_rotations": "body_quat_w",
    "body_linear_velocities": "body_lin_vel_w",
    "body_angular_velocities": "body_ang_vel_w",
    "dof_names": "joint_names",
}
"""Keys of Isaac Lab's AMP → the keys of BeyondMimic with the same meaning."""
BODY_TOLERANCE = 0.05
"""Largest distance of a robot's body from the nearest body in a file, m.

Two models of the same robot differ by less. A wrong order of joints gives larger distances.
"""
FRAMES_TO_COMPARE = 16
"""Number of frames, spread over a clip, in which the orders of joints are compared."""


def read_beyondmimic(path: Path, robot: RobotCfg, reading: MotionReading) -> Motion:
    """Read a motion with bodies, which are compared with those of the robot's model.

    Raises:
        MotionError: The keys, numbers, shapes, joints or bodies of the file are wrong.
    """
    content, joints, bodies = _read(path)
    base = bodies.index(robot.base_body) if robot.base_body in bodies else 0
    pos = content["body_pos_w"]
    quat = content["body_quat_w"]
    ang_vel_b = rotation.rotate(
        rotation.conjugate(quat[:, base]), content["body_ang_vel_w"][:, base]
    )
    width = content["joint_pos"].shape[1]
    recording = Recording(
        path=path,
        frame_rate=content["fps"].item(),
        root_pos_w=pos[:, base],
        root_quat=quat[:, base],
        quaternion="wxyz",
        joint_pos=content["joint_pos"],
        # Isaac Lab writes the velocity of the centre of mass: it is computed from positions.
        root_ang_vel_b=ang_vel_b,
        joint_vel=content["joint_vel"],
        joint_names=joints or _usual_joints(width, robot),
    )
    if not joints and not reading.order and set(robot.joint_names) == set(recording.joint_names):
        recording = replace(recording, joint_names=_fitting_order(recording, pos, robot))
    motion = motion_of(recording, robot, reading)
    if reading.frames is not None:
        pos = pos[reading.frames[0] - 1 : reading.frames[1]]
    lift = pos.new_tensor([0.0, 0.0, reading.lift])
    _check_bodies(motion, pos + lift, robot)
    return motion


def _read(path: Path) -> tuple[dict[str, torch.Tensor], tuple[str, ...], tuple[str, ...]]:
    """Return the tensors of a file by BeyondMimic's keys, and the names of joints and bodies."""
    origin = str(path)
    present = archive_names(path)
    # Key in BeyondMimic's files → key in this file.
    key_of = {key: key for key in (*KINDS, "joint_names", "body_names")}
    for key, meaning in ISAAC_LAB_KEYS.items():
        if key in present:
            key_of[meaning] = key
    for key in KINDS:
        if key_of[key] not in present:
            raise MotionError(f"{origin}: lacks field {key!r}; expected {', '.join(KINDS)}")
    arrays = read_arrays(path, set(key_of.values()))
    content = {}
    for key, kind in KINDS.items():
        value = convert_entry(arrays[key_of[key]], key, kind, origin)
        content[key] = torch.as_tensor(value, dtype=torch.float64)
    joints = read_names(arrays.get(key_of["joint_names"]))
    bodies = read_names(arrays.get(key_of["body_names"]))
    body_pos = content["body_pos_w"]
    num_frames = body_pos.shape[0] if body_pos.ndim > 0 else 0
    num_bodies = body_pos.shape[1] if body_pos.ndim > 1 else 0
    got = f"{num_frames} frames of {num_bodies} bodies"
    require(num_bodies > 0, origin, "body_pos_w", "of the base at least", got)
    if len(bodies) != num_bodies:
        # Names of other things, or of a choice of the bodies: without them errors give numbers.
        bodies = tuple(str(body) for body in range(num_bodies))
    joint_pos = content["joint_pos"]
    # holosoma writes the coordinates of the base, 7 and 6 velocities, before those of the joints.
    if joints and joint_pos.ndim == 2 and joint_pos.shape[1] == 7 + len(joints):
        content["joint_pos"] = joint_pos[:, 7:]
        content["joint_vel"] = content["joint_vel"][:, 6:]
    joint_pos = content["joint_pos"]
    width = joint_pos.shape[1] if joint_pos.ndim > 1 else 0
    columns = joints or tuple(str(column) for column in range(width))
    frames = {key: values for key, values in content.items() if key != "fps"}
    check_frames(frames, columns, bodies, origin)
    return content, joints, bodies


def _usual_joints(width: int, robot: RobotCfg) -> tuple[str, ...]:
    """Return the names of joint columns of a file without names, by their number."""
    for joints in (robot.joint_names, G1_LIMB_BY_LIMB, G1_WITHOUT_WRISTS):
        if width == len(joints):
            return joints
    return robot.joint_names


def _fitting_order(
    recording: Recording, file_pos: torch.Tensor, robot: RobotCfg
) -> tuple[str, ...]:
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


def _check_bodies(motion: Motion, file_pos: torch.Tensor, robot: RobotCfg) -> None:
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
