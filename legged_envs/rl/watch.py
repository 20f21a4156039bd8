"""Watch a policy follow commands or imitate motions: a video file, or MuJoCo's viewer where there is a display."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs import LeggedVectorEnv, unwrap
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.mdp.events import reset_to_reference
from legged_envs.rl.metrics import EVALUATED, PolicyFunction, evaluation_cfg
from legged_envs.rl.mimic_metrics import motion_of
from legged_envs.rl.policy import Policy
from legged_envs.rl.velocity_metrics import hold_velocity
from legged_envs.sim.simulation import Pose
from legged_envs.tasks import is_mimic
from legged_envs.tasks.mimic import clip_names

RENDER_SIZE = (1280, 720)
VIDEO_WIDTH = 720
"""Frames are rendered larger than the video and scaled down: the cheapest antialiasing without a GPU."""
FRAMES_PER_SECOND = 25
REFERENCE_OFFSET = (0.0, 0.7, 0.0)
"""Where the reference is drawn, from where it is, m in the world: to the right of the robot."""
LARGEST_DRIFT = 0.2
"""Distance of robot and reference along x and y that is shown, m; with more it would leave the picture."""
LABEL_HEIGHT = 90
"""Pixels at the top of a frame, as rendered, that hold the name of the clip."""
Command = tuple[float, float, float]
"""vx [m/s], vy [m/s] and ωz [rad/s]."""


@dataclass(frozen=True)
class Scene:
    """What a robot is asked to do for a while: to follow a velocity command, or to imitate a clip from its start."""

    seconds: float
    command: Command = (0.0, 0.0, 0.0)
    clip: str | None = None


_FORWARD = ((0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (1.0, 0.0, 0.0))
_TURNING_AND_BACK = ((0.6, 0.0, 0.9), (0.0, 0.4, 0.0), (0.0, 0.0, -0.9), (-0.6, 0.0, 0.0), (0.0, 0.0, 0.0))
TOUR = (*_FORWARD, *_TURNING_AND_BACK)
TOUR_SECONDS, COMMAND_SECONDS, CLIP_SECONDS = 2.5, 10.0, 4.0
"""How long each command of :data:`TOUR`, a command that was given, and a clip last, s."""


def scenes(
    cfg: TaskCfg, command: Command | None = None, clips: Sequence[str] = (), seconds: float | None = None
) -> list[Scene]:
    """What to show of a policy: on a mimic task ``clips``, by default all, else ``command``, by default a tour."""
    if seconds is not None and not cfg.sim.step_dt <= seconds < float("inf"):
        raise ValueError(f"--seconds must be at least a control step of {cfg.sim.step_dt:g} s, got {seconds}")
    if is_mimic(cfg):
        return [Scene(seconds or CLIP_SECONDS, clip=name) for name in clip_names(cfg, clips)]
    if command is not None:
        return [Scene(seconds or COMMAND_SECONDS, command)]
    return [Scene(seconds or TOUR_SECONDS, each) for each in TOUR]


def watch(envs: VectorEnv, policy: PolicyFunction, groups: Sequence[str], scenes: Iterable[Scene]) -> Iterator[Scene]:
    """Let the robots act one scene after the other; gives the scene after each control step. ``envs`` have the options
    ``EVALUATED``. A robot whose episode ends begins the scene again."""
    core = unwrap(envs)
    observation: dict[str, torch.Tensor] = {}
    for scene in scenes:
        if scene.clip is not None or not observation:
            observation = _begin(envs, scene, seed=0)
        else:
            hold_velocity(core, scene.command, observation)
        for _ in range(round(scene.seconds / core.step_dt)):
            with torch.inference_mode():
                action = policy(*(observation[group] for group in groups))
            observation, _, terminated, truncated, _ = envs.step(action)
            yield scene
            if (ended := terminated | truncated).any():
                observation = _begin(envs, scene, options={"reset_mask": ended})


def _begin(envs: VectorEnv, scene: Scene, **how: Any) -> dict[str, torch.Tensor]:
    core = unwrap(envs)
    if scene.clip is None:
        observation, _ = envs.reset(**how)
        hold_velocity(core, scene.command, observation)
    else:
        motion = motion_of(core)
        motion.pin(motion.player.library.clip_ids(scene.clip).squeeze(), torch.tensor(0.0))
        observation, _ = envs.reset(**how)
        motion.release()
    return observation


def film(envs: VectorEnv, policy: PolicyFunction, groups: Sequence[str], scenes: Sequence[Scene], path: Path) -> None:
    """Film the first robot and a clip's reference as mp4. RuntimeError, and no file, if this machine cannot render."""
    import imageio_ffmpeg

    core = unwrap(envs)
    steps_per_frame = max(1, round(1.0 / (core.step_dt * FRAMES_PER_SECOND)))
    shown = islice(watch(envs, policy, groups, scenes), 0, None, steps_per_frame)
    frames = (_frame(core, scene.clip) for scene in shown)
    first = next(frames)
    path.parent.mkdir(parents=True, exist_ok=True)
    fps, scaled = 1.0 / (core.step_dt * steps_per_frame), ["-vf", f"scale={VIDEO_WIDTH}:-2:flags=area"]
    options = {"fps": fps, "quality": 6, "output_params": scaled}
    with closing(imageio_ffmpeg.write_frames(str(path), RENDER_SIZE, **options)) as writer:
        writer.send(None)
        for frame in chain((first,), frames):
            writer.send(frame.tobytes())


