"""Networks as data: a list of tensor operations and their weights, without code.

`describe` turns a PyTorch module into such a list, and `Network` runs it. A policy file can
therefore be read from anyone: it can only name operations of `OPERATIONS`.
"""

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

from legged_envs.checks import check_known

OPERATOR_NAMES = (
    "add",
    "sub",
    "mul",
    "truediv",
    "neg",
    "getitem",
    "gt",
    "lt",
    "ge",
    "le",
    "and_",
    "or_",
)
"""Functions of the module `operator` that a network may call."""

TORCH_NAMES = ("cat", "where", "tanh", "sigmoid", "softmax", "gru_cell", "lstm_cell")
"""Functions of the module `torch` that a network may call."""

FUNCTIONAL_NAMES = (
    "linear",
    "conv1d",
    "layer_norm",
    "scaled_dot_product_attention",
    "elu",
    "selu",
    "relu",
    "celu",
    "leaky_relu",
    "softplus",
    "gelu",
    "silu",
    "mish",
)
"""Functions of the module `torch.nn.functional` that a network may call."""

METHOD_NAMES = (
    "reshape",
    "flatten",
    "unflatten",
    "unsqueeze",
    "squeeze",
    "transpose",
    "permute",
    "unbind",
    "chunk",
    "mean",
    "sum",
    "clamp",
    "exp",
    "sqrt",
    "square",
    "logical_not",
    "logical_and",
    "masked_fill",
    "nan_to_num",
)
"""Methods of a tensor that a network may call."""

Operation = Callable[..., Any]
"""Takes tensors and constants, and returns a tensor or a tuple of tensors."""

Value = Any
"""A tensor, a tuple of tensors or a constant."""

Values = Mapping[str, Value]
"""Inputs, weights and results of earlier steps, by name."""

Getter = Callable[[Values], Value]
"""Looks up or builds one argument of a step from the values that are known by then."""

Encoded = Any
"""Argument of a step, as a JSON value: `{"of": name}`, `{"slice": …}`, a list or a constant."""

Description = dict[str, Any]
"""Description of a network or of one step, as JSON values: see `describe`."""


def _operations() -> dict[str, Operation]:
    operations: dict[str, Operation] = {}
    for name in OPERATOR_NAMES:
        operations[name] = getattr(operator, name)
    for name in TORCH_NAMES:
        operations[name] = getattr(torch, name)
    for name in FUNCTIONAL_NAMES:
        operations[name] = getattr(functional, name)
    for name in METHOD_NAMES:
        operations[name] = getattr(torch.Tensor, name)
    return operations


OPERATIONS = _operations()
"""Everything that a network may consist of, by name. No operation has a side effect."""

OPERATION_NAMES = {function: name for name, function in OPERATIONS.items()}
"""Names of the functions of `OPERATIONS`."""


# --- writing --------------------------------------------------------------------------------------


