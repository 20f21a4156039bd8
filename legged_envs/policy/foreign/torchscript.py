"""TorchScript files: read only if they consist of known tensor operations."""

import zipfile
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import torch

from legged_envs.policy.foreign.archive_size import check_archive_size
from legged_envs.policy.foreign.rows import Memory, RowNetwork
from legged_envs.policy.foreign.torch_limits import bounded_numbers
from legged_envs.tables import shorten

PRIMITIVES = (
    "Constant",
    "GetAttr",
    "SetAttr",
    "CallMethod",
    "CallFunction",
    "ListConstruct",
    "ListUnpack",
    "TupleConstruct",
    "TupleUnpack",
    "TupleIndex",
    "If",
    "NumToTensor",
    "RaiseException",
    "Uninitialized",
    "dtype",
    "device",
    "unchecked_cast",
)
"""Operations `prim::…` that a network may have. Loops are not among them: they may never end."""

OPERATION_NAMES = """
    linear addmm matmul mm bmm conv1d conv2d layer_norm batch_norm elu relu selu celu
    leaky_relu gelu silu mish softplus tanh sigmoid softmax add sub rsub mul div neg pow sqrt
    exp log abs square rsqrt reciprocal norm linalg_vector_norm clamp clamp_min clamp_max clip
    maximum minimum max min cat stack chunk split split_with_sizes narrow slice select index
    index_select gather copy fill zero roll where view reshape flatten unflatten unsqueeze
    squeeze transpose t permute expand expand_as repeat contiguous clone detach to type_as
    float zeros zeros_like ones ones_like full mean sum std var argmax cumsum dropout lstm gru
    rnn_tanh size dim len numel Int Bool Float IntImplicit FloatImplicit __getitem__ __isnot__
    __is__ __not__ __contains__ append list eq ne lt le gt ge logical_not logical_and
    logical_or floordiv remainder floor ceil round sin cos tensor warn format
    scaled_dot_product_attention nan_to_num unbind lift_fresh atan2 atan any all erf log1p
    expm1 hardtanh relu6 logsumexp amax amin prod outer dot mv einsum baddbmm
    broadcast_tensors meshgrid arange normalize cross lerp sign heaviside masked_fill concat
    movedim swapaxes unsafe_chunk scalar_tensor
"""
"""Text with the names of `TENSOR_OPERATIONS`."""

TENSOR_OPERATIONS = frozenset(OPERATION_NAMES.split())
"""Operations `aten::…` that a network may have. None of them reads or writes a file.

Each also stands for its form that changes its argument, such as `relu_`.
"""

LARGEST_GRAPH = 20_000
"""Largest number of operations of a network."""

WRITES = ("prim::SetAttr", "aten::copy_")
"""Operations by which a network changes its own tensors, or parts of them."""

HOOKS = (b"def __setstate__", b"def __getstate__")
"""Text in the code of an archive that is run while it is loaded."""


