import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import torch

from legged_envs.checks import did_you_mean
from legged_envs.managers.recorded import Piece
from legged_envs.mdp.context import is_pure
from legged_envs.state import Stateful
from legged_envs.tables import Table, TableRepr, format_cell


def name_of(func: Any) -> str:
    """What to call a function in an error; not every callable has a name."""
    func = getattr(func, "func", func)  # what a functools.partial calls
    return getattr(func, "__name__", None) or type(func).__name__


def check_function(
    where: str, func: Any, first: tuple[str, ...], params: Mapping[str, Any]
) -> None:
    """Raise TypeError, which says ``where``, unless ``func`` takes the arguments ``first``, then ``params`` by name."""
    if not callable(func):
        raise TypeError(f"{where}: func must be callable, got {func!r}")
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):  # some that are written in C have none
        return
    try:
        signature.bind(*first, **params)
    except TypeError as error:
        known = list(signature.parameters)[len(first) :]
        hint = "".join(
            f"; {did_you_mean(name, known)}".rstrip(" ;") for name in params if name not in known
        )
        given = ", ".join([*first, *(f"{name}={value!r}" for name, value in params.items())])
        wrong = f"{where}: {name_of(func)}{signature} cannot be called with ({given})"
        raise TypeError(f"{wrong}: {error}{hint}") from None


class Manager(Stateful, TableRepr):
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
        rows = [
            (name, term.func, *(getattr(term, field) for field in fields))
            for name, term in self.cfg.items()
        ]
        return [(self.title, ("term", "function", *self.COLUMNS), rows)]


class Term(TableRepr):
    """A term function bound to its parameters; TypeError if it is no function."""

    value: torch.Tensor
    """What the function of a term that is not pure returned last."""

    def __init__(
        self, kind: str, name: str, func: Callable[..., torch.Tensor], params: Mapping[str, Any]
    ):
        self.where = f"{kind} term {name!r}"
        check_function(self.where, func, ("env",), params)
        self.func, self.params = func, dict(params)
        used = (func, *filter(callable, self.params.values()))
        self.pure = all(map(is_pure, used))
        """Whether the function, and every function among its parameters, is marked pure."""
        self.own = all(
            (getattr(f, "__module__", None) or "").startswith("legged_envs.mdp.") for f in used
        )
        """Whether it is one of the package, which is finite where the physics is."""

    def __call__(self, env: Any) -> torch.Tensor:
        return self.func(env, **self.params)

    def _describe(self) -> str:
        return f"{self.where}: {format_cell(self.func)}({format_cell(self.params)})"

    def check(self, env: Any, dtype: torch.dtype, scalar: bool) -> torch.Tensor:
        """Evaluate once; ValueError if it is not (num_envs,) if ``scalar``, else (num_envs, size), or not ``dtype``."""
        try:
            value = self(env)
        except TypeError as error:
            raise TypeError(f"{self.where} ({name_of(self.func)}): {error}") from error
        where = f"{self.where} ({name_of(self.func)}) must return"
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"{where} a tensor, got {type(value).__name__}")
        if value.ndim != (1 if scalar else 2) or len(value) != env.num_envs:
            raise ValueError(
                f"{where} shape ({env.num_envs},{'' if scalar else ' size'}), got {tuple(value.shape)}"
            )
        if value.dtype != dtype:
            raise ValueError(f"{where} {dtype}, got {value.dtype}")
        if not self.pure:
            self.value = value
        return value


class TermColumns(Manager, ABC):
    """A manager of terms whose values, (num_envs,) if ``scalar`` and else (num_envs, size), stand side by side. Pure
    terms are recorded together with :meth:`compute`; one that is not pure costs its own time alone."""

    LEAST: ClassVar[float] = -math.inf
    """What no term may be below."""

    def __init__(
        self, env: Any, kind: str, cfg: Mapping[str, Any], dtype: torch.dtype, scalar: bool = True
    ):
        super().__init__(env, cfg)
        self._dtype, self._scalar = dtype, scalar
        self._sums: tuple[
            str, ...
        ] = ()  # attributes, (num_envs,), which are finite where all terms are as they must
        self.log_names = tuple(f"{kind}/{name}" for name in cfg) if scalar else ()
        self.terms = tuple(Term(kind, name, term.func, term.params) for name, term in cfg.items())
        values = [term.check(env, dtype, scalar) for term in self.terms]
        self.sizes = tuple(1 if scalar else value.shape[1] for value in values)
        self._impure = [term for term in self.terms if not term.pure]
        self.own = all(term.own for term in self.terms)

    @abstractmethod
    def compute(self) -> None:
        """Take in :meth:`columns` once in a step; pure."""

    def check_values(self, excepted: torch.Tensor | None = None) -> None:
        """Raise ValueError, naming the term, if one is not finite or below ``LEAST`` in an environment that is not
        ``excepted``, (num_envs,) bool. The terms are looked at only if a sum over them is not finite."""
        for name in self._sums:
            total = getattr(self, name)
            if not math.isfinite((total if self._env.num_envs == 1 else total.sum()).item()):
                break
        else:
            return
        for term in self.terms:
            value = (term(self._env) if term.pure else term.value).reshape(self._env.num_envs, -1)
            wrong = ~(value.isfinite() & (value >= self.LEAST))
            if excepted is not None:
                wrong &= ~excepted.unsqueeze(1)
            if len(env_ids := wrong.any(1).nonzero().squeeze(1).tolist()):
                number, bounded = value[wrong][0].item(), math.isfinite(self.LEAST)
                what = f"{term.where} ({name_of(term.func)}) returned {number:g} in environments {env_ids[:8]}"
                expected = f"must be finite{f' and at least {self.LEAST:g}' * bounded}"
                how = (
                    "clamp it" if math.isfinite(number) else "guard divisions, roots and logarithms"
                )
                raise ValueError(
                    f"{what}: it {expected}. In the function, {how}, or use torch.where"
                )

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
