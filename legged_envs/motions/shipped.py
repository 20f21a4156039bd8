"""The clips that come with the package."""

from pathlib import Path

from legged_envs.checks import check_known
from legged_envs.motions.files import load_motion
from legged_envs.motions.motion import Motion
from legged_envs.robots import RobotCfg

FOLDER = Path(__file__).resolve().parent / "data"
"""Folder of the clips: one folder per robot with one file per clip, written by
``tools/motions``."""


def shipped_files(robot: RobotCfg) -> dict[str, Path]:
    """Return the files of a robot's clips by name.

    Raises:
        ValueError: No clips of this robot come with the package.
    """
    paths = {path.stem: path for path in sorted((FOLDER / robot.name).glob("*.npz"))}
    if not paths:
        others = ", ".join(sorted(folder.name for folder in FOLDER.iterdir()))
        raise ValueError(
            f"no motions of robot {robot.name!r} come with the package; there are some of {others}"
        )
    return paths


def shipped_motions(robot: RobotCfg, *names: str) -> list[Motion]:
    """Load clips of a robot that come with the package.

    ``GO2`` has stand, trot, pace, bound, pronk, turn_left, turn_right and sit_to_stand. ``G1_29``
    has stand, march, squat and wave.

    Args:
        robot: The robot.
        *names: Names of clips. None given: all clips in the order of their names.

    Raises:
        ValueError: There are no clips of this robot, or none with one of the names.
    """
    paths = shipped_files(robot)
    check_known("there is no motion", names, paths, f"motions of robot {robot.name!r}")
    return [load_motion(paths[name], robot) for name in names or paths]
