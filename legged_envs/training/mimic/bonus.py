"""Rewards that an algorithm itself gives for the states that the robots get to."""

from abc import ABC, abstractmethod

import torch
from rsl_rl.extensions import RandomNetworkDistillation
from tensordict import TensorDict
from torch import nn

from legged_envs.checks import check_choice
from legged_envs.training.mimic_options import RndCfg


class RewardBonus(ABC):
    """A reward by a network that learns from the states that robots visit.

    In a rollout an algorithm calls :meth:`add` each step, then :meth:`learn` for each mini-batch
    and :meth:`update_normalizer`.

    Args:
        group: Observation group of the states.
        env_obs: An observation of all environments.
        num_steps: Number of steps in a rollout.

    Raises:
        ValueError: If there is no such group.
    """

    option: str
    """Name of the bonus among the options, in checkpoints and in losses."""

    reward_name: str
    """Name of :attr:`means` in the numbers of an update."""

    network: nn.Module
    """Network that gives the bonus."""

    optimizer: torch.optim.Optimizer
    """Optimiser of the network."""

    task_weight: float = 1.0
    """Weight of the reward to which the bonus is added."""

    weight: float = 1.0
    """Weight of the bonus."""

    def __init__(self, group: str, env_obs: TensorDict, num_steps: int):
        check_choice(f"{self.option}.group", group, sorted(env_obs.keys()))
        self.group = group
        states = torch.zeros_like(env_obs[group]).repeat(2, num_steps, 1, 1)

        self.before = states[0]
        """States before each step of the rollout. Shape: (num_steps, num_envs, S)."""
        self.after = states[1]
        """States after each step, of the same episode. Shape: (num_steps, num_envs, S)."""
        self.means = self.after.new_zeros(num_steps)
        """Mean bonus of each step. Shape: (num_steps,)."""

    def add(
        self, step: int, rewards: torch.Tensor, obs: TensorDict, following: TensorDict
    ) -> torch.Tensor:
        """Return the rewards of a step with the bonus.

        Args:
            step: Number of the step in the rollout.
            rewards: Rewards of the step. Shape: (num_envs,).
            obs: Observation before the step.
            following: Observation after the step, of the same episodes.
        """
        self.before[step] = obs[self.group]
        self.after[step] = following[self.group]
        bonus = self._reward(self.before[step], self.after[step])
        self.means[step] = bonus.mean()
        return self.task_weight * rewards + self.weight * bonus

    def learn(self, indices: torch.Tensor) -> dict[str, torch.Tensor]:
        """Make one step of the optimiser on some transitions.

        Args:
            indices: Their indices in the flattened rollout.

        Returns:
            Losses by name.
        """
        before = self.before.flatten(0, 1)[indices]
        after = self.after.flatten(0, 1)[indices]
        losses = self._losses(before, after)
        self.optimizer.zero_grad()
        losses[self.option].backward()
        self.optimizer.step()
        return losses

    @abstractmethod
    def _reward(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        """Return the bonus. Shapes: (num_envs, S), (num_envs, S) → (num_envs,)."""

    @abstractmethod
    def _losses(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss to minimise, named :attr:`option`, and others to report, of states (n,
        S)."""

    @abstractmethod
    def update_normalizer(self) -> None:
        """Update the running statistics with the states of the rollout."""


class Novelty(RewardBonus):
    """rsl_rl's random network distillation: the error of a predictor in states.

    The error is large in states that the predictor has not learnt from.
    """

    option = "rnd"
    reward_name = "rnd_reward"
    network: RandomNetworkDistillation

    def __init__(self, cfg: RndCfg, activation: str, env_obs: TensorDict, num_steps: int):
        super().__init__(cfg.group, env_obs, num_steps)
        self.network = RandomNetworkDistillation(
            num_states=self.after.shape[2],
            obs_groups={"rnd_state": [cfg.group]},
            num_outputs=cfg.outputs,
            predictor_hidden_dims=cfg.hidden,
            target_hidden_dims=cfg.hidden,
            activation=activation,
            weight=cfg.weight,
            state_normalization=True,
            learning_rate=cfg.learning_rate,
            device=str(self.after.device),
        )
        self.optimizer = self.network.optimizer

    def _reward(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        return self.network.get_intrinsic_reward({self.group: after})

    def _losses(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"rnd": self.network.compute_loss({self.group: after})}

    def update_normalizer(self) -> None:
        """Update the running statistics with the states of the rollout."""
        self.network.update_normalization({self.group: self.after.flatten(0, 1)})
