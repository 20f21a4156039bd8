"""Constraints on costs: multipliers weigh the advantages of costs against the advantage of the
reward."""

from collections.abc import Sequence

import torch

from legged_envs.storage import MiniBatch, RolloutStorageMM
from legged_envs.training.learner.constraint_methods.method import Sample, clipped_surrogate
from legged_envs.training.learner.lagrange import Lagrange
from legged_envs.training.learner.part import Part, Step


class CostPart(Part):
    """Base of the parts that constrain costs. PPO asks them for the loss of the policy."""

    num_costs: int
    """Number K of constrained costs with a critic."""
    needs_kl: bool = False
    """True if :meth:`policy_loss` reads the KL divergence of a sample."""
    is_active: bool = True
    """False: costs are measured, but do not change what the policy learns. The trainer sets it."""

    def __init__(self, calm_envs: int):
        self._calm_envs = calm_envs

    @property
    def calm_envs(self) -> int:
        """Number of environments, the first ones, that act without exploration noise.

        0 while the part is not active: until then, the policy learns from all environments.
        """
        return self._calm_envs if self.is_active else 0

    def continuation(self) -> torch.Tensor | None:
        """Return the probability that the return of rewards continues after each step.

        None: 1, unless it is overridden. Shape: (num_steps, num_envs).
        """
        return None

    def policy_loss(self, sample: Sample) -> torch.Tensor:
        """Return the loss of the policy on a mini-batch: PPO's, unless it is overridden."""
        return clipped_surrogate(sample)


class Constraints(CostPart):
    """Keeps the mean costs under their limits by :class:`Lagrange` multipliers.

    Args:
        lagrange: The multipliers.
        calm_envs: Number of environments, the first ones, that act without exploration noise. The
            multipliers follow their costs. 0: the costs of all environments.
    """

    name = "lagrange"

    def __init__(self, lagrange: Lagrange, calm_envs: int):
        super().__init__(calm_envs)
        self.lagrange = lagrange
        self.num_costs = len(lagrange.names)

    def collect(self, step: Step, rewards: torch.Tensor) -> torch.Tensor:
        """Store the scaled costs of the step.

        Raises:
            ValueError: If the environment reports no costs.
        """
        if step.extras.get("costs") is None:
            raise ValueError(
                "extras must have costs, (num_envs, K), as lagrange.enabled is on; got none"
            )
        step.transition.cost_rewards = self.lagrange.scaled(step.extras["costs"])
        return rewards

    def prepare(self, storage: RolloutStorageMM, batches: Sequence[MiniBatch]) -> dict[str, float]:
        """Update the Lagrange multipliers, and the advantages with them while the method acts.

        The advantages of each cost, times its multiplier, are subtracted from the advantages of the
        reward.

        Returns:
            Mean costs and multipliers by name.
        """
        scaled = storage.cost_rewards
        cost_advantages = storage.cost_advantages
        assert scaled is not None and cost_advantages is not None
        referenced = storage.reference_observations_mask
        # The limits are for a policy without noise, so only the costs of environments without noise
        # are measured, if there are any. slice(None) selects all environments.
        measured = slice(self.calm_envs or None)
        of_measured = None if referenced is None else referenced[:, measured]
        costs = self.lagrange.ascend(scaled[:, measured], of_measured, is_active=self.is_active)
        if self.is_active:
            self.lagrange.combine_(storage.advantages, cost_advantages, referenced)
        # A mean action holds no information on which deviation from the mean is better.
        storage.advantages[:, : self.calm_envs] = 0.0
        advantages = storage.advantages.flatten(0, 1)
        for batch in batches:
            batch.advantages = advantages[batch.indices]
        return self.lagrange.report(costs)

    def state(self) -> dict[str, Lagrange]:
        """Return the multipliers, for checkpoints."""
        return {"lagrange": self.lagrange}
