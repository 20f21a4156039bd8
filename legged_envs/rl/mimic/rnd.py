"""Random network distillation: a reward for states that are new."""

from __future__ import annotations

import torch
from rsl_rl.extensions import RandomNetworkDistillation
from tensordict import TensorDict

from legged_envs.rl.mimic.bonus import RewardBonus, Rewarded
from legged_envs.rl.mimic_config import RndCfg


class Novelty(RewardBonus):
    """rsl_rl's random network distillation: the error of a predictor in states that it has not learnt from.

    Args:
        cfg: Weight, networks and observation group.
        activation: Of the networks.
        env_obs: An observation of the environment.
        num_steps: Steps of a rollout.

    Raises:
        ValueError: If the environment has no such group.
    """

    network: RandomNetworkDistillation

    def __init__(self, cfg: RndCfg, activation: str, env_obs: TensorDict, num_steps: int):
        super().__init__("rnd", cfg.group, env_obs, num_steps)
        self.network = RandomNetworkDistillation(
            self.after.shape[2],
            {"rnd_state": [cfg.group]},
            cfg.outputs,
            cfg.hidden,
            cfg.hidden,
            activation,
            state_normalization=True,
            weight=cfg.weight,
            learning_rate=cfg.learning_rate,
            device=str(self.after.device),
        )
        self.optimizer = self.network.optimizer

    def _add(self, rewards: torch.Tensor, before: torch.Tensor, after: torch.Tensor) -> Rewarded:
        novelty = self.network.get_intrinsic_reward({self.group: after})
        return rewards + novelty, {"rnd_reward": novelty.mean()}

    def _losses(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"rnd": self.network.compute_loss({self.group: after})}

    def update_normalizer(self) -> None:
        self.network.update_normalization({self.group: self.after.flatten(0, 1)})
