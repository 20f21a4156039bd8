"""Loaders of motions in text files: LAFAN1 retargeted to the G1 (CSV), AMP for quadrupeds (JSON).

Both formats have one frame per row: base position, base orientation (x, y, z, w), joint positions.
AMP's rows continue with further numbers.

Unitree's LAFAN1 retargeting dataset is CSV without a header, in m and rad, with 30 frames a second.
G1 has 29 joints and therefore 36 columns, in the order of :data:`~legged_envs.robots.G1_29`.

AMP for quadrupeds (AMP_for_hardware and projects that build on it) is JSON, named ``.txt`` or
``.json``: ``LoopMode`` ("Wrap" or "Clamp"), ``FrameDuration`` [s], ``EnableCycleOffsetPosition``,
``EnableCycleOffsetRotation``, ``MotionWeight``, ``Frames``. The joint positions of a frame are
followed by foot positions, linear and angular velocity of the base, all in the base frame, joint
velocities and foot velocities: 61 numbers for 12 joints. Files of Peng et al. 2020 end after the
joint positions.
"""

import json
import reprlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import motion_from_coordinates
from legged_envs.motions.motion import Motion, MotionError, check_keys, check_unit, require
from legged_envs.robots import G1_29, GO2, RobotCfg

ROOT_COLUMNS = ("root x", "root y", "root z", "root qx", "root qy", "root qz", "root qw")
"""Names of the first columns of a row in both formats: the pose of the base."""
CYCLE_OFFSETS = ("EnableCycleOffsetPosition", "EnableCycleOffsetRotation")
"""Keys of AMP's files: true if each repetition of a loop starts where the one before ended."""
G1_LIMB_BY_LIMB = G1_29.joint_names
"""Joint order of the G1, depth first, as in MJCF and URDF: Unitree's SDK, its LAFAN1 retargeting,
mjlab and this package."""


def _order_breadth_first(joints: Sequence[str], levels: Sequence[int]) -> tuple[str, ...]:
    """Return ``joints`` sorted by their ``levels``, joints of one level in their present order."""
    pairs = zip(levels, range(len(joints)), strict=True)
    return tuple(joints[index] for _, index in sorted(pairs))


# Number of joints between the base and each joint. The arms continue from the three joints of the
# waist.
_LEG_LEVELS = tuple(range(6))
_WAIST_LEVELS = tuple(range(3))
_ARM_LEVELS = tuple(range(3, 10))
_G1_LEVELS = _LEG_LEVELS + _LEG_LEVELS + _WAIST_LEVELS + _ARM_LEVELS + _ARM_LEVELS

G1_LEVEL_BY_LEVEL = _order_breadth_first(G1_LIMB_BY_LIMB, _G1_LEVELS)
"""Joint order of the G1, breadth first, as PhysX numbers joints: Isaac Lab, and the BeyondMimic
files that were made with it."""


def load_lafan1_csv(
    path: str | Path,
    robot: RobotCfg,
    *,
    frame_rate: float = 30.0,
    joint_names: Sequence[str] = G1_LIMB_BY_LIMB,
    ignore_extra_joints: bool = False,
    lines: tuple[int, int] | None = None,
) -> Motion:
    """Load a clip from a CSV file of Unitree's LAFAN1 retargeting dataset.

    The name of the clip is the name of the file without its ending. Velocities are computed from
    the positions.

    Args:
        path: The file.
        robot: Robot of the clip.
        frame_rate: Lines per second.
        joint_names: Names of the joint columns, which follow the 7 columns of the base.
        ignore_extra_joints: True to leave out columns of joints that the robot does not have, for
            example to load the file for ``G1``, with 12 joints.
        lines: First and last line to read, counted from 1. None: all lines.

    Raises:
        MotionError: The file is not UTF-8, a line has another number of columns, a cell is not a
            finite number, a quaternion is not a unit quaternion, or the joints do not match the
            robot. The message names the line.
    """
    origin = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8").rstrip().splitlines()
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise MotionError(f"{origin}: line {number}: not UTF-8 text: {error}") from error
    if lines is None:
        first = 1
        last = len(text)
    else:
        first, last = lines
        is_inside = 1 <= first < last <= len(text)
        expected = f"within 1 and {len(text)}, the first before the last"
        require(is_inside, origin, "lines", expected, lines)
    # Cells that are not numbers stay texts, which _read_frames names with their column.
    rows = []
    for line in text[first - 1 : last]:
        rows.append([_parse_number(cell) for cell in line.split(",")])
    pos, quat, joint_pos = _read_frames(rows, joint_names, origin, "line", first)
    return motion_from_coordinates(
        robot,
        name=Path(path).stem,
        frame_rate=frame_rate,
        root_pos_w=pos,
        root_quat_w=quat,
        joint_pos=joint_pos,
        joint_names=joint_names,
        ignore_extra_joints=ignore_extra_joints,
        source=origin,
    )


