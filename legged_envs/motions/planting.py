"""Keeps feet where they are planted."""

import numpy as np
import torch

from legged_envs.motions.key_points import runs


def plant(foot: np.ndarray, planted: torch.Tensor, height: float) -> np.ndarray:
    """Return the path of a foot that stays where it is planted, and never is below the ground.

    During each stance the foot is held at its mean horizontal position and at ``height``. Between
    two stances the correction is interpolated linearly.

    Args:
        foot: Path of the foot, m. Shape: (T, 3).
        planted: True where it is planted. Shape: (T,), bool.
        height: Height of the foot's origin when it stands, m.
    """
    frames = np.arange(len(foot))
    correction = np.zeros_like(foot)
    for first, end in runs(planted):
        place = foot[first:end].mean(axis=0)
        place[2] = height
        correction[first:end] = place - foot[first:end]
    known = np.flatnonzero(planted.numpy())
    if len(known) > 0:
        for axis in range(3):
            values = correction[known, axis]
            correction[:, axis] = np.interp(frames, known, values)
    path = foot + correction
    path[:, 2] = path[:, 2].clip(min=height)
    return path
