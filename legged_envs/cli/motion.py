"""Implements `legged-envs motion`."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from legged_envs.cli.check import find_robot
from legged_envs.motion_reading import AS_FILES_SAY, MotionReading
from legged_envs.robots import ROBOTS, RobotCfg
from legged_envs.system_checks import check_inputs, check_installed, check_output

if TYPE_CHECKING:
    from legged_envs.motions import Motion


@dataclass
class MotionCfg:
    """Options of `legged-envs motion`."""

    file: Annotated[Path, Positional, arg(metavar="FILE")]
    """A motion file: .npz, .csv, .pkl, .json or .txt of a robot; .bvh or joints in an .npz of a
    human, which are carried over to the robot."""
    robot: str
    """Robot that moves: a name such as G1 or go2, or module:NAME of a RobotCfg."""
    source: str | None = None
    """Robot of the file, if it is not --robot. The motion is retargeted to --robot."""
    output: Path | None = None
    """Write the motion to this .npz, which --motions reads."""
    video: Path | None = Path("motion.mp4")
    """Video of the motion. None: no video."""
    motion: MotionReading = AS_FILES_SAY
    """Settings for reading the file."""


def motion(cfg: MotionCfg) -> None:
    """Describe a motion file, check it on a robot and render a video.

    The motion of another robot or of a human is retargeted to the robot.
    """
    check_inputs("motion", [cfg.file])
    cfg.motion.check()
    check_output("--output", cfg.output, endings=(".npz",))
    check_output("--video", cfg.video, endings=(".mp4",))
    if cfg.video is not None:
        check_installed("imageio_ffmpeg")
    # Unknown names are found before PyTorch is imported.
    robots = find_robots(cfg.robot)
    sources = [] if cfg.source is None else find_robots(cfg.source)
    from legged_envs.motions import save_motion

    robot, clip = load_clip(cfg, robots, sources)
    print_motion(clip, robot)
    if cfg.output is not None:
        cfg.output.parent.mkdir(parents=True, exist_ok=True)
        save_motion(cfg.output, clip)
        print(f"wrote {cfg.output}")
    if cfg.video is not None:
        from rich.console import Console

        from legged_envs.runs.progress import LINE_INTERVAL, showing
        from legged_envs.viewing.motion_film import film_motion

        with showing(Console(), LINE_INTERVAL) as show:
            film_motion(clip, robot, cfg.video, show)
        print(f"wrote {cfg.video}")


def find_robots(name: str) -> list[RobotCfg]:
    """Return the robots that a name can mean: `G1` is the one with 12 or the one with 29 joints.

    Raises:
        ValueError: If there is no such robot.
    """
    key = name.lower()
    robots = []
    for known, robot in ROBOTS.items():
        if known == key or known.startswith(f"{key}_"):
            robots.append(robot)
    return robots or [find_robot(name)]


def load_clip(
    cfg: MotionCfg, robots: list[RobotCfg], sources: list[RobotCfg]
) -> tuple[RobotCfg, "Motion"]:
    """Load the file, for the first of the robots that it fits, and carry it over if need be.

    Args:
        cfg: Options of the command.
        robots: Robots that `--robot` can mean.
        sources: Robots that `--source` can mean. Empty: the file is of the robot or of a human.

    Raises:
        MotionError: The file cannot be used for any of the robots.
        ValueError: An option is not for the motion of a human, and the file has one.
    """
    from legged_envs.motions import key_points_of, load_human, retarget
    from legged_envs.motions.humans import is_human

    if is_human(cfg.file):
        check_human_options(cfg)
        # The one with the most joints has arms.
        robot = max(robots, key=_num_joints)
        return robot, retarget(load_human(cfg.file, cfg.motion.rate), robot)
    if not sources:
        return load_for_one(cfg, robots)
    source, clip = load_for_one(cfg, sources)
    robot = max(robots, key=_num_joints)
    return robot, retarget(key_points_of(clip, source), robot)


def check_human_options(cfg: MotionCfg) -> None:
    """Refuse options that have no effect on the motion of a human.

    Raises:
        ValueError: Such an option was given. The message names it.
    """
    if cfg.source is not None:
        raise ValueError(
            f"--source {cfg.source} names the robot of the file, but {str(cfg.file)!r} has the "
            "motion of a human; leave it out"
        )
    for field in fields(MotionReading):
        value = getattr(cfg.motion, field.name)
        if field.name != "rate" and value != field.default:
            option = field.name.replace("_", "-")
            raise ValueError(
                f"--motion.{option} has no effect on the motion of a human, such as "
                f"{str(cfg.file)!r}, got {value}; leave it out"
            )


def load_for_one(cfg: MotionCfg, robots: list[RobotCfg]) -> tuple[RobotCfg, "Motion"]:
    """Load the file for the first of the robots with the joints of the file.

    Raises:
        MotionError: The file fits none of them. The error of the last robot is raised.
    """
    from legged_envs.motions import MotionError
    from legged_envs.motions.formats import read_motion

    for robot in robots[:-1]:
        try:
            return robot, read_motion(cfg.file, robot, cfg.motion)
        except MotionError:
            continue
    return robots[-1], read_motion(cfg.file, robots[-1], cfg.motion)


def print_motion(clip: "Motion", robot: RobotCfg) -> None:
    """Print the measures of a motion, and everything that is wrong with it."""
    from rich.console import Console
    from rich.table import Table

    from legged_envs.motions import describe_motion, inspect_motion, suspicions

    table = Table(title=f"{clip.name}, robot {robot.name}", show_header=False)
    for name, value in describe_motion(clip, robot).items():
        table.add_row(name, value)
    Console().print(table)
    problems = [*suspicions(clip, robot), *inspect_motion(clip, robot).problems()]
    for problem in problems:
        print(f"- {problem}")
    if not problems:
        print(f"Nothing is wrong: {robot.name} can do it as far as its joints and the ground go.")


def _num_joints(robot: RobotCfg) -> int:
    return robot.num_joints
