"""IPO: interior-point policy optimization (Liu et al. 2020, arXiv 1910.09615)."""

import torch

from legged_envs.training.learner.constraint_methods.method import (
    ConstraintMethod,
    Sample,
    clipped_surrogate,
)


class IPO(ConstraintMethod):
    """Adds a logarithmic barrier that keeps the policy inside its limits.

    The thresholds adapt, as in Kim et al. 2023 (arXiv 2308.12517): a policy that breaks a limit
    receives the threshold d_k = max(1, J_k + α) with α = ``margin``, and improves from there. The
    distance to the threshold is therefore at least α, and the multiplier that the barrier implies
    at most 1 / (t α) with t = ``barrier``.
    """

    def loss(self, sample: Sample) -> torch.Tensor:
        """Return L_reward − Σ_k log(d_k − J_k − E[(r − 1) A_k]) / t.

        L_reward is PPO's clipped surrogate loss, and r the probability ratio. The paper has r A_k;
        the mean of A_k is 0.
        """
        slack = (-self.excess).clamp(min=self.cfg.margin)
        change = (sample.ratio - 1.0).unsqueeze(1) * sample.cost_advantages
        room = slack - change.mean(0)
        barrier = -_log(room, least=0.5 * slack) / self.cfg.barrier
        return clipped_surrogate(sample) + barrier.sum()

    def report(self) -> dict[str, torch.Tensor]:
        """Return the multiplier that the barrier implies for each cost: 1 / (t (d_k − J_k))."""
        slack = (-self.excess).clamp(min=self.cfg.margin)
        return {"multiplier": 1.0 / (self.cfg.barrier * slack)}


def _log(room: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
    """Return log(``room``), continued by its tangent below ``least``. Shape: (K,)."""
    # Several passes over a rollout may overshoot a threshold, where the logarithm has no value.
    inside = room.clamp(min=least).log()
    below = (room - least).clamp(max=0.0)
    return inside + below / least
