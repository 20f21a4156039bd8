"""Motions of Unitree's LAFAN1 retargeting dataset: text files without a header, one frame a line.

Columns: base position x, y, z [m], base orientation x, y, z, w, joint positions [rad], 30 frames a second. G1 has 29
joints, so 36 columns, in the order of :data:`~legged_envs.robots.G1_29`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from legged_envs.motions.coordinates import joint_columns, motion_from_coordinates
from legged_envs.motions.g1_joints import G1_LIMB_BY_LIMB
from legged_envs.motions.motion import Motion, MotionError, check_finite, check_unit
from legged_envs.robots import RobotCfg

_ROOT_COLUMNS = ("root x", "root y", "root z", "root qx", "root qy", "root qz", "root qw")


def load_lafan1_csv(
    path: str | Path,
    robot: RobotCfg,
    *,
    frame_rate: float = 30.0,
    joint_names: Sequence[str] = G1_LIMB_BY_LIMB,
    ignore_extra_joints: bool = False,
    lines: tuple[int, int] | None = None,
) -> Motion:
    """Read a clip, named after the file.

    Args:
        path: The file.
        robot: The robot that moves.
        frame_rate: Lines per second.
        joint_names: The joints of the file's columns, default those of G1.
        ignore_extra_joints: Leave out joints that the robot lacks, as the 12-joint G1 lacks waist and arms.
        lines: First and last line to read, counted from 1, default all.

    Raises:
        MotionError: Bytes that are no UTF-8, a line of another number of columns, text that is no finite number, a
            quaternion that is not unit, joints that do not match the robot.
    """
    origin, first = str(path), 1 if lines is None else lines[0]
    columns = (*_ROOT_COLUMNS, *joint_names)
    table = _read_table(path, columns, lines)
    check_finite(table, columns, origin, "column", "line", first)
    check_unit(table[:, None, 3:7], origin, "root quaternion (x, y, z, w)", "line", first)
    if len(table) < 2:
        raise MotionError(f"{origin}: a motion needs at least 2 lines, got {len(table)}")
    wanted = joint_columns(robot, joint_names, origin, ignore_extra_joints)
    return motion_from_coordinates(
        robot,
        Path(path).stem,
        frame_rate,
        table[:, :3],
        table[:, [6, 3, 4, 5]],
        table[:, 7:][:, wanted],
        source=origin,
    )


def _read_table(path: str | Path, columns: Sequence[str], lines: tuple[int, int] | None) -> torch.Tensor:
    """The numbers of the file, float64. Shape: (number of lines, len(columns))."""
    try:
        text = Path(path).read_text(encoding="utf-8").rstrip().splitlines()
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise MotionError(f"{path}: line {number}: not UTF-8 text: {error}") from error
    if lines is None:
        lines = (1, len(text))
    elif not 1 <= lines[0] < lines[1] <= len(text):
        raise MotionError(f"{path}: lines must lie within 1 and {len(text)}, the first before the last, got {lines}")
    rows = []
    for number in range(lines[0], lines[1] + 1):
        cells = text[number - 1].split(",")
        if len(cells) != len(columns):
            raise MotionError(f"{path}: line {number}: expected {len(columns)} columns, got {len(cells)}")
        rows.append([_number(cell, path, number, column) for cell, column in zip(cells, columns, strict=True)])
    return torch.tensor(rows, dtype=torch.float64).reshape(-1, len(columns))


def _number(cell: str, path: str | Path, line: int, column: str) -> float:
    try:
        if "_" in cell:  # float() would read 1_0 as 10
            raise ValueError
        return float(cell)
    except ValueError:
        raise MotionError(f"{path}: line {line}: column[{column}] must be a number, got {cell.strip()!r}") from None
