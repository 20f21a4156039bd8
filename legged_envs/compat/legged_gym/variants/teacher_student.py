"""LeggedGym-Ex's tasks with a teacher, who sees privileged observations, and a student."""

from typing import ClassVar

import torch

from legged_envs.compat.legged_gym.buffers import Buffer, Buffers
from legged_envs.compat.legged_gym.variants.histories import HistoryRobot


class LeggedRobotTS(HistoryRobot):
    """Teacher and student: four observations.

    ``step`` returns ``obs_buf``, ``privileged_obs_buf`` of the teacher's encoder, ``obs_history``
    of the student's encoder, ``critic_obs_buf``, rewards, dones and ``extras``; ``reset`` and
    ``get_observations`` return the first four.
    """

    BUFFERS: ClassVar[Buffers] = {
        "policy": Buffer(name="obs_buf", size_field="num_observations"),
        "privileged": Buffer(name="privileged_obs_buf", size_field="num_privileged_obs"),
        "history": Buffer(name="obs_history", size_field="num_history_obs"),
        "critic": Buffer(name="critic_obs_buf", size_field="num_critic_obs"),
    }

    def _init_buffers(self) -> None:
        super()._init_buffers()

        self.obs_history = self._stacked(self.obs_history_deque)
        """Noisy observations of the last steps. Shape: (num_envs, num_history_obs)."""
        self.critic_obs_buf = self._stacked(self.critic_obs_deque)
        """Observations of the critic in the last steps. Shape: (num_envs, num_critic_obs)."""

    def compute_observations(self) -> None:
        """Set ``obs_buf``, ``privileged_obs_buf``, ``obs_history`` and ``critic_obs_buf``."""
        sim = self.simulator
        velocity = sim.base_lin_vel * self.obs_scales.lin_vel
        parts = [
            sim.projected_gravity,
            sim.base_ang_vel * self.obs_scales.ang_vel,
            self.commands[:, :3] * self.commands_scale,
            *self._joint_parts(),
        ]
        observation = torch.cat(parts, dim=1)
        self.critic_obs_deque.append(self._with_heights([observation, velocity]))
        self.critic_obs_buf = self._stacked(self.critic_obs_deque)
        self.obs_buf = self._with_noise(observation)
        self.obs_history_deque.append(self.obs_buf)
        self.obs_history = self._stacked(self.obs_history_deque)
        if self.num_privileged_obs is not None:
            self.privileged_obs_buf = velocity.clone()


class LeggedRobotCTS(LeggedRobotTS):
    """Teacher and student at once: the first ``num_teacher`` environments are the teacher's."""
