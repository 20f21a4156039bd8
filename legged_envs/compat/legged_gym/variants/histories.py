"""Common parts of the variants: stacked past observations, and labels of an estimator."""

from collections import deque
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from legged_envs.compat.legged_gym.legged_robot import BASE_ABOVE_GROUND, HEIGHT_CLIP, LeggedRobot

Frames = deque[Tensor]
"""Observations of the last steps, the oldest first. Each (num_envs, size)."""


class HistoryRobot(LeggedRobot):
    """A ``LeggedRobot`` that keeps what actor and critic observed in the last steps.

    Steps before an episode are 0.
    """

    NOISY: Mapping[str, int] = {"gravity": 3, "ang_vel": 3, "commands": 3}
    """Sizes of the parts of an observation before the joints, in their order."""

    def _init_buffers(self) -> None:
        super()._init_buffers()
        env = self.cfg.env

        # An estimator's task names the size of one step apart.
        size = getattr(env, "num_single_obs", env.num_observations)

        self.obs_history_deque = self._empty(env.frame_stack, size)
        """Noisy observations of the last steps. ``frame_stack`` tensors."""
        self.critic_obs_deque = self._empty(env.c_frame_stack, env.single_critic_obs_len)
        """Observations of the critic in the last steps. ``c_frame_stack`` tensors."""

    def _empty(self, frames: int, size: int) -> Frames:
        shape = (self.core.num_envs, size)
        zeros = [torch.zeros(shape, device=self.core.device) for _ in range(frames)]
        return deque(zeros, maxlen=frames)

    def reset_idx(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids`` (n,), with empty histories."""
        super().reset_idx(env_ids)
        for frame in (*self.obs_history_deque, *self.critic_obs_deque):
            frame[env_ids] = 0.0

    def _stacked(self, frames: Frames) -> Tensor:
        """Return observations of the last steps side by side, the oldest first."""
        return torch.cat([*frames], dim=1)

    def _joint_parts(self) -> list[Tensor]:
        """Return scaled positions and velocities of the joints, and the actions."""
        sim = self.simulator
        scales = self.obs_scales
        return [
            (sim.dof_pos - sim.default_dof_pos) * scales.dof_pos,
            sim.dof_vel * scales.dof_vel,
            self.actions,
        ]

    def _labels(self) -> Tensor:
        """Return what an estimator learns: velocity, contacts, and heights of the feet.

        The contacts belong to ``cfg.asset.contact_state_link_names``. Without such names there
        are none. Shape: (num_envs, 3 + contacts + feet).
        """
        sim = self.simulator
        labels = [sim.base_lin_vel * self.obs_scales.lin_vel]
        if self.cfg.asset.contact_state_link_names:
            labels.append(sim.link_contact_states)
        offset = getattr(self.cfg.rewards, "foot_height_offset", 0.0)
        clearance = sim.feet_pos[:, :, 2] - sim.height_around_feet.mean(dim=-1) - offset
        labels.append(clearance.clamp(-1.0, 1.0))
        return torch.cat(labels, dim=1)

    def _with_heights(self, parts: list[Tensor]) -> Tensor:
        """Return parts side by side, and the heights around the robot if they are measured."""
        if self.cfg.terrain.measure_heights:
            sim = self.simulator
            heights = sim.base_pos[:, 2:] - BASE_ABOVE_GROUND - sim.measured_heights
            heights = heights.clamp(-HEIGHT_CLIP, HEIGHT_CLIP)
            parts = [*parts, heights * self.obs_scales.height_measurements]
        return torch.cat(parts, dim=1)

    def _with_noise(self, observation: Tensor) -> Tensor:
        """Return an observation with noise, if ``add_noise``. Shape: (num_envs, size)."""
        if not self.add_noise:
            return observation
        return observation + self._noise(observation.shape[1]) * self.noise_scale_vec

    def _get_noise_scale_vec(self) -> Tensor:
        """Return half-widths of the noise of an observation of one step, in its scale."""
        joints = dict.fromkeys(("dof_pos", "dof_vel", "actions"), self.num_actions)
        return self._noise_widths({**self.NOISY, **joints})

    def _parse_cfg(self, cfg: Any) -> None:
        super()._parse_cfg(cfg)
        # LeggedGym-Ex's runners read the sizes of the task.
        for name, value in vars(cfg.env).items():
            if name.startswith("num_") and not hasattr(self, name):
                setattr(self, name, value)
