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
    """When the base rests in this pose, s."""

    height: float
    """Height of the base, m."""

    pitch: float = 0.0
    """Pitch of the base, rad, positive nose down."""

    forward: float = 0.0
    """Distance of the base in front of its place in the default stance, m."""

    left: float = 0.0
    """Distance of the base to the left of its place in the default stance, m."""


@dataclass(frozen=True)
class Planted:
    """Ways from key to key with minimum jerk, at rest at each key.

    Before the first key and after the last one the base rests.
    """

    keys: tuple[Key, ...]
    """Poses of the base, in the order of their times."""

    stance: Stance
    """The stance with the places of the feet."""

    def __call__(self, times: torch.Tensor) -> Plan:
        """Return the plan at ``times`` (T,), s."""
        forward, left, height, pitch = self._base(times).unbind(-1)
        num_times = len(times)
        num_feet = len(self.stance.foot_pos)
        flat = rotation.from_yaw(torch.zeros(num_times, num_feet, dtype=torch.float64))
        return Plan(
            root_pos_w=torch.stack((forward, left, height), dim=-1),
            root_quat_w=rotation.from_pitch(pitch),
            foot_pos_w=self.stance.foot_pos.repeat(num_times, 1, 1),
            foot_quat_w=flat,
            joint_pos=self.stance.joint_pos.repeat(num_times, 1),
        )

    def _base(self, times: torch.Tensor) -> torch.Tensor:
        """Return forward, left, height and pitch. Shape: (T, 4)."""
        poses = []
        for key in self.keys:
            pose = (key.forward, key.left, key.height, key.pitch)
            poses.append(torch.tensor(pose, dtype=torch.float64))
        base = poses[0].repeat(len(times), 1)
        for i in range(1, len(self.keys)):
            start = self.keys[i - 1].time
            end = self.keys[i].time
            done = smooth_step((times - start) / (end - start))
            # A way that is over adds its whole change from then on.
            base += done.unsqueeze(-1) * (poses[i] - poses[i - 1])
        return base
