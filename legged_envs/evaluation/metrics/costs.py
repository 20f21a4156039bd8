"""Costs of evaluated episodes: as means, as discounted sums, and as shares of episodes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Column, Table

from legged_envs.evaluation.conditions import format_measure, mean_over_steps

DISCOUNT = 0.99
"""Discount factor per control step of the sums of costs in tasks without training defaults."""


@dataclass(kw_only=True)
class CostResults:
    """Costs of an evaluation, by name of the cost term. Base of the results of evaluations."""

    costs: dict[str, float]
    """Mean of each cost term per step, over an episode, then over episodes."""
    cost_limits: dict[str, float]
    """Limit of the mean of each cost term per step."""
    broken_limits: dict[str, float]
    """Share of the episodes with a mean above the limit, of each cost term."""
    discounted_costs: dict[str, float]
    """Sum of γ^t c_t over an episode from its step t = 0 on, mean over episodes."""
    cost_discount: float
    """Discount factor γ per control step of `discounted_costs`: the discount of the task's
    trainings."""

    def print_costs(self, console: Console) -> None:
        """Print a table of the costs. Print nothing without costs."""
        if not self.costs:
            return
        table = Table(
            "cost",
            Column("mean", justify="right"),
            Column("limit", justify="right"),
            Column("episodes above", justify="right"),
            Column("discounted sum", justify="right"),
            title="costs per step",
        )
        for name, mean in self.costs.items():
            table.add_row(
                name,
                format_measure(mean, ".4f"),
                f"{self.cost_limits[name]:g}",
                format_measure(self.broken_limits[name], ".1%"),
                format_measure(self.discounted_costs[name], ".3f"),
            )
        console.print(table)


def until_the_end(alive: torch.Tensor) -> torch.Tensor:
    """Return a mask of the steps of each episode, up to and including the step that ends it.

    Args:
        alive: True until the episode terminates, false in that step. Shape: (steps, n), bool.
    """
    return torch.cat((torch.ones_like(alive[:1]), alive[:-1]))


def cost_results(
    costs: torch.Tensor,
    alive: torch.Tensor,
    counted: torch.Tensor,
    names: Sequence[str],
    limits: Sequence[float],
    discount: float,
) -> CostResults:
    """Return the costs of episodes.

    Args:
        costs: Costs of each step. Shape: (steps, n, K).
        alive: True until the episode terminates. Shape: (steps, n), bool.
        counted: True in the steps that enter the means. Episodes without such steps are left out.
            Shape: (steps, n), bool.
        names: Names of the K cost terms.
        limits: Limit of each cost term.
        discount: Discount factor γ per control step.
    """
    means = mean_over_steps(costs, counted)
    measured = counted.any(0)
    is_above = means[measured] > means.new_tensor(limits)
    running = until_the_end(alive)
    steps = torch.arange(len(costs), dtype=torch.float64, device=costs.device)
    weights = (discount**steps).unsqueeze(1) * running
    sums = (costs.nan_to_num().double() * weights.unsqueeze(2)).sum(0)

    def named(values: torch.Tensor) -> dict[str, float]:
        return dict(zip(names, values.tolist(), strict=True))

    return CostResults(
        costs=named(means.nanmean(0)),
        cost_limits=dict(zip(names, limits, strict=True)),
        broken_limits=named(is_above.double().mean(0)),
        discounted_costs=named(sums.mean(0)),
        cost_discount=discount,
    )
