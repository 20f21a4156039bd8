"""What every manager of batched terms shares: evaluation, shape checks and printing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from legged_envs.mdp.context import is_pure


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A plain-text table, one line per row."""
    cells = [list(map(str, header)), *[list(map(str, row)) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([title, lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def format_params(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())


class Term:
    """A term function bound to its environment and parameters."""

    def __init__(self, kind: str, name: str, func: Callable[..., torch.Tensor], params: Mapping[str, Any]):
        if not callable(func):
            raise TypeError(f"{kind} term {name!r}: func must be callable, got {func!r}")
        self.kind, self.name, self.func, self.params = kind, name, func, dict(params)

    def __call__(self, env: Any) -> torch.Tensor:
        return self.func(env, **self.params)

    @property
    def recordable(self) -> bool:
        """Whether it, and every function among its parameters, is marked pure."""
        functions = [self.func, *(value for value in self.params.values() if callable(value))]
        return all(map(is_pure, functions))

    def check(self, env: Any, *, shape: tuple[int, ...] | None, dtype: torch.dtype) -> torch.Tensor:
        """Evaluate once and raise if the value is not what the manager can use.

        Args:
            shape: The expected shape; None accepts any (num_envs, size).
            dtype: The expected dtype.

        Raises:
            ValueError: If the term returns another shape or dtype, naming the term.
        """
        value = self(env)
        where = f"{self.kind} term {self.name!r} ({getattr(self.func, '__name__', self.func)})"
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"{where} must return a tensor, got {type(value).__name__}")
        expected = f"{shape}" if shape is not None else f"({env.num_envs}, size)"
        fits = value.shape == shape if shape is not None else value.ndim == 2 and value.shape[0] == env.num_envs
        if not fits:
            raise ValueError(f"{where} must return shape {expected}, got {tuple(value.shape)}")
        if value.dtype != dtype:
            raise ValueError(f"{where} must return {dtype}, got {value.dtype}")
        return value


class WeightedTerms:
    """Terms of shape (num_envs,) evaluated together, with their sums over each episode."""

    def __init__(self, env: Any, terms: list[Term]):
        self._env = env
        self.terms = terms
        for term in terms:
            term.check(env, shape=(env.num_envs,), dtype=torch.float32)
        self.episode_sums = torch.zeros(env.num_envs, len(terms), dtype=torch.float32, device=env.device)
        """Sum of each term over each environment's episode. Shape: (num_envs, num_terms)."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(term.name for term in self.terms)

    @property
    def recordable(self) -> bool:
        """Whether every term is the package's own."""
        return all(term.recordable for term in self.terms)

    def _evaluate(self) -> torch.Tensor:
        """The terms' values. Shape: (num_envs, num_terms)."""
        if not self.terms:
            return torch.zeros_like(self.episode_sums)
        return torch.stack([term(self._env) for term in self.terms], dim=1)

    def take_episode_means(self, env_ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Sum over length of each term, mean over the episodes of ``env_ids``, whose sums start again. (num_terms,)."""
        means = (self.episode_sums[env_ids] / lengths.unsqueeze(1)).mean(0)
        self.episode_sums.index_fill_(0, env_ids, 0.0)
        return means
