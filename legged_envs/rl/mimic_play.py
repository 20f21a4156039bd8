"""Watch a policy imitate motions, in a window or as a video."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gymnasium as gym
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs import unwrap
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.rl.mimic_film import film_mimic, imitate
from legged_envs.rl.play import has_display, view
from legged_envs.rl.policy import Policy

SECONDS = 4.0
"""How long each clip is imitated."""


def film_task(cfg: TaskCfg, policy: Policy, path: Path, clips: Sequence[str] = (), seconds: float = SECONDS) -> None:
    """Write a video of ``policy`` imitating ``clips``, or all clips of the task, without randomisation."""
    envs = _make(cfg, policy)
    film_mimic(envs, policy, path, clips, seconds, tuple(policy.inputs))
    envs.close()


def play_mimic(
    cfg: TaskCfg,
    policy: Policy,
    video: Path | None = None,
    clips: Sequence[str] = (),
    seconds: float | None = None,
) -> None:
    """Let a policy imitate ``clips``, or all clips of the task, each for ``seconds``.

    Args:
        cfg: The task that the policy is for.
        policy: The policy.
        video: Write an mp4 here in place of opening a window; without a display, play.mp4 is written.
        clips: Names of clips; by default all of the task.
        seconds: How long each clip is imitated; 4 s unless given.
    """
    seconds = SECONDS if seconds is None else seconds
    if video is None and has_display():
        envs = _make(cfg, policy)
        view(unwrap(envs) for _ in imitate(envs, policy, clips, seconds, tuple(policy.inputs)))
        return
    video = video or Path("play.mp4")
    film_task(cfg, policy, video, clips, seconds)
    Console().print(f"wrote {video}")


def _make(cfg: TaskCfg, policy: Policy) -> VectorEnv:
    """One robot that starts exactly at its reference, without randomisation."""
    cfg = override(cfg, {"events": {name: cfg.events[name] for name in ("root", "joints", "reference")}})
    cfg.events["reference"].params = {}
    envs = gym.make_vec(
        policy.contract["task_id"],
        num_envs=1,
        cfg=cfg,
        array="torch",
        observations="dict",
        autoreset_mode="Disabled",
        render_mode="rgb_array",
    )
    policy.check(unwrap(envs))
    return envs
