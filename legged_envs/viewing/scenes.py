"""Scenes of a film or window: the velocity command or clip that a robot follows, and for how
long."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import cast

from legged_envs.checks import check_choice, check_number
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import Range, command_ranges
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.gait_command import STYLE, GaitChoice, GaitCommandCfg
from legged_envs.tasks.kind import kind_of
from legged_envs.tasks.mimic import clip_names

Command = tuple[float, float, float]
"""Velocity command in the base frame: vx, m/s, vy, m/s, and yaw rate wz, rad/s."""

TOUR: tuple[Command, ...] = (
    (1.0, 0.0, 0.0),
    (0.6, 0.0, 0.9),
    (0.0, 0.8, 0.0),
    (0.0, 0.0, -0.9),
    (-0.6, 0.0, 0.0),
    (0.0, 0.0, 0.0),
)
"""Velocity commands of a tour, which shows all directions one after the other.

They are fractions of the task's largest command in each direction.
"""
TOUR_SECONDS = 2.5
"""Default duration of each command of a tour, s."""
COMMAND_SECONDS = 10.0
"""Default duration of a scene with a single command, s."""
GAIT_SECONDS = 4.0
"""Default duration of each gait of a tour of gaits, s."""
GAIT_SPEED = 0.6
"""Largest forward velocity command of a tour of gaits, m/s."""
CLIP_SECONDS = 4.0
"""Default duration of a scene with a clip, s."""
ROUGH_GROUND_SPEED = 0.8
"""Largest forward velocity command of a scene on rough ground, m/s."""


@dataclass(frozen=True)
class Scene:
    """Part of a film or window: a velocity command to follow, or a clip to imitate, for some time.

    A clip is imitated from its start. A task with neither velocity command nor clips, such as
    navigation, runs unchanged.
    """

    seconds: float
    """Duration of the scene, s."""
    command: Command | None = (0.0, 0.0, 0.0)
    """Velocity command of the robot. None: the task has no velocity command."""
    clip: str | None = None
    """Name of the reference clip to imitate. None: no clip is imitated."""
    gait: GaitChoice | None = None
    """Gait and style to use. None: those that the task draws."""


def make_scenes(
    cfg: TaskCfg,
    command: Command | None = None,
    clips: Sequence[str] = (),
    seconds: float | None = None,
    total: float | None = None,
    gait: GaitChoice | None = None,
) -> list[Scene]:
    """Return the scenes that show a policy.

    On a mimic task there is one scene for each clip, and on a task with gaits one for each gait. On
    other tasks there is one scene with the command, or a tour of the commands that the task has.

    Args:
        cfg: The task.
        command: Velocity command. None: a tour of the task's commands.
        clips: Names of clips of a mimic task. Empty: all.
        seconds: Duration of each scene, s. None: as the constants of this module.
        total: Duration of all scenes together, s. It replaces ``seconds``.
        gait: Gait and style. A gait of None: all gaits, one after the other; other parts that are
            None are the middle of their ranges. None: no part is given.

    Raises:
        ValueError: If the task has no such command or clip, or a scene is shorter than a control
            step.
    """
    if kind_of(cfg).has_gait_command:
        chosen = make_gait_scenes(cfg, command, gait or GaitChoice())
    elif gait is not None:
        raise ValueError(
            "the task has no gait command: it takes no --gait, --period, --clearance, --height and "
            "--pitch"
        )
    else:
        chosen = _choose_scenes(cfg, command, clips)
    step_dt = cfg.sim.step_dt
    if total is not None:
        seconds = total / len(chosen)
        if not step_dt <= seconds < inf:
            raise ValueError(
                f"--video-seconds must be at least a control step of {step_dt:g} s "
                f"for each of {len(chosen)} scenes, got {total}"
            )
    # Written so that NaN is refused too.
    elif seconds is not None and not step_dt <= seconds < inf:
        raise ValueError(
            f"--seconds must be at least a control step of {step_dt:g} s, got {seconds}"
        )
    if seconds is None:
        return chosen
    return [replace(scene, seconds=seconds) for scene in chosen]


def _choose_scenes(cfg: TaskCfg, command: Command | None, clips: Sequence[str]) -> list[Scene]:
    kind = kind_of(cfg)
    if kind.imitates_motions:
        return [Scene(CLIP_SECONDS, clip=name) for name in clip_names(cfg, clips)]
    if not kind.follows_velocity:
        if command is not None:
            raise ValueError("the task has no velocity command: it takes no --vx, --vy and --wz")
        return [Scene(COMMAND_SECONDS, command=None)]
    if command is not None:
        _check_command(cfg, command)
        return [Scene(COMMAND_SECONDS, command)]
    if kind.has_terrain:
        # A robot that turns would leave the tiles, so it walks ahead.
        _, fastest = command_ranges(cfg)["lin_vel_x"]
        return [Scene(COMMAND_SECONDS, (min(ROUGH_GROUND_SPEED, fastest), 0.0, 0.0))]
    return [Scene(TOUR_SECONDS, each) for each in make_tour(cfg)]


def make_gait_scenes(cfg: TaskCfg, command: Command | None, choice: GaitChoice) -> list[Scene]:
    """Return a scene for the chosen gait, or for each gait of a task, without resets in between.

    Args:
        cfg: A task with a gait command.
        command: Velocity command. None: ahead at ``GAIT_SPEED``.
        choice: Gait and style. Parts of the style that are None are the middle of their ranges.

    Raises:
        ValueError: If a part is outside the ranges of the task. The message names its option.
    """
    if command is None:
        _, fastest = command_ranges(cfg)["lin_vel_x"]
        command = (min(GAIT_SPEED, fastest), 0.0, 0.0)
    _check_command(cfg, command)
    gait_cfg = find_gait_cfg(cfg)
    if choice.gait is not None:
        check_choice("--gait", choice.gait, gait_cfg.gaits)
    style = {}
    for name in STYLE:
        low, high = getattr(gait_cfg, name)
        value = getattr(choice, name)
        if value is None:
            value = 0.5 * (low + high)
        check_number(f"--{name}", value, low, high)
        style[name] = value
    gaits = gait_cfg.gaits if choice.gait is None else (choice.gait,)
    seconds = GAIT_SECONDS if len(gaits) > 1 else COMMAND_SECONDS
    return [Scene(seconds, command, gait=GaitChoice(gait, **style)) for gait in gaits]


def find_gait_cfg(cfg: TaskCfg) -> GaitCommandCfg:
    """Return the configuration of the gait command of a task.

    Raises:
        ValueError: If the task has none.
    """
    for command in cfg.commands.values():
        if isinstance(command, GaitCommandCfg):
            return command
    raise ValueError("the task has no gait command")


def make_tour(cfg: TaskCfg) -> list[Command]:
    """Return the commands of :data:`TOUR`, scaled to the ranges of a task.

    A direction in which the task has no commands is omitted.
    """
    ranges = command_ranges(cfg)
    commands: list[Command] = []
    for x_part, y_part, turn_part in TOUR:
        vx = _scale_to_range(x_part, ranges["lin_vel_x"])
        vy = _scale_to_range(y_part, ranges["lin_vel_y"])
        wz = _scale_to_range(turn_part, ranges["ang_vel_z"])
        command = (vx, vy, wz)
        # A part in a direction that the task does not have becomes 0.
        stands = command == (0.0, 0.0, 0.0)
        shall_stand = (x_part, y_part, turn_part) == (0.0, 0.0, 0.0)
        if (shall_stand or not stands) and command not in commands:
            commands.append(command)
    return commands


def _scale_to_range(part: float, span: Range) -> float:
    """Return a fraction of the end of a range that lies in its direction, within the range."""
    low, high = span
    # Parts are signed. Backwards, the length of the range is −low.
    end = high if part > 0.0 else -low
    return min(max(part * end, low), high)


def find_command_ranges(cfg: TaskCfg) -> tuple[Range, Range, Range]:
    """Return the ranges of vx, vy, m/s, and wz, rad/s, from which a task draws its commands."""
    velocity = cast(VelocityCommandCfg, cfg.commands["velocity"])
    return velocity.lin_vel_x, velocity.lin_vel_y, velocity.ang_vel_z


def _check_command(cfg: TaskCfg, command: Command) -> None:
    options = ("--vx", "--vy", "--wz")
    for option, span, value in zip(options, find_command_ranges(cfg), command, strict=True):
        low, high = span
        # A robot can always be asked to stand, also where the task draws no such command.
        if value != 0.0 and not low <= value <= high:
            raise ValueError(
                f"{option} must be within the commands of this task, "
                f"{low:g} to {high:g}, got {value:g}"
            )
