from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from legged_envs.configuration import Configuration
from legged_envs.managers.manager import TermColumns


@dataclass
class TerminationTermCfg(Configuration):
    """A termination condition. The time limit is no term: the ``TimeLimit`` wrapper has it."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)`` → (num_envs,) bool."""
    grace_s: float = 0.0
    """The episode ends when the condition has held without a break for longer than this, s."""
    params: dict[str, Any] = field(default_factory=dict)
    time_out: bool = False
    """Whether it cuts the episode off for a reason that is no failure: a truncation (Isaac Lab ``time_out``)."""


class TerminationManager(TermColumns):
    """Evaluates the conditions. The grace time counts consecutive steps, as LeggedGym-Ex documents it."""

    title = "Terminations"
    COLUMNS: ClassVar[dict[str, str]] = {"grace [s]": "grace_s", "parameters": "params"}
    STATE = ("held_steps", "reasons", "terminated")

    def __init__(self, env: Any, cfg: dict[str, TerminationTermCfg]):
        super().__init__(env, "termination", cfg, torch.bool)
        steps = [round(term.grace_s / env.step_dt) for term in cfg.values()]
        self._grace_steps = torch.tensor(steps, dtype=torch.int32, device=env.device)
        self.held_steps = self._grace_steps.new_zeros(env.num_envs, len(cfg))
        """For how many consecutive steps each condition has held. Shape: (num_envs, num_terms)."""
        self.reasons = self.held_steps.bool()
        self.terminated, self.time_outs = self.reasons.any(1), self.reasons.any(1)
        """Which condition ended which episode in the last step, (num_envs, num_terms), and whose ended, (num_envs,)."""
        failures = [not term.time_out for term in cfg.values()]
        self._failures = None if all(failures) else torch.tensor(failures, device=env.device)

    def compute(self) -> None:
        self.held_steps.add_(1).mul_(self.columns())
        self.reasons = self.held_steps > self._grace_steps
        if self._failures is None:
            self.terminated = self.reasons.any(1)
        else:
            self.terminated = (self.reasons & self._failures).any(1)
            self.time_outs = (self.reasons & ~self._failures).any(1)

    def reset(self, env_ids: torch.Tensor) -> None:
        self.held_steps.index_fill_(0, env_ids, 0)
        for name in ("reasons", "terminated", "time_outs"):
            setattr(self, name, getattr(self, name).index_fill(0, env_ids, False))

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return self.reasons[env_ids].float()
