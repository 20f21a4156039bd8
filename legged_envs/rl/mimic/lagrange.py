"""Costs that a policy keeps under their limits: Lagrange multipliers on the cost advantages of PPO."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from legged_envs.rl.mimic_config import LagrangeCfg
from legged_envs.wrappers.multipliers import PIDMultipliers, relative_excess


class Lagrange:
    """A multiplier λ_k ≥ 0 for each cost term, and the costs in units that compare with the limits.

    Steps with and without a reference have multipliers of their own: who follows commands has other costs than who
    imitates, and both are to keep the limits.

    The storage gets (1 − γλ) · cost / limit: as a generalised advantage sums temporal differences with weights that add
    up to 1 / (1 − γλ), the cost advantages are mean excesses of cost per control step, 1 being as much as the limit.
    See :meth:`combine_` for what becomes of them.

    Args:
        names: Of the environment's terms, from which ``cfg.costs`` chooses K.
        limits: Mean cost per control step that each term may have.
        discount: γλ of the advantages.
        cfg: Gains, start and bound of the multipliers.
        device: Where the costs are.

    Raises:
        ValueError: If a limit is not positive, their number is not that of the names, ``cfg.costs`` names none of them,
            ``discount`` is not below 1, or a gain or the bound is negative.
    """

    def __init__(
        self, names: Sequence[str], limits: Sequence[float], discount: float, cfg: LagrangeCfg, device: torch.device
    ):
        if not limits or len(limits) != len(names) or min(limits) <= 0.0:
            raise ValueError(
                "lagrange needs a cost name and a positive limit for each cost term, "
                f"got cost_names = {tuple(names)} and cost_limits = {tuple(limits)}"
            )
        if discount >= 1.0:
            raise ValueError(f"lagrange needs gamma · gae_lambda below 1, got {discount}")
        if unknown := [name for name in cfg.costs if name not in names]:
            raise ValueError(f"lagrange.costs must be names of cost terms ({', '.join(names)}), got {unknown[0]!r}")
        self._columns = [k for k, name in enumerate(names) if not cfg.costs or name in cfg.costs]
        self.names = tuple(names[k] for k in self._columns)
        """Of the terms that have a multiplier."""
        self.limits = torch.tensor([limits[k] for k in self._columns], dtype=torch.float32, device=device)
        """Shape: (K,)."""
        self.scale = 1.0 - discount
        gains = {name: getattr(cfg, name) for name in ("integral", "proportional", "derivative", "maximum")}
        initial = torch.full((2, len(self.names)), cfg.initial, dtype=torch.float32, device=device)
        self.multipliers = PIDMultipliers(initial, **gains)
        """Without a reference, and with one. Shape of the values: (2, K)."""

    def scaled(self, costs: torch.Tensor) -> torch.Tensor:
        """What the storage gets of the costs of a step. Shapes: (…, all terms) → (…, K)."""
        return costs[..., self._columns] * (self.scale / self.limits)

    def ascend(self, scaled_costs: torch.Tensor, referenced: torch.Tensor) -> torch.Tensor:
        """Let the multipliers follow e_k = min(mean cost_k / limit_k − 1, 1): see :class:`PIDMultipliers`.

        The bound of 1 keeps a robot that still falls from pricing everything else out.

        Args:
            scaled_costs: Of a rollout. Shape: (num_steps, num_envs, K).
            referenced: Where there was a reference, bool. Shape: (num_steps, num_envs).

        Returns:
            The mean costs per control step without and with a reference; NaN where there was no such step, and then the
            multipliers stay. Shape: (2, K).
        """
        fractions = torch.stack([scaled_costs[rows].mean(dim=0) for rows in (~referenced, referenced)]) / self.scale
        self.multipliers.update(relative_excess(fractions, torch.ones_like(fractions)))
        return fractions * self.limits

    def combine_(self, advantages: torch.Tensor, cost_advantages: torch.Tensor, referenced: torch.Tensor) -> None:
        """Write (A − Σ λ_k A^c_k) / (1 + Σ λ_k) to ``advantages`` A, which are standardised.

        Each A^c_k is centred and divided by its standard deviation, but by no less than 1 − γλ, which is one step's
        cost at the limit; those with and those without a reference by themselves. So a term near its limit weighs λ_k
        times as much as the reward, and one that hardly costs anything beside its limit stays as small as it is: its
        noise is not blown up.

        Shapes: (num_steps, num_envs, 1), (num_steps, num_envs, K), (num_steps, num_envs).
        """
        for rows, multipliers in zip((~referenced, referenced), self.multipliers.values, strict=True):
            costs = cost_advantages[rows]
            if not len(costs):
                continue
            std, mean = torch.std_mean(costs, dim=0, correction=0)
            excess = (costs - mean) @ (multipliers / std.clamp(min=self.scale))
            advantages[rows] = (advantages[rows] - excess.unsqueeze(1)) / (1.0 + multipliers.sum())

    def report(self, costs: torch.Tensor) -> dict[str, float]:
        """Mean ``costs`` (2, K) from :meth:`ascend` and the multipliers by name, ``free_…`` without a reference."""
        report: dict[str, float] = {}
        for kind, values in (("cost", costs), ("multiplier", self.multipliers.values)):
            for prefix, row in zip(("free_", ""), values.tolist(), strict=True):
                named = zip(self.names, row, strict=True)
                report |= {f"{prefix}{kind}/{name}": value for name, value in named if not math.isnan(value)}
        return report

    def state_dict(self) -> dict[str, Any]:
        """The state of the multipliers."""
        return self.multipliers.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from :meth:`state_dict`, from whatever device it was saved on."""
        self.multipliers.load_state_dict({name: part.to(self.limits.device) for name, part in state.items()})
