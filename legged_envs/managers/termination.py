"""Terminations: conditions that end an episode once they have held for a grace time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from legged_envs.managers.manager import Manager, Term, TermColumns, format_params, table
from legged_envs.managers.recorded import Piece


@dataclass
class TerminationTermCfg:
    """A termination condition. The time limit is no term: the ``TimeLimit`` wrapper has it."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)`` → (num_envs,) bool."""
    grace_s: float = 0.0
    """The episode ends when the condition has held without a break for longer than this, s."""
    params: dict[str, Any] = field(default_factory=dict)


class TerminationManager(Manager):
    """Evaluates the conditions. The grace time counts consecutive steps, as LeggedGym-Ex documents it."""

    _STATE = ("held_steps", "reasons", "terminated")

    def __init__(self, env: Any, cfg: dict[str, TerminationTermCfg]):
        self.cfg = cfg
        terms = [Term("termination", name, term.func, term.params) for name, term in cfg.items()]
        self.columns = TermColumns(env, terms, torch.bool, scalar=True)
        self.names = self.columns.names
        self.log_names = tuple(f"termination/{name}" for name in self.names)
        steps = [round(term.grace_s / env.step_dt) for term in cfg.values()]
        self._grace_steps = torch.tensor(steps, dtype=torch.int32, device=env.device)
        self.held_steps = torch.zeros(env.num_envs, len(terms), dtype=torch.int32, device=env.device)
        """For how many consecutive steps each condition has held. Shape: (num_envs, num_terms)."""
        self.reasons = torch.zeros(env.num_envs, len(terms), dtype=torch.bool, device=env.device)
        """Which condition ended which episode in the last step. Shape: (num_envs, num_terms)."""
        self.terminated = self.reasons.any(1)
        """Which episodes the last step ended. Shape: (num_envs,)."""

    def pieces(self) -> list[Piece]:
        return self.columns.pieces(self.compute)

    def owners(self) -> list[object]:
        return [self, self.columns]

    def compute(self) -> None:
        """Take in the conditions of this step."""
        self.held_steps.add_(1).mul_(self.columns.values())
        self.reasons = self.held_steps > self._grace_steps
        self.terminated = self.reasons.any(1)

    def reset(self, env_ids: torch.Tensor) -> None:
        self.held_steps.index_fill_(0, env_ids, 0)
        self.reasons = self.reasons.index_fill(0, env_ids, False)
        self.terminated = self.reasons.any(1)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return self.reasons[env_ids].float()

    def __str__(self) -> str:
        rows = [(name, term.grace_s, format_params(term.params)) for name, term in self.cfg.items()]
        return table("Terminations", ("term", "grace [s]", "parameters"), rows)
