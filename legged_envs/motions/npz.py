"""The package's own motion files: one clip in a NumPy archive.

Keys: ``format``, ``name``, ``robot``, ``frame_rate``, ``loop``, ``weight``, ``joint_names`` and the arrays
``root_pos_w``, ``root_quat_w`` (w, x, y, z), ``root_lin_vel_w``, ``root_ang_vel_b``, ``joint_pos``, ``joint_vel``,
``valid`` of :class:`~legged_envs.motions.motion.Motion`. Body poses are not stored: the robot's model gives them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from legged_envs.motions.archive import as_tensor, read_archive
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
    if str(arrays["format"]) != FORMAT:
        raise MotionError(f"{origin}: format must be {FORMAT!r}, got {str(arrays['format'])!r}")
    if str(arrays["robot"]) != robot.name:
        raise MotionError(f"{origin}: robot is {str(arrays['robot'])!r}, expected {robot.name!r}")
    columns = joint_columns(robot, [str(name) for name in arrays["joint_names"]], origin)
    values = {field: as_tensor(arrays[field], origin, field) for field in _ARRAYS}
    for field in ("joint_pos", "joint_vel"):
        if values[field].ndim != 2 or values[field].shape[1] != len(columns):
            raise MotionError(f"{origin}: {field} must be (T, {len(columns)}), got {tuple(values[field].shape)}")
        values[field] = values[field][:, columns]
    return motion_from_coordinates(
        robot,
        str(arrays["name"]),
        float(arrays["frame_rate"]),
        **values,
        valid=as_tensor(arrays["valid"], origin, "valid"),
        loop=bool(arrays["loop"]),
        weight=float(arrays["weight"]),
        source=origin,
    )
