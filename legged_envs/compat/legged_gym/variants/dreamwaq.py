"""LeggedGym-Ex's tasks for DreamWaQ: a history, labels of an estimate, and the next state."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from legged_envs.compat.legged_gym.buffers import Buffer, Buffers
from legged_envs.compat.legged_gym.variants.histories import HistoryRobot


class LeggedRobotDreamwaq(HistoryRobot):
    """DreamWaQ: what its autoencoder reads and learns.

    ``step`` returns ``obs_buf``, ``privileged_obs_buf`` of the critic, ``obs_history``,
    ``explicit_labels_buf``, ``next_state_buf``, rewards, dones and ``extras``; ``reset`` and
    ``get_observations`` return the first five. The next state of a step that ended an episode is
    the last state of that episode.
    """

    BUFFERS: ClassVar[Buffers] = {
        "policy": Buffer(name="obs_buf", size_field="num_observations"),
        "critic": Buffer(name="privileged_obs_buf", size_field="num_privileged_obs"),
        "history": Buffer(name="obs_history", size_field="num_history_obs"),
        "labels": Buffer(name="explicit_labels_buf", size_field="num_explicit_dims"),
        "next_state": Buffer(name="next_state_buf", size_field="num_decoder_output"),
    }
    NOISY: Mapping[str, int] = {"commands": 3, "gravity": 3, "ang_vel": 3}

    def _init_buffers(self) -> None:
        super()._init_buffers()
        num_envs = self.core.num_envs
        device = self.core.device
        env = self.cfg.env

        self.obs_history = self._stacked(self.obs_history_deque)
        """Noisy observations of the last steps. Shape: (num_envs, num_history_obs)."""
        self.explicit_labels_buf = torch.zeros(num_envs, env.num_explicit_dims, device=device)
        """Labels of the estimate. Shape: (num_envs, num_explicit_dims)."""
        self.next_state_buf = torch.zeros(num_envs, env.num_decoder_output, device=device)
        """State after the step, without noise. Shape: (num_envs, num_decoder_output)."""

    def compute_observations(self) -> None:
        """Set observation, history, labels, next state and the critic's observation."""
        sim = self.simulator
        joint_pos, joint_vel, actions = self._joint_parts()
        base = [
            self.commands[:, :3] * self.commands_scale,
            sim.projected_gravity,
            sim.base_ang_vel * self.obs_scales.ang_vel,
            joint_pos,
            joint_vel,
        ]
        observation = torch.cat((*base, actions), dim=1)
        self.explicit_labels_buf = self._labels()
        # The decoder's actions are angles.
        scale = self.cfg.control.action_scale
        self.next_state_buf = torch.cat((*base, actions * scale), dim=1)
        velocity = sim.base_lin_vel * self.obs_scales.lin_vel
        self.critic_obs_deque.append(self._with_heights([velocity, observation]))
        self.privileged_obs_buf = self._stacked(self.critic_obs_deque)
        self.obs_buf = self._with_noise(observation)
        self.obs_history_deque.append(self.obs_buf)
        self.obs_history = self._stacked(self.obs_history_deque)

    def step(self, actions: Tensor) -> tuple[Any, ...]:
        """Advance by one control step; see the class for what is returned."""
        *shown, rewards, dones, extras = super().step(actions)
        if "final_obs" in extras:
            place = [*self.BUFFERS].index("next_state")
            final = extras["final_obs"]["next_state"]
            shown[place] = torch.where(dones.unsqueeze(1), final, shown[place])
        return *shown, rewards, dones, extras


class LeggedRobotDreamWaQ(LeggedRobotDreamwaq):
    """:class:`LeggedRobotDreamwaq`, spelt as its paper does."""
