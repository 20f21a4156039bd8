"""Reads motions in pickles (.pkl): GMR, PBHC, ASAP and PHC.

GMR: ``fps``, ``root_pos`` (T, 3), ``root_rot`` (T, 4) (x, y, z, w), ``dof_pos`` (T, J). PBHC, ASAP
and PHC: the name of a motion → ``fps``, ``root_trans_offset``, ``root_rot``, ``dof``; the 23 joints
of the G1 without its wrists. Other keys are left alone.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.archives import convert_entry, read_names
from legged_envs.motions.formats.safe_pickle import load_plain
from legged_envs.motions.motion import MotionError, require
from legged_envs.motions.orders import named_order, usual_joints
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
    pos = _numbers(content, POSITIONS, origin)
    quat = _numbers(content, ROTATIONS, origin)
    joint_pos = _numbers(content, JOINTS, origin)
    if joint_pos.ndim == 3 and joint_pos.shape[2] == 1:
        # PHC writes one axis more.
        joint_pos = joint_pos[:, :, 0]
    for key, values, width in (("positions", pos, 3), ("rotations", quat, 4)):
        is_table = values.ndim == 2 and values.shape[1] == width
        got = tuple(values.shape)
        require(is_table, origin, f"the base's {key}", f"of shape (T, {width})", got)
    require(joint_pos.ndim == 2, origin, "dof_pos", "of shape (T, J)", tuple(joint_pos.shape))
    rate = content.get("fps", reading.rate)
    if rate is None:
        raise MotionError(
            f"{origin}: lacks field 'fps': say the frames per second with --motion.rate (rate=…)"
        )
    is_number = isinstance(rate, (int, float, np.generic, np.ndarray))
    require(is_number, origin, "fps", "a number", type(rate).__name__)
    return Recording(
        path=path,
        frame_rate=convert_entry(np.asarray(rate), "fps", "number", origin),
        root_pos_w=pos,
        root_quat=quat,
        quaternion="xyzw",
        joint_pos=joint_pos,
        joint_names=_joints(content, joint_pos.shape[1], robot, reading),
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


def _numbers(content: dict[str, Any], keys: tuple[str, ...], origin: str) -> torch.Tensor:
    """Return the array under the first of ``keys`` that the file has, float64."""
    for key in keys:
        if key in content:
            array = content[key]
            got = type(array).__name__
            # Not lists: a small file can hold a list that is endless when it is written out.
            require(isinstance(array, np.ndarray), origin, key, "a NumPy array", got)
            tensor: torch.Tensor = convert_entry(array, key, "numbers", origin)
            return tensor
    raise MotionError(f"{origin}: lacks field {keys[0]!r}; it has {', '.join(map(str, content))}")


def _joints(
    content: dict[str, Any], width: int, robot: RobotCfg, reading: MotionReading
) -> tuple[str, ...]:
    """Return the names of the joint columns: given, in the file, or usual for their number."""
    if reading.order:
        return named_order(reading.order, robot)
    for key in NAMES:
        names = content.get(key)
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            names = np.array(names)
        if isinstance(names, np.ndarray) and names.shape == (width,):
            return read_names(names)
    return usual_joints((width,), robot)
