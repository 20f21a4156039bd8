"""Generalized advantage estimation.

Schulman et al. 2016, "High-dimensional continuous control using generalized advantage estimation".
"""

from dataclasses import dataclass

import torch

from legged_envs.storage.fields import fitting


@dataclass(frozen=True, slots=True, kw_only=True)
class Returns:
    """Returns of rewards, or of K costs, and the numbers from which the returns are computed.

    Shapes: (num_steps, num_envs, K).
    """

    prefix: str
    """Start of names in messages: empty for rewards, ``cost_`` for costs."""

    rewards: torch.Tensor
    """Reward, or cost, of each transition."""

    values: torch.Tensor
    """Value of the state before each transition."""

    returns: torch.Tensor
    """Buffer of the returns."""

    advantages: torch.Tensor
    """Buffer of the advantages."""

    gamma: float
    """Discount γ per step."""

    lam: float
    """λ: 0 for one-step differences, 1 for whole returns."""

    normalize: bool
    """True if :meth:`finish` brings advantages to mean 0 and standard deviation 1."""

    continuation: torch.Tensor | None = None
    """Probability κ that only a done ends the return after a step. None: 1. Shape:
    (num_steps, num_envs) or (num_steps, num_envs, 1)."""

    def next_values(
        self,
        last_values: object,
        final_values: object,
        dones: torch.Tensor,
        time_outs: torch.Tensor | None,
    ) -> torch.Tensor:
        """Return the value of the state that each transition led to.

        This value is 0 after a terminal state, ``final_values`` after a time-out, and otherwise the
        next row's value or ``last_values``.

        Args:
            last_values: Values of the states after the last step. Shape: (num_envs, K).
            final_values: Values of the last states of episodes that timed out.
                Shape: (num_steps, num_envs, K).
            dones: True where an episode ended. Shape: (num_steps, num_envs, 1), bool.
            time_outs: True where an episode timed out, or None. Shape: (num_steps, num_envs, 1),
                bool.

        Raises:
            ValueError: If a tensor is missing, or its shape or device differs.
            TypeError: If the dtype of a tensor differs.
        """
        final_name = f"final_{self.prefix}values"
        if (time_outs is None) != (final_values is None):
            missing = "time_outs" if time_outs is None else final_name
            raise ValueError(
                f"{missing} is missing: time_outs and {final_name} are needed together"
            )
        if self.continuation is not None:
            fitting("continuation", self.continuation, self.rewards)
        last_values = fitting(f"last_{self.prefix}values", last_values, self.values[0])
        following = torch.cat((self.values[1:], last_values.unsqueeze(0)))
        following.masked_fill_(dones, 0.0)  # a terminal state is worth nothing
        if time_outs is None:
            return following
        final_values = fitting(final_name, final_values, self.values)
        return torch.where(time_outs, final_values, following)

    def write(self, next_values: torch.Tensor, dones: torch.Tensor) -> None:
        """Write the advantages and the returns.

        A_t = r_t + γ·κ_t·V'_t − V_t + γ·λ·κ_t·(1 − done_t)·A_{t+1}, and the returns are A_t + V_t.

        Args:
            next_values: V', from :meth:`next_values`.
            dones: True where an episode ended. Shape: (num_steps, num_envs, 1), bool.
        """
        if self.continuation is not None:
            next_values = next_values * self.continuation.view(*dones.shape)
        advantages = self.advantages
        # First the one-step differences δ_t = r_t + γ·V'_t − V_t, of all steps at once.
        torch.add(self.rewards, next_values, alpha=self.gamma, out=advantages)
        advantages.sub_(self.values)
        # No advantage crosses the end of an episode, also where it was a time-out.
        decay = dones.logical_not().to(advantages.dtype)
        decay.mul_(self.gamma * self.lam)
        if self.continuation is not None:
            decay.mul_(self.continuation.view(*dones.shape))
        # Backwards: each step adds the finished advantage of the step after it.
        for step in reversed(range(len(advantages) - 1)):
            advantages[step].addcmul_(decay[step], advantages[step + 1])
        torch.add(advantages, self.values, out=self.returns)

    def finish(self, next_values: torch.Tensor, time_outs: torch.Tensor | None) -> None:
        """Normalize each column of advantages, if asked for.

        Args:
            next_values: V', from :meth:`next_values`.
            time_outs: True where an episode timed out, or None.

        Raises:
            ValueError: If a number is not finite.
        """
        if not torch.isfinite(self.returns.sum()):  # the sum is not finite if one of them is not
            self._check_finite(next_values, time_outs)
        if not self.normalize:
            return
        num_samples = self.advantages[..., 0].numel()
        # One sample has no standard deviation with Bessel's correction.
        correction = min(1, num_samples - 1)
        std, mean = torch.std_mean(self.advantages, dim=(0, 1), correction=correction)
        self.advantages.sub_(mean)
        # Equal advantages have a deviation of 0.
        self.advantages.div_(std.add_(1e-8))

    def _check_finite(self, next_values: torch.Tensor, time_outs: torch.Tensor | None) -> None:
        kind = self.prefix
        # Causes before their effects: the first tensor with such a number is named.
        numbers = {f"{kind}rewards": self.rewards, f"{kind}values": self.values}
        if time_outs is not None:
            numbers[f"final_{kind}values"] = next_values.masked_fill(~time_outs, 0.0)
        numbers[f"last_{kind}values"] = next_values
        numbers[f"{kind}returns"] = self.returns
        for name, tensor in numbers.items():
            bad = torch.isfinite(tensor).logical_not_().nonzero()
            if len(bad):
                step, env, term = bad[0].tolist()
                number = tensor[step, env, term].item()
                column = f", column {term}" if tensor.shape[-1] > 1 else ""
                raise ValueError(
                    f"{name} must be finite, got {number} at step {step} "
                    f"in environment {env}{column}"
                )


def checked_time_outs(time_outs: torch.Tensor, dones: torch.Tensor) -> torch.Tensor:
    """Return time-outs in the shape of ``dones``; a ValueError where no episode ended."""
    time_outs = fitting("time_outs", time_outs, dones)
    running = (time_outs & ~dones).nonzero()
    if len(running):
        step, env, _ = running[0].tolist()
        raise ValueError(
            f"time_outs has an end at step {step} in environment {env}, dones has none there"
        )
    return time_outs
