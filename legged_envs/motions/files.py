"""Loads motions from files of several projects, and names what is suspicious about them."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from legged_envs.checks import check_known
from legged_envs.motion_reading import AS_FILES_SAY, MotionReading
from legged_envs.motions.formats.amp import read_amp
from legged_envs.motions.formats.beyondmimic import read_beyondmimic
from legged_envs.motions.formats.csv_tables import read_csv
from legged_envs.motions.formats.find import read_motion
from legged_envs.motions.motion import Motion
from legged_envs.motions.recording import motion_of
from legged_envs.motions.resampling import resample
from legged_envs.motions.suspicions import MotionWarning, suspicions
from legged_envs.robots import GO2, RobotCfg


@dataclass(frozen=True)
class MotionFiles(MotionReading):
    """Motion files that an imitation task uses as its reference clips.

    It is the value of a task's configuration: ``gym.make_vec(id, cfg={"commands.motion.motions":
    MotionFiles(("kick.npz",))})``. The options of :class:`MotionReading` add information that the
    files lack: ``MotionFiles(("walk.csv",), rate=60)``.
    """

    paths: Sequence[str | Path]
    """Paths of the files, one clip each.

    ``.npz`` is the package's format, BeyondMimic's or MuJoCo's coordinates, ``.csv`` is LAFAN1
    retargeted to a robot, ``.pkl`` is GMR's, PBHC's or ASAP's, ``.json`` and ``.txt`` are AMP's.
    """

    def __call__(self, robot: RobotCfg) -> list[Motion]:
        """Load the clips from the files, for a robot.

        Clips of several frame rates get the highest of them. A :class:`MotionWarning` reports
        anything suspicious about a clip.

        Raises:
            MotionError: A path has an unknown ending, or its file cannot be used.
        """
        self.check()
        motions = [load_file(path, robot, self.options()) for path in self.paths]
        rate = max((motion.frame_rate for motion in motions), default=0.0)
        for index, motion in enumerate(motions):
            if motion.frame_rate != rate:
                motions[index] = resample(motion, robot, rate)
        return motions

    def as_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, with absolute paths."""
        values: dict[str, Any] = {"paths": [str(Path(path).resolve()) for path in self.paths]}
        given = asdict(self.options())
        for name, usual in asdict(AS_FILES_SAY).items():
            if given[name] != usual:
                values[name] = given[name]
        return values

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> "MotionFiles":
        """Return the files that :meth:`as_json` describes.

        Raises:
            ValueError: If a name is not a field, or the paths are not a list of files.
        """
        known = [field.name for field in fields(MotionFiles)]
        check_known("motions: MotionFiles has no field", list(values), known, "it has")
        paths = values.get("paths")
        # A text is a sequence of texts too.
        is_list = isinstance(paths, (list, tuple)) and len(paths) > 0
        if not is_list or not all(isinstance(path, (str, Path)) for path in values["paths"]):
            raise ValueError(
                f"motions: paths must be a list of files, got {paths!r}: name them, "
                "e.g. {'paths': ['kick.npz']}"
            )
        return MotionFiles(**values)

    def options(self) -> MotionReading:
        """Return the options without the paths."""
        return MotionReading(
            rate=self.rate,
            order=tuple(self.order),
            quaternion=self.quaternion,
            degrees=self.degrees,
            lift=self.lift,
            frames=self.frames,
            ignore_extra_joints=self.ignore_extra_joints,
            hold_missing_joints=self.hold_missing_joints,
        )


def load_motions(
    motions: Callable[[RobotCfg], Sequence[Motion]] | Mapping[str, Any], robot: RobotCfg
) -> list[Motion]:
    """Load the clips of a robot.

    Args:
        motions: Function that loads them, or the fields of :class:`MotionFiles` as JSON holds them.
        robot: The robot.
    """
    load = motions if callable(motions) else MotionFiles.from_json(motions)
    return list(load(robot))


def load_file(path: str | Path, robot: RobotCfg, reading: MotionReading | None = None) -> Motion:
    """Load a clip from a file of any known format.

    A :class:`MotionWarning` reports anything suspicious about the clip as a whole.

    Args:
        path: The file.
        robot: Robot of the clip.
        reading: Options that replace entries of the file. None: none.

    Raises:
        MotionError: The format is unknown, or the file cannot be used.
    """
    return _examined(read_motion(Path(path), robot, reading or MotionReading()), robot)


def load_lafan1_csv(
    path: str | Path,
    robot: RobotCfg,
    *,
    frame_rate: float | None = None,
    joint_names: Sequence[str] = (),
    ignore_extra_joints: bool = False,
    lines: tuple[int, int] | None = None,
) -> Motion:
    """Load a clip from a CSV file of Unitree's LAFAN1 retargeting dataset, or one like it.

    The name of the clip is the name of the file without its ending. Velocities are computed from
    the positions.

    Args:
        path: The file.
        robot: Robot of the clip.
        frame_rate: Lines per second. None: the rate of a column of times, or 30.
        joint_names: Names of the joint columns, which follow the 7 columns of the base. Empty:
            the names of the header, or the usual names of the robot.
        ignore_extra_joints: True to leave out columns of joints that the robot does not have, for
            example to load the file for ``G1``, with 12 joints.
        lines: First and last line of numbers to read, counted from 1; a header is not counted.
            None: all lines.

    Raises:
        MotionError: The file is not UTF-8, a line has another number of columns, a cell is not a
            finite number, a quaternion is not a unit quaternion, or the joints do not match the
            robot. The message names the line.
    """
    reading = MotionReading(
        rate=frame_rate,
        order=tuple(joint_names),
        ignore_extra_joints=ignore_extra_joints,
        frames=lines,
    )
    return _examined(motion_of(read_csv(Path(path), robot, reading), robot, reading), robot)


def load_beyondmimic_npz(
    path: str | Path,
    robot: RobotCfg,
    *,
    joint_names: Sequence[str] = (),
    ignore_extra_joints: bool = False,
) -> Motion:
    """Load a clip from a NumPy archive of BeyondMimic or mjlab.

    The name of the clip is the name of the file without its ending. The pose and the angular
    velocity of the base, and the joints, are read from the file. Poses and velocities of the bodies
    are computed from them with the model of ``robot``. The bodies of the file must be near the
    computed ones; a wrong order of joints is found by this. The linear velocity of the base is
    computed from its positions, because Isaac Lab writes the velocity of the centre of mass.

    Args:
        path: The file.
        robot: Robot of the clip.
        joint_names: Names of the joint columns, such as ``G1_LIMB_BY_LIMB`` for files of mjlab,
            ``G1_LEVEL_BY_LEVEL`` for files that were made with Isaac Lab. Empty: the file's own
            names, or the order that brings the bodies to their places.
        ignore_extra_joints: True to leave out columns of joints that the robot does not have.

    Raises:
        MotionError: The keys, numbers, shapes, joints or bodies of the file are wrong.
    """
    reading = MotionReading(order=tuple(joint_names), ignore_extra_joints=ignore_extra_joints)
    return _examined(read_beyondmimic(Path(path), robot, reading), robot)


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
    motion = read_amp(Path(path), robot, MotionReading(), joint_names, num_feet)
    return _examined(motion, robot)


def _examined(motion: Motion, robot: RobotCfg) -> Motion:
    """Return a motion, after warnings about what is suspicious."""
    for suspicion in suspicions(motion, robot):
        # The caller of a function above is on the line that is shown.
        warnings.warn(f"{motion.origin}: {suspicion}", MotionWarning, stacklevel=3)
    return motion
