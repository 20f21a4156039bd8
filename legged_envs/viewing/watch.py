"""Watch a policy follow commands or imitate motions: a video file, or MuJoCo's viewer where there is a display."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs import LeggedVectorEnv, unwrap
from legged_envs.envs.cfg import TaskCfg, replaced
from legged_envs.evaluation.conditions import (
    COMMAND_RANGES,
    EVALUATION_ENV_OPTIONS,
    PolicyFunction,
    command_ranges,
    evaluation_cfg,
)
from legged_envs.evaluation.metrics.mimic import motion_of
from legged_envs.evaluation.metrics.velocity import hold_velocity
from legged_envs.mdp.events import reset_to_reference
from legged_envs.mdp.observations import height_scan
from legged_envs.mdp.scan import scan_points
from legged_envs.policy.policy import Policy
from legged_envs.runs.progress import LINE_INTERVAL, Show, show_nothing, showing
from legged_envs.sim.cfg import Pose
from legged_envs.tasks.kind import kind_of
from legged_envs.tasks.mimic import clip_names

RENDER_SIZE = (960, 544)
VIDEO_WIDTH = 720
"""Frames are rendered larger than the video and scaled down: the cheapest antialiasing without a GPU."""
FRAMES_PER_SECOND = 25
REFERENCE_OFFSET = (0.0, 0.7, 0.0)
"""Where the reference is drawn, from where it is, m in the world: to the right of the robot."""
LARGEST_DRIFT = 0.2
"""Distance of robot and reference along x and y that is shown, m; with more it would leave the picture."""
LABEL_HEIGHT, LABEL_SIZE = 56, 19
"""Pixels at the top of a frame, as rendered, that hold its label, and the size of the letters."""
SMOOTHING = 0.3
"""Time over which the measured velocity of a label is averaged, s: within a step it goes up and down."""
Command = tuple[float, float, float]
"""vx [m/s], vy [m/s] and ωz [rad/s]."""


@dataclass(frozen=True)
class Scene:
    """What a robot is asked to do for a while: to follow a velocity command, to imitate a clip from its start, or,
    without a command, what else its task is."""

    seconds: float
    command: Command | None = (0.0, 0.0, 0.0)
    clip: str | None = None


STOP_KEY = 257
KEYS: dict[int, Command] = {
    265: (0.1, 0.0, 0.0),
    264: (-0.1, 0.0, 0.0),
    263: (0.0, 0.0, 0.1),
    262: (0.0, 0.0, -0.1),
}
KEYS |= {268: (0.0, 0.1, 0.0), 269: (0.0, -0.1, 0.0), STOP_KEY: (0.0, 0.0, 0.0)}
"""GLFW's numbers of the arrows up, down, left and right, of Home, End and Enter → how they change vx, vy and ωz; Enter
stops. MuJoCo's window does nothing by them."""
_AHEAD_AND_ASIDE = ((1.0, 0.0, 0.0), (0.6, 0.0, 0.9), (0.0, 0.8, 0.0))
TOUR = (*_AHEAD_AND_ASIDE, (0.0, 0.0, -0.9), (-0.6, 0.0, 0.0), (0.0, 0.0, 0.0))
"""Commands as parts of the greatest that a task has in each direction."""
TOUR_SECONDS, COMMAND_SECONDS, CLIP_SECONDS = 2.5, 10.0, 4.0
"""How long each command of a tour, a command that was given, and a clip last, s."""