class TorchScriptNetwork:
    """A network in a TorchScript file.

    A network that writes to its own tensors has a memory, such as the state of an LSTM. Each robot
    then has its own. If several robots together get the same actions as in separate calls, as with
    the LSTM of unitree_rl_gym, its tensors hold the memory of all robots, and they act in one call.
    Otherwise the robots act one after another (`RowNetwork`).

    Args:
        path: TorchScript file.

    Raises:
        ValueError: If the file is not TorchScript, is too large, or has operations that are not
            run.
    """

    def __init__(self, path: Path):
        self._module = load_torchscript(path)
        self._names = _memory_names(self._module)
        self._first = {name: value.clone() for name, value in self._read_memory().items()}
        self._rows = RowNetwork(self._step, self._first)
        self._was_measured = False

        self.input_size: int | None = None
        """Number of elements of the observation. None: the network does not specify it."""

    @property
    def has_memory(self) -> bool:
        """True if it remembers the past of a robot."""
        return bool(self._names)

    @property
    def is_joint(self) -> bool:
        """True if all robots act in one call. False before the first call."""
        return not self._names or self._rows.is_joint

    def __call__(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the actions for observations. Shapes: (n, size) → (n, num_actions).

        Raises:
            ValueError: At the first call, if the network computes with too many numbers.
        """
        if not self._was_measured:
            with bounded_numbers(), torch.inference_mode():
                self._step(observation[:1], self._first)
            self._was_measured = True
        if not self._names:
            return _as_actions(self._module(observation), len(observation))
        return self._rows(observation)

    def reset(self, ended: torch.Tensor | None) -> None:
        """Clear the memory of robots at the start of their episodes; see `ForeignNetwork`."""
        self._rows.reset(ended)

    def _step(self, observation: torch.Tensor, memory: Memory) -> tuple[torch.Tensor, Memory]:
        # The module has the memory of one call. It gets the memory of these robots.
        for name, value in memory.items():
            *owners, leaf = name.split(".")
            owner = reduce(getattr, owners, self._module)
            # A copy: the module may change it in place.
            setattr(owner, leaf, value.clone())
        actions = _as_actions(self._module(observation), len(observation))
        return actions, self._read_memory()

    def _read_memory(self) -> Memory:
        tensors = self._module.state_dict()
        return {name: tensors[name] for name in self._names}


def _as_actions(output: Any, count: int) -> torch.Tensor:
    # Some exporters return the actions with further outputs.
    actions = output[0] if isinstance(output, (tuple, list)) else output
    result: torch.Tensor = actions.reshape(count, -1)
    return result.clone()


def load_torchscript(path: Path) -> Any:
    """Load a TorchScript file that has only known operations.

    Raises:
        ValueError: If it is not such a file.
    """
    _check_archive(path)
    try:
        module: Any = torch.jit.load(str(path), map_location="cpu")
    except (RuntimeError, ValueError) as error:
        reason = shorten(str(error).strip().split("\n")[0], 200)
        raise ValueError(f"{str(path)!r} is not a TorchScript file: {reason}") from error
    module.eval()
    _check_graph(path, module.inlined_graph)
    return module


def is_torchscript(path: Path) -> bool:
    """Return True if a file is a TorchScript archive, without loading it."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def _check_archive(path: Path) -> None:
    if not is_torchscript(path):
        raise ValueError(
            f"{str(path)!r} is not a TorchScript file: name the exported network, or a checkpoint "
            "of rsl_rl"
        )
    check_archive_size(path)
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if "/code/" not in name:
                continue
            text = archive.read(name)
            if any(hook in text for hook in HOOKS):
                raise ValueError(
                    f"{str(path)!r} runs code while it is loaded ({name}): export the network "
                    "without __setstate__"
                )


def _check_graph(path: Path, graph: Any) -> None:
    strange = set()
    for count, node in enumerate(_nodes(graph)):
        if count > LARGEST_GRAPH:
            raise ValueError(
                f"{str(path)!r} has more than {LARGEST_GRAPH} operations: export only the network"
            )
        space, _, name = node.kind().partition("::")
        is_known = space == "prim" and name in PRIMITIVES
        if space == "aten":
            is_known = name in TENSOR_OPERATIONS or name.removesuffix("_") in TENSOR_OPERATIONS
        if not is_known:
            strange.add(node.kind())
    if strange:
        raise ValueError(
            f"{str(path)!r} has the operations {', '.join(sorted(strange))}, which are not run: "
            "export a network of tensor operations without loops"
        )


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _memory_names(module: Any) -> list[str]:
    """Return the names of the tensors that a network may write to. Empty: it has no memory."""
    if not any(_writes(node) for node in _nodes(module.inlined_graph)):
        return []
    weights = {name for name, _ in module.named_parameters()}
    return [name for name in module.state_dict() if name not in weights]


def _writes(node: Any) -> bool:
    """Return True if an operation may change a tensor of the network."""
    if node.kind() in WRITES:
        return True
    inputs = list(node.inputs())
    is_in_place = node.kind().startswith("aten::") and node.kind().endswith("_")
    return is_in_place and bool(inputs) and inputs[0].node().kind() == "prim::GetAttr"
