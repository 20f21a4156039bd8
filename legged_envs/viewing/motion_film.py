"""Films a reference motion as it is, without physics."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import torch

from legged_envs.motions import Motion, MotionLibrary
from legged_envs.robots import RobotCfg
from legged_envs.runs.progress import Show, show_nothing
from legged_envs.sim import SimCfg, Simulation, make_simulation
from legged_envs.viewing.film import FRAMES_PER_SECOND, RENDER_SIZE, VIDEO_WIDTH, write_film

LONGEST_FILM = 60.0
"""Largest duration of a film, s. Longer motions are filmed from their beginning."""


def film_motion(motion: Motion, robot: RobotCfg, path: Path, show: Show = show_nothing) -> None:
    """Write an mp4 film of a motion.

    Args:
        motion: The motion.
        robot: Its robot.
        path: Path of the mp4 file. If filming fails, the file is removed.
        show: Function that reports the progress.

    Raises:
        RuntimeError: If this machine cannot render. No file is written.
    """
    duration = min(motion.duration, LONGEST_FILM)
    num_frames = max(2, round(duration * FRAMES_PER_SECOND))
    with closing(make_simulation("mujoco", robot, SimCfg(), 1, "cpu")) as sim:
        frames = _pictures(motion, robot, sim, num_frames)
        write_film(path, frames, RENDER_SIZE, VIDEO_WIDTH, FRAMES_PER_SECOND, num_frames, show)


def _pictures(
    motion: Motion, robot: RobotCfg, sim: Simulation, num_frames: int
) -> Iterator[np.ndarray]:
    """Yield a picture of the robot at each of ``num_frames`` moments."""
    library = MotionLibrary([motion], robot, end="hold")
    first = torch.tensor([0])
    for frame in range(num_frames):
        time = torch.tensor([frame / FRAMES_PER_SECOND], dtype=torch.float64)
        pose = library.sample(first, time)
        sim.write_root_state(
            first,
            pose.root_pos_w,
            pose.root_quat_w,
            torch.zeros(1, 3),
            torch.zeros(1, 3),
        )
        sim.write_joint_state(first, pose.joint_pos, torch.zeros_like(pose.joint_pos))
        sim.forward(first)
        yield sim.render(0, *RENDER_SIZE)
