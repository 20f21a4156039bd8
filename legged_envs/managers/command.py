"""Commands: what the robots are asked to do, resampled at random times."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from legged_envs.managers.term import table
from legged_envs.rng import RandomStreams


class CommandTerm(Protocol):
    """One kind of command."""

    value: torch.Tensor
    """The present command. Shape: (num_envs, size)."""
    moving: torch.Tensor
    """1 where the command asks the robot to move, else 0. Shape: (num_envs,), float32."""
    still: torch.Tensor
    """1 − ``moving``."""

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of its tensors that other terms read."""

    def reset(self, env_ids: torch.Tensor) -> None:
        """Draw anew for ``env_ids``, before their robots are placed."""

    def placed(self, env_ids: torch.Tensor) -> None:
        """Take in that the robots of ``env_ids`` stand in their first pose."""

    def hold(self, command: torch.Tensor) -> None: ...

    def advance(self) -> None: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class CommandTermCfg(Protocol):
    """Configuration of a command term, which it builds."""

    def build(self, env: Any, random: RandomStreams) -> CommandTerm: ...


class CommandManager:
    """The command terms by name."""

    def __init__(self, env: Any, cfg: dict[str, CommandTermCfg], random: RandomStreams):
        self.cfg = cfg
        self.terms = {name: term.build(env, random) for name, term in cfg.items()}

    def __getitem__(self, name: str) -> torch.Tensor:
        """The present command called ``name``. Shape: (num_envs, size)."""
        return self.terms[name].value

    def moving(self, name: str) -> torch.Tensor:
        """1 where the command called ``name`` asks the robot to move, else 0. Shape: (num_envs,), float32."""
        return self.terms[name].moving

    def still(self, name: str) -> torch.Tensor:
        """1 where the command called ``name`` asks the robot to stand still, else 0. Shape: (num_envs,), float32."""
        return self.terms[name].still

    def hold(self, name: str, command: torch.Tensor) -> None:
        """Give every environment one command until its next reset. Shape: (size,) or (num_envs, size)."""
        self.terms[name].hold(command)

    def reset(self, env_ids: torch.Tensor) -> None:
        for term in self.terms.values():
            term.reset(env_ids)

    def placed(self, env_ids: torch.Tensor) -> None:
        """Take in that the robots of ``env_ids`` stand in their first pose."""
        for term in self.terms.values():
            term.placed(env_ids)

    def advance(self) -> None:
        """Let one control step pass."""
        for term in self.terms.values():
            term.advance()

    def state_dict(self) -> dict[str, Any]:
        return {name: term.state_dict() for name, term in self.terms.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, term_state in state.items():
            self.terms[name].load_state_dict(term_state)

    def __str__(self) -> str:
        rows = [(name, term.value.shape[1], self.cfg[name]) for name, term in self.terms.items()]
        return table("Commands", ("term", "size", "configuration"), rows)
