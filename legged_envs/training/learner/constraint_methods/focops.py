"""FOCOPS: first-order constrained optimization in policy space (Zhang et al. 2020, 2002.06506)."""

from typing import Any

import torch

from legged_envs.training.learner.constraint_methods.method import (
    ConstraintMethod,
    Sample,
    standardized,
)

LARGEST_EXCESS = 1.0
"""Bound of the excess that changes ν, so that the start of a training does not wind it up."""


class FOCOPS(ConstraintMethod):
    """Projects the optimal policy of the constrained problem back into the space of policies.

    Its multipliers ν follow the excess: ν ← clip(ν + ``nu_rate`` · (J − 1), 0, ``nu_maximum``).
    """

    needs_kl = True

    def __init__(self, num_costs: int, cfg: Any, device: torch.device):
        super().__init__(num_costs, cfg, device)
        self.nu = torch.zeros(num_costs, device=device)
        """Multipliers ν of the costs. Shape: (K,)."""

    def measure(self, excess: torch.Tensor) -> None:
        """Take note of the excess of each cost, and update the multipliers."""
        super().measure(excess)
        change = self.cfg.nu_rate * excess.clamp(max=LARGEST_EXCESS)
        self.nu = (self.nu + change).clamp(0.0, self.cfg.nu_maximum)

    def weigh(self, advantages: torch.Tensor, cost_advantages: torch.Tensor) -> torch.Tensor:
        """Return A − Σ ν_k A_k, with A_k divided by its standard deviation."""
        penalties = standardized(cost_advantages) @ self.nu
        return advantages - penalties.unsqueeze(-1)

    def loss(self, sample: Sample) -> torch.Tensor:
        """Return E[(KL(π ‖ π_old) − r A / λ) 1[KL ≤ δ]].

        r is the probability ratio, A the result of :meth:`weigh`, λ the ``temperature`` and δ the
        ``kl_limit``. States whose policy has moved further than δ no longer count.
        """
        kl = sample.kl
        assert kl is not None, "needs_kl is True"
        is_near = kl.detach() <= self.cfg.kl_limit
        gain = sample.ratio * sample.advantages / self.cfg.temperature
        return ((kl - gain) * is_near).mean()

    def report(self) -> dict[str, torch.Tensor]:
        """Return the multipliers ν."""
        return {"multiplier": self.nu}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the method, for a checkpoint."""
        return {**super().state_dict(), "nu": self.nu}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that :meth:`state_dict` returned, from any device."""
        super().load_state_dict(state)
        self.nu = state["nu"].to(self.nu.device)
