"""Reads motions of BeyondMimic, mjlab and holosoma, and of Isaac Lab's AMP (.npz).

``fps``, ``joint_pos`` and ``joint_vel`` (T, J), ``body_pos_w`` (T, B, 3), ``body_quat_w`` (T, B, 4)
(w, x, y, z), ``body_lin_vel_w``, ``body_ang_vel_w``. Newer programs add ``joint_names`` and
``body_names``; holosoma puts the base before the joints, and the world before the bodies. Without
names, body 0 is the base, and the bodies tell which order the joints have: mjlab numbers them limb
by limb as MuJoCo does, Isaac Lab level by level.
"""

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
from legged_envs.motions.formats.body_fit import check_bodies, fitting_order
from legged_envs.motions.motion import FIELDS, Motion, MotionError, check_frames, require
from legged_envs.motions.orders import usual_joints
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
        joint_names=joints or usual_joints((width,), robot),
    )
    if not joints and not reading.order and set(robot.joint_names) == set(recording.joint_names):
        recording = replace(recording, joint_names=fitting_order(recording, pos, robot))
    motion = motion_of(recording, robot, reading)
    if reading.frames is not None:
        pos = pos[reading.frames[0] - 1 : reading.frames[1]]
    lift = pos.new_tensor([0.0, 0.0, reading.lift])
    check_bodies(motion, pos + lift, robot)
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
