"""Fixed penalty: each cost is subtracted from the reward with a constant weight."""

import torch

from legged_envs.training.learner.constraint_methods.method import ConstraintMethod, standardized


class FixedPenalty(ConstraintMethod):
    """Weighs the advantages of the costs with a constant w: (A − w Σ A_k) / (1 + w K).

    This is the Lagrangian with a multiplier that does not adapt, the baseline of the field. It
    keeps a limit only if w is at least the multiplier of the constrained optimum. A_k is divided by
    its standard deviation, so that one w suits costs of any size.
    """

    def weigh(self, advantages: torch.Tensor, cost_advantages: torch.Tensor) -> torch.Tensor:
        """Return the advantages of the penalized reward."""
        weight = self.cfg.penalty
        num_costs = cost_advantages.shape[-1]
        penalties = standardized(cost_advantages).sum(-1, keepdim=True)
        return (advantages - weight * penalties) / (1.0 + weight * num_costs)
