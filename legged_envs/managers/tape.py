"""Tensor operations written down once and translated into one Python function on fixed memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

Place = tuple[dict[str, Any], str]
"""An attribute that holds a tensor: the attributes of its owner, and its name among them."""

SMALL = 128
"""Rows up to which NumPy takes less time than PyTorch also for what is not contiguous."""

_aten = torch.ops.aten
_COMPARISONS: dict[str, np.ufunc] = {
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
_UFUNCS: dict[str, np.ufunc] = {
    **_COMPARISONS,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "neg": np.negative,
    "abs": np.absolute,
    "square": np.square,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_not": np.invert,
    "clamp_min": np.maximum,
    "clamp_max": np.minimum,
}
"""What gives the same bits. Not among them: ``sqrt``, ``exp``, and what PyTorch multiplies and adds in one rounding."""
_REDUCTIONS: dict[str, np.ufunc] = {"any": np.logical_or, "all": np.logical_and, "sum": np.add, "mean": np.add}
_WITH_OUT = {*_UFUNCS, *_REDUCTIONS, "clamp", "pow", "stack", "cat"}
_WITH_OUT |= {"addcmul", "amax", "amin", "atan2", "cos", "exp", "linalg_cross", "linalg_vector_norm", "sin", "sqrt"}
_WITH_OUT |= {"tanh", "where"}
"""Functions of PyTorch that can write their result to a given tensor."""


class Tape(TorchDispatchMode):
    """Writes down the tensor operations that run in its context.

    Raises:
        ValueError: If an operation makes what follows depend on the values of a tensor, or on chance.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []
        """Function, arguments, keyword arguments and result of each; without a function, the argument is the result."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would import PyTorch's compiler, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, tags = kwargs or {}, set(func.tags)
        if func is _aten.index.Tensor and torch.bool not in {tensor.dtype for tensor in tensors_in(args[1])}:
            tags.discard(torch.Tag.dynamic_output_shape)
        if tags & {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}:
            raise ValueError(f"a pure piece depends on the values of a tensor ({func})")
        if torch.Tag.nondeterministic_seeded in tags:
            raise ValueError(f"a pure piece draws random numbers ({func})")
        result = func(*args, **kwargs)
        if func is _aten.lift_fresh.default or not any(True for _ in tensors_in((args, kwargs))):
            func, args, kwargs = None, (result.clone(),), {}  # made from nothing: its values are the operation
        self.operations.append((func, args, kwargs, result))
        return result


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item)


class Translation:
    """A Python function that does what a tape says, with the same results bit for bit.

    The tensors that the tape made are its memory. NumPy computes what it computes to the same bits in less time: a call
    of it takes a third of the time of one of PyTorch.

    Args:
        tape: The operations.
        inputs: Where the tensors come from that the operations start from, by the id of the tensor.
        outputs: Where the results go.
    """

    def __init__(self, tape: Tape, inputs: Mapping[int, Place], outputs: Sequence[tuple[Place, torch.Tensor]]):
        self._inputs = inputs
        self.reads: list[Place] = []
        """Where the inputs are that are read."""
        self.constants: list[torch.Tensor] = []
        """What the operations read that is neither an input nor made by them."""
        self._names: dict[int, str] = {}  # of the tensors, by id
        self._space: dict[str, Any] = {"accept": _accept}
        self._lines: list[str] = []
        self._input_of: dict[int, int] = {}  # of an input or a view of one: the input
        self._taking_in: dict[int, list[str]] = {}  # by input: what to do when it is another tensor than before
        for operation in tape.operations:
            self._translate(*operation)
        copies = {id(tensor): f"{self._tensor(tensor)}.clone()" for _, tensor in outputs}  # outlive the next call
        for key in copies.keys() & self._input_of.keys():
            copies[key] = self._names[key].replace("t", "i") if key in inputs else self._names[key]
        self._lines += [f"{self._names[key]}_copy = {copy}" for key, copy in copies.items()]
        for (names, name), tensor in outputs:
            self._lines.append(f"{self._name(names)}[{name!r}] = {self._names[id(tensor)]}_copy")
        self.source = "\n".join([*self._head(), *(f" {line}" for line in self._lines), " return True"])
        """What ``replay`` does: ``t3`` is a tensor, ``a3`` the array of its memory, ``i3`` the input that it is of."""
        exec(compile(self.source, "<recording>", "exec"), self._space)
        self.replay: Callable[[], bool] = self._space.pop("replay")
        """Replays the tape; False, with nothing done, if an input has another shape, type or order in memory."""

    def _head(self) -> list[str]:
        lines, names = [" try:", "  pass"], ["accept"]
        for key, taking_in in self._taking_in.items():
            (owner, name), seen = self._inputs[key], self._names[key].replace("t", "i")
            names += [seen, *(line.split(" = ")[0] for line in taking_in)]
            lines += [f"  x = {self._name(owner)}[{name!r}]", f"  if x is not {seen}:", f"   {seen} = None"]
            lines += [f"   {line}" for line in [*taking_in, f"{seen} = x"]]
            self._space[seen] = None
        # Another order in memory may not allow a view, either.
        return ["def replay():", f" global {', '.join(names)}", *lines, " except RuntimeError:", "  return False"]

    def _name(self, value: Any) -> str:
        """A name for a constant or a function."""
        name = f"{getattr(value, '__name__', 'c').replace('.', '_')}_{len(self._space)}"
        self._space[name] = value
        return name

    def _tensor(self, tensor: torch.Tensor) -> str:
        """The name of a tensor; one that no operation made is an input or a constant."""
        key = id(tensor)
        if key not in self._names:
            name = self._add(tensor)
            if key in self._inputs:
                self.reads.append(self._inputs[key])
                self._input_of[key] = key
                self._taking_in[key] = [f"{name} = accept(x, {self._name(tensor)}, {_in_order(tensor)})"]
            else:
                self.constants.append(tensor)
        return self._names[key]

    def _add(self, tensor: torch.Tensor) -> str:
        name = self._names[id(tensor)] = f"t{len(self._names)}"
        self._space[name] = tensor
        return name

    def _array(self, tensor: torch.Tensor) -> str:
        name = self._tensor(tensor)
        array = name.replace("t", "a")
        if array not in self._space:
            self._space[array] = tensor.numpy()
            if id(tensor) in self._input_of:
                self._taking_in[self._input_of[id(tensor)]].append(f"{array} = {name}.numpy()")
        return array

    def _argument(self, value: Any) -> str:
        """An argument of an operation of PyTorch."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self._argument, value))}]"
        return repr(value) if value is None or type(value) in (int, bool) else self._name(value)

    def _operand(self, value: Any, dtype: torch.dtype) -> str:
        """An operand of a NumPy function that computes in ``dtype``."""
        if isinstance(value, torch.Tensor):
            return self._array(value)
        return self._name(torch.tensor(value, dtype=dtype).numpy())

    def _translate(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if func is None:
            self._lines.append(f"{self._add(result)}.copy_({self._name(args[0])})")
            return
        results = list(tensors_in(result))
        keywords = [f"{key}={self._argument(value)}" for key, value in kwargs.items()]
        arguments = ", ".join([*map(self._argument, args), *keywords])
        call = f"{self._name(func)}({arguments})"
        items = [call] if isinstance(result, torch.Tensor) else [f"{call}[{index}]" for index in range(len(results))]
        in_place = all(id(tensor) in self._names for tensor in results)
        if not in_place and self._are_views(results, items, args):
            return
        name = func.overloadpacket.__name__
        function = getattr(torch.linalg, name[7:]) if name.startswith("linalg_") else getattr(torch, name, None)
        if len(results) == 1 and (lines := self._with_numpy(name.strip("_"), args, kwargs, results[0])):
            self._lines += lines
        elif in_place:
            self._lines.append(f"{self._name(getattr(torch.Tensor, name, func))}({arguments})")
        elif name in _WITH_OUT and (name not in _REDUCTIONS or len(args) > 1):
            self._lines.append(f"{self._name(function)}({arguments}, out={self._tensor(results[0])})")
        else:
            self._lines += [
                f"{self._tensor(tensor)}.copy_({item})" for tensor, item in zip(results, items, strict=True)
            ]

    def _are_views(self, results: Sequence[torch.Tensor], calls: Sequence[str], args: Any) -> bool:
        """Take in new tensors; whether they are views, which need no computing."""
        base = None
        for tensor, call in zip(results, calls, strict=True):
            name = self._add(tensor)
            base = next((arg for arg in tensors_in(args) if _memory(arg) == _memory(tensor)), None)
            if base is not None and id(base) in self._input_of:
                self._input_of[id(tensor)] = self._input_of[id(base)]
                self._taking_in[self._input_of[id(base)]].append(f"{name} = {call}")
        return base is not None

    def _with_numpy(self, name: str, args: Any, kwargs: dict[str, Any], out: torch.Tensor) -> list[str]:
        """An operation as calls of NumPy that give the same bits; none if there are none, or no faster ones."""
        tensors = [*tensors_in((args, kwargs)), out]
        if any(tensor.device.type != "cpu" or tensor.dtype == torch.bfloat16 for tensor in tensors):
            return []
        small = out.ndim == 0 or len(out) <= SMALL
        flat = all(t.ndim == 0 or (t.shape == out.shape and (t.ndim == 1 or t.is_contiguous())) for t in tensors)
        types, into = {tensor.dtype for tensor in tensors}, self._array(out)
        if name == "pow" and args[1] == 2:
            name, args = "square", args[:1]
        if name in _UFUNCS and (small or flat) and kwargs.get("alpha", 1) == 1 and not kwargs.keys() - {"alpha"}:
            return self._ufunc(name, args, out)
        if name == "clamp" and small and types == {out.dtype}:
            low, high = (*args, None)[1:3]
            lines = [] if low is None else self._ufunc("clamp_min", (args[0], low), out)
            return lines + ([] if high is None else self._ufunc("clamp_max", (out if lines else args[0], high), out))
        if name in ("copy", "to_copy") and (small or flat):
            return [f"{self._name(np.copyto)}({into}, {self._array(args[name == 'copy'])}, 'unsafe')"]
        if name in ("stack", "cat") and (small or name == "stack") and len(types) == 1:
            axis = (args[1] if len(args) > 1 else 0) % out.ndim
            parts = ", ".join(self._array(part) + f"[{':, ' * axis}None]" * (name == "stack") for part in args[0])
            return [f"{self._name(np.concatenate)}([{parts}], {axis}, {into})"]
        if name == "index":
            axes = [axis for axis, index in enumerate(args[1]) if index is not None]
            if len(axes) == 1 and args[1][axes[0]].ndim == 1:
                return [f"{self._array(args[0])}.take({self._array(args[1][axes[0]])}, {axes[0]}, {into})"]
        if name in _REDUCTIONS and small and _reduces_alike(name, args, out):
            lines = [f"{self._name(_REDUCTIONS[name].reduce)}({self._array(args[0])}, -1, None, {into})"]
            return lines + (self._ufunc("div", (out, args[0].shape[-1]), out) if name == "mean" else [])
        return []

    def _ufunc(self, name: str, args: Any, out: torch.Tensor) -> list[str]:
        dtype, types = torch.result_type(*args) if len(args) > 1 else out.dtype, {t.dtype for t in tensors_in(args)}
        mixed = types != {dtype} and (name in _COMPARISONS or name == "div" or types != {dtype, torch.bool})
        if mixed or (name == "div" and not dtype.is_floating_point):
            return []
        operands = [self._operand(arg, dtype) for arg in args]
        if name in ("clamp_min", "clamp_max"):
            operands.reverse()  # of 0 and −0 both return the second
        return [f"{self._name(_UFUNCS[name])}({', '.join(operands)}, out={self._array(out)})"]


def _reduces_alike(name: str, args: Any, out: torch.Tensor) -> bool:
    """Whether NumPy reduces the last axis to the same bits: PyTorch adds up to four numbers in their order, too."""
    value, axes = args[0], args[1] if len(args) > 1 else None
    if axes not in ([value.ndim - 1], [-1], value.ndim - 1, -1) or value.ndim == out.ndim:
        return False
    if value.dtype == torch.bool or name in ("any", "all"):
        return value.dtype == torch.bool
    return value.shape[-1] <= 4 and value.stride(-1) == 1 and value.dtype == out.dtype == torch.float32


def _memory(tensor: torch.Tensor) -> int:
    """What tensors that share memory have in common."""
    return tensor.untyped_storage()._cdata


def _in_order(tensor: torch.Tensor) -> bool:
    """Whether row follows row in memory, also with gaps, so that what is computed from a tensor is contiguous."""
    if tensor.is_contiguous():
        return True
    strides = [stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1]
    return strides == sorted(strides, reverse=True) and all(strides)


def _accept(tensor: torch.Tensor, example: torch.Tensor, in_order: bool) -> torch.Tensor:
    """``tensor`` without its history, if what is computed from it has the shapes, types and orders of the example's."""
    same = _in_order(tensor) if in_order else tensor.stride() == example.stride()
    if not same or tensor.shape != example.shape or tensor.dtype is not example.dtype:
        raise RuntimeError
    return tensor.detach() if tensor.requires_grad else tensor
