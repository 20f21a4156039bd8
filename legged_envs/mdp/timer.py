import torch

from legged_envs.state import Stateful

_NEVER = 1 << 62


class Timer(Stateful):
    """Counts down in every environment, in whole control steps of ``step_dt`` s; costs nothing while none is due."""

    STATE = ("_now", "_due", "_earliest")

    def __init__(self, num_envs: int, step_dt: float, device: torch.device):
        self._step_dt, self._now, self._earliest = step_dt, 0, _NEVER
        self._due = torch.full((num_envs,), _NEVER, dtype=torch.int64, device=device)

    def start(self, env_ids: torch.Tensor, seconds: torch.Tensor) -> None:
        """Let the timers of ``env_ids`` run out after ``seconds``, at least one step. Shape of both: (n,)."""
        self._due[env_ids] = due = (
            (seconds / self._step_dt).round_().clamp_(1, 1e15).long().add_(self._now)
        )
        self._earliest = min(self._earliest, int(due.min()))

    def stop(self) -> None:
        self._due = torch.full_like(self._due, _NEVER)
        self._earliest = _NEVER

    def advance(self) -> torch.Tensor | None:
        """Let a step pass. Returns the environments whose timer ran out, which then stands still, or None."""
        self._now += 1
        if self._now < self._earliest:
            return None
        env_ids = (self._due <= self._now).nonzero().squeeze(1)
        self._due[env_ids] = _NEVER
        self._earliest = int(self._due.min())
        return env_ids if len(env_ids) else None
