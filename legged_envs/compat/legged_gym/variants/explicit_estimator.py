"""LeggedGym-Ex's tasks with an estimator of velocity, contacts and heights of the feet."""

from collections.abc import Mapping
from typing import ClassVar

import torch

from legged_envs.compat.legged_gym.buffers import Buffer, Buffers
from legged_envs.compat.legged_gym.variants.histories import HistoryRobot


class LeggedRobotEE(HistoryRobot):
    """Explicit estimator: features and labels instead of an observation.

    ``step`` returns ``estimator_features_buf``, ``estimator_labels_buf``, ``privileged_obs_buf`` of
    the critic, rewards, dones and ``extras``; ``reset`` and ``get_observations`` return the first
    three.
    """

    BUFFERS: ClassVar[Buffers] = {
        "policy": Buffer(name="estimator_features_buf", size_field="num_estimator_features"),
        "labels": Buffer(name="estimator_labels_buf", size_field="num_estimator_labels"),
        "critic": Buffer(name="privileged_obs_buf", size_field="num_privileged_obs"),
    }
    NOISY: Mapping[str, int] = {"commands": 3, "gravity": 3, "ang_vel": 3}

    def _init_buffers(self) -> None:
        super()._init_buffers()

        self.estimator_features_buf = self._stacked(self.obs_history_deque)
        """Noisy observations of the last steps. Shape: (num_envs, num_estimator_features)."""
        self.estimator_labels_buf = torch.zeros(
            self.core.num_envs, self.cfg.env.num_estimator_labels, device=self.core.device
        )
        """Labels of the estimator. Shape: (num_envs, num_estimator_labels)."""

    def compute_observations(self) -> None:
        """Set features, labels and the critic's observation."""
        sim = self.simulator
        parts = [
            self.commands[:, :3] * self.commands_scale,
            sim.projected_gravity,
            sim.base_ang_vel * self.obs_scales.ang_vel,
            *self._joint_parts(),
        ]
        observation = torch.cat(parts, dim=1)
        self.estimator_labels_buf = self._labels()
        self.critic_obs_deque.append(self._with_heights([observation, self.estimator_labels_buf]))
        self.privileged_obs_buf = self._stacked(self.critic_obs_deque)
        self.obs_history_deque.append(self._with_noise(observation))
        self.estimator_features_buf = self._stacked(self.obs_history_deque)
