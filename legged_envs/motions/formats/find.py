"""Finds the format of a motion file by its ending and its content, and reads it."""

import re
import warnings
from collections.abc import Callable, Collection
from pathlib import Path

from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.amp import read_amp
from legged_envs.motions.formats.archives import archive_names
from legged_envs.motions.formats.beyondmimic import read_beyondmimic
from legged_envs.motions.formats.body_archives import ISAAC_LAB_KEYS
from legged_envs.motions.formats.coordinates import read_coordinates
from legged_envs.motions.formats.csv_tables import read_csv
from legged_envs.motions.formats.own import read_own
from legged_envs.motions.formats.pickles import read_pickle
from legged_envs.motions.motion import Motion, MotionError, require
from legged_envs.motions.recording import Recording, motion_of
from legged_envs.motions.suspicions import MotionWarning
from legged_envs.robots import RobotCfg
from legged_envs.robots.reading.source import POINTER_ADVICE, is_pointer

Reader = Callable[[Path, RobotCfg, MotionReading], Motion | Recording]
"""Type of a function that reads a file."""

HUMAN_KEYS = ("poses", "pose_body", "joints", "human_joints")
"""Keys of archives with the motion of a human: AMASS, SMPL-X, or positions of joints."""
HUMAN_ENDINGS = (".bvh",)
"""Endings of files with the motion of a human."""
RATE_IN_NAME = re.compile(r"(\d+) ?(?:hz|fps)", re.IGNORECASE)
"""Frame rate in the name of a file, such as ``dance_60hz``."""


def read_motion(path: Path, robot: RobotCfg, reading: MotionReading) -> Motion:
    """Read a clip from a file of any known format.

    Args:
        path: The file.
        robot: Robot of the clip.
        reading: Options that replace entries of the file.

    Raises:
        MotionError: The format is unknown, or the file cannot be used.
    """
    if path.is_file() and is_pointer(path):
        raise MotionError(f"{path}: is a pointer of Git LFS, not the motion: {POINTER_ADVICE}")
    content = _reader_of(path)(path, robot, reading)
    if isinstance(content, Motion):
        return content
    num_frames = len(content.root_pos_w)
    require(num_frames >= 2, str(path), "a motion", "at least 2 frames", num_frames)
    # First: a file that does not fit the robot gets an error and no warning.
    motion = motion_of(content, robot, reading)
    if not content.says_rate and reading.rate is None:
        _warn_of_rate(path, content.frame_rate)
    return motion


def _warn_of_rate(path: Path, rate: float) -> None:
    """Warn of a file without a frame rate, and show the rate in its name, if there is one."""
    usual = f"{path}: has no frame rate and is read at {rate:g} Hz, the rate of LAFAN1"
    named = RATE_IN_NAME.search(path.stem)
    if named is None or float(named[1]) == rate:
        message = f"{usual}: --motion.rate {rate:g} (rate=…) confirms or changes it"
    else:
        message = f"{usual}, but its name has {named[1]}: --motion.rate {named[1]} (rate=…)"
    # The caller of read_motion.
    warnings.warn(message, MotionWarning, stacklevel=3)


def _reader_of(path: Path) -> Reader:
    """Return the function that reads a file."""
    ending = path.suffix.lower()
    if ending == ".npz":
        return _archive_reader(path)
    if ending == ".csv":
        return read_csv
    if ending in (".json", ".txt"):
        return read_amp
    if ending in (".pkl", ".pickle"):
        return read_pickle
    human = ""
    if ending in HUMAN_ENDINGS:
        human = "; `legged-envs motion` converts human motion (.bvh) to robot motion"
    raise MotionError(
        f"{path}: the ending must be .npz, .csv, .json, .txt or .pkl, got {path.suffix!r}{human}"
    )


def _archive_reader(path: Path) -> Reader:
    """Return the function that reads an archive, by the names of its arrays."""
    names = archive_names(path)
    if "format" in names:
        return read_own
    if "qpos" in names:
        return read_coordinates
    if "body_pos_w" in names or ("joint_pos" in names and "fps" in names):
        return read_beyondmimic
    if "body_positions" in names and set(ISAAC_LAB_KEYS) & set(names):
        return read_beyondmimic
    _refuse_human(path, names)
    # Its error names the keys that are expected.
    return read_own


def _refuse_human(path: Path, names: Collection[str]) -> None:
    """Raise a MotionError if an archive has the motion of a human."""
    if "joints" in names or "human_joints" in names:
        raise MotionError(
            f"{path}: has the joints of a human and not of a robot: `legged-envs motion "
            f"{path.name} --robot … --output clip.npz` turns it into the motion of a robot"
        )
    if any(key in names for key in HUMAN_KEYS):
        raise MotionError(
            f"{path}: has the motion of a human as SMPL parameters, as AMASS does, but the licence "
            "of the body model does not permit including it: save the model's joints, 'joints' "
            "(T, 22, 3), and 'fps' with numpy.savez, and give that file to `legged-envs motion`"
        )
