from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from legged_envs.configuration import Configuration
from legged_envs.managers.manager import Manager, check_function


@dataclass
class CurriculumTermCfg(Configuration):
    """How a task gets harder as robots succeed."""

    func: Callable[..., float | torch.Tensor | None]
    """``func(env, env_ids, **params)``, called when the episodes of ``env_ids`` are over, changes the task for those to
    come, in what its owner saves, such as ranges of a command, and returns a number to log, or None."""
    params: dict[str, Any] = field(default_factory=dict)


class CurriculumManager(Manager):
    """Calls the curriculum terms, in order, when episodes end; ValueError if one returns more than a number."""

    title = "Curriculum"

    def __init__(self, env: Any, cfg: dict[str, CurriculumTermCfg]):
        for name, term in cfg.items():
            check_function(f"curriculum term {name!r}", term.func, ("env", "env_ids"), term.params)
        super().__init__(env, cfg)
        self.log_names = tuple(f"curriculum/{name}" for name in cfg)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        rows = torch.zeros(len(env_ids), len(self.cfg), dtype=torch.float32, device=env_ids.device)
        for column, (name, term) in enumerate(self.cfg.items()):
            value = term.func(self._env, env_ids, **term.params)
            value = torch.as_tensor(0.0 if value is None else value, dtype=torch.float32)
            if value.numel() != 1:
                raise ValueError(
                    f"curriculum term {name!r} must return a number or None, got shape {(*value.shape,)}"
                )
            rows[:, column] = value
        return rows
