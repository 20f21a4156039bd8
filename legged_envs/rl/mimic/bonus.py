"""Rewards that an algorithm itself gives for the states that the robots get to."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from tensordict import TensorDict
from torch import nn

Rewarded = tuple[torch.Tensor, dict[str, torch.Tensor]]
"""Rewards (num_envs,), and means by name."""


class RewardBonus(ABC):
    """A reward made by a network that learns from the states of each rollout.

    An algorithm calls :meth:`observe` before and :meth:`add` after every step of the environment; then :meth:`learn`
    for each mini-batch, and :meth:`update_normalizer` once.

    Args:
        option: What the bonus is called among the options, in checkpoints and losses.
        group: Observation group with the states.
        env_obs: An observation of the environment.
        num_steps: Steps of a rollout.

    Raises:
        ValueError: If the environment has no such group.
    """

    network: nn.Module
    optimizer: torch.optim.Optimizer

    def __init__(self, option: str, group: str, env_obs: TensorDict, num_steps: int):
        if group not in env_obs:
            raise ValueError(f"{option}.group must be one of {sorted(env_obs.keys())}, got {group!r}")
        self.option, self.group = option, group
        self.before, self.after = torch.zeros_like(env_obs[group]).repeat(2, num_steps, 1, 1)
        """States before and after each step, those after of the same episode. Shapes: (num_steps, num_envs, S)."""

    def observe(self, step: int, obs: TensorDict) -> None:
        """Keep the states of ``obs``, with which ``step`` begins."""
        self.before[step] = obs[self.group]

    def add(self, step: int, rewards: torch.Tensor, following: TensorDict) -> Rewarded:
        """The ``rewards`` (num_envs,) of ``step``, which led to ``following``, with the bonus, and its mean by name."""
        self.after[step] = following[self.group]
        return self._add(rewards, self.before[step], self.after[step])

    def learn(self, indices: torch.Tensor) -> dict[str, torch.Tensor]:
        """One step of the optimizer on the transitions ``indices`` of the flattened rollout. Returns losses by name."""
        losses = self._losses(self.before.flatten(0, 1)[indices], self.after.flatten(0, 1)[indices])
        self.optimizer.zero_grad()
        losses[self.option].backward()
        self.optimizer.step()
        return losses

    @abstractmethod
    def _add(self, rewards: torch.Tensor, before: torch.Tensor, after: torch.Tensor) -> Rewarded:
        """Do :meth:`add` for states (num_envs, S)."""

    @abstractmethod
    def _losses(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        """What :meth:`learn` minimises under the name ``option``, and what else it reports, for states (n, S)."""

    @abstractmethod
    def update_normalizer(self) -> None:
        """Take the rollout's states into the running statistics."""
