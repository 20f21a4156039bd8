"""Reads motions in text tables (.csv), such as Unitree's LAFAN1 retargeting dataset.

Each line is a frame: base position, base orientation (x, y, z, w), joint positions, in m and rad.
LAFAN1's files have 30 lines per second, no header, and for the G1 36 columns. Tables like them may
have a header, a byte order mark, tabs or semicolons, and a first column with the time in s.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.tables import ROOT_COLUMNS, check_table, parse_number
from legged_envs.motions.motion import MotionError, require
from legged_envs.motions.orders import G1_LIMB_BY_LIMB, G1_WITHOUT_WRISTS, named_order
from legged_envs.motions.recording import Recording
from legged_envs.robots import RobotCfg

FRAME_RATE = 30.0
"""Lines per second of LAFAN1, and of files that do not say."""
SEPARATORS = ("\t", ";", ",")
"""Separators of cells. The first one that the first line has is that of the file."""
UNEVEN = 0.1
"""Largest deviation of a time step from the median, as a fraction of it."""
NUM_ROOT = len(ROOT_COLUMNS)
"""Number of columns of the base."""


def read_csv(path: Path, robot: RobotCfg, reading: MotionReading) -> Recording:
    """Read a text table.

    Raises:
        MotionError: The file is not UTF-8, a line has another number of columns, a cell is not a
            finite number, or the times are uneven. The message names the line.
    """
    origin = str(path)
    table, first = _split_lines(path)
    header: list[str] = []
    if table and not any(isinstance(parse_number(cell), float) for cell in table[0]):
        header = [cell.strip("# \t") for cell in table.pop(0)]
        first += 1
    require(len(table) >= 2, origin, "a motion", "at least 2 frames", len(table))
    joints = _joint_columns(len(table[0]), header, robot, reading)
    index_columns = len(table[0]) - NUM_ROOT - len(joints)
    has_time = index_columns == 1
    columns = ("time", *ROOT_COLUMNS, *joints) if has_time else (*ROOT_COLUMNS, *joints)
    # Cells that are not numbers stay texts, which the check names with their column.
    rows = [[parse_number(cell) for cell in cells] for cells in table]
    numbers = check_table(rows, columns, origin, "line", first)
    rate = FRAME_RATE
    if has_time:
        rate = _rate_of_times(numbers[:, 0], origin, first, reading)
        numbers = numbers[:, 1:]
        header = header[1:]
    w_first = len(header) > NUM_ROOT and header[3].lower().endswith("w")
    return Recording(
        path=path,
        frame_rate=rate,
        root_pos_w=numbers[:, :3],
        root_quat=numbers[:, 3:NUM_ROOT],
        quaternion="wxyz" if w_first else "xyzw",
        joint_pos=numbers[:, NUM_ROOT:],
        joint_names=joints,
        row="line",
        first=first,
        says_rate=has_time,
    )


def _split_lines(path: Path) -> tuple[list[list[str]], int]:
    """Return the cells of each line, and the number of the first line.

    Empty lines at the beginning and the end are left out, and comments at the beginning.
    """
    try:
        # With "sig" a byte order mark at the beginning is left out.
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise MotionError(f"{path}: line {number}: not UTF-8 text: {error}") from error
    lines = text.rstrip().splitlines()
    first = 1
    while lines and _is_idle(lines):
        lines.pop(0)
        first += 1
    if not lines:
        return [], first
    separator: str | None = None
    for candidate in SEPARATORS:
        if candidate in lines[0]:
            separator = candidate
            break
    # None separates at blanks.
    table = [line.split(separator) for line in lines]
    # Some programs end each line with a separator.
    if all(len(cells) > 1 and not cells[-1].strip() for cells in table):
        table = [cells[:-1] for cells in table]
    return table, first


def _is_idle(lines: list[str]) -> bool:
    """Return True if the first of some lines is empty, or a comment above another comment."""
    if not lines[0].strip():
        return True
    # A comment right above the numbers may be the header.
    return len(lines) > 1 and lines[0].startswith("#") and lines[1].startswith("#")


def _joint_columns(
    width: int, header: Sequence[str], robot: RobotCfg, reading: MotionReading
) -> tuple[str, ...]:
    """Return the names of the joint columns: those that were given, of the header, or usual ones.

    Args:
        width: Number of columns.
        header: Cells of the header. Empty: there is none.
        robot: The robot.
        reading: Options of the user.
    """
    if reading.order:
        return named_order(reading.order, robot)
    names = [cell.removesuffix("_dof").removesuffix("_pos") for cell in header]
    if set(names) & set(robot.joint_names):
        positions = [names.index(joint) for joint in robot.joint_names if joint in names]
        return tuple(names[min(positions) :])
    for joints in (robot.joint_names, G1_LIMB_BY_LIMB, G1_WITHOUT_WRISTS):
        # One more column is the time.
        if width - len(joints) in (NUM_ROOT, NUM_ROOT + 1):
            return joints
    return robot.joint_names


def _rate_of_times(times: torch.Tensor, origin: str, first: int, reading: MotionReading) -> float:
    """Return the frames per second of a column of times, or of one that counts the frames.

    Raises:
        MotionError: The times do not rise evenly.
    """
    steps = times.diff()
    usual = steps.median()
    uneven = ((steps - usual).abs() > UNEVEN * usual).nonzero()
    if usual <= 0.0 or len(uneven) > 0:
        line = first + 1 + (int(uneven[0]) if len(uneven) > 0 else 0)
        raise MotionError(
            f"{origin}: line {line}: the times must rise evenly, by {usual:g} as in most lines: "
            "resample the file to a constant rate"
        )
    if usual >= 1.0 and reading.rate is None:
        raise MotionError(
            f"{origin}: the first column rises by {usual:g} per line, so it counts and is no time "
            "in s: say the frames per second with --motion.rate (rate=…)"
        )
    rate = 1.0 / steps.mean().item()
    # Times with three decimals give 29.99 for 30.
    whole = round(rate)
    return float(whole) if abs(rate - whole) < 2e-3 * rate else rate
