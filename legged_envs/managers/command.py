"""Commands that the robots should follow."""

from collections.abc import Iterable

import torch

from legged_envs.managers.manager import Manager
from legged_envs.mdp.commands import CommandTermCfg
from legged_envs.mdp.context import Env
from legged_envs.tables import Table


class CommandManager(Manager):
    """Holds the command terms by name and calls them.

    :class:`~legged_envs.mdp.commands.CommandTerm` describes when each of its methods is called.

    Args:
        env: The environment that the terms see.
        cfg: Name of each term mapped to its configuration.
    """

    STATE = ("terms",)

    def __init__(self, env: Env, cfg: dict[str, CommandTermCfg]):
        super().__init__(env, cfg)
        self.terms = {name: term.build(env) for name, term in cfg.items()}
        """Name of each command mapped to its term."""

    def __getitem__(self, name: str) -> torch.Tensor:
        """Return the present command called ``name``. Shape: (num_envs, size)."""
        return self.terms[name].value

    def reset(self, env_ids: torch.Tensor) -> None:
        for term in self.terms.values():
            term.reset(env_ids)

    def on_placed(self, env_ids: torch.Tensor) -> None:
        """Tell every command that the robots of ``env_ids`` (n,) stand in their first pose."""
        for term in self.terms.values():
            term.on_placed(env_ids)

    def advance(self) -> None:
        """Advance every command by one control step."""
        for term in self.terms.values():
            term.advance()

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        # The base class returns no columns; the terms only learn that an episode ended.
        for term in self.terms.values():
            term.end_episodes(env_ids)
        return super().end_episodes(env_ids, steps)

    def _as_tables(self) -> Iterable[Table]:
        rows = []
        for name, term in self.terms.items():
            rows.append((name, term.value.shape[1], vars(self.cfg[name])))
        return [("Commands", ("term", "size", "configuration"), rows)]