def scenes(
    cfg: TaskCfg,
    command: Command | None = None,
    clips: Sequence[str] = (),
    seconds: float | None = None,
    total: float | None = None,
) -> list[Scene]:
    """What to show of a policy, each scene for ``seconds`` or all together for ``total``: on a mimic task ``clips``, by
    default all, else ``command``, by default a tour of those that the task has."""
    kind = kind_of(cfg)
    if kind.imitates_motions:
        shown = [Scene(CLIP_SECONDS, clip=name) for name in clip_names(cfg, clips)]
    elif not kind.follows_velocity:
        if command is not None:
            raise ValueError("the task has no velocity command: it takes no --vx, --vy and --wz")
        shown = [Scene(COMMAND_SECONDS, None)]
    elif command is not None:
        _check_command(cfg, command)
        shown = [Scene(COMMAND_SECONDS, command)]
    elif cfg.scene.terrain is not None:
        shown = [Scene(COMMAND_SECONDS, (min(0.8, command_ranges(cfg)["lin_vel_x"][1]), 0.0, 0.0))]
    else:
        shown = [Scene(TOUR_SECONDS, each) for each in tour(cfg)]
    option, given, least = "--seconds", seconds, f"a control step of {cfg.sim.step_dt:g} s"
    if total is not None:
        option, given, seconds = "--video-seconds", total, total / len(shown)
        least = f"{least} for each of {len(shown)} scenes"
    if seconds is not None and not cfg.sim.step_dt <= seconds < float("inf"):
        raise ValueError(f"{option} must be at least {least}, got {given}")
    return [replace(scene, seconds=seconds or scene.seconds) for scene in shown]


def tour(cfg: TaskCfg) -> list[Command]:
    """The commands of :data:`TOUR` within the task's :func:`command_ranges`, without directions that it has not got."""
    commands: list[Command] = []
    for parts in TOUR:
        ends = zip(parts, command_ranges(cfg).values(), strict=True)
        vx, vy, wz = (
            min(max(part * (high if part > 0.0 else -low), low), high) for part, (low, high) in ends
        )
        if (any((vx, vy, wz)) or not any(parts)) and (vx, vy, wz) not in commands:
            commands.append((vx, vy, wz))
    return commands


def _check_command(cfg: TaskCfg, command: Command) -> None:
    for name, option, value in zip(COMMAND_RANGES, ("--vx", "--vy", "--wz"), command, strict=True):
        low, high = getattr(cfg.commands["velocity"], name)
        if value != 0.0 and not low <= value <= high:
            raise ValueError(
                f"{option} must be within the commands of this task, {low:g} to {high:g}, got {value:g}"
            )


def watch(
    envs: VectorEnv, policy: PolicyFunction, groups: Sequence[str], scenes: Iterable[Scene]
) -> Iterator[Scene]:
    """Let the robots act one scene after the other; gives the scene after each control step. ``envs`` have the options
    ``EVALUATION_ENV_OPTIONS``. A robot whose episode ends begins the scene again."""
    core = unwrap(envs)
    observation: dict[str, torch.Tensor] = {}
    command: Command | None = None
    for scene in scenes:
        if scene.clip is not None or not observation:
            observation = begin(envs, scene, seed=0)
        elif scene.command != command:
            _command(core, scene, observation)
        command = scene.command
        for _ in range(round(scene.seconds / core.step_dt)):
            with torch.inference_mode():
                action = policy(*(observation[group] for group in groups))
            observation, _, terminated, truncated, _ = envs.step(action)
            yield scene
            if (ended := terminated | truncated).any():
                observation = begin(envs, scene, options={"reset_mask": ended})


def begin(envs: VectorEnv, scene: Scene, **how: Any) -> dict[str, torch.Tensor]:
    """Reset environments, in the way ``how`` that their ``reset`` knows, to the start of a scene; the observation."""
    core = unwrap(envs)
    if scene.clip is None:
        observation, _ = envs.reset(**how)
        _command(core, scene, observation)
    else:
        motion = motion_of(core)
        motion.pin(motion.player.library.clip_ids(scene.clip).squeeze(), torch.tensor(0.0))
        observation, _ = envs.reset(**how)
        motion.release()
    return observation


def _command(core: LeggedVectorEnv, scene: Scene, observation: dict[str, torch.Tensor]) -> None:
    if scene.command is not None:
        hold_velocity(core, scene.command, observation)


