"""The interface of a constraint method, and the losses that several methods share."""

from dataclasses import dataclass
from typing import Any

import torch

from legged_envs.training import processes
from legged_envs.training.learner_options import ConstraintCfg


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A mini-batch as the loss of a policy sees it. ``batch`` is the number of its transitions."""

    ratio: torch.Tensor
    """Probability of each action, divided by that during the rollout, with its graph.

    Shape: (batch,)."""
    advantages: torch.Tensor
    """Advantages that the policy ascends, from :meth:`ConstraintMethod.weigh`. Shape: (batch,)."""
    cost_advantages: torch.Tensor
    """Advantages of the K costs in units of their limits, with mean 0. Shape: (batch, K)."""
    clip: float
    """Clipping range ε of the ratio."""
    kl: torch.Tensor | None = None
    """KL divergence of the present policy from that of the rollout, KL(π ‖ π_old), with its graph.

    None unless :attr:`ConstraintMethod.needs_kl` is True. Shape: (batch,)."""


class ConstraintMethod:
    """Base of the methods. Each of its four methods does nothing unless it is overridden.

    All costs are in units of their limits: a mean cost J per control step keeps its limit if
    J ≤ 1. A cost advantage A is scaled so that a policy with probability ratio r changes J by
    E[r A] to first order (Kakade and Langford 2002).

    A control step calls :meth:`shape`. An update calls :meth:`measure` and :meth:`weigh` once, and
    :meth:`loss` for each mini-batch.

    Args:
        num_costs: Number K of constrained costs.
        cfg: Options of the constraints.
        device: Device of all tensors.
    """

    needs_kl: bool = False
    """True if :meth:`loss` reads ``Sample.kl``."""
    needs_critic: bool = True
    """True if the method reads the advantages of costs. Without a critic, :meth:`weigh` is not
    called and ``Sample.cost_advantages`` has no columns."""

    def __init__(self, num_costs: int, cfg: ConstraintCfg, device: torch.device):
        self.cfg = cfg
        """Options of the constraints."""
        self.excess = torch.zeros(num_costs, device=device)
        """Mean costs minus their limits in the last rollout, in units of the limits. Shape: (K,).

        Positive where a limit is broken."""

    def shape(
        self, rewards: torch.Tensor, costs: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the rewards of a step, and the probability that the return continues after it.

        Args:
            rewards: Rewards of the environment. Shape: (num_envs,).
            costs: Costs of the step in units of their limits. Shape: (num_envs, K).

        Returns:
            Rewards, and factors on all later rewards, or None for 1. Shapes: (num_envs,).
        """
        return rewards, None

    def measure(self, excess: torch.Tensor) -> None:
        """Take note of the excess J − 1 of each cost in a rollout. Shape: (K,)."""
        self.excess = excess

    def weigh(self, advantages: torch.Tensor, cost_advantages: torch.Tensor) -> torch.Tensor:
        """Return the advantages that the policy ascends. Shape: that of ``advantages``.

        Args:
            advantages: Standardized advantages of the reward. Shape: (steps, num_envs, 1).
            cost_advantages: Advantages of the costs, with mean 0. Shape: (steps, num_envs, K).
        """
        return advantages

    def loss(self, sample: Sample) -> torch.Tensor:
        """Return the loss of the policy on a mini-batch, a scalar."""
        return clipped_surrogate(sample)

    def report(self) -> dict[str, torch.Tensor]:
        """Return a number for each cost by the name of its kind, for the log. Shapes: (K,)."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the method, for a checkpoint."""
        return {"excess": self.excess}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that :meth:`state_dict` returned, from any device."""
        self.excess = state["excess"].to(self.excess.device)


def clipped_surrogate(sample: Sample) -> torch.Tensor:
    """Return PPO's clipped surrogate loss (Schulman et al. 2017, eq. 7)."""
    # The minimum removes the incentive to move the ratio outside the clipping range.
    clipped = sample.ratio.clamp(1.0 - sample.clip, 1.0 + sample.clip)
    advantages = sample.advantages
    return -torch.min(advantages * sample.ratio, advantages * clipped).mean()


def standardized(cost_advantages: torch.Tensor) -> torch.Tensor:
    """Return cost advantages divided by their standard deviations, or by 1 if these are less.

    1 is the cost of one step at the limit. Without this bound, costs that are nearly constant would
    be amplified to noise. Shape: (steps, num_envs, K).
    """
    std, _ = processes.std_mean(cost_advantages.flatten(0, 1))
    return cost_advantages / std.clamp(min=1.0)
