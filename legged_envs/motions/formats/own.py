"""Reads and writes the package's motion files (.npz), one clip each.

``format``, ``name``, ``robot``, ``frame_rate``, ``loop``, ``weight``, ``joint_names``, and the
arrays ``root_pos_w``, ``root_quat_w`` (w, x, y, z), ``root_lin_vel_w``, ``root_ang_vel_b``,
``joint_pos``, ``joint_vel``, ``valid`` of a :class:`Motion`. The robot's model gives the poses of
the bodies.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from legged_envs.motion_reading import AS_FILES_SAY, MotionReading
from legged_envs.motions.formats.archives import read_archive
from legged_envs.motions.kinematics import motion_from_coordinates
from legged_envs.motions.motion import FIELDS, Motion, MotionError, require
from legged_envs.robots import RobotCfg

FORMAT = "legged-envs motion 1"
"""Value of the key ``format`` in the package's files: name and version of the format."""
OWN_FIELDS = {
    "name": "text",
    "robot": "text",
    "frame_rate": "number",
    "loop": "bool",
    "weight": "number",
    "joint_names": "texts",
    **dict.fromkeys(FIELDS["root"] + FIELDS["joint"], "numbers"),
    "valid": "bools",
}
"""Keys of the package's files, except ``format``, and the kind of each value.

``"number"``, ``"bool"`` and ``"text"`` are single values. The plurals are arrays of them.
"""


def save_motion(path: str | Path, motion: Motion) -> None:
    """Write a motion to a file in the package's format.

    Files of equal motions are equal byte for byte.

    Args:
        path: The file. Its ending must be ``.npz``.
        motion: The motion.

    Raises:
        ValueError: ``path`` has another ending.
    """
    if Path(path).suffix != ".npz":
        raise ValueError(f"a motion file must end in .npz, got {path}")
    # Bodies are left out: they follow from the robot's model, which may be corrected later.
    arrays: dict[str, Any] = {}
    for key in OWN_FIELDS:
        value = getattr(motion, key)
        arrays[key] = value.cpu() if isinstance(value, torch.Tensor) else value
    np.savez_compressed(path, format=FORMAT, **arrays)


def load_motion(path: str | Path, robot: RobotCfg) -> Motion:
    """Load a motion from a file that :func:`save_motion` has written.

    Args:
        path: The file.
        robot: Robot of the motion. Its model gives the poses of the bodies.

    Raises:
        MotionError: The file has another format, or is of another robot or other joints.
    """
    content = read_archive(path, {"format": "text", **OWN_FIELDS})
    file_format = content.pop("format")
    file_robot = content.pop("robot")
    require(file_format == FORMAT, str(path), "format", repr(FORMAT), repr(file_format))
    if file_robot != robot.name:
        raise MotionError(
            f"{path}: robot must be {robot.name!r}, got {file_robot!r}: "
            f"`legged-envs motion {Path(path).name} --robot {robot.name} --source {file_robot}` "
            "carries it over"
        )
    return motion_from_coordinates(robot, **content, source=str(path))


def read_own(path: Path, robot: RobotCfg, reading: MotionReading) -> Motion:
    """Load a motion of the package, which contains all information of the options.

    Raises:
        MotionError: An option contradicts the file, or the file cannot be used.
    """
    if reading != AS_FILES_SAY:
        raise MotionError(
            f"{path}: is a file of legged-envs, which contains its rate, order and units: leave "
            "out the options --motion.…; convert other files that need them first, with "
            "legged-envs motion FILE --output NEW.npz"
        )
    return load_motion(path, robot)
