"""Evaluates the terms of several managers, the package's own as one recorded graph."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from legged_envs.managers.term import Term

RECORDABLE = "legged_envs.mdp."
"""Terms of these modules are pure: tensor operations on the state, with no branch that depends on its values."""


def _is_recordable(term: Term) -> bool:
    """Whether a term is a function of the package itself, not one that says so (``functools.wraps``)."""
    module, name = getattr(term.func, "__module__", ""), getattr(term.func, "__name__", "")
    return module.startswith(RECORDABLE) and getattr(sys.modules[module], name, None) is term.func


class TermEvaluator:
    """Stacks the values of terms: one tensor (num_envs, num_terms) for each list of terms.

    On small batches a step costs mostly the interpreter between hundreds of small tensor operations. A list that holds
    only the package's own terms is therefore recorded once, with :func:`torch.jit.trace`, and replayed from then on;
    the operations and their results are the same. A list with a user's term runs as it is written.

    Args:
        env: The environment; its ``term_state()`` lists where the tensors are that terms read and that change.
        lists: Terms, list by list.
    """

    def __init__(self, env: Any, lists: Sequence[Sequence[Term]]):
        self._env = env
        self._lists = [list(terms) for terms in lists]
        self._places: list[tuple[object, str]] = env.term_state()
        recordable = [all(_is_recordable(term) for term in terms) for terms in self._lists]
        self._recorded = [i for i, terms in enumerate(self._lists) if recordable[i] and terms]
        self._written = [i for i, terms in enumerate(self._lists) if not recordable[i] and terms]
        self._graph = self._record() if self._recorded else None

    def __call__(self) -> list[torch.Tensor | None]:
        """Evaluate every list; None for an empty one."""
        results: list[torch.Tensor | None] = [None] * len(self._lists)
        if self._graph is not None:
            for i, value in zip(self._recorded, self._graph(*self._read()), strict=True):
                results[i] = value
        for i in self._written:
            results[i] = self._stack(i)
        return results

    def _read(self) -> list[torch.Tensor]:
        return [getattr(owner, name) for owner, name in self._places]

    def _stack(self, i: int) -> torch.Tensor:
        return torch.stack([term(self._env) for term in self._lists[i]], dim=1)

    def _record(self) -> Any:
        state = self._read()

        def run(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            self._put(tensors)
            return tuple(self._stack(i) for i in self._recorded)

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                return torch.jit.trace(run, tuple(state), check_trace=False)
        finally:
            self._put(state)

    def _put(self, tensors: Sequence[torch.Tensor]) -> None:
        for (owner, name), tensor in zip(self._places, tensors, strict=True):
            setattr(owner, name, tensor)
