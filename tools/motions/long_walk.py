"""Make a walk of 20 s that does not come with the package, to test how well a new clip is learnt.

Run ``python -m tools.motions.long_walk walk.csv`` from the root of the repository. The table has
the format of LAFAN1 retargeted to the G1: 30 lines per second with base position, base orientation
(x, y, z, w) and the positions of 29 joints.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from legged_envs.motions.motion import Motion
from legged_envs.robots import G1_29
from tools.motions.choreography import Clip, default_stance, make_motion
from tools.motions.g1_clips import MARCH, with_swinging_arms
from tools.motions.gait import Walk, smooth_step

WALK = replace(MARCH, period=0.6, swing_height=0.08)
"""Shorter steps than those of the march: the ankles of flat feet do not reach further."""

FRAME_RATE = 30.0
"""Frames per second of LAFAN1."""

DURATION = 20.0
"""Duration of the walk, s."""

CHANGE = 1.0
"""Time in which speed and turning rate change from one section to the next, s."""

GRID = 1e-3
"""Time step of the integration of the way, s."""


@dataclass(frozen=True)
class Section:
    """A part of the way."""

    start: float
    """When it begins, s."""

    speed: float
    """Speed ahead, m/s."""

    turning_rate: float = 0.0
    """Turning rate, rad/s, positive to the left."""


SECTIONS = (
    Section(0.0, speed=0.6),
    Section(4.0, speed=0.55, turning_rate=0.4),
    Section(8.0, speed=0.65),
    Section(12.0, speed=0.55, turning_rate=-0.4),
    Section(16.0, speed=0.7),
)
"""Straight on, a quarter turn to the left, straight on, a quarter turn to the right, straight."""


@dataclass(frozen=True)
class Tour(Walk):
    """A walk whose speed and turning rate change."""

    sections: tuple[Section, ...] = SECTIONS
    """The parts of the way."""

    @cached_property
    def _way(self) -> tuple[np.ndarray, np.ndarray]:
        """Times (T,), s, and place and yaw of the base at them (T, 3), m and rad."""
        # Feet are placed up to a stride before and after the clip.
        margin = 2.0 * self.gait.period
        times = np.arange(-margin, DURATION + margin, GRID)
        speed = np.full_like(times, self.sections[0].speed)
        turning_rate = np.full_like(times, self.sections[0].turning_rate)
        for before, after in zip(self.sections, self.sections[1:], strict=False):
            done = smooth_step(torch.from_numpy((times - after.start) / CHANGE)).numpy()
            speed += (after.speed - before.speed) * done
            turning_rate += (after.turning_rate - before.turning_rate) * done
        yaw = np.cumsum(turning_rate) * GRID
        x = np.cumsum(speed * np.cos(yaw)) * GRID
        y = np.cumsum(speed * np.sin(yaw)) * GRID
        way = np.stack((x, y, yaw), axis=1)
        return times, way - way[np.searchsorted(times, 0.0)]

    def _course(self, times: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return where the base is without swaying: place on the ground (..., 2) and yaw (...,)."""
        known, way = self._way
        columns = [np.interp(times.numpy(), known, column) for column in way.T]
        x, y, yaw = (torch.from_numpy(column) for column in columns)
        return torch.stack((x, y), dim=-1), yaw


def long_walk(duration: float = DURATION) -> Motion:
    """Return the walk of a G1 with 29 joints, or its first ``duration`` seconds."""
    walk = with_swinging_arms(Tour(WALK, default_stance(G1_29)))
    clip = Clip("long_walk", G1_29, duration, walk, massive_axes=3)
    return make_motion(clip, FRAME_RATE)


def write_table(path: Path, motion: Motion) -> None:
    """Write a motion as a table in the format of LAFAN1.

    Args:
        path: Path of the .csv file.
        motion: The motion.
    """
    quat = motion.root_quat_w[:, [1, 2, 3, 0]]
    table = torch.cat((motion.root_pos_w, quat, motion.joint_pos), dim=1)
    np.savetxt(path, table.numpy(), delimiter=",", fmt="%.6f")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.motions.long_walk FILE.csv")
    write_table(Path(sys.argv[1]), long_walk())
