"""Curricula: how a task gets harder as robots succeed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from legged_envs.configuration import Configuration
from legged_envs.managers.manager import Manager
from legged_envs.managers.term import check_function
from legged_envs.mdp.context import Env


@dataclass
class CurriculumTermCfg(Configuration):
    """A curriculum, which makes the task harder as robots succeed."""

    func: Callable[..., float | torch.Tensor | None]
    """``func(env, env_ids, **params)``, called when the episodes of ``env_ids`` have ended.

    It changes the task of later episodes, in attributes that their owner saves, such as the
    ranges of a command, and returns a number to log, or None.
    """
    params: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of ``func``."""


class CurriculumManager(Manager):
    """Calls the curriculum terms, in order, when episodes end.

    Args:
        env: The environment that the terms see.
        cfg: Name of each term mapped to its configuration.

    Raises:
        TypeError: If the function of a term cannot be called with its parameters.
    """

    title = "Curriculum"

    def __init__(self, env: Env, cfg: dict[str, CurriculumTermCfg]):
        for name, term in cfg.items():
            check_function(f"curriculum term {name!r}", term.func, ("env", "env_ids"), term.params)
        super().__init__(env, cfg)
        self.log_names = tuple(f"curriculum/{name}" for name in cfg)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Call the terms and return the numbers that they log, shape (n, num_terms).

        Raises:
            ValueError: If a term returns more than one number.
        """
        rows = torch.zeros(len(env_ids), len(self.cfg), dtype=torch.float32, device=env_ids.device)
        for column, (name, term) in enumerate(self.cfg.items()):
            result = term.func(self._env, env_ids, **term.params)
            value = torch.as_tensor(0.0 if result is None else result, dtype=torch.float32)
            if value.numel() != 1:
                raise ValueError(
                    f"curriculum term {name!r} must return a number or None, "
                    f"got shape {tuple(value.shape)}"
                )
            rows[:, column] = value
        return rows
