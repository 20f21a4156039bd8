"""Terminations: conditions that end an episode."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from legged_envs.checks import check_number
from legged_envs.configuration import Configuration
from legged_envs.managers.manager import TermManager
from legged_envs.mdp.context import Env


@dataclass
class TerminationTermCfg(Configuration):
    """A condition that ends an episode. The time limit is not one: ``TimeLimit`` enforces it."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)``, which returns shape (num_envs,), bool."""
    grace_s: float = 0.0
    """Time for which the condition must hold without a break before the episode ends, s."""
    params: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of ``func``."""
    time_out: bool = False
    """True if the condition truncates the episode and is not a failure (Isaac Lab:
    ``time_out``)."""


class TerminationManager(TermManager):
    """Evaluates the conditions; grace times count consecutive steps, as in LeggedGym-Ex.

    Args:
        env: The environment that the terms see.
        cfg: Name of each term mapped to its configuration.

    Raises:
        ValueError: A grace time is negative or not finite.
    """

    title = "Terminations"
    COLUMNS: ClassVar[dict[str, str]] = {"grace [s]": "grace_s", "parameters": "params"}
    STATE = ("held_steps", "reasons", "terminated")

    def __init__(self, env: Env, cfg: dict[str, TerminationTermCfg]):
        super().__init__(env, "termination", cfg, torch.bool)
        for name, term in cfg.items():
            check_number(f"termination term {name!r}: grace_s", term.grace_s, 0.0)
        grace_steps = [round(term.grace_s / env.step_dt) for term in cfg.values()]
        self._grace_steps = torch.tensor(grace_steps, dtype=torch.int32, device=env.device)

        self.held_steps = torch.zeros_like(self.columns, dtype=torch.int32)
        """Consecutive steps for which each condition has held. Shape: (num_envs, num_terms)."""
        self.reasons = torch.zeros_like(self.columns)
        """Conditions that ended an episode in the last step. Shape: (num_envs, num_terms), bool."""
        self.terminated = self.reasons.any(1)
        """Environments with an episode that failed in the last step. Shape: (num_envs,), bool."""
        self.time_outs = self.reasons.any(1)
        """Environments with an episode that a term truncated in the last step. Shape: (num_envs,),
        bool."""
        is_failure = [not term.time_out for term in cfg.values()]
        self._is_failure = torch.tensor(is_failure, dtype=torch.bool, device=env.device)
        self._has_time_outs = not all(is_failure)

    def compute(self) -> None:
        is_true = self.evaluate_terms()
        # One step more where the condition holds, 0 elsewhere.
        self.held_steps.add_(1).mul_(is_true)
        self.reasons = self.held_steps > self._grace_steps
        # Most tasks have only failures: they save two operations in every step.
        if self._has_time_outs:
            self.terminated = (self.reasons & self._is_failure).any(1)
            self.time_outs = (self.reasons & ~self._is_failure).any(1)
        else:
            self.terminated = self.reasons.any(1)

    def reset(self, env_ids: torch.Tensor) -> None:
        self.held_steps.index_fill_(0, env_ids, 0)
        # Not in place: the flags of the last step may still be in use.
        self.reasons = self.reasons.index_fill(0, env_ids, False)
        self.terminated = self.terminated.index_fill(0, env_ids, False)
        self.time_outs = self.time_outs.index_fill(0, env_ids, False)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.time_outs = (self.reasons & ~self._is_failure).any(1)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return self.reasons[env_ids].float()
