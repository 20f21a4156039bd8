"""Reads motions in pickles (.pkl): GMR, PBHC, ASAP and PHC.

GMR: ``fps``, ``root_pos`` (T, 3), ``root_rot`` (T, 4) (x, y, z, w), ``dof_pos`` (T, J). PBHC, ASAP
and PHC: the name of a motion → ``fps``, ``root_trans_offset``, ``root_rot``, ``dof``; the 23 joints
of the G1 without its wrists. Other keys are not changed.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.archives import (
    convert_entry,
    rate_of_user,
    read_names,
    read_table,
)
from legged_envs.motions.formats.safe_pickle import load_plain
from legged_envs.motions.motion import MotionError, require
from legged_envs.motions.orders import column_joints
from legged_envs.motions.recording import Recording
from legged_envs.robots import RobotCfg

POSITIONS = ("root_pos", "root_trans_offset", "root_trans")
"""Keys of the positions of the base. A file has one of them."""
ROTATIONS = ("root_rot", "root_quat")
"""Keys of the orientations of the base."""
JOINTS = ("dof_pos", "dof")
"""Keys of the joint positions."""
NAMES = ("joint_names", "dof_names")
"""Keys of the names of the joints, which few files have."""


def read_pickle(path: Path, robot: RobotCfg, reading: MotionReading) -> Recording:
    """Read a motion from a pickle of NumPy arrays.

    Raises:
        MotionError: The file holds other things, none or several motions, or wrong numbers.
    """
    origin = str(path)
    content = _only_motion(load_plain(path), origin)
    joint_array = _array(content, JOINTS, origin)
    if joint_array.ndim == 3 and joint_array.shape[2] == 1:
        # PHC writes one axis more.
        joint_array = joint_array[:, :, 0]
    joint_pos = read_table(joint_array, "dof_pos", origin)
    width = joint_pos.shape[1]
    rate = content["fps"] if "fps" in content else rate_of_user(reading, origin, ("fps",))
    is_number = isinstance(rate, (int, float, np.generic, np.ndarray))
    require(is_number, origin, "fps", "a number", type(rate).__name__)
    return Recording(
        path=path,
        frame_rate=convert_entry(np.asarray(rate), "fps", "number", origin),
        root_pos_w=read_table(_array(content, POSITIONS, origin), "the base's position", origin, 3),
        root_quat=read_table(_array(content, ROTATIONS, origin), "the base's rotation", origin, 4),
        quaternion="xyzw",
        joint_pos=joint_pos,
        joint_names=column_joints(reading, _joint_names(content, width), (width,), robot),
    )


def _only_motion(content: Any, origin: str) -> dict[str, Any]:
    """Return the dict with the arrays, which may be the only value of an outer dict."""
    got = type(content).__name__
    require(isinstance(content, dict), origin, "the content", "a dict of arrays", got)
    if any(key in content for key in POSITIONS):
        return content
    motions = [value for value in content.values() if isinstance(value, dict)]
    if len(motions) != 1:
        raise MotionError(
            f"{origin}: must have one motion with {', '.join((*POSITIONS[:2], *ROTATIONS[:1]))} "
            f"and {' or '.join(JOINTS)}, got {len(motions)} motions among "
            f"{', '.join(str(key) for key in list(content)[:5])}: save one motion in a file"
        )
    return motions[0]


def _array(content: dict[str, Any], keys: tuple[str, ...], origin: str) -> npt.NDArray[Any]:
    """Return the array under the first of ``keys`` that the file has."""
    for key in keys:
        if key in content:
            array: npt.NDArray[Any] = content[key]
            # Not lists: a small file can hold a list that is endless when it is written out.
            if not isinstance(array, np.ndarray):
                raise MotionError(
                    f"{origin}: {key} must be a NumPy array, got {type(array).__name__}: "
                    "save numpy.array(…) of it"
                )
            return array
    raise MotionError(f"{origin}: lacks field {keys[0]!r}; it has {', '.join(map(str, content))}")


def _joint_names(content: dict[str, Any], width: int) -> tuple[str, ...]:
    """Return the names of ``width`` joint columns in the file. Empty: it has none."""
    for key in NAMES:
        names = content.get(key)
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            names = np.array(names)
        if isinstance(names, np.ndarray) and names.shape == (width,):
            return read_names(names)
    return ()