class Keys:
    """What the keys of the window ask of a robot that follows velocity commands: more or less of one by each press,
    within what its task has."""

    def __init__(self, cfg: TaskCfg):
        velocity = cfg.commands.get("velocity")
        self._ranges = (
            [getattr(velocity, name) for name in COMMAND_RANGES]
            if kind_of(cfg).has_velocity_command
            else []
        )
        self._asked: Command | None = None
        self.command: Command | None = None
        """None until the first of :data:`KEYS` is pressed."""

    def press(self, key: int) -> None:
        """Take in a key, by GLFW's number; others than those of :data:`KEYS` are the window's own."""
        start = self.command or self._asked
        if key not in KEYS or start is None:
            return
        ends = zip(start, KEYS[key], self._ranges, strict=True)
        vx, vy, wz = (
            round(min(max(value + more, low), high), 6) for value, more, (low, high) in ends
        )
        self.command = (0.0, 0.0, 0.0) if key == STOP_KEY else (vx, vy, wz)

    def scenes(self, shown: Sequence[Scene], step_dt: float) -> Iterator[Scene]:
        """The scenes ``shown``, a control step at a time, and from the first key on without end what the keys ask."""
        for scene in shown:
            for _ in range(round(scene.seconds / step_dt)):
                if self.command is not None:
                    break
                self._asked = scene.command
                yield replace(scene, seconds=step_dt)
        while self.command is not None:
            yield Scene(step_dt, self.command)


def film(
    envs: VectorEnv,
    policy: PolicyFunction,
    groups: Sequence[str],
    scenes: Sequence[Scene],
    path: Path,
    show: Show = show_nothing,
) -> None:
    """Film the first robot and a clip's reference as mp4. RuntimeError, and no file, if this machine cannot render."""
    import imageio_ffmpeg

    core = unwrap(envs)
    steps_per_frame = max(1, round(1.0 / (core.step_dt * FRAMES_PER_SECOND)))
    shown = islice(_labelled(core, watch(envs, policy, groups, scenes)), 0, None, steps_per_frame)
    frames = (_frame(core, scene, label) for scene, label in shown)
    first = next(frames)
    path.parent.mkdir(parents=True, exist_ok=True)
    num_frames = sum(round(scene.seconds / core.step_dt) for scene in scenes) / steps_per_frame
    width = VIDEO_WIDTH if core.sim.viewer.resolution is None else _size(core)[0] // 2 * 2
    fps, scaled = 1.0 / (core.step_dt * steps_per_frame), ["-vf", f"scale={width}:-2:flags=area"]
    options = {"fps": fps, "quality": 6, "output_params": ["-preset", "veryfast", *scaled]}
    try:
        with closing(imageio_ffmpeg.write_frames(str(path), _size(core), **options)) as writer:
            writer.send(None)
            for count, frame in enumerate(chain((first,), frames), 1):
                writer.send(frame.tobytes())
                show("filming", min(count / num_frames, 1.0))
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _labelled(core: LeggedVectorEnv, moments: Iterable[Scene]) -> Iterator[tuple[Scene, str]]:
    """What is asked of the first robot, and how it moves, beside the scene after each control step."""
    speed = np.zeros(3)
    for scene in moments:
        if scene.clip is None:
            measured = (*core.robot.lin_vel_b[0, :2].tolist(), core.robot.ang_vel_b[0, 2].item())
            speed += (measured - speed) * core.step_dt / SMOOTHING
        row = "{:7}  vx {:+.2f}  vy {:+.2f} m/s  wz {:+.2f} rad/s"
        asked = f"{row.format('command', *scene.command)}\n" if scene.command is not None else ""
        yield scene, scene.clip or asked + row.format("speed", *speed)


def _frame(core: LeggedVectorEnv, scene: Scene, label: str) -> np.ndarray:
    """The first robot at this moment, in a clip with its reference, and the label. Shape: (height, width, 3), uint8."""
    picture = core.sim.render(0, *_size(core), ghost=None if scene.clip is None else _ghost(core))
    ink = _ink(label, picture.shape[1])
    picture[:LABEL_HEIGHT] = picture[:LABEL_HEIGHT] * (0.35 * (1.0 - ink)) + 255.0 * ink
    return picture


def _ghost(core: LeggedVectorEnv) -> Pose:
    """The pose of the first robot's reference, drawn beside it."""
    reference = motion_of(core).player.sample()[0]
    robot_pos_w = core.sim.root_pos_w[0, :2]
    drift = (reference.root_pos_w[:2] - robot_pos_w).clamp(-LARGEST_DRIFT, LARGEST_DRIFT)
    position = torch.cat((robot_pos_w + drift, reference.root_pos_w[2:])) + drift.new_tensor(
        REFERENCE_OFFSET
    )
    return Pose(position, reference.root_quat_w, reference.joint_pos)


