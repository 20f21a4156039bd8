"""A video of a policy that imitates motions, with the reference beside the robot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch

from legged_envs.envs import LeggedVectorEnv, unwrap
from legged_envs.mdp.motion_command import motion_command
from legged_envs.rl.mimic_config import ACTOR_GROUPS
from legged_envs.rl.mimic_evaluate import MimicPolicy
from legged_envs.rl.video import RENDER_SIZE, steps_per_frame, write_video
from legged_envs.sim.simulation import Pose

REFERENCE_OFFSET = (0.0, 0.7, 0.0)
"""Where the reference is drawn, from where it is, m in the world: in the picture to the right of the robot."""
LARGEST_DRIFT = 0.2
"""Distance of robot and reference along x and y that is shown, m; the reference would leave the picture by more."""
LABEL_HEIGHT = 90
"""Pixels at the top of a frame, as rendered, that hold the name of the clip."""


def film_mimic(
    envs: gym.vector.VectorEnv,
    policy: MimicPolicy,
    path: Path,
    clips: Sequence[str] = (),
    seconds: float = 6.0,
    groups: Sequence[str] = ACTOR_GROUPS,
) -> None:
    """Write an mp4 of the first robot imitating ``clips``, each for ``seconds`` under its name.

    The transparent robot is the reference, drawn beside the robot. Clips start at their first frame, and again where
    an episode ends. Later resets of ``envs`` draw their starts.

    Args:
        envs: A mimic task made with ``array="torch"``, ``observations="dict"`` and ``autoreset_mode="Disabled"``.
        policy: (observation, reference, mask) → action.
        path: The file to write.
        clips: Names of clips, default all of the task's.
        seconds: Length of each clip's part.
        groups: The observation groups that are the policy's arguments.

    Raises:
        ValueError: If there is no clip of a name, or ``seconds`` is shorter than a control step.
        RuntimeError: If this machine cannot render.
    """
    core = unwrap(envs)
    steps = imitate(envs, policy, clips, seconds, groups)
    every = islice(steps, 0, None, steps_per_frame(core.step_dt))
    labels = {name: _label(name) for name in motion_command(core.commands).player.library.names}
    write_video(path, (_frame(core, labels[name]) for name in every), core.step_dt)


def imitate(
    envs: gym.vector.VectorEnv,
    policy: MimicPolicy,
    clips: Sequence[str] = (),
    seconds: float = 6.0,
    groups: Sequence[str] = ACTOR_GROUPS,
) -> Iterator[str]:
    """Let ``policy`` imitate one clip after the other; gives the clip's name after each control step.

    The arguments are those of :func:`film_mimic`.
    """
    core = unwrap(envs)
    motion = motion_command(core.commands)
    names = clips or motion.player.library.names
    numbers = motion.player.library.clip_ids(*names)
    num_steps = round(seconds / core.step_dt)
    if num_steps < 1:
        raise ValueError(f"seconds must be at least a control step of {core.step_dt:g} s, got {seconds!r}")
    try:
        for name, number in zip(names, numbers.tolist(), strict=True):
            motion.hold(torch.tensor([number, 0.0]))
            observation, _ = envs.reset(seed=0)
            for _ in range(num_steps):
                with torch.inference_mode():
                    action = policy(*(observation[group] for group in groups))
                observation, _, terminated, truncated, _ = envs.step(action)
                yield name
                ended = terminated | truncated
                if ended.any():
                    observation, _ = envs.reset(options={"reset_mask": ended})
    finally:
        motion.release()


def _frame(core: LeggedVectorEnv, label: np.ndarray) -> np.ndarray:
    """The first robot and its reference at this moment, under ``label``."""
    reference = motion_command(core.commands).player.sample()[0]
    robot_pos_w = core.sim.root_pos_w[0, :2]
    drift = (reference.root_pos_w[:2] - robot_pos_w).clamp(-LARGEST_DRIFT, LARGEST_DRIFT)
    position = torch.cat((robot_pos_w + drift, reference.root_pos_w[2:]))
    position += torch.tensor(REFERENCE_OFFSET, device=core.device)
    ghost = Pose(position, reference.root_quat_w, reference.joint_pos)
    picture = core.sim.render(0, *RENDER_SIZE, ghost=ghost)
    picture[:LABEL_HEIGHT] = picture[:LABEL_HEIGHT] * (1.0 - label)
    return picture


def _label(text: str) -> np.ndarray:
    """How much ink there is at each pixel of a line of text, from 0 to 1. Shape: (LABEL_HEIGHT, frame's width, 1)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    dots_per_inch = 100
    figure = Figure((RENDER_SIZE[0] / dots_per_inch, LABEL_HEIGHT / dots_per_inch), dots_per_inch)
    figure.text(0.5, 0.5, text, ha="center", va="center", fontsize=30, parse_math=False)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return 1.0 - np.asarray(canvas.buffer_rgba())[..., :1] / 255.0
