"""Base classes of the managers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch

from legged_envs.managers.term import Term, name_of
from legged_envs.mdp.context import Env
from legged_envs.state import Stateful
from legged_envs.tables import Table, TableRepr

MAX_LISTED_ENVS = 8
"""Largest number of environments that an error lists."""


class Manager(Stateful, TableRepr):
    """Base class of the managers: evaluates the terms of one kind.

    Args:
        env: The environment that the terms see.
        cfg: Name of each term mapped to its configuration.
    """

    log_names: tuple[str, ...] = ()
    """Names of the columns that :meth:`end_episodes` returns."""
    title = ""
    """Title of the printed table."""
    COLUMNS: ClassVar[dict[str, str]] = {"parameters": "params"}
    """Headers of the printed table mapped to fields of the configurations."""

    def __init__(self, env: Env, cfg: Mapping[str, Any]):
        self._env = env

        self.cfg = cfg
        """Name of each term mapped to its configuration."""
        self.names = tuple(cfg)
        """Names of the terms, in order."""

    def reset(self, env_ids: torch.Tensor) -> None:
        """Begin the episodes of the environments ``env_ids``, shape (n,)."""

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Return the logged values of the finished episodes.

        Args:
            env_ids: Environments with an ended episode, shape (n,).
            steps: Length of each episode in control steps, shape (n,).

        Returns:
            A row per episode with a column per name in :attr:`log_names`, shape (n, columns).
        """
        return torch.zeros(len(env_ids), 0, dtype=torch.float32, device=env_ids.device)

    def _describe(self) -> str:
        return ", ".join(self.names)

    def _as_tables(self) -> Iterable[Table]:
        rows = []
        for name, term in self.cfg.items():
            fields = [getattr(term, field) for field in self.COLUMNS.values()]
            rows.append((name, term.func, *fields))
        return [(self.title, ("term", "function", *self.COLUMNS), rows)]


class TermManager(Manager, ABC):
    """A manager with terms that are functions of the environment, evaluated in every step.

    Args:
        env: The environment that the terms see.
        kind: Kind of the terms, such as ``"reward"``; used in errors and in the log.
        cfg: Name of each term mapped to its configuration.
        dtype: Dtype that each term returns.
        scalar: True if a term returns one number per environment, shape (num_envs,); otherwise
            it returns a vector, shape (num_envs, size).

    Raises:
        TypeError: If the function of a term cannot be called with its parameters.
        ValueError: If a term returns another shape or dtype.
    """

    LEAST: ClassVar[float] = -math.inf
    """Smallest value that a term may return."""

    def __init__(
        self,
        env: Env,
        kind: str,
        cfg: Mapping[str, Any],
        dtype: torch.dtype,
        scalar: bool = True,
    ):
        super().__init__(env, cfg)
        self._scalar = scalar
        self.log_names = tuple(f"{kind}/{name}" for name in cfg) if scalar else ()

        # Each term is evaluated once here, so that an error names the term while the task is made.
        self.terms = tuple(Term(kind, name, term.func, term.params) for name, term in cfg.items())
        """The terms, in order."""
        values = [term.check(env, dtype, scalar) for term in self.terms]

        self.sizes = tuple(1 if scalar else value.shape[1] for value in values)
        """Number of columns of each term."""
        self.is_builtin = all(term.is_builtin for term in self.terms)
        """True if all terms are from this package; their values need no check."""
        self.columns = torch.zeros(env.num_envs, sum(self.sizes), dtype=dtype, device=env.device)
        """Values of the terms in the last step, which :meth:`check_values` checks.

        Shape: (num_envs, columns).
        """

    @abstractmethod
    def compute(self) -> None:
        """Evaluate the terms of this step and store the results."""

    def evaluate_terms(self) -> torch.Tensor:
        """Call the function of every term once.

        Returns:
            A new tensor with the values side by side, shape (num_envs, columns).
        """
        if not self.terms:
            # stack and cat refuse an empty list.
            return torch.zeros_like(self.columns)
        values = [term(self._env) for term in self.terms]
        return torch.stack(values, 1) if self._scalar else torch.cat(values, 1)

    def check_values(self, excepted: torch.Tensor | None = None) -> None:
        """Check :attr:`columns`, term by term.

        Args:
            excepted: Environments that are not checked, shape (num_envs,), bool; None checks all.

        Raises:
            ValueError: If a term returned a number that is not finite or below :attr:`LEAST`.
        """
        for term, value in zip(self.terms, self.columns.split(self.sizes, dim=1), strict=True):
            wrong = ~(value.isfinite() & (value >= self.LEAST))
            if excepted is not None:
                wrong &= ~excepted.unsqueeze(1)
            env_ids = wrong.any(1).nonzero().squeeze(1).tolist()
            if env_ids:
                number = value[wrong][0].item()
                raise ValueError(self._complaint(term, number, env_ids))

    def _complaint(self, term: Term, number: float, env_ids: list[int]) -> str:
        expected = "finite"
        if math.isfinite(self.LEAST):
            expected += f" and at least {self.LEAST:g}"
        remedy = "guard divisions, roots and logarithms"
        if math.isfinite(number):
            remedy = "clamp it"
        return (
            f"{term.where} ({name_of(term.func)}) returned {number:g} "
            f"in environments {env_ids[:MAX_LISTED_ENVS]}: it must be {expected}. "
            f"In the function, {remedy}, or use torch.where"
        )
