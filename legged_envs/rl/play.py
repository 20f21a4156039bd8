"""Watch a policy: a video file, or MuJoCo's viewer where there is a display."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import gymnasium as gym
import torch
from rich.console import Console

from legged_envs.envs import LeggedVectorEnv, unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.rl.evaluate import evaluation_cfg
from legged_envs.rl.policy import Policy
from legged_envs.rl.video import RENDER_SIZE, steps_per_frame, write_video

TOUR = (
    (0.0, 0.0, 0.0),
    (0.5, 0.0, 0.0),
    (1.0, 0.0, 0.0),
    (0.6, 0.0, 0.9),
    (0.0, 0.4, 0.0),
    (0.0, 0.0, -0.9),
    (-0.6, 0.0, 0.0),
    (0.0, 0.0, 0.0),
)
"""Commands (vx m/s, vy m/s, ωz rad/s) of a video, each for ``TOUR_SECONDS``."""
TOUR_SECONDS = 2.5


def _rollout(
    task_id: str,
    cfg: TaskCfg,
    policy: Policy,
    commands: Sequence[tuple[float, float, float]],
    seconds: float,
) -> Iterator[LeggedVectorEnv]:
    """Run one robot through ``commands``, each held for ``seconds``; gives the environment after each control step."""
    cfg = evaluation_cfg(cfg)
    cfg.events.pop("base_mass", None)
    cfg.events.pop("base_com", None)
    env = gym.make_vec(task_id, num_envs=1, cfg=cfg, array="torch", max_episode_steps=10**9)
    core = unwrap(env)
    policy.check(core, ("policy",))
    num_steps = round(seconds / core.step_dt)
    if num_steps < 1:
        raise ValueError(f"seconds must be at least a control step of {core.step_dt:g} s, got {seconds!r}")
    observation, _ = env.reset(seed=0)
    for command in commands:
        value = torch.tensor(command)
        core.commands.hold("velocity", value)
        for _ in range(num_steps):
            observation, _, terminated, _, _ = env.step(policy(observation))
            if terminated.any():
                core.commands.hold("velocity", value)
            yield core
    env.close()


def film(
    task_id: str,
    cfg: TaskCfg,
    policy: Policy,
    path: Path,
    commands: Sequence[tuple[float, float, float]] = TOUR,
    seconds: float = TOUR_SECONDS,
) -> None:
    """Write an mp4 of one robot that follows ``commands``, each for ``seconds``."""
    steps = islice(_rollout(task_id, cfg, policy, commands, seconds), 0, None, steps_per_frame(cfg.sim.step_dt))
    write_video(path, (core.sim.render(0, *RENDER_SIZE) for core in steps), cfg.sim.step_dt)


def view(steps: Iterable[LeggedVectorEnv]) -> None:
    """Show the robot in MuJoCo's viewer in real time until the steps, or its window, come to an end."""
    next_frame = time.perf_counter()
    for core in steps:
        if not core.sim.view(0):
            return
        next_frame += core.step_dt
        time.sleep(max(0.0, next_frame - time.perf_counter()))


def has_display() -> bool:
    """Whether a window can be opened."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY"))


def play(
    task_id: str,
    cfg: TaskCfg,
    policy: Policy,
    video: Path | None = None,
    vx: float | None = None,
    vy: float | None = None,
    wz: float | None = None,
    seconds: float | None = None,
) -> None:
    """Let a policy walk.

    Args:
        task_id: Registered id.
        cfg: The task that the policy is for.
        policy: The policy.
        video: Write an mp4 here in place of opening a window; without a display, play.mp4 is written.
        vx: Forward command, m/s. Without any of vx, vy and wz the robot makes a tour of commands.
        vy: Sideways command, m/s.
        wz: Turning command, rad/s.
        seconds: How long each command holds.
    """
    console = Console()
    commands: Sequence[tuple[float, float, float]] = TOUR
    if not (vx is None and vy is None and wz is None):
        commands = ((vx or 0.0, vy or 0.0, wz or 0.0),)
    if seconds is None:
        seconds = TOUR_SECONDS if len(commands) > 1 else 10.0
    if video is None and has_display():
        view(_rollout(task_id, cfg, policy, commands, seconds))
        return
    video = video or Path("play.mp4")
    film(task_id, cfg, policy, video, commands, seconds)
    console.print(f"wrote {video}")
