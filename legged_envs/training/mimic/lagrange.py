"""Lagrange multipliers that keep costs under their limits."""

import math
from collections.abc import Sequence
from typing import Any, cast

import torch

from legged_envs.checks import check_choice, check_number
from legged_envs.training.mimic_options import LagrangeCfg
from legged_envs.wrappers.plumbing.multipliers import PIDMultipliers, relative_excess


class Lagrange:
    """A multiplier λ_k ≥ 0 for each of K cost terms, one with and one without a reference.

    The storage gets (1 − γλ) · cost / limit. A generalised advantage sums temporal differences with
    weights that add up to 1 / (1 − γλ), so cost advantages are mean excesses of cost per control
    step in units of the limit.

    Args:
        names: Names of all cost terms.
        limits: Their limits, mean costs per control step.
        discount: γλ, the discount of the advantages.
        cfg: Options, which choose of the cost terms.
        device: Device of the multipliers.

    Raises:
        ValueError: If a value is invalid.
    """

    def __init__(
        self,
        names: Sequence[str],
        limits: Sequence[float],
        discount: float,
        cfg: LagrangeCfg,
        device: torch.device,
    ):
        if not limits or len(limits) != len(names) or min(limits) <= 0.0:
            raise ValueError(
                "lagrange needs a cost name and a positive limit for each cost term, "
                f"got cost_names = {tuple(names)} and cost_limits = {tuple(limits)}"
            )
        check_number("gamma · gae_lambda with lagrange", discount, below=1.0)
        for name in cfg.costs:
            check_choice("each of lagrange.costs", name, names)
        self._columns = [k for k, name in enumerate(names) if not cfg.costs or name in cfg.costs]

        self.names = tuple(names[k] for k in self._columns)
        """Names of the constrained cost terms."""
        chosen_limits = [limits[k] for k in self._columns]

        self.limits = torch.tensor(chosen_limits, dtype=torch.float32, device=device)
        """Limits of the constrained cost terms, mean costs per control step. Shape: (K,)."""
        self.scale = 1.0 - discount
        """Factor 1 − γλ of the costs in the storage."""
        initial = torch.full((2, len(self.names)), cfg.initial, dtype=torch.float32, device=device)

        self.multipliers = PIDMultipliers(
            initial,
            integral=cfg.integral,
            proportional=cfg.proportional,
            derivative=cfg.derivative,
            maximum=cfg.maximum,
        )
        """Multipliers without a reference and with one. Shape of the values: (2, K)."""

    @property
    def values(self) -> torch.Tensor:
        """Multipliers without a reference and with one. Shape: (2, K)."""
        # The multipliers are of any kind of array; these were made of a tensor.
        return cast(torch.Tensor, self.multipliers.values)

    def scaled(self, costs: torch.Tensor) -> torch.Tensor:
        """Return the costs of a step as the storage gets them. Shapes: (…, all terms) → (…, K)."""
        return costs[..., self._columns] * (self.scale / self.limits)

    def ascend(self, scaled_costs: torch.Tensor, referenced: torch.Tensor) -> torch.Tensor:
        """Let the multipliers follow the :func:`relative_excess` of the costs of a rollout.

        Args:
            scaled_costs: Costs from :meth:`scaled`. Shape: (num_steps, num_envs, K).
            referenced: True with a reference. Shape: (num_steps, num_envs).

        Returns:
            Mean costs per step without and with a reference, or NaN. Shape: (2, K).
        """
        means = [scaled_costs[rows].mean(dim=0) for rows in (~referenced, referenced)]
        fractions = torch.stack(means) / self.scale
        self.multipliers.update(relative_excess(fractions, torch.ones_like(fractions)))
        return fractions * self.limits

    def combine_(
        self, advantages: torch.Tensor, cost_advantages: torch.Tensor, referenced: torch.Tensor
    ) -> None:
        """Write (A − Σ λ_k A^c_k) / (1 + Σ λ_k) to the advantages A.

        Each A^c_k is centred and divided by its standard deviation, with and without a reference
        separately. The divisor is at least 1 − γλ, the cost of one step at the limit.

        Args:
            advantages: Advantages of the reward, standardised; changed. Shape: (num_steps,
                num_envs, 1).
            cost_advantages: Advantages of the costs. Shape: (num_steps, num_envs, K).
            referenced: True with a reference. Shape: (num_steps, num_envs).
        """
        masks = (~referenced, referenced)
        for rows, multipliers in zip(masks, self.values, strict=True):
            costs = cost_advantages[rows]
            if not len(costs):
                continue
            std, mean = torch.std_mean(costs, dim=0, correction=0)
            excess = (costs - mean) @ (multipliers / std.clamp(min=self.scale))
            advantages[rows] = (advantages[rows] - excess.unsqueeze(1)) / (1.0 + multipliers.sum())

    def report(self, costs: torch.Tensor) -> dict[str, float]:
        """Return mean costs and multipliers by name, ``free_…`` without a reference.

        Args:
            costs: Mean costs from :meth:`ascend`. Those that are NaN are left out. Shape: (2, K).
        """
        rows = {
            "free_cost": costs[0],
            "cost": costs[1],
            "free_multiplier": self.values[0],
            "multiplier": self.values[1],
        }
        report = {}
        for kind, row in rows.items():
            for name, value in zip(self.names, row.tolist(), strict=True):
                if not math.isnan(value):
                    report[f"{kind}/{name}"] = value
        return report

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the multipliers."""
        return self.multipliers.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from :meth:`state_dict`, of any device."""
        moved = {name: part.to(self.limits.device) for name, part in state.items()}
        self.multipliers.load_state_dict(moved)
