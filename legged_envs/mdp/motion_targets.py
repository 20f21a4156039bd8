"""Values of a motion command, computed for some environments."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class MotionTargets:
    """Values of the tensors of a :class:`MotionCommand` for n environments."""

    value: torch.Tensor
    moving: torch.Tensor
    available: torch.Tensor
    window_root_pos_w: torch.Tensor
    window_root_quat_w: torch.Tensor
    target_gravity: torch.Tensor
    target_lin_vel_b: torch.Tensor
    target_ang_vel_b: torch.Tensor
    target_joint_pos: torch.Tensor
    target_joint_vel: torch.Tensor
    target_key_pos_b: torch.Tensor
    target_key_height: torch.Tensor


def foot_columns(key_bodies: Sequence[str], feet: Sequence[str]) -> list[int]:
    """Return the indices of the feet in the key bodies, empty if not all feet are key bodies."""
    if not set(feet) <= set(key_bodies):
        return []
    return [key_bodies.index(foot) for foot in feet]
