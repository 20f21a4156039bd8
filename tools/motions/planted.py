"""Motions of the body over feet that stay where they are."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from legged_envs import rotation
from tools.motions.choreography import Plan, Stance
from tools.motions.gait import smooth_step


@dataclass(frozen=True)
class Key:
    """A pose of the base at some time."""

    time: float
    """s."""
    height: float
    """m."""
    pitch: float = 0.0
    """rad, positive nose down."""
    forward: float = 0.0
    """Place of the base ahead of that of the default stance, m."""
    left: float = 0.0
    """Place of the base to the left of that of the default stance, m."""


@dataclass(frozen=True)
class Planted:
    """From key to key with minimum jerk, at rest at each; before the first and after the last key the base rests."""

    keys: tuple[Key, ...]
    stance: Stance

    def __call__(self, times: torch.Tensor) -> Plan:
        """The plan at ``times`` (T,), s."""
        forward, left, height, pitch = self._base(times).unbind(-1)
        num_feet = len(self.stance.foot_pos)
        flat = rotation.from_yaw(torch.zeros(len(times), num_feet, dtype=torch.float64))
        return Plan(
            root_pos_w=torch.stack((forward, left, height), dim=-1),
            root_quat_w=rotation.from_pitch(pitch),
            foot_pos_w=self.stance.foot_pos.repeat(len(times), 1, 1),
            foot_quat_w=flat,
            joint_pos=self.stance.joint_pos.repeat(len(times), 1),
        )

    def _base(self, times: torch.Tensor) -> torch.Tensor:
        """Forward, left, height and pitch. Shape: (T, 4)."""
        values = [
            torch.tensor((key.forward, key.left, key.height, key.pitch), dtype=torch.float64)
            for key in self.keys
        ]
        base = values[0].repeat(len(times), 1)
        for i in range(1, len(self.keys)):
            start, end = self.keys[i - 1].time, self.keys[i].time
            done = smooth_step((times - start) / (end - start))
            base += done.unsqueeze(-1) * (values[i] - values[i - 1])
        return base
