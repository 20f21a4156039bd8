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

from legged_envs.motions.archive import Archive
from legged_envs.motions.coordinates import motion_from_coordinates
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.robots import RobotCfg

FORMAT = "legged-envs motion 1"
_ARRAYS = ("root_pos_w", "root_quat_w", "root_lin_vel_w", "root_ang_vel_b", "joint_pos", "joint_vel")
_HEADER = ("name", "robot", "frame_rate", "loop", "weight", "joint_names")


def save_motion(path: str | Path, motion: Motion) -> None:
    """Write ``motion`` to ``path``, which must end in ``.npz``. The same motion gives the same bytes."""
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"a motion file must end in .npz, got {path}")
    header: dict[str, Any] = {key: np.array(getattr(motion, key)) for key in _HEADER}
    arrays: dict[str, Any] = {key: getattr(motion, key).cpu().numpy() for key in (*_ARRAYS, "valid")}
    np.savez_compressed(path, format=np.array(FORMAT), **header, **arrays)


def load_motion(path: str | Path, robot: RobotCfg) -> Motion:
    """Read a file of :func:`save_motion`, with the body poses of ``robot``.

    Raises:
        MotionError: Another format or robot, missing or unknown keys, joints that do not match, and whatever
            :class:`Motion` refuses.
    """
    archive = Archive(path, ("format", *_HEADER, *_ARRAYS, "valid"))
    for field, expected in (("format", FORMAT), ("robot", robot.name)):
        written = archive.only(field, "text")
        if written != expected:
            raise MotionError(f"{path}: {field} is {written!r}, expected {expected!r}")
    names, valid = archive.arrays["joint_names"], archive.arrays["valid"]
    if names.ndim != 1 or names.dtype.kind != "U":
        raise MotionError(f"{path}: joint_names must be texts of shape (J,), got {names.dtype} {names.shape}")
    if valid.dtype.kind != "b":
        raise MotionError(f"{path}: valid must hold bools, got {valid.dtype}")
    numbers: dict[str, Any] = {field: archive.tensor(field) for field in _ARRAYS}
    return motion_from_coordinates(
        robot,
        archive.only("name", "text"),
        float(archive.only("frame_rate", "number")),
        **numbers,
        joint_names=names.tolist(),
        valid=torch.from_numpy(valid),
        loop=archive.only("loop", "bool"),
        weight=float(archive.only("weight", "number")),
        source=str(path),
    )
