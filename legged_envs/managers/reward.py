"""Rewards: r = Σ weight · term · dt."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from legged_envs.managers.term import Term, WeightedTerms, format_params, table


@dataclass
class RewardTermCfg:
    """A reward term."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)`` → (num_envs,) float32."""
    weight: float
    """Reward per second at a value of 1; 0 leaves the term out."""
    params: dict[str, Any] = field(default_factory=dict)


class RewardManager(WeightedTerms):
    """Weighted sum of the reward terms, times the control time step (as LeggedGym-Ex and Isaac Lab do)."""

    def __init__(self, env: Any, cfg: dict[str, RewardTermCfg], only_positive: bool):
        for name, term in cfg.items():
            if not isinstance(term.weight, (int, float)) or not math.isfinite(term.weight):
                raise ValueError(f"reward term {name!r}: weight must be a finite number, got {term.weight!r}")
        self.only_positive = only_positive
        active = {name: term for name, term in cfg.items() if term.weight != 0.0}
        super().__init__(env, [Term("reward", name, term.func, term.params) for name, term in active.items()])
        self.weights = tuple(term.weight for term in active.values())
        """Weight of each term, 1/s."""
        self._scale = torch.tensor(self.weights, dtype=torch.float32, device=env.device).mul_(env.step_dt)
        self.total = self.episode_sums.sum(1)
        """The reward of the last step. Shape: (num_envs,)."""

    READS = ("episode_sums", "_scale")
    WRITES = ("total",)

    def compute(self) -> None:
        """Evaluate the terms of this step."""
        weighted = self._evaluate() * self._scale
        self.episode_sums.add_(weighted)
        total = weighted.sum(1)
        self.total = total.clamp_min_(0.0) if self.only_positive else total

    def __str__(self) -> str:
        rows = [(t.name, f"{w:g}", format_params(t.params)) for t, w in zip(self.terms, self.weights, strict=True)]
        title = "Rewards (sum floored at 0)" if self.only_positive else "Rewards"
        return table(title, ("term", "weight [1/s]", "parameters"), rows)
