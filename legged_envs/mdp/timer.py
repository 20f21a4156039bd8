"""Timers, one for each environment, that count control steps."""

import torch

from legged_envs.state import Stateful

NEVER = 1 << 62
"""Expiry step of a stopped timer: a step number that is never reached."""
MAX_STEPS = 1e15
"""Longest time of a timer, control steps.

The step number plus this value is exact in int64 and below ``NEVER``.
"""


class Timer(Stateful):
    """One timer for each environment, for example until its next command or push.

    Times are rounded to control steps. A step in which no timer expires costs only a comparison of
    two integers.

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
        """Start the timers of some environments, also timers that are already running.

        Args:
            env_ids: Indices of environments. Shape: (n,).
            seconds: Time after which each timer expires, s, at least one control step. Shape: (n,).
        """
        # Rounded, not cut off: in floating point 0.3 / 0.02 is slightly below 15.
        steps = (seconds / self._step_dt).round_().clamp_(1, MAX_STEPS)
        due = steps.long().add_(self._now)
        self._due[env_ids] = due
        self._earliest = min(self._earliest, int(due.min()))

    def stop(self) -> None:
        """Stop all timers. Stopped timers do not expire until they are started again."""
        self._due = torch.full_like(self._due, NEVER)
        self._earliest = NEVER

    def advance(self) -> torch.Tensor | None:
        """Advance all timers by one control step, and stop the expired ones.

        Returns:
            Indices of environments with an expired timer, (n,), or None if no timer expired.
        """
        self._now += 1
        # The usual case, in which no tensor is touched.
        if self._now < self._earliest:
            return None
        env_ids = (self._due <= self._now).nonzero().squeeze(1)
        self._due[env_ids] = NEVER
        self._earliest = int(self._due.min())
        # A timer that was started again leaves the earliest time behind: then none runs out.
        if len(env_ids) == 0:
            return None
        return env_ids
