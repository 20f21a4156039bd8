"""Rewards: r = Σ weight · term · dt."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from legged_envs.checks import check_number
from legged_envs.managers.manager import EpisodeSums


@dataclass
class RewardTermCfg:
    """A reward term."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)`` → (num_envs,) float32."""
    weight: float
    """Reward per second at a value of 1; 0 leaves the term out."""
    params: dict[str, Any] = field(default_factory=dict)
    after_floor: bool = False
    """Whether it is added after the floor of ``only_positive_rewards`` (LeggedGym-Ex ``termination``)."""


class RewardManager(EpisodeSums):
    """Weighted sum of the reward terms, times the control time step (as LeggedGym-Ex and Isaac Lab do)."""

    COLUMNS: ClassVar[dict[str, str]] = {"weight [1/s]": "weight", "parameters": "params"}

    def __init__(self, env: Any, cfg: dict[str, RewardTermCfg], only_positive: bool):
        for name, term in cfg.items():
            check_number(f"reward term {name!r}: weight", term.weight)
        active = sorted(((n, t) for n, t in cfg.items() if t.weight != 0.0), key=lambda item: item[1].after_floor)
        super().__init__(env, "reward", dict(active), env.step_dt)
        self.title = "Rewards (sum floored at 0)" if only_positive else "Rewards"
        self.only_positive = only_positive
        self.weights = tuple(term.weight for _, term in active)
        """Weight of each term, 1/s."""
        self._scale = torch.tensor(self.weights, dtype=torch.float32, device=env.device).mul_(env.step_dt)
        self._num_floored = sum(not term.after_floor for _, term in active)
        self.total = self.episode_sums.sum(1)
        """The reward of the last step. Shape: (num_envs,)."""

    def compute(self) -> None:
        weighted = self.columns() * self._scale
        self.episode_sums.add_(weighted)
        if not self.only_positive:
            self.total = weighted.sum(1)
        elif self._num_floored == len(self.names):
            self.total = weighted.sum(1).clamp_min_(0.0)
        else:
            floored, rest = weighted[:, : self._num_floored], weighted[:, self._num_floored :]
            self.total = floored.sum(1).clamp_min_(0.0) + rest.sum(1)
