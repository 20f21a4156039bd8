"""CaT: constraints as terminations (Chane-Sane et al. 2024, arXiv 2403.18765)."""

from typing import Any, cast

import torch

from legged_envs.checks import check_number
from legged_envs.training import processes
from legged_envs.training.learner.constraint_methods.method import ConstraintMethod
from legged_envs.wrappers.plumbing.terminations import running_maxima, termination_probability

LARGEST_EXCESS = 1.0
"""Bound of the excess that changes the probabilities, so that a start does not wind them up."""


class CaT(ConstraintMethod):
    """Ends the return of the reward with a probability δ that grows with the costs of a step.

    The reward becomes max(r (1 − δ), 0), and all later rewards are discounted by 1 − δ too. With m
    the running maxima of the costs, δ is max_k p_k · clip(c_k / m_k, 0, 1). Episodes do not end.
    Costs need no critic.

    In the paper a schedule raises the largest probabilities p. Here they follow the excess e:
    b ← b exp(rate · e) and p = b exp(gain · e), as in the wrapper
    :class:`~legged_envs.wrappers.ConstraintsAsTerminations`.
    """

    needs_critic = False

    def __init__(self, num_costs: int, cfg: Any, device: torch.device):
        super().__init__(num_costs, cfg, device)
        check_number("constraint.max_probability", cfg.max_probability, cfg.min_probability, 1.0)
        self.base = torch.full(
            (num_costs,), cfg.initial_probability, dtype=torch.float64, device=device
        )
        """Slowly adapted part b of the probabilities. Shape: (K,)."""
        self.probabilities = self.base
        """Probability p that a cost at its maximum ends the return. Shape: (K,)."""
        self.maxima: torch.Tensor | None = None
        """Running maxima m of the costs. None before the first step. Shape: (K,)."""

    def shape(
        self, rewards: torch.Tensor, costs: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return max(r (1 − δ), 0) and 1 − δ. Shapes: (num_envs,)."""
        # These functions work on any kind of array; costs are a tensor.
        maxima = cast(torch.Tensor, running_maxima(self.maxima, costs, self.cfg.tau))
        delta = cast(torch.Tensor, termination_probability(costs, maxima, self.probabilities))
        self.maxima = maxima
        continuation = 1.0 - delta
        shaped = (rewards.double() * continuation).clamp(min=0.0)
        return shaped.to(rewards.dtype), continuation.to(rewards.dtype)

    def measure(self, excess: torch.Tensor) -> None:
        """Take note of the excess e of each cost, and adapt b and p as in the class docstring."""
        super().measure(excess)
        bounded = excess.double().clamp(max=LARGEST_EXCESS)
        self.base = self._within_range(self.base * (self.cfg.probability_rate * bounded).exp())
        raised = self.base * (self.cfg.probability_gain * bounded).exp()
        self.probabilities = self._within_range(raised)
        if self.maxima is not None:
            # Running means of the maxima that each process saw among its robots.
            self.maxima = processes.average(self.maxima)

    def _within_range(self, probabilities: torch.Tensor) -> torch.Tensor:
        return probabilities.clamp(self.cfg.min_probability, self.cfg.max_probability)

    def report(self) -> dict[str, torch.Tensor]:
        """Return the probabilities p."""
        return {"probability": self.probabilities}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the method, for a checkpoint."""
        state = {**super().state_dict(), "base": self.base, "probabilities": self.probabilities}
        if self.maxima is not None:
            state["maxima"] = self.maxima
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that :meth:`state_dict` returned, from any device."""
        super().load_state_dict(state)
        device = self.base.device
        self.base = state["base"].to(device)
        self.probabilities = state["probabilities"].to(device)
        self.maxima = state["maxima"].to(device) if "maxima" in state else None
