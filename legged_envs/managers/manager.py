"""What managers share: named terms, what they log, their saved state and their tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch

from legged_envs.managers.recorded import Piece
from legged_envs.mdp.context import is_pure
from legged_envs.state import Stateful


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A plain-text table, one line per row."""
    cells = [list(map(_cell, row)) for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([title, lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


class Manager(Stateful):
    """Evaluates the terms of one kind, whose configurations ``cfg`` has by name."""

    log_names: tuple[str, ...] = ()
    """Names of the columns of what :meth:`end_episodes` returns."""
    title = ""
    """What stands above its table."""
    COLUMNS: ClassVar[dict[str, str]] = {"parameters": "params"}
    """Columns of the table beside the names: header → field of the configurations."""

    def __init__(self, env: Any, cfg: Mapping[str, Any]):
        self._env, self.cfg = env, cfg
        self.names = tuple(cfg)
        """Names of the terms."""

    def pieces(self) -> list[Piece]:
        """What it does in a step between reading the robot and the observations, in order."""
        return []

    def owners(self) -> list[object]:
        """Objects whose attributes are the tensors that terms and pieces read and set."""
        return [self]

    def reset(self, env_ids: torch.Tensor) -> None:
        """Begin the episodes of ``env_ids``."""

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """What the log says of episodes that are over, each after ``steps`` (n,) steps. (n, len(log_names))."""
        return torch.zeros(len(env_ids), 0, dtype=torch.float32, device=env_ids.device)

    def __str__(self) -> str:
        fields = self.COLUMNS.values()
        rows = [(name, *(getattr(term, field) for field in fields)) for name, term in self.cfg.items()]
        return table(self.title, ("term", *self.COLUMNS), rows)


class Term:
    """A term function bound to its parameters.

    Raises:
        TypeError: If ``func`` is no function.
    """

    def __init__(self, kind: str, name: str, func: Callable[..., torch.Tensor], params: Mapping[str, Any]):
        if not callable(func):
            raise TypeError(f"{kind} term {name!r}: func must be callable, got {func!r}")
        self.kind, self.name, self.func, self.params = kind, name, func, dict(params)
        functions = [func, *(value for value in self.params.values() if callable(value))]
        self.pure = all(map(is_pure, functions))
        """Whether the function, and every function among its parameters, is marked pure."""

    def __call__(self, env: Any) -> torch.Tensor:
        return self.func(env, **self.params)

    def check(self, env: Any, *, shape: tuple[int, ...] | None, dtype: torch.dtype) -> torch.Tensor:
        """Evaluate once.

        Raises:
            ValueError: If the term returns another shape (None: any (num_envs, size)) or dtype, naming the term.
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


class TermColumns:
    """The values of several terms side by side, in the order of the terms.

    Pure terms are recorded together; one that is not pure costs its own time alone.

    Their values are ``scalar`` (num_envs,) or else (num_envs, size), and of ``dtype``.
    """

    def __init__(self, env: Any, terms: Sequence[Term], dtype: torch.dtype, scalar: bool):
        self._env, self.terms, self._dtype, self._scalar = env, tuple(terms), dtype, scalar
        values = [term.check(env, shape=(env.num_envs,) if scalar else None, dtype=dtype) for term in terms]
        self.sizes = tuple(1 if scalar else value.shape[1] for value in values)
        """Number of columns of each term."""
        self._others = [term for term in terms if not term.pure]
        self._other_sizes = [size for term, size in zip(terms, self.sizes, strict=True) if not term.pure]
        self.other_values = torch.zeros(env.num_envs, sum(self._other_sizes), dtype=dtype, device=env.device)
        """The values of the terms that are not pure. Shape: (num_envs, their columns)."""

    def pieces(self, use: Callable[[], None]) -> list[Piece]:
        """Evaluate the terms that are not pure, then call ``use``, which takes all from :meth:`values`."""
        return [Piece(self._evaluate_others, False), Piece(use, True)] if self._others else [Piece(use, True)]

    def values(self) -> torch.Tensor:
        """The values of all terms; those that are not pure are of the earlier piece. Shape: (num_envs, columns)."""
        others: Iterator[torch.Tensor] = iter(())
        if self._others:
            others = iter(
                self.other_values.unbind(1) if self._scalar else self.other_values.split(self._other_sizes, 1)
            )
        return self._join([term(self._env) if term.pure else next(others) for term in self.terms])

    def evaluate(self) -> torch.Tensor:
        """Evaluate all terms at once. Shape: (num_envs, columns)."""
        return self._join([term(self._env) for term in self.terms])

    def _evaluate_others(self) -> None:
        self.other_values = self._join([term(self._env) for term in self._others])

    def _join(self, values: list[torch.Tensor]) -> torch.Tensor:
        if not values:
            return torch.zeros(self._env.num_envs, 0, dtype=self._dtype, device=self._env.device)
        return torch.stack(values, 1) if self._scalar else torch.cat(values, 1)


class TermManager(Manager, ABC):
    """A manager of terms of shape (num_envs,), which the log calls ``kind/name``."""

    def __init__(self, env: Any, kind: str, cfg: Mapping[str, Any], dtype: torch.dtype):
        super().__init__(env, cfg)
        self.terms = tuple(Term(kind, name, term.func, term.params) for name, term in cfg.items())
        self.columns = TermColumns(env, self.terms, dtype, scalar=True)
        self.log_names = tuple(f"{kind}/{name}" for name in cfg)

    @abstractmethod
    def compute(self) -> None:
        """Take in the values of the terms of this step; pure."""

    def pieces(self) -> list[Piece]:
        return self.columns.pieces(self.compute)

    def owners(self) -> list[object]:
        return [self, self.columns]


class EpisodeSums(TermManager):
    """Sums its terms over each episode; the log has sums over episode length · ``sums_dt``."""

    STATE = ("episode_sums",)

    def __init__(self, env: Any, kind: str, cfg: Mapping[str, Any], sums_dt: float):
        super().__init__(env, kind, cfg, torch.float32)
        self._sums_dt = sums_dt
        self.episode_sums = torch.zeros(env.num_envs, len(cfg), dtype=torch.float32, device=env.device)
        """Sum of each term over each environment's episode. Shape: (num_envs, num_terms)."""

    def reset(self, env_ids: torch.Tensor) -> None:
        self.episode_sums.index_fill_(0, env_ids, 0.0)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return self.episode_sums[env_ids] / (steps * self._sums_dt).unsqueeze(1)
