"""Checks of an ONNX file before any of its tensors takes memory: operations, sizes and other files.

A file of some kilobytes can describe tensors of terabytes, or name any file of the machine as its
weights.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from legged_envs.policy.foreign.onnx_shapes import known_shapes
from legged_envs.policy.network_size import MOST_NUMBERS, MOST_STEPS
from legged_envs.policy.weights_file import LARGEST_FILE, check_file_size
from legged_envs.tables import shorten

LOOPS = ("Loop", "Scan", "If")
"""Operations of ONNX that contain other operations, and may never end."""

OWN_DOMAINS = ("", "ai.onnx")
"""Names of ONNX's own operations."""

EXTERNAL = 1
"""Value of `data_location` of tensors that are in another file."""


def load_checked(path: Path) -> Any:
    """Return the model in an ONNX file, without weights in other files.

    Raises:
        ValueError: If the file is not ONNX, is too large, has operations that contain others, or
            names files outside of its folder.
    """
    model = load_graph(path)
    _check_operations(path, model)
    for tensor in _tensors(model.graph):
        _check_tensor(path, tensor)
    _check_numbers(path, model)
    return model


def load_graph(path: Path) -> Any:
    """Return the model in an ONNX file, without weights in other files.

    Raises:
        ValueError: If the file is not ONNX, or too large.
    """
    import onnx

    check_file_size(path)
    try:
        return onnx.load(str(path), load_external_data=False)
    except Exception as error:
        reason = shorten(" ".join(str(error).split()), 200)
        raise ValueError(f"{str(path)!r} is not an ONNX file: {reason}") from error


def read_external_data(path: Path, model: Any) -> None:
    """Read the weights of a model that are in other files into it.

    Args:
        path: ONNX file.
        model: Its model, which `load_checked` returned.

    Raises:
        ValueError: If these weights are too large, or a file is shorter than its weights.
    """
    from onnx.helper import tensor_dtype_to_np_dtype

    total = 0
    for tensor in _tensors(model.graph):
        if tensor.data_location != EXTERNAL:
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        size = math.prod(tensor.dims) * tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        total += size
        if total > LARGEST_FILE:
            raise ValueError(
                f"{str(path)!r} has more than {LARGEST_FILE:,} bytes of weights in other files: "
                "export a smaller network"
            )
        with (path.parent / entries["location"]).open("rb") as file:
            file.seek(int(entries.get("offset", 0)))
            weights = file.read(size)
        if len(weights) != size:
            raise ValueError(
                f"{str(path)!r}: {entries['location'][-80:]!r} has {len(weights)} of the {size} "
                f"bytes of {shorten(tensor.name, 80)!r}: copy it again"
            )
        tensor.raw_data = weights
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")


def _check_operations(path: Path, model: Any) -> None:
    nodes = model.graph.node
    if len(nodes) > MOST_STEPS:
        raise ValueError(
            f"{str(path)!r} has {len(nodes):,} operations, and at most {MOST_STEPS:,} are run: "
            "export only the network"
        )
    strange = set()
    for node in nodes:
        is_foreign = node.domain not in OWN_DOMAINS
        if node.op_type in LOOPS or is_foreign:
            strange.add(f"{node.domain}:{node.op_type}" if is_foreign else node.op_type)
    for function in model.functions:
        # A function with a name of ONNX's own would be run in its place.
        if function.domain in OWN_DOMAINS:
            strange.add(function.name)
    if strange:
        raise ValueError(
            f"{str(path)!r} has the operations {', '.join(sorted(strange))}, which are not "
            "run: export a network of tensor operations without branches and loops"
        )


def _tensors(graph: Any) -> Iterator[Any]:
    """Return all tensors that a graph holds: weights, and values of constants."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _check_tensor(path: Path, tensor: Any) -> None:
    if any(size < 0 for size in tensor.dims) or math.prod(tensor.dims) > MOST_NUMBERS:
        raise ValueError(
            f"{str(path)!r}: tensor {shorten(tensor.name, 80)!r} claims the shape "
            f"{list(tensor.dims)[:8]}, and at most {MOST_NUMBERS:,} numbers are read: "
            "export the policy again"
        )
    if tensor.data_location != EXTERNAL:
        return
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    folder = path.resolve().parent
    file = (folder / location).resolve()
    # A link inside the folder leads to another one when it is resolved.
    if not file.is_relative_to(folder) or not file.is_file():
        raise ValueError(
            f"{str(path)!r}: weights of {shorten(tensor.name, 80)!r} are in "
            f"{location[-80:]!r}, which is not a file in its folder: put it there, or save the "
            "policy as one file"
        )
    if file.stat().st_size > LARGEST_FILE:
        check_file_size(file)


def _check_numbers(path: Path, model: Any) -> None:
    """Raise a ValueError if the results of the operations are too large."""
    inferred, shapes = known_shapes(path, model, MOST_NUMBERS)
    numbers = 0
    for value in inferred.graph.input:
        numbers += math.prod(shapes.get(value.name, [0]))
    for node in inferred.graph.node:
        for name in node.output:
            if name in shapes:
                numbers += math.prod(max(size, 1) for size in shapes[name])
            elif name and numbers <= MOST_NUMBERS:
                raise ValueError(
                    f"{str(path)!r}: the results of {node.op_type} {shorten(node.name, 80)!r} have "
                    "any size, and it is not run: export the network with sizes that do not depend "
                    "on the observation"
                )
        if numbers > MOST_NUMBERS:
            raise ValueError(
                f"{str(path)!r} computes with {numbers:,} numbers until {node.op_type} "
                f"{shorten(node.name, 80)!r}, and with at most {MOST_NUMBERS:,} it is run: "
                "export a smaller network"
            )