def _frame(core: LeggedVectorEnv, clip: str | None) -> np.ndarray:
    """The first robot at this moment, in a ``clip`` with its reference and the name. Shape: (720, 1280, 3), uint8."""
    if clip is None:
        return core.sim.render(0, *RENDER_SIZE)
    reference = motion_of(core).player.sample()[0]
    robot_pos_w = core.sim.root_pos_w[0, :2]
    drift = (reference.root_pos_w[:2] - robot_pos_w).clamp(-LARGEST_DRIFT, LARGEST_DRIFT)
    position = torch.cat((robot_pos_w + drift, reference.root_pos_w[2:])) + drift.new_tensor(REFERENCE_OFFSET)
    ghost = Pose(position, reference.root_quat_w, reference.joint_pos)
    picture = core.sim.render(0, *RENDER_SIZE, ghost=ghost)
    picture[:LABEL_HEIGHT] = picture[:LABEL_HEIGHT] * (1.0 - _label(clip))
    return picture


@cache
def _label(text: str) -> np.ndarray:
    """How much ink there is at each pixel of a line of text, from 0 to 1. Shape: (LABEL_HEIGHT, frame's width, 1)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((RENDER_SIZE[0] / 100, LABEL_HEIGHT / 100), dpi=100)
    figure.text(0.5, 0.5, text, ha="center", va="center", fontsize=30, parse_math=False)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return 1.0 - np.asarray(canvas.buffer_rgba())[..., :1] / 255.0


def make_watched(task_id: str, cfg: TaskCfg, policy: Policy) -> VectorEnv:
    """One robot of a task, neither randomised nor disturbed, on a mimic task exactly at its reference at the start."""
    placing = {name: event for name, event in cfg.events.items() if event.purpose == "place"}
    exact = {name: replace(event, params={}) for name, event in placing.items() if event.func is reset_to_reference}
    cfg = override(evaluation_cfg(cfg), {"events": placing | exact})
    envs = gym.make_vec(task_id, num_envs=1, cfg=cfg, render_mode="rgb_array", **EVALUATED)
    policy.check(unwrap(envs))
    return envs


def film_policy(task_id: str, cfg: TaskCfg, policy: Policy, path: Path, shown: Sequence[Scene] = ()) -> None:
    """Write an mp4 of a policy in the scenes ``shown``, by default those of :func:`scenes`."""
    envs = make_watched(task_id, cfg, policy)
    film(envs, policy, tuple(policy.inputs), shown or scenes(cfg), path)
    envs.close()


def play(task_id: str, cfg: TaskCfg, policy: Policy, video: Path | None, shown: Sequence[Scene]) -> None:
    """Show a policy in the scenes ``shown``: in a window, or as the mp4 ``video``; without a display as play.mp4."""
    if video is not None or (sys.platform == "linux" and not os.environ.get("DISPLAY")):
        video = video or Path("play.mp4")
        film_policy(task_id, cfg, policy, video, shown)
        Console().print(f"wrote {video}")
        return
    envs = make_watched(task_id, cfg, policy)
    core, next_frame = unwrap(envs), time.perf_counter()
    for _ in watch(envs, policy, tuple(policy.inputs), shown):
        if not core.sim.view(0):  # its window was closed
            break
        next_frame += core.step_dt
        time.sleep(max(0.0, next_frame - time.perf_counter()))
    envs.close()
