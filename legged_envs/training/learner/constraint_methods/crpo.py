"""CRPO: constraint-rectified policy optimization (Xu et al. 2021, arXiv 2011.05869)."""

import torch

from legged_envs.training.learner.constraint_methods.method import ConstraintMethod, standardized


class CRPO(ConstraintMethod):
    """Improves the reward while all limits are kept, else lowers the cost that breaks its limit.

    Algorithm 1 of the paper: a limit counts as broken if J_k > 1 + η with η = ``tolerance``. If
    several are broken, the most broken one is lowered. There are no multipliers.
    """

    def weigh(self, advantages: torch.Tensor, cost_advantages: torch.Tensor) -> torch.Tensor:
        """Return the advantages A of the reward, or −A_k of the cost that breaks its limit."""
        worst = int(self.excess.argmax())
        if self.excess[worst] <= self.cfg.tolerance:
            return advantages
        return -standardized(cost_advantages[..., worst : worst + 1])

    def report(self) -> dict[str, torch.Tensor]:
        """Return 1 for the cost that was lowered, 0 for the others."""
        worst = self.excess == self.excess.max()
        is_lowered = worst & (self.excess > self.cfg.tolerance)
        return {"lowered": is_lowered.float()}
