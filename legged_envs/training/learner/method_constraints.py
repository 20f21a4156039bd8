"""The part of PPO that keeps costs under their limits by one of the constraint methods."""

from collections.abc import Sequence
from typing import Any

import torch

from legged_envs.storage import MiniBatch, RolloutStorageMM
from legged_envs.training import processes
from legged_envs.training.learner.constraint_methods.method import (
    ConstraintMethod,
    Sample,
    clipped_surrogate,
)
from legged_envs.training.learner.constraints import CostPart
from legged_envs.training.learner.part import Step


class MethodConstraints(CostPart):
    """Measures costs in units of their limits, and gives them to a :class:`ConstraintMethod`.

    Costs are stored as (1 − γλ) · cost / limit, as in
    :class:`~legged_envs.training.learner.lagrange.Lagrange`. Divided by 1 − γλ, their advantages
    equal the papers' advantages in units of the limits.

    Args:
        method: The method.
        names: Names of the K constrained costs.
        columns: Their columns in the costs of the environment.
        limits: Limit of each: its largest mean per control step, above 0. Shape: (K,).
        discount: The product γλ of the discount and the factor of the advantage estimate, below 1.
        calm_envs: Number of environments, the first ones, that act without exploration noise. Mean
            costs are measured in these. 0: in all environments.
    """

    name = "constraint"

    def __init__(
        self,
        method: ConstraintMethod,
        names: Sequence[str],
        columns: Sequence[int],
        limits: torch.Tensor,
        discount: float,
        calm_envs: int,
    ):
        super().__init__(calm_envs)
        self.method = method
        """The method."""
        self.names = tuple(names)
        """Names of the K constrained costs."""
        self.limits = limits
        """Limits of the constrained costs. Shape: (K,)."""
        self.scale = 1.0 - discount
        """Factor 1 − γλ that costs are stored with."""
        self.num_costs = len(self.names) if method.needs_critic else 0
        self.needs_kl = method.needs_kl
        self._columns = list(columns)
        # Lists of the rollout so far, with an entry for each step.
        self._costs: list[torch.Tensor] = []
        self._continuations: list[torch.Tensor] = []

    def collect(self, step: Step, rewards: torch.Tensor) -> torch.Tensor:
        """Store the scaled costs of the step, and return the rewards that the method shapes.

        Raises:
            ValueError: If the environment reports no costs.
        """
        costs = step.extras.get("costs")
        if costs is None:
            raise ValueError(
                "extras must have costs, (num_envs, K), as a constraint.method is given; got none"
            )
        if step.index == 0:
            self._costs = []
            self._continuations = []
        scaled = costs[..., self._columns] * (self.scale / self.limits)
        # The limits are for a policy without noise. slice(None) selects all environments.
        self._costs.append(scaled[: self.calm_envs or None])
        if self.num_costs:
            step.transition.cost_rewards = scaled
        if self.is_active:
            rewards, continuation = self.method.shape(rewards, scaled / self.scale)
            if continuation is not None:
                self._continuations.append(continuation)
        return rewards

    def continuation(self) -> torch.Tensor | None:
        """Return the probability that the return continues after each step, or None for 1."""
        if not self._continuations:
            return None
        return torch.stack(self._continuations)

    def prepare(self, storage: RolloutStorageMM, batches: Sequence[MiniBatch]) -> dict[str, float]:
        """Give the rollout to the method, and its advantages to the mini-batches.

        Returns:
            Mean costs, and what the method reports, by name.
        """
        _, mean_cost = processes.std_mean(torch.cat(self._costs))
        fractions = mean_cost / self.scale
        if self.is_active:
            self.method.measure(fractions - 1.0)
        if self.num_costs:
            self._weigh(storage, batches)
        # A mean action holds no information on which deviation from the mean is better.
        storage.advantages[:, : self.calm_envs] = 0.0
        advantages = storage.advantages.flatten(0, 1)
        for batch in batches:
            batch.advantages = advantages[batch.indices]
        return self._report(fractions * self.limits)

    def _weigh(self, storage: RolloutStorageMM, batches: Sequence[MiniBatch]) -> None:
        """Give the advantages of the costs to the method and to the mini-batches."""
        stored = storage.cost_advantages
        assert stored is not None
        # An exact advantage has mean 0. What an estimate adds is an error of the critic.
        _, mean = processes.std_mean(stored.flatten(0, 1))
        cost_advantages = (stored - mean) / self.scale
        if self.is_active:
            storage.advantages.copy_(self.method.weigh(storage.advantages, cost_advantages))
        cost_advantages[:, : self.calm_envs] = 0.0
        of_costs = cost_advantages.flatten(0, 1)
        for batch in batches:
            batch.cost_advantages = of_costs[batch.indices]

    def policy_loss(self, sample: Sample) -> torch.Tensor:
        """Return the loss of the policy on a mini-batch: the method's while it is active."""
        return self.method.loss(sample) if self.is_active else clipped_surrogate(sample)

    def _report(self, costs: torch.Tensor) -> dict[str, float]:
        """Return mean costs and the numbers of the method, as ``kind/name of the cost``."""
        report = {}
        for kind, values in {"cost": costs, **self.method.report()}.items():
            for name, value in zip(self.names, values.tolist(), strict=True):
                report[f"{kind}/{name}"] = value
        return report

    def state(self) -> dict[str, Any]:
        """Return the method, for checkpoints."""
        return {"constraint": self.method}
