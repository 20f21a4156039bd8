"""The maths of a step, recorded once and replayed."""

from __future__ import annotations

import copy
import functools
import gc
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from legged_envs.managers.compiler import CompiledFunction, compile_function
from legged_envs.managers.tape import Place, Tape, tensors_in


@dataclass(frozen=True)
class Piece:
    """A stretch of a step's maths."""

    run: Callable[[], None]
    """Reads tensors that are attributes of the owners; changes them in place, or sets the attributes to others."""
    pure: bool
    """Whether it can be recorded: it consists of tensor operations that depend neither on the tensors' values nor on
    anything else that changes, and it changes nothing but the owners' tensors."""


class Program:
    """Pieces of a step, run in order; pure pieces in succession run as one recording.

    On small batches a step costs mostly the interpreter between hundreds of small tensor operations. So the operations
    of pure pieces are recorded once and replayed from then on, with the same results bit for bit, or compiled, with
    results that differ in the last digits.

    What a recording reads must be an attribute of an owner. Between two calls the attributes may be set to other
    tensors, and tensors be changed in place. Tensors in an owner's tuples, lists and dicts, and in tables that
    ``functools.lru_cache`` keeps, are constants: they may be read too, but not be replaced. What is computed goes to
    new tensors with memory of their own, so that whoever keeps one keeps its values.

    Args:
        pieces: What to run. Every attribute that a pure piece reads exists already, or an earlier pure piece sets it.
        owners: The objects whose attributes hold the tensors that pure pieces read, change and set.
        compile: Whether to compile the recordings: see :func:`~legged_envs.managers.compiler.compile_function`.

    Raises:
        ValueError: If a pure piece cannot be recorded: it reads a tensor that no owner has, changes another attribute
            than a tensor, depends on the values of a tensor, or draws random numbers.
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
            _restore(attributes, before)

    def __call__(self) -> None:
        for run in self._runs:
            run()


class _Recording:
    """Replays ``runs`` on the tensors that ``attributes`` hold. Making it leaves results of a run in them."""

    def __init__(self, runs: Sequence[Callable[[], None]], attributes: Sequence[dict[str, Any]], compile: bool):
        self._runs, self._attributes = runs, attributes
        originals = [dict(names) for names in attributes]
        self._compiled: CompiledFunction | None = None
        with torch.inference_mode(False), torch.no_grad():
            self._record()
        if compile:
            results = [dict(names) for names in attributes]
            _restore(attributes, originals)
            tensors = _get(self._reads)
            self._contiguous = [tensor.is_contiguous() for tensor in tensors]
            self._compiled = compile_function(self._function, tensors)
            _restore(attributes, results)

    def __call__(self) -> None:
        if self._compiled is not None:
            # It trusts the strides, and a user's command or action may come transposed.
            pairs = zip(_get(self._reads), self._contiguous, strict=True)
            results = self._compiled([tensor.contiguous() if contiguous else tensor for tensor, contiguous in pairs])
            for (names, name), value in zip(self._writes, results, strict=True):
                names[name] = value
            return
        with np.errstate(all="ignore"):
            replayed = self._replay()
        if not replayed:  # a user's command or action that comes transposed
            for run in self._runs:
                run()

    def _record(self) -> None:
        """Run on copies of the tensors, which stay in the attributes, and write down what is done."""
        places = [(names, name) for names in self._attributes for name, value in names.items() if _is_tensor(value)]
        kept = {id(t) for names in self._attributes for v in names.values() if not _is_tensor(v) for t in tensors_in(v)}
        examples = copy.deepcopy([tensor.detach() for tensor in _get(places)])  # they share memory as the tensors do
        for (names, name), tensor in zip(places, examples, strict=True):
            names[name] = tensor
        before = [dict(names) for names in self._attributes]
        inputs = {id(tensor): place for tensor, place in zip(examples, places, strict=True)}
        with Tape(inputs) as tape:
            for run in self._runs:
                run()
        self._writes = []
        for names, old in zip(self._attributes, before, strict=True):
            for name, value in names.items():
                if _is_tensor(value) and value is not old.get(name):
                    self._writes.append((names, name))
                elif name in old and value is not old[name]:
                    raise ValueError(f"a pure piece set the attribute {name!r}, which is no tensor, to {value!r}")
        self._replay, self._reads = tape.function([(place, place[0][place[1]]) for place in self._writes]), tape.reads
        _check_constants([tensor for tensor in tape.constants if id(tensor) not in kept])

    def _function(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The pieces' results on ``tensors`` in place of those that they read."""
        for (names, name), tensor in zip(self._reads, tensors, strict=True):
            names[name] = tensor
        for run in self._runs:
            run()
        return tuple(_get(self._writes))


def _check_constants(tensors: Sequence[torch.Tensor]) -> None:
    """Raise ValueError for a tensor that is in no table of ``functools.lru_cache``: what it holds may be replaced."""
    for tensor in tensors:
        holders = gc.get_referrers(tensor)
        if any(isinstance(holder, functools._lru_cache_wrapper) for holder in holders):
            continue
        owned = [(vars(holder), type(holder).__name__) for holder in holders if hasattr(holder, "__dict__")]
        named = [f" ({name!r} of {kind})" for names, kind in owned for name in names if names[name] is tensor]
        raise ValueError(
            f"a pure piece reads a tensor of shape {tuple(tensor.shape)}{''.join(named[:1])} that is an attribute of "
            "none of the owners: a recording would not see it replaced. Make what holds it an owner, keep it in a "
            "table of functools.lru_cache if it never changes, or do not mark the piece pure"
        )


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _get(places: Sequence[Place]) -> list[torch.Tensor]:
    return [names[name] for names, name in places]


def _restore(attributes: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]) -> None:
    for names, old in zip(attributes, before, strict=True):
        for name in names.keys() - old.keys():
            del names[name]
        names.update(old)