class _Tracer(fx.Tracer):
    """Traces through all modules, down to functions of tensors."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return False


def describe(module: nn.Module) -> tuple[Description, dict[str, torch.Tensor]]:
    """Describe what a module computes.

    Tracing leaves marks on the module: pass a copy.

    Args:
        module: Network of tensor operations without branches.

    Returns:
        The description, as JSON values, and the weights by name, on the CPU. In the description,
        `inputs` and `outputs` are names. Each of `steps` has the `name` of its result, `operation`,
        `arguments` and `options`. An argument is `{"of": name}` of a value, `{"slice": [start,
        stop, step]}`, a list or a constant.

    Raises:
        ValueError: If branches depend on values, or an operation is not one of `OPERATIONS`.
    """
    kind = type(module).__name__
    try:
        graph = _Tracer().trace(module)
    except (fx.proxy.TraceError, TypeError) as error:
        raise ValueError(
            f"a policy's network, {kind}, must be tensor operations without branches: {error}"
        ) from error
    inputs = []
    weights = {}
    steps = []
    outputs = []
    # Nodes are in the order of execution: each step uses results of earlier ones.
    for node in graph.nodes:
        if node.op == "placeholder":
            inputs.append(node.name)
        elif node.op == "get_attr":
            weights[node.name] = _copied_weight(module, node.target)
        elif node.op == "output":
            outputs = _output_names(node)
        else:
            steps.append(_described_step(node, kind))
    return {"inputs": inputs, "steps": steps, "outputs": outputs}, weights


def _copied_weight(module: nn.Module, path: str) -> torch.Tensor:
    weight: torch.Tensor = operator.attrgetter(path)(module)
    # safetensors writes only contiguous tensors, and none that share memory.
    return weight.detach().cpu().clone(memory_format=torch.contiguous_format)


def _output_names(node: fx.Node) -> list[str]:
    # A module that returns one tensor has it as the only argument, otherwise a tuple of them.
    results: Any = node.args
    if isinstance(results[0], tuple):
        results = results[0]
    return [result.name for result in results]


def _described_step(node: fx.Node, kind: str) -> Description:
    target: Any = node.target
    operation = target if node.op == "call_method" else OPERATION_NAMES.get(target)
    if operation not in OPERATIONS:
        raise ValueError(
            f"a policy's network, {kind}, has the operation {target}; "
            f"it can have {', '.join(OPERATIONS)}"
        )
    return {
        "name": node.name,
        "operation": operation,
        "arguments": _encoded(node.args),
        "options": {key: _encoded(value) for key, value in node.kwargs.items()},
    }


def _encoded(argument: object) -> Encoded:
    if isinstance(argument, fx.Node):
        return {"of": argument.name}
    if isinstance(argument, slice):
        return {"slice": [argument.start, argument.stop, argument.step]}
    if isinstance(argument, (tuple, list)):
        return [_encoded(item) for item in argument]
    return argument


# --- running --------------------------------------------------------------------------------------


class Step:
    """One operation of a network.

    Args:
        description: Entry of `steps` in the description of the network.
        known: Names of the values that are computed before this step.

    Raises:
        ValueError: If the operation is unknown or an argument is not computed yet.
    """

    def __init__(self, description: Description, known: Collection[str]):
        operation = description["operation"]
        check_known("unknown operation", [operation], OPERATIONS, "known")
        self.name: str = description["name"]
        """Name of the result."""
        self.operation: str = operation
        """Name of the operation."""
        self.sources = _sources([description["arguments"], *description["options"].values()])
        """Names of the values that the operation reads."""
        self._function = OPERATIONS[operation]
        self._options = {}
        for key, option in description["options"].items():
            self._options[key] = _getter(option, known)
        self._arguments = _getter(description["arguments"], known)

    def run(self, values: Values) -> Value:
        """Return the result for the values that are known by now."""
        arguments = self._arguments(values)
        options = {key: get(values) for key, get in self._options.items()}
        return self._function(*arguments, **options)


class Network:
    """A network that `describe` wrote down, run where its weights are.

    Args:
        description: Names of inputs and outputs, and the steps in between.
        weights: Tensors by name, as the steps refer to them.

    Raises:
        ValueError: If an operation or a value is unknown.
    """

    def __init__(self, description: Description, weights: Mapping[str, torch.Tensor]):
        self.inputs: tuple[str, ...] = tuple(description["inputs"])
        """Names of the arguments, in order."""
        self.weights = weights
        """Tensors by name."""
        self.steps: list[Step] = []
        """The steps, in order."""
        # A step may use inputs, weights, and results of the steps before it.
        known = {*self.inputs, *weights}
        for each in description["steps"]:
            step = Step(each, known)
            self.steps.append(step)
            known.add(step.name)
        outputs = [{"of": name} for name in description["outputs"]]
        self._results = _getter(outputs, known)

    def __call__(self, *inputs: torch.Tensor) -> Value:
        """Return the result, a tuple if there are several.

        Raises:
            TypeError: If the number of inputs is wrong.
        """
        if len(inputs) != len(self.inputs):
            raise TypeError(
                f"the network takes {', '.join(self.inputs)}, got {len(inputs)} arguments"
            )
        values: dict[str, Value] = dict(self.weights)
        for name, value in zip(self.inputs, inputs, strict=True):
            values[name] = value
        for step in self.steps:
            values[step.name] = step.run(values)
        results = self._results(values)
        return results if len(results) > 1 else results[0]


def _sources(argument: Encoded) -> list[str]:
    """Return the names of the values that an argument of a step consists of."""
    if isinstance(argument, list):
        names = []
        for item in argument:
            names.extend(_sources(item))
        return names
    if isinstance(argument, dict) and "of" in argument:
        return [argument["of"]]
    return []


def _getter(argument: Encoded, known: Collection[str]) -> Getter:
    """Return the function that gives an argument of a step, decoded once and not at every call."""
    if isinstance(argument, list):
        return _tuple_getter([_getter(item, known) for item in argument])
    if isinstance(argument, dict) and "of" in argument:
        name = argument["of"]
        if name not in known:
            raise ValueError(f"the value {name!r} is used before it is computed")
        return operator.itemgetter(name)
    if isinstance(argument, dict):
        return _constant_getter(slice(*argument["slice"]))
    return _constant_getter(argument)


def _tuple_getter(getters: list[Getter]) -> Getter:
    def get_tuple(values: Values) -> tuple[Value, ...]:
        return tuple([get(values) for get in getters])

    return get_tuple


def _constant_getter(constant: Value) -> Getter:
    def get_constant(values: Values) -> Value:
        return constant

    return get_constant
