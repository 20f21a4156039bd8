"""The maths of a step, recorded once and replayed as one graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import torch

from legged_envs.managers.compiler import CompiledFunction, compile_function

Place = tuple[object, str]
"""An attribute that holds a tensor: its owner and its name."""


class Part(Protocol):
    """A function of tensors in attributes to tensors in attributes."""

    @property
    def READS(self) -> tuple[str, ...]:
        """Names of its own changing tensors that it reads or changes."""

    @property
    def WRITES(self) -> tuple[str, ...]:
        """Names of the tensors that it sets."""

    @property
    def recordable(self) -> bool:
        """Whether it is pure.

        Its operations depend neither on the tensors' values nor on anything else that changes, and of the tensors
        that it is given it changes only its own in place.
        """

    def compute(self) -> None: ...


class Recorded:
    """Parts, computed one after another: the recordable ones as one graph, then the others as they are written.

    On small batches a step costs mostly the interpreter between hundreds of small tensor operations. So the graph is
    recorded once with :func:`torch.jit.trace` and replayed from then on, with the same operations and results, or it
    is compiled, with results that differ in the last digits.

    Args:
        parts: What to compute.
        state: Where the changing tensors are that the parts read beside their own; unread ones cost nothing.
        compile: Whether to compile the graph: see :func:`~legged_envs.managers.compiler.compile_function`.
    """

    def __init__(self, parts: Sequence[Part], state: Sequence[Place], compile: bool = False):
        self.recorded = [part for part in parts if part.recordable]
        self.written = [part for part in parts if not part.recordable]
        self._reads = [*state, *((part, name) for part in self.recorded for name in part.READS)]
        self._writes = [(part, name) for part in self.recorded for name in part.WRITES]
        self._compiled: CompiledFunction | None = None
        if not self.recorded:
            return
        places = [*self._reads, *self._writes]
        before = _get(places)
        try:
            self._graph = self._trace()
            used = [bool(value.uses()) for value in self._graph.graph.inputs()]
            self._reads = [place for place, is_used in zip(self._reads, used, strict=True) if is_used]
            _put(places, before)
            self._contiguous = [tensor.is_contiguous() for tensor in _get(self._reads)]
            if compile:
                self._compiled = compile_function(self._run_parts, _get(self._reads))
            else:
                self._graph = self._trace()
        finally:
            _put(places, before)

    def __call__(self) -> None:
        if self.recorded:
            tensors = [getattr(owner, name) for owner, name in self._reads]
            values = self._graph(*tensors) if self._compiled is None else self._run_compiled(tensors)
            for (owner, name), value in zip(self._writes, values, strict=True):
                setattr(owner, name, value)
        for part in self.written:
            part.compute()

    def _run_compiled(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        assert self._compiled is not None
        # Compiled code trusts the strides it was made for. Those of the simulation's buffers never change; a user's
        # command or action may come transposed.
        if [*map(torch.Tensor.is_contiguous, tensors)] != self._contiguous:
            pairs = zip(tensors, self._contiguous, strict=True)
            tensors = [tensor.contiguous() if contiguous else tensor for tensor, contiguous in pairs]
        return self._compiled(tensors)

    def _run_parts(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        _put(self._reads, tensors)
        for part in self.recorded:
            part.compute()
        return tuple(_get(self._writes))

    def _trace(self) -> Any:
        examples = [tensor.clone() for tensor in _get(self._reads)]  # tracing runs the parts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.trace(self._run_parts, tuple(examples), check_trace=False)


def _get(places: Iterable[Place]) -> list[torch.Tensor]:
    return [getattr(owner, name) for owner, name in places]


def _put(places: Sequence[Place], tensors: Sequence[torch.Tensor]) -> None:
    for (owner, name), tensor in zip(places, tensors, strict=True):
        setattr(owner, name, tensor)