def load_amp_json(
    path: str | Path,
    robot: RobotCfg,
    *,
    joint_names: Sequence[str] = GO2.joint_names,
    num_feet: int = 4,
) -> Motion:
    """Load a clip from a JSON file of AMP for quadrupeds.

    The name of the clip is the name of the file without its ending. Velocities are read from the
    file if it has them, and computed from the positions otherwise. Poses of bodies, feet included,
    are computed from the joints. If the file has foot positions, they are only compared with the
    computed ones: a foot on the wrong side shows that the joints are in another order.

    Args:
        path: The file.
        robot: Robot of the clip.
        joint_names: Names of the joint columns, which follow the 7 columns of the base. The default
            is the order of AMP_for_hardware. Projects that build on it have other orders, such as
            FL, FR, RL, RR.
        num_feet: Number of feet with positions and velocities in the file.

    Raises:
        MotionError: The text is not JSON, a key is wrong, a frame has an unknown width, a number or
            a quaternion is bad, or the joints do not match the robot.
    """
    content = _read_amp(path)
    origin = str(path)
    rows = content["Frames"]
    feet = [f"foot {foot} {axis}" for foot in range(num_feet) for axis in "xyz"]
    columns = _amp_columns(joint_names, feet)
    # The first frame decides which of the two forms the file has.
    short_width = len(ROOT_COLUMNS) + len(joint_names)
    long_width = len(ROOT_COLUMNS) + len(columns)
    width = len(rows[0]) if isinstance(rows[0], list) else 0
    expected = f"{short_width} or {long_width} columns wide"
    require(width in (short_width, long_width), origin, "frame 0", expected, width)
    pos, quat, others = _read_frames(rows, columns[: width - len(ROOT_COLUMNS)], origin)
    lin_vel_w = None
    ang_vel_b = None
    joint_vel = None
    foot_pos_b = None
    # A long file has the velocities that else come from differences.
    if width == long_width:
        num_joints = len(joint_names)
        widths = [num_joints, len(feet), 3, 3, num_joints, len(feet)]
        joint_pos, foot_pos_b, lin_vel_b, ang_vel_b, joint_vel, _ = others.split(widths, dim=1)
        lin_vel_w = rotation.rotate(quat, lin_vel_b)
    else:
        joint_pos = others
    motion = motion_from_coordinates(
        robot,
        name=Path(path).stem,
        frame_rate=1.0 / content["FrameDuration"],
        root_pos_w=pos,
        root_quat_w=quat,
        joint_pos=joint_pos,
        root_lin_vel_w=lin_vel_w,
        root_ang_vel_b=ang_vel_b,
        joint_vel=joint_vel,
        joint_names=joint_names,
        loop=content["LoopMode"] == "Wrap",
        weight=content.get("MotionWeight", 1.0),
        source=origin,
    )
    if foot_pos_b is not None and num_feet == len(robot.foot_names):
        _check_sides(foot_pos_b.unflatten(1, (num_feet, 3)), motion, robot, joint_names)
    return motion


