"""Shapes of all results of an ONNX network, also where operations compute them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from legged_envs.tables import shorten

ROWS = 2
"""Number of robots for which shapes are computed."""

INTEGERS = (6, 7)
"""ONNX's codes of int32 and int64, the types of sizes."""

VALUES = (0.0, 1234.0)
"""Observations for which sizes are computed. Sizes that depend on them are not known."""


def known_shapes(path: Path, model: Any, most: int) -> tuple[Any, dict[str, list[int]]]:
    """Return a model for `ROWS` robots, and the shape of each of its results that is known.

    Sizes that operations compute, from other shapes, are computed once and become constants. In a
    result that is still unknown they depend on the observation.

    Args:
        path: File of the model, for errors.
        model: The model.
        most: Largest number of elements of the results before a size is computed.
    """
    import onnx

    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    _fix_inputs(fixed)
    while True:
        inferred = _infer(path, fixed)
        shapes = _shapes(inferred)
        number = _first_unknown(inferred, shapes)
        before = inferred.graph.node[:number]
        if number is None or _count(before, shapes) > most:
            return inferred, shapes
        computed = _computed_sizes(inferred, number)
        values = [_run(path, fixed, computed, value) for value in VALUES] if computed else []
        if not computed or not all(map(np.array_equal, *values)):
            return inferred, shapes
        for name, value in zip(computed, values[0], strict=True):
            frozen = f"{name} of {number}"
            fixed.graph.initializer.append(onnx.numpy_helper.from_array(value, frozen))
            inputs = list(fixed.graph.node[number].input)
            fixed.graph.node[number].ClearField("input")
            fixed.graph.node[number].input.extend(
                frozen if each == name else each for each in inputs
            )


def _fix_inputs(model: Any) -> None:
    # Shapes in a file's own description may be wrong.
    del model.graph.value_info[:]
    weights = {each.name for each in model.graph.initializer}
    for value in model.graph.input:
        if value.name in weights:
            continue
        for size in value.type.tensor_type.shape.dim:
            if not size.HasField("dim_value"):
                size.dim_value = ROWS
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def _infer(path: Path, model: Any) -> Any:
    import onnx

    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:
        reason = shorten(" ".join(str(error).split()), 200)
        raise ValueError(f"{str(path)!r} is not a network that runs: {reason}") from error


def _shapes(model: Any) -> dict[str, list[int]]:
    shapes = {}
    for value in (*model.graph.value_info, *model.graph.output, *model.graph.input):
        kind = value.type.tensor_type
        sizes = list(kind.shape.dim) if kind.HasField("shape") else None
        if sizes is not None and all(size.HasField("dim_value") for size in sizes):
            shapes[value.name] = [size.dim_value for size in sizes]
    return shapes


def _count(nodes: Sequence[Any], shapes: dict[str, list[int]]) -> int:
    """Return the number of elements of the results of nodes."""
    numbers = 0
    for node in nodes:
        for name in node.output:
            size = 1
            # A tensor without elements can still be taken apart into any number of tensors.
            for each in shapes.get(name, ()):
                size *= max(each, 1)
            numbers += size
    return numbers


def _first_unknown(model: Any, shapes: dict[str, list[int]]) -> int | None:
    """Return the position of the first node with a result of unknown shape. None: there is none."""
    for number, node in enumerate(model.graph.node):
        if any(name and name not in shapes for name in node.output):
            return number
    return None


def _computed_sizes(model: Any, number: int) -> list[str]:
    """Return the whole numbers that a node takes, and that other nodes compute."""
    kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.value_info}
    constants = {each.name for each in model.graph.initializer}
    taken = []
    for name in model.graph.node[number].input:
        is_known = name in constants or name in taken
        if name and not is_known and kinds.get(name) in INTEGERS:
            taken.append(name)
    return taken


def _run(path: Path, model: Any, names: Sequence[str], value: float) -> list[Any]:
    """Return results of a model for inputs with the same value everywhere.

    Only the nodes that these results need are run. Their results are known to be small.
    """
    import onnx
    import onnxruntime

    part = onnx.ModelProto()
    part.CopyFrom(model)
    needed = set(names)
    nodes = []
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            nodes.append(node)
            needed.update(node.input)
    del part.graph.node[:]
    part.graph.node.extend(reversed(nodes))
    del part.graph.output[:]
    for name in names:
        part.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            part.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        feed = {}
        for each in session.get_inputs():
            feed[each.name] = np.full(each.shape, value, np.float32)
        results: list[Any] = session.run(list(names), feed)
    except Exception as error:
        reason = shorten(" ".join(str(error).split()), 200)
        raise ValueError(f"{str(path)!r} is not a network that runs: {reason}") from error
    return results
