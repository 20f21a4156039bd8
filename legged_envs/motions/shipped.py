from pathlib import Path

from legged_envs.motions.files import load_motion
from legged_envs.motions.motion import Motion
from legged_envs.robots import RobotCfg

FOLDER = Path(__file__).resolve().parent / "data"
"""One folder per robot with one file per clip, written by ``tools/motions`` of the repository."""


def shipped_motions(robot: RobotCfg, *names: str) -> list[Motion]:
    """The clips of ``robot`` called ``names``, or all by name; ValueError where there are none. ``GO2`` has stand,
    trot, pace, bound, pronk, turn_left, turn_right and sit_to_stand, ``G1_29`` has stand, march, squat and wave."""
    paths = {path.stem: path for path in sorted((FOLDER / robot.name).glob("*.npz"))}
    if not paths:
        others = ", ".join(sorted(folder.name for folder in FOLDER.iterdir()))
        raise ValueError(f"no motions of robot {robot.name!r} come with the package; there are some of {others}")
    if unknown := [name for name in names if name not in paths]:
        raise ValueError(f"there is no motion {unknown[0]!r} of robot {robot.name!r}; motions: {', '.join(paths)}")
    return [load_motion(paths[name], robot) for name in names or paths]
