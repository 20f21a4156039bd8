from pathlib import Path

from legged_envs.checks import check_known
from legged_envs.motions.files import load_motion
from legged_envs.motions.motion import Motion
from legged_envs.robots import RobotCfg

FOLDER = Path(__file__).resolve().parent / "data"
"""One folder per robot with one file per clip, written by ``tools/motions`` of the repository."""


def shipped_files(robot: RobotCfg) -> dict[str, Path]:
    """The clips of ``robot`` by name; ValueError where there are none."""
    paths = {path.stem: path for path in sorted((FOLDER / robot.name).glob("*.npz"))}
    if not paths:
        others = ", ".join(sorted(folder.name for folder in FOLDER.iterdir()))
        raise ValueError(
            f"no motions of robot {robot.name!r} come with the package; there are some of {others}"
        )
    return paths


def shipped_motions(robot: RobotCfg, *names: str) -> list[Motion]:
    """The clips of ``robot`` called ``names``, or all by name; ValueError where there are none. ``GO2`` has stand,
    trot, pace, bound, pronk, turn_left, turn_right and sit_to_stand, ``G1_29`` has stand, march, squat and wave."""
    paths = shipped_files(robot)
    check_known("there is no motion", names, paths, f"motions of robot {robot.name!r}")
    return [load_motion(paths[name], robot) for name in names or paths]