def _size(core: LeggedVectorEnv) -> tuple[int, int]:
    return core.sim.viewer.resolution or RENDER_SIZE


def _ink(text: str, width: int) -> np.ndarray:
    """How much ink there is at each pixel of a label, from 0 to 1. Shape: (LABEL_HEIGHT, width, 1)."""
    from matplotlib import get_data_path
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSansMono.ttf", LABEL_SIZE)
    image = Image.new("L", (width, LABEL_HEIGHT))
    centre = width / 2, LABEL_HEIGHT / 2
    ImageDraw.Draw(image).multiline_text(centre, text, 255, font, "mm", align="center")
    return np.asarray(image)[..., None] / np.float32(255.0)


def scan_of(cfg: TaskCfg) -> dict[str, Any]:
    """The parameters of the height scan that a policy of the task sees; ValueError if it sees none."""
    terms = cfg.observations["policy"].terms.values() if "policy" in cfg.observations else ()
    if not (scans := [term.params for term in terms if term.func is height_scan]):
        raise ValueError("the policy of this task sees no ground: it takes no --scan")
    return {name: value for name, value in scans[0].items() if name in ("x", "y", "lookup")}


def make_watched(
    task_id: str, cfg: TaskCfg, policy: Policy, scan: bool = False, num_envs: int = 1
) -> VectorEnv:
    """Robots of a task, neither randomised nor disturbed, on a mimic task exactly at its reference at the start."""
    placing = {name: event for name, event in cfg.events.items() if event.purpose == "place"}
    exact = {
        name: replace(event, params={})
        for name, event in placing.items()
        if event.func is reset_to_reference
    }
    cfg = replaced(evaluation_cfg(cfg), {"events": placing | exact, "viewer.env_index": 0})
    envs = gym.make_vec(
        task_id, num_envs=num_envs, cfg=cfg, render_mode="rgb_array", **EVALUATION_ENV_OPTIONS
    )
    policy.check(unwrap(envs))
    if scan:
        from legged_envs.sim.render.shapes import draw_points  # which needs MuJoCo

        where, core = scan_of(cfg), cast(Any, unwrap(envs))
        core.sim.decorations.append(
            lambda scene, env_id: draw_points(scene, scan_points(core, **where)[env_id])
        )
    return envs


def film_policy(
    task_id: str,
    cfg: TaskCfg,
    policy: Policy,
    path: Path,
    shown: Sequence[Scene] = (),
    show: Show = show_nothing,
    scan: bool = False,
) -> None:
    """Write an mp4 of a policy in the scenes ``shown``, by default those of :func:`scenes`, with the points of the
    ground that it sees if ``scan``."""
    with closing(make_watched(task_id, cfg, policy, scan)) as envs:
        film(envs, policy, tuple(policy.inputs), shown or scenes(cfg), path, show)


def play(
    task_id: str,
    cfg: TaskCfg,
    policy: Policy,
    video: Path | None,
    shown: Sequence[Scene],
    scan: bool = False,
) -> None:
    """Show a policy in the scenes ``shown``: in a window, or as the mp4 ``video``; without a display as play.mp4."""
    if video is not None or (sys.platform == "linux" and not os.environ.get("DISPLAY")):
        video = video or Path("play.mp4")
        with showing(console := Console(), LINE_INTERVAL) as show:
            film_policy(task_id, cfg, policy, video, shown, show, scan)
        console.print(f"wrote {video}", markup=False)
        return
    envs = make_watched(task_id, cfg, policy, scan)
    core, next_frame = unwrap(envs), time.perf_counter()
    keys = Keys(cfg)
    moments: Iterable[Scene] = (
        shown if shown[0].command is None else keys.scenes(shown, core.step_dt)
    )
    for _, label in _labelled(core, watch(envs, policy, tuple(policy.inputs), moments)):
        if not core.sim.view(0, label, keys.press):  # its window was closed
            break
        next_frame += core.step_dt
        time.sleep(max(0.0, next_frame - time.perf_counter()))
    envs.close()
