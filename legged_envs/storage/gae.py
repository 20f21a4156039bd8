"""Generalised advantage estimation (Schulman et al. 2016, "High-dimensional continuous control using …")."""

from dataclasses import dataclass
from typing import Any

import torch

from legged_envs.storage.fields import fitting


@dataclass(frozen=True, slots=True)
class Returns:
    """Returns of rewards, or of K costs, and what they are computed from. Shapes: (num_steps, num_envs, K)."""

    prefix: str
    """Begins names in messages: empty for rewards, ``cost_`` for costs."""
    rewards: torch.Tensor
    values: torch.Tensor
    """Of the states before each transition."""
    returns: torch.Tensor
    advantages: torch.Tensor
    gamma: float
    lam: float
    """λ: 0 for one-step differences, 1 for whole returns."""
    normalise: bool

    def next_values(
        self, last_values: Any, final_values: Any, dones: torch.Tensor, time_outs: Any
    ) -> torch.Tensor:
        """The value of the state that each transition led to: 0 after a terminal state, ``final_values`` after a
        time-out, else the next row's or ``last_values`` (num_envs, K). ``dones``, ``time_outs``: (num_steps, num_envs,
        1), bool. Errors as :func:`fitting`; ValueError if only one of time-outs and final values is None."""
        last_name, final_name = f"last_{self.prefix}values", f"final_{self.prefix}values"
        if (time_outs is None) != (final_values is None):
            missing = "time_outs" if time_outs is None else final_name
            raise ValueError(
                f"{missing} is missing: time_outs and {final_name} are needed together"
            )
        last_values = fitting(last_name, last_values, self.values[0])
        following = torch.cat((self.values[1:], last_values.unsqueeze(0))).masked_fill_(dones, 0.0)
        if time_outs is None:
            return following
        return torch.where(time_outs, fitting(final_name, final_values, self.values), following)

    def write(self, next_values: torch.Tensor, dones: torch.Tensor) -> None:
        """Write A_t = r_t + γ·V'_t − V_t + γ·λ·(1 − done_t)·A_{t+1} and the returns A_t + V_t; V' are next_values."""
        out = self.advantages
        torch.add(self.rewards, next_values, alpha=self.gamma, out=out).sub_(self.values)
        decay = dones.logical_not().to(out.dtype).mul_(self.gamma * self.lam)
        for step in reversed(range(len(out) - 1)):
            out[step].addcmul_(decay[step], out[step + 1])
        torch.add(out, self.values, out=self.returns)

    def finish(self, next_values: torch.Tensor, time_outs: torch.Tensor | None) -> None:
        """Normalise each column of advantages, where asked for; ValueError where something is not finite."""
        if not torch.isfinite(self.returns.sum()):  # it is not, if one of them is not
            self._check_finite(next_values, time_outs)
        if self.normalise:
            freedom = min(1, self.advantages[..., 0].numel() - 1)
            std, mean = torch.std_mean(self.advantages, dim=(0, 1), correction=freedom)
            self.advantages.sub_(mean).div_(std.add_(1e-8))

    def _check_finite(self, next_values: torch.Tensor, time_outs: torch.Tensor | None) -> None:
        kind = self.prefix
        numbers = {f"{kind}rewards": self.rewards, f"{kind}values": self.values}
        if time_outs is not None:
            numbers[f"final_{kind}values"] = next_values.masked_fill(~time_outs, 0.0)
        numbers |= {f"last_{kind}values": next_values, f"{kind}returns": self.returns}
        for name, tensor in numbers.items():
            bad = torch.isfinite(tensor).logical_not_().nonzero()
            if len(bad):
                step, env, term = bad[0].tolist()
                column = f", column {term}" if tensor.shape[-1] > 1 else ""
                got = tensor[step, env, term].item()
                raise ValueError(
                    f"{name} must be finite, got {got} at step {step} in environment {env}{column}"
                )
