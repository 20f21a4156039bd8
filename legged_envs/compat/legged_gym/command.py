"""The velocity command of a :class:`~legged_envs.compat.legged_gym.legged_robot.LeggedRobot`."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from legged_envs.mdp import commands
from legged_envs.mdp.context import Env


@dataclass
class CommandCfg(commands.VelocityCommandCfg):
    """The velocity command that ``_resample_commands`` draws."""

    def build(self, env: Env) -> "Command":
        return Command(self, env)


class Command(commands.VelocityCommand):
    """A velocity command that ``_resample_commands`` draws and that may be written to."""

    def reset(self, env_ids: Tensor) -> None:
        # A method that draws in its own way does not set this; draw() does.
        self._steering[env_ids] = True
        interval_s = self.cfg.resampling_time_s[1]
        self._resampling.start(
            env_ids, torch.full(env_ids.shape, interval_s, device=env_ids.device)
        )
        env: Any = self._env
        env.task.user._resample_commands(env_ids)

    def draw(self, env_ids: Tensor, ranges: dict[str, Any]) -> None:
        """Draw commands.

        Args:
            env_ids: Environments that get new commands, shape (n,).
            ranges: (low, high) of ``lin_vel_x``, ``lin_vel_y``, ``ang_vel_yaw`` and ``heading``.
        """
        names = ("lin_vel_x", "lin_vel_y", "ang_vel_yaw", "heading")
        bounds = torch.tensor([ranges[name] for name in names]).to(self._low)
        self._low[:4] = bounds[:, 0]
        self._high[:4] = bounds[:, 1]
        super().reset(env_ids)

    def apply_written_value(self) -> None:
        """Let numbers that were written into ``value`` act."""
        # PyTorch counts the writes into a tensor, but not of inference tensors.
        if self.value.is_inference() or self.value._version:
            if self.cfg.heading_column:
                self.heading = self.value[:, 3].clone()
            self._set(self.value[:, :3].clone())

    def _steer(self) -> None:
        self.apply_written_value()
        super()._steer()
