"""The package's own motion files: one clip in a NumPy archive.

Keys: ``format``, ``name``, ``robot``, ``frame_rate``, ``loop``, ``weight``, ``joint_names`` and the arrays
``root_pos_w``, ``root_quat_w`` (w, x, y, z), ``root_lin_vel_w``, ``root_ang_vel_b``, ``joint_pos``, ``joint_vel``,
``valid`` of :class:`~legged_envs.motions.motion.Motion`. Body poses are not stored: the robot's model gives them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from legged_envs.motions.archive import as_tensor, one_flag, one_number, one_text, read_archive
from legged_envs.motions.coordinates import joint_columns, motion_from_coordinates
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.robots import RobotCfg

FORMAT = "legged-envs motion 1"
_ARRAYS = ("root_pos_w", "root_quat_w", "root_lin_vel_w", "root_ang_vel_b", "joint_pos", "joint_vel")
_KEYS = ("format", "name", "robot", "frame_rate", "loop", "weight", "joint_names", *_ARRAYS, "valid")


def save_motion(path: str | Path, motion: Motion) -> None:
    """Write ``motion`` to ``path``, which must end in ``.npz``. The same motion gives the same bytes."""
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"a motion file must end in .npz, got {path}")
    arrays: dict[str, Any] = {field: getattr(motion, field).cpu().numpy() for field in (*_ARRAYS, "valid")}
    np.savez_compressed(
        path,
        format=np.array(FORMAT),
        name=np.array(motion.name),
        robot=np.array(motion.robot),
        frame_rate=np.array(motion.frame_rate),
        loop=np.array(motion.loop),
        weight=np.array(motion.weight),
        joint_names=np.array(motion.joint_names),
        **arrays,
    )


def load_motion(path: str | Path, robot: RobotCfg) -> Motion:
    """Read a file of :func:`save_motion`, with the body poses of ``robot``.

    Raises:
        MotionError: Another format or robot, missing or unknown keys, joints that do not match, and whatever
            :class:`Motion` refuses.
    """
    origin = str(path)
    arrays = read_archive(path, _KEYS)
    name, written_as, made_for = (one_text(arrays[field], origin, field) for field in ("name", "format", "robot"))
    if written_as != FORMAT:
        raise MotionError(f"{origin}: format must be {FORMAT!r}, got {written_as!r}")
    if made_for != robot.name:
        raise MotionError(f"{origin}: robot is {made_for!r}, expected {robot.name!r}")
    names, valid = arrays["joint_names"], arrays["valid"]
    if names.ndim != 1 or names.dtype.kind != "U":
        raise MotionError(f"{origin}: joint_names must be texts of shape (J,), got {names.dtype} {names.shape}")
    if valid.dtype.kind != "b":
        raise MotionError(f"{origin}: valid must hold bools, got {valid.dtype}")
    columns = joint_columns(robot, names.tolist(), origin)
    values = {field: as_tensor(arrays[field], origin, field) for field in _ARRAYS}
    for field in ("joint_pos", "joint_vel"):
        if values[field].ndim != 2 or values[field].shape[1] != len(columns):
            raise MotionError(f"{origin}: {field} must be (T, {len(columns)}), got {tuple(values[field].shape)}")
        values[field] = values[field][:, columns]
    return motion_from_coordinates(
        robot,
        name,
        one_number(arrays["frame_rate"], origin, "frame_rate"),
        **values,
        valid=torch.from_numpy(valid),
        loop=one_flag(arrays["loop"], origin, "loop"),
        weight=one_number(arrays["weight"], origin, "weight"),
        source=origin,
    )
