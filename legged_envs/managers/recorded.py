"""The maths of a step, recorded once and replayed as one graph."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from legged_envs.managers.compiler import CompiledFunction, compile_function

Place = tuple[dict[str, Any], str]
"""An attribute that holds a tensor: the attributes of its owner, and its name among them."""


@dataclass(frozen=True)
class Piece:
    """A stretch of a step's maths."""

    run: Callable[[], None]
    """Reads tensors that are attributes of the owners; changes them in place, or sets the attributes to others."""
    pure: bool
    """Whether it can be recorded: it consists of tensor operations that depend neither on the tensors' values nor on
    anything else that changes, and changes nothing but the owners' tensors."""


class Program:
    """Pieces of a step, run in order; pure pieces in succession run as one recording.

    On small batches a step costs mostly the interpreter between hundreds of small tensor operations. So the operations
    of the pure pieces are recorded once and replayed as one graph from then on, with the same results bit for bit, or
    compiled, with results that differ in the last digits.

    Whatever a recording reads must be an attribute of an owner. The attributes may be set to other tensors between two
    calls, of the same shape and type but of any memory layout.

    Args:
        pieces: What to run.
        owners: The objects whose attributes hold the tensors that the pure pieces read, change and set.
        compile: Whether to compile the recordings: see :func:`~legged_envs.managers.compiler.compile_function`.
    """

    def __init__(self, pieces: Sequence[Piece], owners: Sequence[object], compile: bool = False):
        attributes = [vars(owner) for owner in {id(owner): owner for owner in owners}.values()]
        before = [dict(names) for names in attributes]
        self._runs: list[Callable[[], None]] = []
        try:
            for pure, group in itertools.groupby(pieces, key=lambda piece: piece.pure):
                runs = [piece.run for piece in group]
                self._runs += [_Recording(runs, attributes, compile)] if pure else runs
        finally:
            for names, old in zip(attributes, before, strict=True):
                _restore(names, old)

    def __call__(self) -> None:
        for run in self._runs:
            run()


class _Recording:
    """A replay of ``runs`` on the tensors that ``attributes`` hold. Making it leaves results of a run in them."""

    def __init__(self, runs: Sequence[Callable[[], None]], attributes: Sequence[dict[str, Any]], compile: bool):
        self._owners, self._pieces = attributes, runs
        self._reads = [(names, name) for names in attributes for name, value in names.items() if _is_tensor(value)]
        self._writes: list[Place] = []
        tensors = _get(self._reads)
        self._replay, used = self._trace([tensor.clone() for tensor in tensors])
        self._reads = [place for place, is_used in zip(self._reads, used, strict=True) if is_used]
        if compile:
            tensors = [tensor for tensor, is_used in zip(tensors, used, strict=True) if is_used]
            self._replay = _any_layout(compile_function(self._function, tensors), tensors)

    def __call__(self) -> None:
        values = self._replay([names[name] for names, name in self._reads])
        for (names, name), value in zip(self._writes, values, strict=True):
            names[name] = value

    def _trace(self, examples: Sequence[torch.Tensor]) -> tuple[CompiledFunction, list[bool]]:
        """A function of the tensors in the places it reads to those in the places it sets, and which it does read."""
        # Not torch.jit.trace, which keeps every graph until the process ends.
        graph, _ = torch._C._create_graph_by_tracing(self._function, tuple(examples), lambda value: "", True, False)
        used = [bool(value.uses()) for value in graph.inputs()]
        for index in reversed(range(len(used))):
            if not used[index]:
                graph.eraseInput(index)
        function = torch._C._create_function_from_graph("recording", graph)
        return lambda tensors: function(*tensors), used

    def _function(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The pieces' results on ``tensors`` in place of those that they read."""
        for (names, name), tensor in zip(self._reads, tensors, strict=True):
            names[name] = tensor
        before = [dict(names) for names in self._owners]
        for run in self._pieces:
            run()
        self._writes = [
            (names, name)
            for names, old in zip(self._owners, before, strict=True)
            for name, value in names.items()
            if _is_tensor(value) and value is not old.get(name)
        ]
        return tuple(_get(self._writes))


def _any_layout(function: CompiledFunction, examples: Sequence[torch.Tensor]) -> CompiledFunction:
    """``function``, which trusts the strides of ``examples``, for a user's command or action that comes transposed."""
    expected = [tensor.is_contiguous() for tensor in examples]

    def call(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        if [*map(torch.Tensor.is_contiguous, tensors)] != expected:
            pairs = zip(tensors, expected, strict=True)
            tensors = [tensor.contiguous() if contiguous else tensor for tensor, contiguous in pairs]
        return function(tensors)

    return call


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _get(places: Sequence[Place]) -> list[torch.Tensor]:
    return [names[name] for names, name in places]


def _restore(names: dict[str, Any], old: dict[str, Any]) -> None:
    for name in names.keys() - old.keys():
        del names[name]
    names.update(old)
