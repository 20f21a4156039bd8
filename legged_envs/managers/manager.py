from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import torch

from legged_envs.managers.recorded import Piece
from legged_envs.mdp.context import is_pure
from legged_envs.state import Stateful
from legged_envs.tables import Shown, Table, cell


class Manager(Stateful, Shown):
    """Evaluates the terms of one kind, whose configurations ``cfg`` has by their ``names``."""

    log_names: tuple[str, ...] = ()
    """Names of the columns of what :meth:`end_episodes` returns."""
    title = ""
    COLUMNS: ClassVar[dict[str, str]] = {"parameters": "params"}
    """What stands above its table, and columns beside the names: header → field of the configurations."""

    def __init__(self, env: Any, cfg: Mapping[str, Any]):
        self._env, self.cfg, self.names = env, cfg, tuple(cfg)

    def owners(self) -> list[object]:
        """Objects whose attributes are the tensors that terms and pieces read and set."""
        return [self]

    def reset(self, env_ids: torch.Tensor) -> None:
        """Begin the episodes of ``env_ids``."""

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """What the log says of episodes that are over, each after ``steps`` (n,) steps. (n, len(log_names))."""
        return torch.zeros(len(env_ids), 0, dtype=torch.float32, device=env_ids.device)

    def _describe(self) -> str:
        return ", ".join(self.names)

    def _as_tables(self) -> Iterable[Table]:
        fields = self.COLUMNS.values()
        rows = [(name, term.func, *(getattr(term, field) for field in fields)) for name, term in self.cfg.items()]
        return [(self.title, ("term", "function", *self.COLUMNS), rows)]


class Term(Shown):
    """A term function bound to its parameters; TypeError if it is no function."""

    value: torch.Tensor
    """What the function of a term that is not pure returned last."""

    def __init__(self, kind: str, name: str, func: Callable[..., torch.Tensor], params: Mapping[str, Any]):
        self.where = f"{kind} term {name!r}"
        if not callable(func):
            raise TypeError(f"{self.where}: func must be callable, got {func!r}")
        self.func, self.params = func, dict(params)
        self.pure = all(map(is_pure, (func, *filter(callable, self.params.values()))))
        """Whether the function, and every function among its parameters, is marked pure."""

    def __call__(self, env: Any) -> torch.Tensor:
        return self.func(env, **self.params)

    def _describe(self) -> str:
        return f"{self.where}: {cell(self.func)}({cell(self.params)})"

    def check(self, env: Any, dtype: torch.dtype, scalar: bool) -> torch.Tensor:
        """Evaluate once; ValueError if it is not (num_envs,) if ``scalar``, else (num_envs, size), or not ``dtype``."""
        value = self(env)
        where = f"{self.where} ({getattr(self.func, '__name__', self.func)}) must return"
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"{where} a tensor, got {type(value).__name__}")
        if value.ndim != (1 if scalar else 2) or len(value) != env.num_envs:
            raise ValueError(f"{where} shape ({env.num_envs},{'' if scalar else ' size'}), got {tuple(value.shape)}")
        if value.dtype != dtype:
            raise ValueError(f"{where} {dtype}, got {value.dtype}")
        if not self.pure:
            self.value = value
        return value


class TermColumns(Manager, ABC):
    """A manager of terms whose values, (num_envs,) if ``scalar`` and else (num_envs, size), stand side by side. Pure
    terms are recorded together with :meth:`compute`; one that is not pure costs its own time alone."""

    def __init__(self, env: Any, kind: str, cfg: Mapping[str, Any], dtype: torch.dtype, scalar: bool = True):
        super().__init__(env, cfg)
        self._dtype, self._scalar = dtype, scalar
        self.log_names = tuple(f"{kind}/{name}" for name in cfg) if scalar else ()
        self.terms = tuple(Term(kind, name, term.func, term.params) for name, term in cfg.items())
        values = [term.check(env, dtype, scalar) for term in self.terms]
        self.sizes = tuple(1 if scalar else value.shape[1] for value in values)
        self._impure = [term for term in self.terms if not term.pure]

    @abstractmethod
    def compute(self) -> None:
        """Take in :meth:`columns` once in a step; pure."""

    def pieces(self) -> list[Piece]:
        before = [Piece(self.evaluate_impure, False)] if self._impure else []
        return [*before, Piece(self.compute, True)]

    def owners(self) -> list[object]:
        return [self, *self._impure]

    def columns(self) -> torch.Tensor:
        """The values of all terms, those that are not pure as the earlier piece left them. (num_envs, columns)."""
        values = [term(self._env) if term.pure else term.value for term in self.terms]
        if not values:
            return torch.zeros(self._env.num_envs, 0, dtype=self._dtype, device=self._env.device)
        return torch.stack(values, 1) if self._scalar else torch.cat(values, 1)

    def evaluate_impure(self) -> None:
        """Evaluate the terms that are not pure, for the next :meth:`columns`."""
        for term in self._impure:
            term.value = term(self._env)
