"""N-P3O: P3O with normalized cost advantages (Lee et al. 2023, arXiv 2309.15430)."""

from dataclasses import replace
from typing import Any

import torch

from legged_envs.training import processes
from legged_envs.training.learner.constraint_methods.method import (
    ConstraintMethod,
    Sample,
    clipped_surrogate,
)
from legged_envs.training.learner.constraint_methods.p3o import cost_surrogate

SMALLEST_STD = 1e-3
"""Smallest standard deviation that a cost advantage is divided by, in units of the limit."""


class NP3O(ConstraintMethod):
    """P3O for many costs of different sizes: one penalty factor suits all of them.

    Both the advantages and the excess of a cost are divided by the standard deviation σ_k of its
    advantages. The factor κ starts small, so that robots first learn to walk, and grows with each
    update up to ``kappa_maximum``.
    """

    def __init__(self, num_costs: int, cfg: Any, device: torch.device):
        super().__init__(num_costs, cfg, device)
        self.kappa = torch.tensor(cfg.kappa_initial, dtype=torch.float64)
        """Present penalty factor κ."""
        self.std = torch.ones(num_costs, device=device)
        """Standard deviation of the cost advantages of the last rollout. Shape: (K,)."""

    def weigh(self, advantages: torch.Tensor, cost_advantages: torch.Tensor) -> torch.Tensor:
        """Note the deviations of the cost advantages; those of the reward stay as they are."""
        std, _ = processes.std_mean(cost_advantages.flatten(0, 1))
        self.std = std.clamp(min=SMALLEST_STD)
        return advantages

    def measure(self, excess: torch.Tensor) -> None:
        """Take note of the excess of each cost, and raise κ to min(growth · κ, maximum)."""
        super().measure(excess)
        grown = self.kappa * self.cfg.kappa_growth
        self.kappa = grown.clamp(max=self.cfg.kappa_maximum)

    def loss(self, sample: Sample) -> torch.Tensor:
        """Return L_reward + κ Σ_k (E[max(r A_k, clip(r) A_k)] + J_k − 1)⁺ / σ_k."""
        normalized = replace(sample, cost_advantages=sample.cost_advantages / self.std)
        broken = cost_surrogate(normalized) + self.excess / self.std
        penalty = broken.clamp(min=0.0).sum()
        return clipped_surrogate(sample) + self.kappa.item() * penalty

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the method, for a checkpoint."""
        return {**super().state_dict(), "kappa": self.kappa}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that :meth:`state_dict` returned, from any device."""
        super().load_state_dict(state)
        self.kappa = state["kappa"].cpu()
