"""P3O: penalized proximal policy optimization (Zhang et al. 2022, arXiv 2205.11814)."""

import torch

from legged_envs.training.learner.constraint_methods.method import (
    ConstraintMethod,
    Sample,
    clipped_surrogate,
)


class P3O(ConstraintMethod):
    """Adds a penalty on each limit that the new policy would break.

    With ``kappa`` above the multipliers of the constrained optimum, the penalty is exact: the
    minimum of the loss is that optimum.
    """

    def loss(self, sample: Sample) -> torch.Tensor:
        """Return L_reward + κ Σ_k (L_k)⁺ with L_k = E[max(r A_k, clip(r) A_k)] + J_k − 1.

        L_reward is PPO's clipped surrogate loss, and r the probability ratio.
        """
        broken = cost_surrogate(sample) + self.excess
        penalty = broken.clamp(min=0.0).sum()
        return clipped_surrogate(sample) + self.cfg.kappa * penalty


def cost_surrogate(sample: Sample) -> torch.Tensor:
    """Return the pessimistic change of each mean cost: E[max(r A, clip(r) A)] − E[A]. Shape: (K,).

    E[A] is 0 over a rollout. Over a mini-batch it is noise that does not depend on the policy.
    """
    ratio = sample.ratio.unsqueeze(1)
    advantages = sample.cost_advantages
    clipped = ratio.clamp(1.0 - sample.clip, 1.0 + sample.clip)
    worst = torch.max(advantages * ratio, advantages * clipped)
    return (worst - advantages).mean(0)
