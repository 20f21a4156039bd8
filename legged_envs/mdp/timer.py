"""A timer of each environment that counts control steps."""

import torch

from legged_envs.state import Stateful

NEVER = 1 << 62
"""Step at which a timer that stands still runs out."""
MAX_STEPS = 1e15
"""Longest time of a timer, control steps. Sums with it stay exact in int64 and below ``NEVER``."""


class Timer(Stateful):
    """A timer of each environment, in whole control steps.

    A step in which no timer runs out costs a comparison of two integers.

    Args:
        num_envs: Number of environments.
        step_dt: Duration of a control step, s.
        device: Device of the tensors.
    """

    STATE = ("_now", "_due", "_earliest")

    def __init__(
        self,
        num_envs: int,
        step_dt: float,
        device: torch.device,
    ):
        self._step_dt = step_dt
        self._now = 0
        self._due = torch.full((num_envs,), NEVER, dtype=torch.int64, device=device)
        # The smallest number in _due, kept as an integer: reading a tensor each step would be slow.
        self._earliest = NEVER

    def start(self, env_ids: torch.Tensor, seconds: torch.Tensor) -> None:
        """Start timers.

        Args:
            env_ids: Indices of environments. Shape: (n,).
            seconds: Time after which each runs out, s; at least one step. Shape: (n,).
        """
        # Rounded, not cut off: in floating point 0.3 / 0.02 is slightly below 15.
        steps = (seconds / self._step_dt).round_().clamp_(1, MAX_STEPS)
        due = steps.long().add_(self._now)
        self._due[env_ids] = due
        self._earliest = min(self._earliest, int(due.min()))

    def stop(self) -> None:
        """Stop all timers; they do not run out until they are started again."""
        self._due = torch.full_like(self._due, NEVER)
        self._earliest = NEVER

    def advance(self) -> torch.Tensor | None:
        """Let a control step pass.

        Returns:
            Indices of environments with a timer that ran out, (n,), or None. Their timers stand
            still.
        """
        self._now += 1
        # The usual case, in which no tensor is touched.
        if self._now < self._earliest:
            return None
        env_ids = (self._due <= self._now).nonzero().squeeze(1)
        self._due[env_ids] = NEVER
        self._earliest = int(self._due.min())
        # A timer that was started anew leaves the earliest time behind: then none runs out.
        if len(env_ids) == 0:
            return None
        return env_ids
