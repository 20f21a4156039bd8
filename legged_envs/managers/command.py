from collections.abc import Iterable
from typing import Any

import torch

from legged_envs.managers.manager import Manager
from legged_envs.mdp.commands import CommandTermCfg
from legged_envs.tables import Table


class CommandManager(Manager):
    """The command terms by name, which it calls as :class:`~legged_envs.mdp.commands.CommandTerm` says."""

    STATE = ("terms",)

    def __init__(self, env: Any, cfg: dict[str, CommandTermCfg]):
        super().__init__(env, cfg)
        self.terms = {name: term.build(env) for name, term in cfg.items()}

    def __getitem__(self, name: str) -> torch.Tensor:
        """The present command called ``name``. Shape: (num_envs, size)."""
        return self.terms[name].value

    def owners(self) -> list[object]:
        return list(self.terms.values())

    def reset(self, env_ids: torch.Tensor) -> None:
        for term in self.terms.values():
            term.reset(env_ids)

    def on_placed(self, env_ids: torch.Tensor) -> None:
        """Take in that the robots of ``env_ids`` (n,) stand in their first pose."""
        for term in self.terms.values():
            term.on_placed(env_ids)

    def advance(self) -> None:
        """Let one control step pass for every command."""
        for term in self.terms.values():
            term.advance()

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        for term in self.terms.values():
            term.end_episodes(env_ids)
        return super().end_episodes(env_ids, steps)

    def _as_tables(self) -> Iterable[Table]:
        rows = [
            (name, term.value.shape[1], vars(self.cfg[name])) for name, term in self.terms.items()
        ]
        return [("Commands", ("term", "size", "configuration"), rows)]
