"""Reads motions in text tables (.csv), such as Unitree's LAFAN1 retargeting dataset.

Each line is a frame: base position, base orientation (x, y, z, w), joint positions, in m and rad.
LAFAN1's files have 30 lines per second, no header, and for the G1 36 columns. Tables like them may
have a header, a byte order mark, tabs or semicolons, and a first column with the time in s.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.tables import ROOT_COLUMNS, check_table, parse_number
from legged_envs.motions.formats.text_tables import rate_of_times, read_cells
from legged_envs.motions.motion import MotionError, require
from legged_envs.motions.orders import column_joints
from legged_envs.motions.recording import Recording
from legged_envs.robots import RobotCfg

FRAME_RATE = 30.0
"""Lines per second of LAFAN1, and of files without a rate."""
NUM_ROOT = len(ROOT_COLUMNS)
"""Number of columns of the base."""
WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
"""Part of a name: ``FL``, ``hip`` and ``joint`` in ``FL_hip_joint``, ``FL-hip joint`` or
``FLhipJoint``."""
ADDED_WORDS = {"joint", "dof", "pos", "position", "angle", "q", "rad"}
"""Words that programs add to the name of a joint."""


def read_csv(path: Path, robot: RobotCfg, reading: MotionReading) -> Recording:
    """Read a text table.

    Raises:
        MotionError: The file is not UTF-8, a line has another number of columns, a cell is not a
            finite number, the times are uneven, or the header names no joint of the robot.
    """
    origin = str(path)
    table, first = read_cells(path)
    header: list[str] = []
    if table and not any(isinstance(parse_number(cell), float) for cell in table[0]):
        header = [cell.strip('# \t"') for cell in table.pop(0)]
        first += 1
    require(len(table) >= 2, origin, "a motion", "at least 2 frames", len(table))
    joints = _joint_columns(origin, len(table[0]), header, robot, reading)
    index_columns = len(table[0]) - NUM_ROOT - len(joints)
    if index_columns not in (0, 1):
        raise MotionError(
            f"{origin}: line {first}: must be {NUM_ROOT + len(joints)} columns wide, base and "
            f"{len(joints)} joints, got {len(table[0])}: name the joint columns with "
            f"--motion.order, or give a file of robot {robot.name!r}"
        )
    has_time = index_columns == 1
    columns = ("time", *ROOT_COLUMNS, *joints) if has_time else (*ROOT_COLUMNS, *joints)
    # Cells that are not numbers stay texts, which the check names with their column.
    rows = [[parse_number(cell) for cell in cells] for cells in table]
    numbers = check_table(rows, columns, origin, "line", first)
    rate = FRAME_RATE
    if has_time:
        rate = rate_of_times(numbers[:, 0], origin, first, reading)
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


def _joint_columns(
    origin: str, width: int, header: Sequence[str], robot: RobotCfg, reading: MotionReading
) -> tuple[str, ...]:
    """Return the names of the joint columns: given names, names of the header, or usual names.

    Args:
        origin: The file, for errors.
        width: Number of columns.
        header: Cells of the header. Empty: there is none.
        robot: The robot.
        reading: Options of the user.

    Raises:
        MotionError: The header names no joint of the robot.
    """
    known = {_plain_name(joint): joint for joint in robot.joint_names}
    names = [known.get(_plain_name(cell), cell) for cell in header]
    positions = [names.index(joint) for joint in robot.joint_names if joint in names]
    joints = names[min(positions) :] if positions else []
    # A comment above the numbers has another number of cells.
    if len(header) == width and not joints and not reading.order:
        raise MotionError(
            f"{origin}: its header names no joint of robot {robot.name!r}, got "
            f"{', '.join(header[-3:])} as its last columns: name the joint columns with "
            "--motion.order, or give the robot of the file with --source"
        )
    # One more column is the time.
    return column_joints(reading, joints, (width - NUM_ROOT, width - NUM_ROOT - 1), robot)


def _plain_name(cell: str) -> str:
    """Return the name of a joint without what programs add: `leftknee` of `q_LeftKnee [rad]`."""
    # Some programs write groups before the name: robot.knee or joint_pos/knee.
    name = re.split(r"[/.:]", cell)[-1]
    words = [word.lower() for word in WORD.findall(name)]
    return "".join(word for word in words if word not in ADDED_WORDS)
