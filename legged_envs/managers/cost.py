"""Costs: what a constrained policy must keep below a limit, reported on every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from legged_envs.managers.term import Term, WeightedTerms, format_params, table


@dataclass
class CostTermCfg:
    """A cost term."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)`` → (num_envs,) float32, 0 when the constraint is satisfied, never negative."""
    limit: float
    """What the term may be on average per step."""
    params: dict[str, Any] = field(default_factory=dict)


class CostManager(WeightedTerms):
    """Evaluates the cost terms; their sum is the scalar cost of a transition."""

    def __init__(self, env: Any, cfg: dict[str, CostTermCfg]):
        for name, term in cfg.items():
            if not term.limit >= 0.0:
                raise ValueError(f"cost term {name!r}: limit must be at least 0, got {term.limit}")
        super().__init__(env, [Term("cost", name, term.func, term.params) for name, term in cfg.items()])
        self.limits = torch.tensor([term.limit for term in cfg.values()], dtype=torch.float32, device=env.device)
        """Limit of each term, average per step. Shape: (num_terms,)."""
        self.values = torch.zeros_like(self.episode_sums)
        """The costs of the last step. Shape: (num_envs, num_terms)."""
        self.total = self.values.sum(1)
        """Their sum. Shape: (num_envs,)."""

    READS = ("episode_sums",)
    WRITES = ("values", "total")

    def compute(self) -> None:
        """Evaluate the terms of this step."""
        self.values = self._evaluate()
        self.episode_sums.add_(self.values)
        self.total = self.values.sum(1)

    def __str__(self) -> str:
        rows = [(t.name, f"{lim:g}", format_params(t.params)) for t, lim in zip(self.terms, self.limits, strict=True)]
        return table("Costs", ("term", "limit [mean per step]", "parameters"), rows)
