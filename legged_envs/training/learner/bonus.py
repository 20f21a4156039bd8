"""Reward bonuses: rewards that an algorithm adds to the environment's rewards."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from rsl_rl.extensions import RandomNetworkDistillation
from tensordict import TensorDict
from torch import nn

from legged_envs.checks import check_choice
from legged_envs.storage import MiniBatch, RolloutStorageMM
from legged_envs.training import processes
from legged_envs.training.learner.part import Loss, Part, Pass, Step
from legged_envs.training.learner_options import RndCfg


class RewardBonus(Part, ABC):
    """Reward that a network computes from the visited states, and learns from them.

    The network has a separate optimizer.

    Args:
        group: Name of the observation group that holds the states.
        env_obs: Example observation of all environments.
        num_steps: Number of control steps in a rollout.

    Raises:
        ValueError: If the observation does not have the group.
    """

    reward_name: str
    """Name under which an update reports the mean bonus of its rollout."""

    network: nn.Module
    """Network that computes the bonus."""

    optimizer: torch.optim.Optimizer
    """Optimizer of :attr:`network`."""

    task_weight: float = 1.0
    """Weight of the reward that the bonus is added to."""

    weight: float = 1.0
    """Weight of the bonus."""

    def __init__(self, group: str, env_obs: TensorDict, num_steps: int):
        check_choice(f"{self.name}.group", group, sorted(env_obs.keys()))
        self.group = group
        states = torch.zeros_like(env_obs[group]).repeat(2, num_steps, 1, 1)

        self.before = states[0]
        """States before each step of the rollout. Shape: (num_steps, num_envs, S)."""
        self.after = states[1]
        """States after each step, in the same episode as before it. Shape: (num_steps, num_envs,
        S)."""
        self.means = self.after.new_zeros(num_steps)
        """Bonus of each step of the rollout, mean over robots. Shape: (num_steps,)."""

    def collect(self, step: Step, rewards: torch.Tensor) -> torch.Tensor:
        """Return task_weight · rewards + weight · bonus, and store the states of the step."""
        # Both states are stored: with autoreset, the state after a step is not that before the
        # next.
        index = step.index
        self.before[index] = step.before[self.group]
        self.after[index] = step.after[self.group]
        bonus = self._reward(self.before[index], self.after[index])
        self.means[index] = bonus.mean()
        return self.task_weight * rewards + self.weight * bonus

    def prepare(self, storage: RolloutStorageMM, batches: Sequence[MiniBatch]) -> dict[str, float]:
        """Update the running statistics, and return the mean bonus of the rollout."""
        # rsl_rl computes these statistics over the robots of all processes.
        with processes.explaining():
            self.update_normalizer()
        return {self.reward_name: self.means.mean().item()}

    def learn(self, done: Pass) -> Loss:
        """Make one step of the network's optimizer on the transitions of a mini-batch."""
        indices = done.batch.indices
        before = self.before.flatten(0, 1)[indices]
        after = self.after.flatten(0, 1)[indices]
        losses = self._losses(before, after)
        self.optimizer.zero_grad()
        losses[self.name].backward()
        processes.average_gradients(self.optimizer)
        self.optimizer.step()
        return None, losses

    def state(self) -> dict[str, Any]:
        """Return the network and its optimizer, for checkpoints."""
        return {self.name: self.network, f"{self.name}_optimizer": self.optimizer}

    @abstractmethod
    def _reward(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        """Return the bonus. Shapes: (num_envs, S), (num_envs, S) → (num_envs,)."""

    @abstractmethod
    def _losses(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss to minimize, under the name :attr:`name`, and others to report.

        Args:
            before: States before the transitions. Shape: (n, S).
            after: States after the transitions. Shape: (n, S).
        """

    @abstractmethod
    def update_normalizer(self) -> None:
        """Update the running statistics with the states of the rollout."""


class Novelty(RewardBonus):
    """Reward for new states: rsl_rl's random network distillation (Burda et al. 2018).

    A predictor learns the output of a fixed random network. Its error is the bonus, and is large in
    states that differ from the predictor's training data.

    Args:
        cfg: Options of random network distillation.
        activation: Name of the activation function of both networks.
        env_obs: Example observation of all environments.
        num_steps: Number of control steps in a rollout.
    """

    name = "rnd"
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
