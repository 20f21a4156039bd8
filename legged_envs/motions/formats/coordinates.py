"""Reads motions in MuJoCo's coordinates (.npz): holosoma, OmniRetarget and LocoMuJoCo.

``qpos`` (T, 7 + J) has base position, base orientation (w, x, y, z) and joint positions.
OmniRetarget puts the orientation first, and files with an object end with its pose, 7 numbers.
The rate is ``fps`` or ``frequency``, Hz, or ``dt``, s. LocoMuJoCo has ``joint_names``, the free
joint first, and ``split_points`` between the trajectories of a file.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.archives import (
    convert_entry,
    rate_of_user,
    read_arrays,
    read_names,
    read_table,
)
from legged_envs.motions.motion import UNIT_TOLERANCE, MotionError, require
from legged_envs.motions.orders import column_joints
from legged_envs.motions.recording import Recording
from legged_envs.robots import RobotCfg

RATES = ("fps", "frequency", "dt")
"""Keys of the frame rate, Hz, or of the time step, s."""
KEYS = ("qpos", "joint_names", "split_points", *RATES)


def read_coordinates(path: Path, robot: RobotCfg, reading: MotionReading) -> Recording:
    """Read ``qpos``. Other arrays of the file are not looked at.

    Raises:
        MotionError: The numbers or their count are wrong, the rate is missing, or there are several
            trajectories.
    """
    origin = str(path)
    arrays = read_arrays(path, KEYS)
    qpos = read_table(arrays["qpos"], "qpos", origin)
    if reading.frames is None:
        _check_single(arrays.get("split_points"), origin)
    joints = _joints(read_names(arrays.get("joint_names")), qpos, robot, reading)
    if qpos.shape[1] == 7 + len(joints) + 7:
        # The pose of an object.
        qpos = qpos[:, :-7]
    got = f"{qpos.shape[1]} columns"
    expected = f"{7 + len(joints)} columns wide, the base and {len(joints)} joints"
    require(qpos.shape[1] == 7 + len(joints), origin, "qpos", expected, got)
    pos = qpos[:, :3]
    quat = qpos[:, 3:7]
    if _are_unit(qpos[:, :4]) and not _are_unit(quat):
        quat = qpos[:, :4]
        pos = qpos[:, 4:7]
    return Recording(
        path=path,
        frame_rate=_frame_rate(arrays, origin, reading),
        root_pos_w=pos,
        root_quat=quat,
        quaternion="wxyz",
        joint_pos=qpos[:, 7:],
        joint_names=joints,
    )


def _joints(
    names: tuple[str, ...], qpos: torch.Tensor, robot: RobotCfg, reading: MotionReading
) -> tuple[str, ...]:
    width = qpos.shape[1]
    if len(names) == width - 6:
        # LocoMuJoCo's first joint is the free one of the base, with 7 coordinates.
        names = names[1:]
    # Seven more columns are the pose of an object.
    return column_joints(reading, names, (width - 7, width - 14), robot)


def _are_unit(quat: torch.Tensor) -> bool:
    length = torch.linalg.vector_norm(quat, dim=1)
    return bool(((length - 1.0).abs() <= UNIT_TOLERANCE).all())


def _frame_rate(arrays: dict[str, npt.NDArray[Any]], origin: str, reading: MotionReading) -> float:
    for key in RATES:
        if key in arrays:
            value = float(convert_entry(arrays[key], key, "number", origin))
            require(value > 0.0, origin, key, "positive", value)
            # holosoma's fps may hold the time step.
            return 1.0 / value if value < 1.0 else value
    return rate_of_user(reading, origin, RATES)


def _check_single(split_points: npt.NDArray[Any] | None, origin: str) -> None:
    if split_points is not None and split_points.size > 2:
        end = int(np.asarray(split_points).flat[1])
        raise MotionError(
            f"{origin}: holds {split_points.size - 1} trajectories one after the other: choose one "
            f"with --motion.frames, the first with --motion.frames 1 {end} (frames=(1, {end}))"
        )
