"""Watch a policy imitate motions, in a window or as a video."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs import unwrap
from legged_envs.rl.mimic_film import film_mimic, imitate
from legged_envs.rl.play import has_display, view
from legged_envs.rl.policy import Policy, load_policy, load_shipped_policy
from legged_envs.tasks import make_task_cfg
from legged_envs.tasks.mimic import imitating
from legged_envs.tasks.task import TaskCfg, override

SECONDS = 4.0
"""How long each clip is imitated."""


def film_task(cfg: TaskCfg, policy: Policy, path: Path, clips: Sequence[str] = (), seconds: float = SECONDS) -> None:
    """Write a video of ``policy`` imitating ``clips``, or all clips of the task, without randomisation."""
    envs = _make(cfg, policy)
    film_mimic(envs, policy, path, clips, seconds, tuple(policy.inputs))
    envs.close()


def play_mimic(
    task_id: str,
    policy: Path | None = None,
    video: Path | None = None,
    clips: Sequence[str] = (),
    motions: Sequence[Path] = (),
    changes: Mapping[str, Any] | None = None,
    seconds: float | None = None,
) -> None:
    """Let a policy imitate ``clips``, or all clips of the task, each for ``seconds``.

    Args:
        task_id: Registered id.
        policy: A policy.pt; by default the one that ships with the package.
        video: Write an mp4 here in place of opening a window; without a display, play.mp4 is written.
        clips: Names of clips; by default those that the policy was trained on.
        motions: Files of motions in place of the task's own.
        changes: Changes to the task.
        seconds: How long each clip is imitated.
    """
    loaded = load_policy(policy) if policy is not None else load_shipped_policy(task_id)
    cfg = imitating(override(make_task_cfg(task_id), changes or {}), motions=motions)
    clips, seconds = clips or loaded.clips, seconds or SECONDS
    if video is None and has_display():
        envs = _make(cfg, loaded)
        view(unwrap(envs) for _ in imitate(envs, loaded, clips, seconds, tuple(loaded.inputs)))
        return
    video = video or Path("play.mp4")
    film_task(cfg, loaded, video, clips, seconds)
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
