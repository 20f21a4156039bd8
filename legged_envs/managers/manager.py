"""What every manager shares: named terms, what it logs, its saved state and its table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch

from legged_envs.managers.recorded import Piece
from legged_envs.mdp.context import is_pure


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A plain-text table, one line per row."""
    cells = [list(map(str, header)), *[list(map(str, row)) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([title, lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def format_params(params: Mapping[str, Any]) -> str:
    """Parameters of a term as ``name=value, …``."""
    return ", ".join(f"{name}={value}" for name, value in params.items())


class Manager:
    """Evaluates the terms of one kind."""

    names: tuple[str, ...] = ()
    """Names of the terms."""
    log_names: tuple[str, ...] = ()
    """Names of the columns of what :meth:`end_episodes` returns."""
    _STATE: ClassVar[tuple[str, ...]] = ()
    """Names of the tensors that the future depends on."""

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

    def state_dict(self) -> dict[str, Any]:
        """What the future depends on, copied."""
        return {name: getattr(self, name).clone() for name in self._STATE}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from ``state_dict``."""
        for name in self._STATE:
            setattr(self, name, state[name].clone())


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


class TermColumns:
    """The values of several terms side by side, in the order of the terms.

    Pure terms are recorded together; one that is not pure costs its own time alone.

    Args:
        env: The environment.
        terms: The terms.
        dtype: Dtype of their values.
        scalar: Whether each term has one value for an environment, (num_envs,), and not (num_envs, size).
    """

    def __init__(self, env: Any, terms: Sequence[Term], dtype: torch.dtype, scalar: bool):
        self._env = env
        self.terms = tuple(terms)
        self._join = torch.stack if scalar else torch.cat
        self._dtype = dtype
        values = [term.check(env, shape=(env.num_envs,) if scalar else None, dtype=dtype) for term in terms]
        self.sizes = tuple(1 if scalar else value.shape[1] for value in values)
        """Number of columns of each term."""
        self._pure_terms = [term for term in terms if term.pure]
        self._other_terms = [term for term in terms if not term.pure]
        num_pure = sum(size for term, size in zip(terms, self.sizes, strict=True) if term.pure)
        widths = (num_pure, sum(self.sizes) - num_pure)
        self.pure_values, self.other_values = (
            torch.zeros(env.num_envs, width, dtype=dtype, device=env.device) for width in widths
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the terms."""
        return tuple(term.name for term in self.terms)

    def pieces(self, use: Callable[[], None]) -> list[Piece]:
        """Evaluate the terms, then call ``use``, which takes them from :meth:`values`."""
        if not self._other_terms:
            return [Piece(use, True)]
        pure = [Piece(self._evaluate_pure, True)] if self._pure_terms else []
        return [*pure, Piece(self._evaluate_others, False), Piece(use, True)]

    def values(self) -> torch.Tensor:
        """The values of all terms: evaluated if all are pure, else those of the earlier pieces. (num_envs, columns)."""
        if not self._other_terms:
            return self._evaluate(self._pure_terms)
        ends = {True: 0, False: 0}
        columns = []
        for term, size in zip(self.terms, self.sizes, strict=True):
            start, ends[term.pure] = ends[term.pure], ends[term.pure] + size
            columns.append((self.pure_values if term.pure else self.other_values)[:, start : ends[term.pure]])
        return torch.cat(columns, dim=1)

    def evaluate(self) -> torch.Tensor:
        """Evaluate all terms at once. Shape: (num_envs, columns)."""
        return self._evaluate(self.terms)

    def _evaluate_pure(self) -> None:
        self.pure_values = self._evaluate(self._pure_terms)

    def _evaluate_others(self) -> None:
        self.other_values = self._evaluate(self._other_terms)

    def _evaluate(self, terms: Sequence[Term]) -> torch.Tensor:
        if not terms:
            return torch.zeros(self._env.num_envs, 0, dtype=self._dtype, device=self._env.device)
        return self._join([term(self._env) for term in terms], dim=1)


class EpisodeSums(Manager, ABC):
    """A manager of terms of shape (num_envs,) that sums them over each episode.

    Args:
        env: The environment.
        terms: The terms.
        kind: What the log calls them: ``kind/name``.
        sums_dt: The log has sums over episode length · ``sums_dt``.
    """

    _STATE = ("episode_sums",)

    def __init__(self, env: Any, terms: Sequence[Term], kind: str, sums_dt: float):
        self.columns = TermColumns(env, terms, torch.float32, scalar=True)
        self.names = self.columns.names
        self.log_names = tuple(f"{kind}/{name}" for name in self.names)
        self.terms = self.columns.terms
        self._sums_dt = sums_dt
        self.episode_sums = torch.zeros(env.num_envs, len(terms), dtype=torch.float32, device=env.device)
        """Sum of each term over each environment's episode. Shape: (num_envs, num_terms)."""

    @abstractmethod
    def compute(self) -> None:
        """Take in the values of the terms of this step; pure."""

    def pieces(self) -> list[Piece]:
        return self.columns.pieces(self.compute)

    def owners(self) -> list[object]:
        return [self, self.columns]

    def reset(self, env_ids: torch.Tensor) -> None:
        self.episode_sums.index_fill_(0, env_ids, 0.0)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return self.episode_sums[env_ids] / (steps * self._sums_dt).unsqueeze(1)
