"""Reference clips that are part of the package."""

from pathlib import Path

from legged_envs.checks import check_known
from legged_envs.motions.formats.own import load_motion
from legged_envs.motions.motion import Motion
from legged_envs.robots import RobotCfg

FOLDER = Path(__file__).resolve().parent / "data"
"""Folder of the package's clips: a folder per robot, in it a file per clip.

The scripts in ``tools/motions`` write the files.
"""


def shipped_files(robot: RobotCfg) -> dict[str, Path]:
    """Return the files of the package's clips of a robot, by the names of the clips.

    Raises:
        ValueError: There are no clips of this robot in the package.
    """
    paths = {path.stem: path for path in sorted((FOLDER / robot.name).glob("*.npz"))}
    if not paths:
        others = ", ".join(sorted(folder.name for folder in FOLDER.iterdir()))
        raise ValueError(f"the package has no motions of robot {robot.name!r}, only of {others}")
    return paths


def shipped_motions(robot: RobotCfg, *names: str) -> list[Motion]:
    """Load reference clips of a robot that are part of the package.

    ``GO2`` has stand, trot, pace, bound, pronk, turn_left, turn_right and sit_to_stand. ``G1_29``
    has stand, march, squat and wave.

    Args:
        robot: The robot.
        *names: Names of the clips. Without names, all clips are loaded in alphabetical order.

    Raises:
        ValueError: There are no clips of this robot in the package, or no clip with one of the
            names.
    """
    paths = shipped_files(robot)
    check_known("there is no motion", names, paths, f"motions of robot {robot.name!r}")
    return [load_motion(paths[name], robot) for name in names or paths]
