"""Lagrange multipliers, which make PPO keep the mean costs of a policy under their limits."""

import math
from collections.abc import Sequence
from typing import Any, cast

import torch

from legged_envs.checks import check_choice, check_number
from legged_envs.training import processes
from legged_envs.training.learner_options import LagrangeCfg
from legged_envs.wrappers.plumbing.multipliers import PIDMultipliers, relative_excess


class Lagrange:
    """Lagrange multipliers λ_k ≥ 0 of K constrained cost terms.

    Each cost term has a multiplier. In tasks with reference motions it has two: one for robots
    without a reference, and one for robots with a reference.

    Costs are stored as (1 − γλ) · cost / limit, with the discount γ and the factor λ of the
    generalized advantage estimate. An advantage sums temporal differences with weights that add up
    to 1 / (1 − γλ). Cost advantages are therefore mean excesses of cost per control step, in units
    of the limit.

    Args:
        names: Names of all cost terms of the task.
        limits: Limit of each cost term in ``names``: its largest mean per control step. Above 0 for
            terms that are constrained.
        discount: The product γλ, below 1.
        cfg: Options. ``cfg.costs`` names the K terms to constrain. Empty: all terms.
        device: Device of limits and multipliers.
        with_reference: True for tasks with reference motions.

    Raises:
        ValueError: If ``limits`` does not have one number per name, that of a constrained term is
            not above 0, ``discount`` is 1 or more, or ``cfg.costs`` has a name that is not in
            ``names``.
    """

    def __init__(
        self,
        names: Sequence[str],
        limits: Sequence[float],
        discount: float,
        cfg: LagrangeCfg,
        device: torch.device,
        with_reference: bool,
    ):
        if not limits or len(limits) != len(names):
            raise ValueError(
                "lagrange needs a cost name and a positive limit for each cost term, "
                f"got cost_names = {tuple(names)} and cost_limits = {tuple(limits)}"
            )
        check_number("gamma · gae_lambda with lagrange", discount, below=1.0)
        for name in cfg.costs:
            check_choice("each of lagrange.costs", name, names)
        self._columns = [k for k, name in enumerate(names) if not cfg.costs or name in cfg.costs]
        for k in self._columns:
            check_number(f"the limit of the cost {names[k]!r} with lagrange", limits[k], above=0.0)

        self.names = tuple(names[k] for k in self._columns)
        """Names of the K constrained cost terms, in the order of the task's cost terms."""
        chosen_limits = [limits[k] for k in self._columns]

        self.limits = torch.tensor(chosen_limits, dtype=torch.float32, device=device)
        """Limits of the constrained cost terms: largest mean per control step. Shape: (K,)."""
        self.scale = 1.0 - discount
        """Factor 1 − γλ that costs are stored with."""
        num_rows = 2 if with_reference else 1
        shape = (num_rows, len(self.names))
        initial = torch.full(shape, cfg.initial, dtype=torch.float32, device=device)

        self.multipliers = PIDMultipliers(
            initial,
            integral=cfg.integral,
            proportional=cfg.proportional,
            derivative=cfg.derivative,
            maximum=cfg.maximum,
        )
        """PID controllers that compute the multipliers. See :attr:`values`."""

    @property
    def values(self) -> torch.Tensor:
        """Present multipliers. Shape: (1, K), or (2, K) in tasks with reference motions.

        Of two rows, row 0 is for robots without a reference, row 1 for robots with a reference.
        """
        # PIDMultipliers works on any kind of array; these were made from a tensor.
        return cast(torch.Tensor, self.multipliers.values)

    def scaled(self, costs: torch.Tensor) -> torch.Tensor:
        """Return (1 − γλ) · cost / limit of the constrained terms, for the storage.

        Args:
            costs: Costs of a step of all cost terms. Shape: (…, number of terms).

        Returns:
            Scaled costs. Shape: (…, K).
        """
        return costs[..., self._columns] * (self.scale / self.limits)

    def ascend(
        self, scaled_costs: torch.Tensor, referenced: torch.Tensor | None, is_active: bool = True
    ) -> torch.Tensor:
        """Update the multipliers from the mean costs of a rollout.

        They rise where a mean cost exceeds its limit and fall where it is below.

        Args:
            scaled_costs: Costs of the rollout, from :meth:`scaled`. Shape: (num_steps, num_envs,
                K).
            referenced: True where the robot had a reference. Shape: (num_steps, num_envs). None: in
                tasks without reference motions.
            is_active: False: the costs are measured, and the multipliers stay as they are.

        Returns:
            Mean cost per control step over the steps of each row of :attr:`values`. NaN if there
            were no such steps. Shape: the shape of :attr:`values`.
        """
        steps = _steps_of_rows(scaled_costs, referenced)
        means = [processes.std_mean(scaled_costs[rows])[1] for rows in steps]
        fractions = torch.stack(means) / self.scale
        if is_active:
            self.multipliers.update(relative_excess(fractions, torch.ones_like(fractions)))
        return fractions * self.limits

    def combine_(
        self,
        advantages: torch.Tensor,
        cost_advantages: torch.Tensor,
        referenced: torch.Tensor | None,
    ) -> None:
        """Subtract the weighted cost advantages from the reward advantages A, in place.

        A becomes (A − Σ λ_k A^c_k) / (1 + Σ λ_k), with the advantage A^c_k of cost k. Each A^c_k is
        centred and divided by its standard deviation, separately for steps with and without a
        reference. The divisor is at least 1 − γλ, the stored cost of one step at the limit.

        Args:
            advantages: Standardized advantages of the reward, changed in place. Shape: (num_steps,
                num_envs, 1).
            cost_advantages: Advantages of the costs. Shape: (num_steps, num_envs, K).
            referenced: True where the robot had a reference. Shape: (num_steps, num_envs). None: in
                tasks without reference motions.
        """
        steps = _steps_of_rows(cost_advantages, referenced)
        for rows, multipliers in zip(steps, self.values, strict=True):
            costs = cost_advantages[rows]
            std, mean = processes.std_mean(costs)
            # Without the lower bound, costs that are nearly constant would be amplified to noise.
            excess = (costs - mean) @ (multipliers / std.clamp(min=self.scale))
            advantages[rows] = (advantages[rows] - excess.unsqueeze(1)) / (1.0 + multipliers.sum())

    def report(self, costs: torch.Tensor) -> dict[str, float]:
        """Return mean costs and multipliers by name, for the log of an update.

        Names are ``cost/…`` and ``multiplier/…``. In tasks with reference motions these are of the
        steps with a reference, and ``free_cost/…`` and ``free_multiplier/…`` of those without one.

        Args:
            costs: Mean costs from :meth:`ascend`. NaN values are omitted.
        """
        rows = {"cost": costs[-1], "multiplier": self.values[-1]}
        if len(costs) > 1:
            rows["free_cost"] = costs[0]
            rows["free_multiplier"] = self.values[0]
        report = {}
        for kind, row in rows.items():
            for name, value in zip(self.names, row.tolist(), strict=True):
                if not math.isnan(value):
                    report[f"{kind}/{name}"] = value
        return report

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the multipliers, for a checkpoint."""
        return self.multipliers.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that :meth:`state_dict` returned, from any device."""
        moved = {name: part.to(self.limits.device) for name, part in state.items()}
        self.multipliers.load_state_dict(moved)


def _steps_of_rows(
    values: torch.Tensor, referenced: torch.Tensor | None
) -> tuple[torch.Tensor, ...]:
    """Return the steps that count for each row of the multipliers, as masks."""
    if referenced is None:
        return (torch.ones(values.shape[:2], dtype=torch.bool, device=values.device),)
    return (~referenced, referenced)