def _amp_columns(joint_names: Sequence[str], feet: Sequence[str]) -> list[str]:
    """Return the names of the columns of an AMP file with velocities, without the base's pose."""
    base = []
    for kind in ("linear", "angular"):
        base += [f"root {kind} velocity {axis}" for axis in "xyz"]
    velocities = [f"{column} velocity" for column in (*joint_names, *feet)]
    return [*joint_names, *feet, *base, *velocities]


def _read_amp(path: str | Path) -> dict[str, Any]:
    """Read an AMP file, and check its keys and values, but not the numbers in its frames."""
    origin = str(path)
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    # Deeply nested brackets are a RecursionError.
    except (ValueError, RecursionError) as error:
        raise MotionError(f"{origin}: not JSON: {error}") from error
    require(isinstance(content, dict), origin, "the text", "a JSON object", type(content).__name__)
    required = ("LoopMode", "FrameDuration", "Frames")
    check_keys(content, required, origin, optional=("MotionWeight", *CYCLE_OFFSETS))
    mode = content["LoopMode"]
    frames = content["Frames"]
    require(mode in ("Wrap", "Clamp"), origin, "LoopMode", "'Wrap' or 'Clamp'", reprlib.repr(mode))
    for key in ("FrameDuration", "MotionWeight"):
        value = content.get(key, 1.0)
        is_positive = _is_finite(value) and value > 0.0
        require(is_positive, origin, key, "a positive number and finite", reprlib.repr(value))
    for key in CYCLE_OFFSETS:
        value = content.get(key, True)
        is_fine = mode == "Clamp" or value is True
        expected = "true in a file that wraps, because loops continue from where they end"
        require(is_fine, origin, key, expected, reprlib.repr(value))
    has_frames = isinstance(frames, list) and len(frames) >= 2
    require(has_frames, origin, "Frames", "a list of at least 2 frames", reprlib.repr(frames))
    return content


def _check_sides(
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
                f"{', '.join(legs)}; give their order as joint_names"
            )


def _read_frames(
    rows: Sequence[Any], columns: Sequence[str], origin: str, row: str = "frame", first: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Check rows of numbers and convert them to float64.

    Args:
        rows: The rows, which should be lists of numbers.
        columns: Names of the columns after the 7 columns of the base's pose.
        origin: File of the motion, for error messages.
        row: Name of a row in error messages, such as ``"frame"`` or ``"line"``.
        first: Number of the first row in error messages.

    Returns:
        Base positions, m, (T, 3), base orientations (w, x, y, z), (T, 4), and the other columns.
    """
    columns = (*ROOT_COLUMNS, *columns)
    for number, values in enumerate(rows, first):
        got = len(values) if isinstance(values, list) else type(values).__name__
        is_wide = got == len(columns)
        require(is_wide, origin, f"{row} {number}", f"{len(columns)} columns wide", got)
        for column, value in zip(columns, values, strict=True):
            if not _is_finite(value):
                raise MotionError(
                    f"{origin}: {row} {number}: column[{column}] must be a finite number, "
                    f"got {reprlib.repr(value)}"
                )
    # An empty file has no rows, but still columns.
    table = torch.tensor(rows, dtype=torch.float64).reshape(-1, len(columns))
    check_unit(table[:, 3:7], origin, "root quaternion (x, y, z, w)", row, first)
    pos = table[:, :3]
    quat = table[:, [6, 3, 4, 5]]
    return pos, quat, table[:, 7:]


def _is_finite(value: object) -> bool:
    # bool is an int in Python, and JSON's integers can be too large for a float.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max


def _parse_number(cell: str) -> float | str:
    """Return the number in a cell of a CSV file, or the cell's text if it is not a number."""
    # float() would read 1_0 as 10.
    if "_" in cell:
        return cell.strip()
    try:
        return float(cell)
    except ValueError:
        return cell.strip()
