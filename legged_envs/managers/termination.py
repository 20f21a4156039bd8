"""Terminations: conditions that end an episode once they have held for a grace time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from legged_envs.managers.term import Term, format_params, table


@dataclass
class TerminationTermCfg:
    """A termination condition. Time limits are not terms: the ``TimeLimit`` wrapper has them."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)`` → (num_envs,) bool."""
    grace_s: float = 0.0
    """The episode ends when the condition has held without a break for longer than this, s."""
    params: dict[str, Any] = field(default_factory=dict)


class TerminationManager:
    """Evaluates the conditions. The grace time counts consecutive steps, as LeggedGym-Ex documents it."""

    def __init__(self, env: Any, cfg: dict[str, TerminationTermCfg]):
        self._env = env
        self.cfg = cfg
        self.terms = [Term("termination", name, term.func, term.params) for name, term in cfg.items()]
        for term in self.terms:
            term.check(env, shape=(env.num_envs,), dtype=torch.bool)
        steps = [round(term.grace_s / env.step_dt) for term in cfg.values()]
        self._grace_steps = torch.tensor(steps, dtype=torch.int32, device=env.device)
        self._held = torch.zeros(env.num_envs, len(self.terms), dtype=torch.int32, device=env.device)
        self.reasons = torch.zeros(env.num_envs, len(self.terms), dtype=torch.bool, device=env.device)
        """Which condition ended which episode in the last step. Shape: (num_envs, num_terms)."""
        self.terminated = self.reasons.any(1)
        """Which episodes the last step ended. Shape: (num_envs,)."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(term.name for term in self.terms)

    @property
    def recordable(self) -> bool:
        """Whether every term is the package's own."""
        return all(term.recordable for term in self.terms)

    READS = ("_held",)
    WRITES = ("reasons", "terminated")

    def compute(self) -> None:
        """Evaluate the conditions of this step."""
        if self.terms:
            self._held.add_(1).mul_(torch.stack([term(self._env) for term in self.terms], dim=1))
        self.reasons = self._held > self._grace_steps
        self.terminated = self.reasons.any(1)

    def counts(self, env_ids: torch.Tensor) -> torch.Tensor:
        """How many of ``env_ids`` each condition ended in the last step. Shape: (num_terms,)."""
        return self.reasons[env_ids].sum(0)

    def reset(self, env_ids: torch.Tensor) -> None:
        self._held.index_fill_(0, env_ids, 0)
        self.reasons = self.reasons.index_fill(0, env_ids, False)
        self.terminated = self.reasons.any(1)

    def state_dict(self) -> dict[str, Any]:
        return {"held": self._held.clone(), "reasons": self.reasons.clone()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._held.copy_(state["held"])
        self.reasons = state["reasons"].clone()
        self.terminated = self.reasons.any(1)

    def __str__(self) -> str:
        rows = [(name, term.grace_s, format_params(term.params)) for name, term in self.cfg.items()]
        return table("Terminations", ("term", "grace [s]", "parameters"), rows)
