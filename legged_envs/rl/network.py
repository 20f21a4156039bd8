"""Networks as data: a list of tensor operations and the weights that they take, with no code in it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

OPERATIONS: dict[str, Callable[..., Any]] = {
    **{
        function.__name__: function
        for function in (
            *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.getitem),
            *(operator.gt, operator.lt, operator.ge, operator.le, operator.and_, operator.or_),
            *(torch.cat, torch.where, torch.tanh, torch.sigmoid, torch.softmax, torch.gru_cell, torch.lstm_cell),
            *(functional.linear, functional.layer_norm, functional.scaled_dot_product_attention),
            *(functional.elu, functional.selu, functional.relu, functional.celu, functional.leaky_relu),
            *(functional.softplus, functional.gelu, functional.silu, functional.mish),
        )
    },
    **{
        name: getattr(torch.Tensor, name)
        for name in (
            *("reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "transpose", "permute", "unbind", "chunk"),
            *("mean", "sum", "clamp", "exp", "logical_not", "logical_and", "masked_fill", "nan_to_num"),
        )
    },
}
"""Everything that a network may consist of, by its name in a description; none of it does more than give a result."""
_NAMES = {function: name for name, function in OPERATIONS.items()}


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return False


def describe(module: nn.Module) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """What ``module`` computes, as values that JSON has, and its weights by name, on the CPU.

    The description has ``inputs``, the names of the arguments; ``steps``, each with the ``name`` of its result, its
    ``operation``, ``arguments`` and ``options``; and ``outputs``, the names of the results. An argument is
    ``{"of": name}`` for a value, ``{"slice": [start, stop, step]}``, a list of arguments or a constant.

    Args:
        module: Without branches that depend on values; it is not to be used any more, for tracing leaves marks on it.

    Raises:
        ValueError: If it branches, or does something that is not one of :data:`OPERATIONS`.
    """
    who = f"a policy's network, {type(module).__name__},"
    try:
        graph = _Tracer().trace(module)
    except (fx.proxy.TraceError, TypeError) as error:
        raise ValueError(f"{who} must be tensor operations without branches: {error}") from error
    description: dict[str, Any] = {"inputs": [], "steps": [], "outputs": []}
    weights = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            description["inputs"].append(node.name)
        elif node.op == "get_attr":
            weight = operator.attrgetter(node.target)(module)
            weights[node.name] = weight.detach().cpu().clone(memory_format=torch.contiguous_format)
        elif node.op == "output":
            results = node.args[0] if isinstance(node.args[0], tuple) else node.args
            description["outputs"] = [result.name for result in results]
        else:
            operation = node.target if node.op == "call_method" else _NAMES.get(node.target)
            if operation not in OPERATIONS:
                raise ValueError(f"{who} has the operation {node.target}; it can have {', '.join(OPERATIONS)}")
            arguments, options = _encoded(node.args), {key: _encoded(value) for key, value in node.kwargs.items()}
            description["steps"].append(
                {"name": node.name, "operation": operation, "arguments": arguments, "options": options}
            )
    return description, weights


def _encoded(argument: Any) -> Any:
    if isinstance(argument, fx.Node):
        return {"of": argument.name}
    if isinstance(argument, slice):
        return {"slice": [argument.start, argument.stop, argument.step]}
    if isinstance(argument, (tuple, list)):
        return [_encoded(item) for item in argument]
    return argument


class Network:
    """A function of tensors that was written down by :func:`describe`.

    Args:
        description: What it computes.
        weights: Its weights, on the device to compute on.

    Raises:
        ValueError: If the description has an operation that is not one of :data:`OPERATIONS`, or a step takes a value
            that is not known yet.
    """

    def __init__(self, description: Mapping[str, Any], weights: Mapping[str, torch.Tensor]):
        self.inputs: tuple[str, ...] = tuple(description["inputs"])
        """Names of the arguments."""
        self._slots: dict[str, int] = {}
        self._values: list[Any] = []
        """What each slot holds: inputs first, then weights, constants and results."""
        for name in self.inputs:
            self._add(None, name)
        for name, weight in weights.items():
            self._add(weight, name)
        self._steps: list[tuple[Callable[..., Any], list[Any], int]] = []
        for step in description["steps"]:
            function = OPERATIONS.get(step["operation"])
            if function is None:
                raise ValueError(f"unknown operation {step['operation']!r}; known: {', '.join(OPERATIONS)}")
            options = step["options"]
            named = tuple(key for key, value in options.items() if isinstance(value, dict) and "of" in value)
            function = partial(function, **{key: _decoded(options[key]) for key in options.keys() - named})
            arguments = [self._bound(argument) for argument in (*step["arguments"], *map(options.get, named))]
            self._steps.append((_with_named(function, named), arguments, self._add(None, step["name"])))
        self._outputs = [self._slot(name) for name in description["outputs"]]

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """The result for ``inputs``, a tuple if there are several."""
        if len(inputs) != len(self.inputs):
            raise TypeError(f"the network takes {', '.join(self.inputs)}, got {len(inputs)} arguments")
        values = self._values.copy()
        values[: len(inputs)] = inputs
        for function, arguments, slot in self._steps:
            values[slot] = function(*[values[a] if type(a) is int else [values[b] for b in a] for a in arguments])
        results = tuple(values[slot] for slot in self._outputs)
        return results if len(results) > 1 else results[0]

    def _add(self, value: Any, name: str = "") -> int:
        """A new slot that holds ``value``."""
        self._values.append(value)
        if name:
            self._slots[name] = len(self._values) - 1
        return len(self._values) - 1

    def _slot(self, name: str) -> int:
        if name not in self._slots:
            raise ValueError(f"the value {name!r} is used before it is computed")
        return self._slots[name]

    def _bound(self, argument: Any) -> Any:
        """Where an argument is found: a slot, or one for each item of a list with values in it."""
        if isinstance(argument, dict) and "of" in argument:
            return self._slot(argument["of"])
        if isinstance(argument, list) and any(isinstance(item, dict) and "of" in item for item in argument):
            return [self._slot(item["of"]) for item in argument]
        return self._add(_decoded(argument))


def _with_named(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """``function`` with its last positional arguments passed by these names."""
    if not names:
        return function
    return lambda *values: function(*values[: -len(names)], **dict(zip(names, values[-len(names) :], strict=True)))


def _decoded(argument: Any) -> Any:
    """A constant; lists are tuples again."""
    if isinstance(argument, dict):
        return slice(*argument["slice"])
    return tuple(map(_decoded, argument)) if isinstance(argument, list) else argument
