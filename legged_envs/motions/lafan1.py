"""Motions of Unitree's LAFAN1 retargeting dataset: text files without a header, one frame a line.

Columns: base position x, y, z [m], base orientation x, y, z, w, joint positions [rad], 30 frames a second. G1 has 29
joints, so 36 columns, in the order of :data:`~legged_envs.robots.G1_29`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from legged_envs.motions.coordinates import motion_from_coordinates
from legged_envs.motions.g1_joints import G1_LIMB_BY_LIMB
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.motions.table import ROOT_COLUMNS, read_table
from legged_envs.robots import RobotCfg


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
    try:
        text = Path(path).read_text(encoding="utf-8").rstrip().splitlines()
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise MotionError(f"{path}: line {number}: not UTF-8 text: {error}") from error
    first, last = (1, len(text)) if lines is None else lines
    if lines is not None and not 1 <= first < last <= len(text):
        raise MotionError(f"{path}: lines must lie within 1 and {len(text)}, the first before the last, got {lines}")
    rows = [[_number(cell) for cell in line.split(",")] for line in text[first - 1 : last]]
    table = read_table(rows, (*ROOT_COLUMNS, *joint_names), str(path), "line", first)
    return motion_from_coordinates(
        robot,
        Path(path).stem,
        frame_rate,
        table[:, :3],
        table[:, [6, 3, 4, 5]],
        table[:, 7:],
        joint_names=joint_names,
        ignore_extra_joints=ignore_extra_joints,
        source=str(path),
    )


def _number(cell: str) -> float | str:
    """The number that a text is, else the text."""
    try:
        return cell.strip() if "_" in cell else float(cell)  # float() would read 1_0 as 10
    except ValueError:
        return cell.strip()
