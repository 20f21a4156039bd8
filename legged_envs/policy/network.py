"""Networks as data: a list of tensor operations and the weights that they take, with no code in it."""

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

from legged_envs.checks import check_known

_NAMED: tuple[tuple[Any, str], ...] = (
    (operator, "add sub mul truediv neg getitem gt lt ge le and_ or_"),
    (torch, "cat where tanh sigmoid softmax gru_cell lstm_cell"),
    (functional, "linear layer_norm scaled_dot_product_attention"),
    (functional, "elu selu relu celu leaky_relu softplus gelu silu mish"),
    (torch.Tensor, "reshape flatten unflatten unsqueeze squeeze transpose permute unbind chunk"),
    (torch.Tensor, "mean sum clamp exp logical_not logical_and masked_fill nan_to_num"),
)
OPERATIONS: dict[str, Callable[..., Any]] = {
    n: getattr(home, n) for home, names in _NAMED for n in names.split()
}
"""Everything that a network may consist of, by its name in a description; none of it does more than give a result."""
_NAMES = {function: name for name, function in OPERATIONS.items()}


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return False


def describe(module: nn.Module) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """What ``module`` computes, as JSON has it, and its weights by name, on the CPU; tracing leaves marks on it.
    ``inputs`` and ``outputs`` are names; each of ``steps`` has the ``name`` of its result, ``operation``, ``arguments``
    and ``options``. An argument is ``{"of": name}`` of a value, ``{"slice": [start, stop, step]}``, a list or a
    constant. ValueError if branches depend on values, or an operation is not one of :data:`OPERATIONS`."""
    who = f"a policy's network, {type(module).__name__},"
    try:
        graph = _Tracer().trace(module)
    except (fx.proxy.TraceError, TypeError) as error:
        raise ValueError(f"{who} must be tensor operations without branches: {error}") from error
    inputs, weights, steps, outputs = [], {}, [], []
    for node in graph.nodes:
        if node.op == "placeholder":
            inputs.append(node.name)
        elif node.op == "get_attr":
            weight = operator.attrgetter(node.target)(module)
            weights[node.name] = weight.detach().cpu().clone(memory_format=torch.contiguous_format)
        elif node.op == "output":
            outputs = [
                result.name
                for result in (node.args[0] if isinstance(node.args[0], tuple) else node.args)
            ]
        else:
            operation = node.target if node.op == "call_method" else _NAMES.get(node.target)
            if operation not in OPERATIONS:
                raise ValueError(
                    f"{who} has the operation {node.target}; it can have {', '.join(OPERATIONS)}"
                )
            arguments, options = (
                _encoded(node.args),
                {key: _encoded(value) for key, value in node.kwargs.items()},
            )
            steps.append(
                {
                    "name": node.name,
                    "operation": operation,
                    "arguments": arguments,
                    "options": options,
                }
            )
    return {"inputs": inputs, "steps": steps, "outputs": outputs}, weights


def _encoded(argument: Any) -> Any:
    if isinstance(argument, fx.Node):
        return {"of": argument.name}
    if isinstance(argument, slice):
        return {"slice": [argument.start, argument.stop, argument.step]}
    return (
        [_encoded(item) for item in argument] if isinstance(argument, (tuple, list)) else argument
    )


class Network:
    """What :func:`describe` wrote down, run where ``weights`` are; ValueError for an unknown operation or value."""

    def __init__(self, description: Mapping[str, Any], weights: Mapping[str, torch.Tensor]):
        self.inputs: tuple[str, ...] = tuple(description["inputs"])
        self._weights = weights
        self._steps: list[tuple[str, Callable[..., Any], Getter, list[tuple[str, Getter]]]] = []
        known = {*self.inputs, *weights}
        for step in description["steps"]:
            check_known("unknown operation", [step["operation"]], OPERATIONS, "known")
            options = [(key, _getter(option, known)) for key, option in step["options"].items()]
            arguments = _getter(step["arguments"], known)
            self._steps.append((step["name"], OPERATIONS[step["operation"]], arguments, options))
            known.add(step["name"])
        self._results = _getter([{"of": name} for name in description["outputs"]], known)

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """The result, a tuple if there are several."""
        if len(inputs) != len(self.inputs):
            raise TypeError(
                f"the network takes {', '.join(self.inputs)}, got {len(inputs)} arguments"
            )
        values: dict[str, Any] = {**self._weights, **dict(zip(self.inputs, inputs, strict=True))}
        for name, function, arguments, options in self._steps:
            values[name] = function(
                *arguments(values), **{key: get(values) for key, get in options}
            )
        results = self._results(values)
        return results if len(results) > 1 else results[0]


Getter = Callable[[Mapping[str, Any]], Any]
"""Values by name → the argument of a step."""


def _getter(argument: Any, known: Collection[str]) -> Getter:
    if isinstance(argument, list):
        items = [_getter(item, known) for item in argument]
        return lambda values: tuple([get(values) for get in items])
    if isinstance(argument, dict) and "of" in argument:
        if argument["of"] not in known:
            raise ValueError(f"the value {argument['of']!r} is used before it is computed")
        return operator.itemgetter(argument["of"])
    constant = slice(*argument["slice"]) if isinstance(argument, dict) else argument
    return lambda values: constant
