"""Reads the arrays of archives with bodies, by their names in BeyondMimic or in Isaac Lab's AMP."""

from pathlib import Path

import torch

from legged_envs.motions.formats.archives import (
    archive_names,
    convert_entry,
    read_arrays,
    read_names,
)
from legged_envs.motions.motion import FIELDS, MotionError, check_frames, require

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


def read_bodies(path: Path) -> tuple[dict[str, torch.Tensor], tuple[str, ...], tuple[str, ...]]:
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
    # holosoma writes the coordinates of the base, 7 and 6 velocities, before the coordinates of the
    # joints.
    if joints and joint_pos.ndim == 2 and joint_pos.shape[1] == 7 + len(joints):
        content["joint_pos"] = joint_pos[:, 7:]
        content["joint_vel"] = content["joint_vel"][:, 6:]
    joint_pos = content["joint_pos"]
    width = joint_pos.shape[1] if joint_pos.ndim > 1 else 0
    columns = joints or tuple(str(column) for column in range(width))
    frames = {key: values for key, values in content.items() if key != "fps"}
    check_frames(frames, columns, bodies, origin)
    return content, joints, bodies
