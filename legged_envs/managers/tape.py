from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Operation = tuple[Any, tuple[Any, ...], dict[str, Any], Any]
Place = tuple[
    dict[str, Any], str
]  # an attribute that holds a tensor: its owner's attributes, its name among them
SMALL = 128  # rows up to which NumPy takes less time than PyTorch also for what is not contiguous
_COMPARISONS = {"gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal}
_COMPARISONS |= {"eq": np.equal, "ne": np.not_equal}
UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
}
UFUNCS |= {"neg": np.negative, "abs": np.absolute, "square": np.square, "bitwise_not": np.invert}
UFUNCS |= {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, **_COMPARISONS}
"""What gives the same bits. Not among them: ``sqrt``, ``exp``, and what PyTorch multiplies and adds in one rounding."""


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in dicts, lists and tuples, in their order."""
    if isinstance(value, Tensor):
        return [value]
    items = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, (list, tuple, deque))
        else ()
    )
    return [tensor for item in items for tensor in tensors_in(item)]


class Tape(TorchDispatchMode):
    """Writes the tensor operations that run in its context down as a Python function: see :meth:`function`. The
    function gives the same results bit for bit; the tensors that the operations made are its memory. NumPy computes
    what it computes to the same bits, a call in a third of the time. ``inputs`` says where the tensors come from that
    the operations start from, by id. ValueError if an operation depends on the values of a tensor, or on chance."""

    def __init__(self, inputs: Mapping[int, Place]) -> None:
        super().__init__()
        self._inputs = inputs
        self.reads: list[Tensor] = []
        self.constants: list[Tensor] = []
        """The inputs that are read, and what is read that is neither an input nor made by the operations."""
        # In the source t3 is a tensor, a3 the array of its memory, i3 the object that was last found in its place.
        self._names: dict[int, str] = {}  # of the tensors, by id
        self._space: dict[str, Any] = {"accept": _accept}
        self._lines: list[str] = []
        self.operations: list[Operation] = []
        self._taking_in: dict[
            int, list[str]
        ] = {}  # of an input or a view of one: what to do when it is replaced

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would import PyTorch's compiler, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, tags = kwargs or {}, set(func.tags)
        if func is torch.ops.aten.index.Tensor and torch.bool not in {
            index.dtype for index in tensors_in(args[1])
        }:
            tags.discard(torch.Tag.dynamic_output_shape)
        if tags & {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}:
            raise ValueError(f"a pure piece depends on the values of a tensor ({func})")
        if torch.Tag.nondeterministic_seeded in tags:
            raise ValueError(f"a pure piece draws random numbers ({func})")
        result = func(*args, **kwargs)
        if func is torch.ops.aten.lift_fresh.default or not tensors_in((args, kwargs)):
            # Made from nothing: its values are the operation.
            value = result.clone()
            self._lines.append(f"{self._add(result)}.copy_({self._name(value)})")
            self.operations.append((None, (value,), {}, result))
        else:
            self.operations.append((func, args, kwargs, result))
            self._write_down(func, args, kwargs, result)
        return result

    def function(self, outputs: Sequence[tuple[Place, Tensor]]) -> Callable[[], bool]:
        """What does the operations again and puts each of ``outputs`` in its place, in memory of its own. It returns
        False, with nothing done, if an input has another shape, type or order in memory."""
        copies = {self._tensor(tensor): tensor for _, tensor in outputs}
        lines = [
            *self._lines,
            *(f"{name}_copy = {self._result(name, tensor)}" for name, tensor in copies.items()),
        ]
        for (owner, attribute), tensor in outputs:
            lines.append(f"{self._name(owner)}[{attribute!r}] = {self._tensor(tensor)}_copy")
        names, head = ["accept"], []
        for tensor in self.reads:
            (owner, attribute), taking_in = self._inputs[id(tensor)], self._taking_in[id(tensor)]
            seen = self._tensor(tensor).replace("t", "i")
            self._space[seen] = None
            names += [seen, *(line.split(" = ")[0] for line in taking_in)]
            head += [
                f"  x = {self._name(owner)}[{attribute!r}]",
                f"  if x is not {seen}:",
                f"   {seen} = None",
            ]
            head += [f"   {line}" for line in [*taking_in, f"{seen} = x"]]
        # Another order in memory may not allow a view, either.
        head = ["def replay():", f" global {', '.join(names)}", " try:", "  pass", *head]
        source = [
            *head,
            " except RuntimeError:",
            "  return False",
            *(f" {line}" for line in lines),
            " return True",
        ]
        exec(compile("\n".join(source), "<recording>", "exec"), self._space)
        replay: Callable[[], bool] = self._space.pop("replay")
        return replay

    def _result(self, name: str, tensor: Tensor) -> str:
        """What goes out for a tensor: the input itself or a view of it, else a copy that outlives the next call."""
        if id(tensor) in self._inputs:
            return name.replace("t", "i")
        return name if id(tensor) in self._taking_in else f"{name}.clone()"

    def _name(self, value: Any) -> str:
        name = f"{getattr(value, '__name__', 'c').replace('.', '_')}_{len(self._space)}"
        self._space[name] = value
        return name

    def _tensor(self, tensor: Tensor) -> str:
        key = id(tensor)
        if key not in self._names:
            name = self._add(tensor)
            if key in self._inputs:
                self.reads.append(tensor)
                self._taking_in[key] = [
                    f"{name} = accept(x, {self._name(tensor)}, {_in_order(tensor)})"
                ]
            else:
                self.constants.append(tensor)
        return self._names[key]

    def _add(self, tensor: Tensor) -> str:
        name = self._names[id(tensor)] = f"t{len(self._names)}"
        self._space[name] = tensor
        return name

    def _array(self, tensor: Tensor) -> str:
        name = self._tensor(tensor)
        array = name.replace("t", "a")
        if array not in self._space:
            self._space[array] = tensor.numpy()
            self._taking_in.get(id(tensor), []).append(f"{array} = {name}.numpy()")
        return array

    def _argument(self, value: Any) -> str:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self._argument, value))}]"
        return repr(value) if value is None or type(value) in (int, bool) else self._name(value)

    def _write_down(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        results = tensors_in(result)
        keywords = [f"{key}={self._argument(value)}" for key, value in kwargs.items()]
        arguments = ", ".join([*map(self._argument, args), *keywords])
        call = f"{self._name(func)}({arguments})"
        calls = (
            [call]
            if isinstance(result, Tensor)
            else [f"{call}[{index}]" for index in range(len(results))]
        )
        in_place = all(id(tensor) in self._names for tensor in results)
        names = [self._names.get(id(tensor)) or self._add(tensor) for tensor in results]
        if (
            not in_place and func._schema.returns[0].alias_info is not None
        ):  # views, which need no computing
            if (taking_in := self._taking_in.get(id(args[0]))) is not None:
                taking_in += [f"{name} = {call}" for name, call in zip(names, calls, strict=True)]
                self._taking_in |= {id(tensor): taking_in for tensor in results}
            return
        kind = func.overloadpacket.__name__
        function = function_of(func)
        if len(results) == 1 and (
            lines := self._with_numpy(kind.strip("_"), args, kwargs, results[0])
        ):
            self._lines += lines
        elif in_place:
            self._lines.append(f"{self._name(getattr(Tensor, kind, func))}({arguments})")
        elif len(results) == 1 and can_write_to(results[0], function, args, kwargs):
            self._lines.append(f"{self._name(function)}({arguments}, out={names[0]})")
        else:
            sources = [self._tensor(args[0])] if kind in ("clone", "_to_copy") else calls
            self._lines += [
                f"{name}.copy_({source})" for name, source in zip(names, sources, strict=True)
            ]

    def _with_numpy(self, name: str, args: Any, kwargs: dict[str, Any], out: Tensor) -> list[str]:
        """An operation as calls of NumPy that give the same bits; none if there are none, or no faster ones."""
        tensors = [*tensors_in((args, kwargs)), out]
        if any(tensor.device.type != "cpu" or tensor.dtype == torch.bfloat16 for tensor in tensors):
            return []
        small = out.ndim == 0 or len(out) <= SMALL
        flat = all(
            t.ndim == 0 or (t.shape == out.shape and (t.ndim == 1 or t.is_contiguous()))
            for t in tensors
        )
        if name == "pow" and args[1] == 2:
            name, args = "square", args[:1]
        if (
            name in UFUNCS
            and (small or flat)
            and kwargs.get("alpha", 1) == 1
            and not kwargs.keys() - {"alpha"}
        ):
            return self._ufunc(name, args, out)
        if name == "index":
            axes = [axis for axis, index in enumerate(args[1]) if index is not None]
            if len(axes) == 1 and args[1][axes[0]].ndim == 1:
                return [
                    f"{self._array(args[0])}.take({self._array(args[1][axes[0]])}, {axes[0]}, {self._array(out)})"
                ]
        if name in ("sum", "mean") and small and adds_in_order(args, out):
            lines = [
                f"{self._name(np.add.reduce)}({self._array(args[0])}, -1, None, {self._array(out)})"
            ]
            return lines + (
                self._ufunc("div", (out, args[0].shape[-1]), out) if name == "mean" else []
            )
        return []

    def _ufunc(self, name: str, args: Any, out: Tensor) -> list[str]:
        if (dtype := ufunc_type(name, args, {}, out)) is None:
            return []
        operands = [
            self._array(arg)
            if isinstance(arg, Tensor)
            else self._name(torch.tensor(arg, dtype=dtype).numpy())
            for arg in args
        ]
        return [f"{self._name(UFUNCS[name])}({', '.join(operands)}, out={self._array(out)})"]


def function_of(func: Any) -> Any:
    kind = func.overloadpacket.__name__
    kind = kind if kind.startswith("__") else kind.rstrip("_")
    return (
        getattr(torch, kind, None)
        or getattr(torch.linalg, kind.removeprefix("linalg_"), None)
        or func
    )


def ufunc_type(name: str, args: Any, kwargs: Any, out: Tensor) -> torch.dtype | None:
    """The type in which NumPy computes an operation to the same bits; None if it cannot."""
    if name not in UFUNCS or kwargs.get("alpha", 1) != 1 or kwargs.keys() - {"alpha"}:
        return None
    dtype, types = (
        torch.result_type(*args) if len(args) > 1 else out.dtype,
        {t.dtype for t in tensors_in(args)},
    )
    mixed = types != {dtype} and (
        name in _COMPARISONS or name == "div" or types != {dtype, torch.bool}
    )
    return None if mixed or (name == "div" and not dtype.is_floating_point) else dtype


def can_write_to(out: Tensor, function: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    try:
        return function(*args, **kwargs, out=out) is out
    except (TypeError, RuntimeError):
        return False


def adds_in_order(args: Any, out: Tensor) -> bool:
    """Whether PyTorch adds the numbers of the last axis in their order, as NumPy does: up to four float32 in a row."""
    value, *axes = args
    if value.ndim == 0 or axes not in ([[value.ndim - 1]], [[-1]]):
        return False
    return (
        value.shape[-1] <= 4 and value.stride(-1) == 1 and value.dtype == out.dtype == torch.float32
    )


def _in_order(tensor: Tensor) -> bool:
    """Whether row follows row in memory, also with gaps, so that what is computed from a tensor is contiguous."""
    if tensor.is_contiguous():
        return True
    strides = [
        stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1
    ]
    return strides == sorted(strides, reverse=True) and all(strides)


def _accept(tensor: Tensor, example: Tensor, in_order: bool) -> Tensor:
    """``tensor`` without its history, if what is computed from it has the shapes, types and orders of the example's."""
    same = _in_order(tensor) if in_order else tensor.stride() == example.stride()
    if not same or tensor.shape != example.shape or tensor.dtype is not example.dtype:
        raise RuntimeError
    return tensor.detach() if tensor.requires_grad else tensor
