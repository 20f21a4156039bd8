"""Costs: what a constrained policy must keep below a limit, reported on every step."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from legged_envs.managers.manager import EpisodeSums


@dataclass
class CostTermCfg:
    """A cost term."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)`` → (num_envs,) float32, 0 when the constraint is satisfied, never negative."""
    limit: float
    """What the term may be on average per step."""
    params: dict[str, Any] = field(default_factory=dict)


class CostManager(EpisodeSums):
    """Evaluates the cost terms; their sum is the scalar cost of a transition."""

    title = "Costs"
    COLUMNS: ClassVar[dict[str, str]] = {"limit [mean per step]": "limit", "parameters": "params"}

    def __init__(self, env: Any, cfg: dict[str, CostTermCfg]):
        for name, term in cfg.items():
            if not term.limit >= 0.0:
                raise ValueError(f"cost term {name!r}: limit must be at least 0, got {term.limit}")
        super().__init__(env, "cost", cfg, 1.0)
        self.limits = tuple(term.limit for term in cfg.values())
        """Limit of each term, average per step."""
        self.values = torch.zeros_like(self.episode_sums)
        """The costs of the last step. Shape: (num_envs, num_terms)."""
        self.total = self.values.sum(1)
        """Their sum. Shape: (num_envs,)."""

    def compute(self) -> None:
        self.values = self.columns()
        self.episode_sums.add_(self.values)
        self.total = self.values.sum(1)
