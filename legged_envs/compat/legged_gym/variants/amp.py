"""LeggedGym-Ex's tasks with an adversarial motion prior: states that a discriminator compares."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.compat.legged_gym.buffers import BUFFERS, Buffer, Buffers
from legged_envs.compat.legged_gym.legged_robot import LeggedRobot


class LeggedRobotAMP(LeggedRobot):
    """Adversarial motion prior: each step also has the states before a reset.

    ``step`` returns ``obs_buf``, ``privileged_obs_buf``, rewards, dones, ``extras``, the indices of
    the environments with an ended episode, and their last states for the discriminator, before the
    reset. ``reset`` and ``get_observations`` return the first two.
    """

    BUFFERS: ClassVar[Buffers] = {
        **BUFFERS,
        "amp": Buffer(name="amp_obs_buf", size_field="num_amp_obs"),
    }

    def _init_buffers(self) -> None:
        super()._init_buffers()

        self.amp_obs_buf = torch.zeros(
            self.core.num_envs, self.cfg.env.num_amp_obs, device=self.core.device
        )
        """States for the discriminator. Shape: (num_envs, num_amp_obs)."""

    def compute_observations(self) -> None:
        """Set ``obs_buf``, ``privileged_obs_buf`` and ``amp_obs_buf``."""
        super().compute_observations()
        self.amp_obs_buf = self.compute_amp_observations()

    def compute_amp_observations(self) -> Tensor:
        """Return the states that the discriminator compares with the clips.

        In order: linear and angular velocity of the base in its frame, joint positions and
        velocities, and positions of the feet in the base frame. Shape: (num_envs, num_amp_obs).
        """
        sim = self.simulator
        offset = sim.feet_pos - sim.base_pos.unsqueeze(1)
        feet = rotation.rotate_inverse(self.core.robot.root_quat_w, offset)
        parts = (sim.base_lin_vel, sim.base_ang_vel, sim.dof_pos, sim.dof_vel, feet.flatten(1))
        return torch.cat(parts, dim=1)

    def get_amp_observations(self) -> Tensor:
        """Return the present states for the discriminator. Shape: (num_envs, num_amp_obs)."""
        return self.amp_obs_buf

    def get_observations(self) -> tuple[Any, ...]:
        """Return the present observations, (num_envs, num_obs), and the critic's observations or
        None."""
        return self.obs_buf, self.privileged_obs_buf

    def step(self, actions: Tensor) -> tuple[Any, ...]:
        """Advance by one control step; see the class for what is returned."""
        obs, privileged, _, rewards, dones, extras = super().step(actions)
        reset_env_ids = dones.nonzero().squeeze(1)
        terminal_amp_states = self.amp_obs_buf[reset_env_ids]
        if "final_obs" in extras:
            terminal_amp_states = extras["final_obs"]["amp"][reset_env_ids]
        return obs, privileged, rewards, dones, extras, reset_env_ids, terminal_amp_states
