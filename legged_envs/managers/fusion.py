"""Replays a recording of few numbers, such as those of one robot, with many operations in each call."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress, count, repeat
from operator import is_not
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from legged_envs.managers import tape
from legged_envs.managers.tape import UFUNCS, Place, tensors_in

LARGEST = 4096  # numbers read up to which this takes less time than a call for each operation
_AHEAD = 32  # calls whose results get their memory at once
_TYPES = (torch.float32, torch.float64, torch.bool, torch.int32, torch.int64)
_REDUCTIONS = {"any": np.logical_or, "all": np.logical_and, "sum": np.add}
_BY_ROWS = (*_REDUCTIONS, "mean", "linalg_vector_norm")
_POINTWISE = ("copy", "clamp", "clamp_min", "clamp_max", "where", "exp")
"""What PyTorch computes to the same bits for every row, or number, wherever it is in an array without gaps."""
Run = Callable[[], Any]


class Unfit(Exception):
    """A recording cannot be fused."""


class _Call(NamedTuple):
    key: Hashable
    """Calls with the same key can be one call, their operands joined along the first axis."""
    bind: Callable[[list[np.ndarray], np.ndarray], Run]
    """What computes given operands into a given result."""
    operands: list[Tensor]
    result: Tensor
    """Which values are read and made, by their numbers."""
    types: list[torch.dtype]
    """Of the operands, then of the result."""
    views: Sequence[Any] = ()
    """How the operands of a call that is made alone lie in the memory that is given: shape, strides and offset."""


class Fusion:
    """Every value that a recording reads or makes has a number, and a place of its own in one array for each type. To
    view, copy or stack is then but to read other places; equal operations that are ready are one call, on operands that
    are gathered unless they are side by side. Raises Unfit if the recording has what does not go with that."""

    def __init__(
        self,
        recording: tape.Tape,
        inputs: Mapping[int, Place],
        outputs: Sequence[tuple[Place, Tensor]],
    ):
        if sum(tensor.numel() for tensor in recording.reads) > LARGEST:
            raise Unfit
        self._known: set[int] = set()
        self._memory: dict[
            int, Tensor
        ] = {}  # by the storage of a tensor: the number of the value in each element
        self._sizes = Counter[torch.dtype]()
        self._reads: list[tuple[Tensor, Tensor]] = []
        self._fixed: list[tuple[Tensor, Tensor]] = []
        self._calls: list[_Call] = []
        for operation in recording.operations:
            self._take_in(*operation)
        self._read([tensor for _, tensor in outputs])
        self._settle()
        self._connect(inputs, outputs)

    def replay(self) -> bool:
        """Do what :meth:`Tape.function` says."""
        tensors = [names[name] for names, name in self._names]
        for i in compress(count(), map(is_not, tensors, self._seen)):
            tensor, (shape, dtype) = tensors[i], self._examples[i]
            if tensor.dtype is not dtype:
                return False
            array = (tensor.detach() if tensor.requires_grad else tensor).numpy()
            if array.shape != shape or not array.flags.c_contiguous:
                return False
            self._arrays[i], self._seen[i] = array.reshape(-1), tensor
        for which, place in self._loads:
            np.concatenate([self._arrays[i] for i in which], 0, place)
        for run in self._runs:
            run()
        for i, take, index in self._written:
            take(index, 0, self._arrays[i], "clip")
        rows, results = next(self._results)
        for row, (take, index) in zip(rows, self._takes, strict=True):
            take(index, 0, row, "clip")
        for (names, name), result in zip(self._made, results, strict=True):
            names[name] = result
        for (names, name), i in self._kept:
            names[name] = tensors[i]
        return True

    # --- what the recording does, in numbers of values ----------------------------------------------------------------

    def _whole(self, tensor: Tensor) -> Tensor:
        """The numbers of the values in the memory that a tensor lies in; −1 where there is none."""
        storage = tensor.untyped_storage()
        if tensor.device.type != "cpu" or tensor.dtype not in _TYPES:
            raise Unfit
        if storage.data_ptr() not in self._memory or not storage.nbytes():
            self._memory[storage.data_ptr()] = torch.full(
                (storage.nbytes() // tensor.element_size(),), -1
            )
        return self._memory[storage.data_ptr()]

    def _at(self, tensor: Tensor) -> Tensor:
        """The numbers of the values that a tensor holds, a view of what is remembered."""
        return self._whole(tensor).as_strided(
            tensor.shape, tensor.stride(), tensor.storage_offset()
        )

    def _hold(self, tensor: Tensor, numbers: Tensor | None = None) -> Tensor:
        """Take in that a tensor holds the values of ``numbers`` from now on, or new ones."""
        if numbers is None:
            start = self._sizes.total()
            self._sizes[tensor.dtype] += tensor.numel()
            numbers = torch.arange(start, start + tensor.numel()).view(tensor.shape)
        self._at(tensor).copy_(numbers)
        self._known.add(id(tensor))
        return numbers

    def _read(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors:
            if id(tensor) not in self._known:
                if (self._at(tensor) >= 0).any() or not tensor.is_contiguous():
                    raise Unfit  # shares memory with another input, or has gaps
                self._reads.append((tensor, self._hold(tensor).flatten()))

    def _fix(self, tensor: Tensor, value: Tensor | None = None) -> Tensor:
        self._fixed.append((tensor if value is None else value, self._hold(tensor)))
        return tensor

    def _take_in(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if func is None:
            self._fix(result, args[0])
            return
        tensors, results, name = (
            tensors_in((args, kwargs)),
            tensors_in(result),
            func.overloadpacket.__name__.strip("_"),
        )
        self._read(tensors)
        in_place = all(id(tensor) in self._known for tensor in results)
        if not in_place and func._schema.returns[0].alias_info is not None:  # views
            self._known.update(map(id, results))
            results = [
                tensor for tensor in results if tensor.dtype != tensors[0].dtype
            ]  # which no numbers are for
        elif len(results) == 1:
            if name in ("copy", "to_copy"):
                name, args, kwargs = "copy", (args[1 if name == "copy" else 0],), {}
            if name in ("copy", "clone", "stack", "cat") and {
                t.dtype for t in tensors_in(args)
            } == {result.dtype}:
                numbers = tree_map_only(Tensor, self._at, args)
                self._hold(result, numbers[0].clone() if name == "copy" else func(*numbers))
            elif name.startswith("clamp") and all(
                x is None or (type(x) in (int, float) and x) for x in args[1:]
            ):
                # At 0, which of 0 and −0 comes out is left open; elsewhere it is all the same.
                low, high = (None, args[1]) if name == "clamp_max" else (*args[1:], None)[:2]
                for ufunc, bound in (("maximum", low), ("minimum", high)):
                    if bound is not None:
                        self._calls.append(self._call(func, ufunc, (args[0], bound), {}, result))
                        args = (result,)
            else:
                self._calls.append(self._call(func, name, args, kwargs, result))
            return
        if results:
            raise Unfit

    def _call(self, func: Any, name: str, args: Any, kwargs: Any, out: Tensor) -> _Call:
        if name in ("pow", "square") and args[1:] in ((), (2,)):
            name, args = "mul", (args[0], args[0])
        of_clamp = name in ("maximum", "minimum") and name not in str(func)
        dtype = out.dtype if of_clamp else tape.ufunc_type(name, args, kwargs, out)
        if dtype is not None:
            args = tuple(
                x if isinstance(x, Tensor) else self._fix(torch.tensor(x, dtype=dtype))
                for x in args
            )
        first, axis = tensors_in(args)[0], 2 if name == "linalg_vector_norm" else 1
        along = [(x,) for x in (-1, [-1], first.ndim - 1, [first.ndim - 1])]
        by_rows = (
            name in _BY_ROWS
            and first.ndim > 1
            and first.stride(-1) == 1
            and args[axis : axis + 1] in along
        )
        by_rows = by_rows and out.shape == first.shape[:-1]
        if by_rows:
            args = (first, *args[1:axis], -1 if name in ("any", "all") else [-1])
        leaves, spec = tree_flatten((args, kwargs))
        tensors = tensors_in(leaves)
        types = [tensor.dtype for tensor in (*tensors, out)]
        key = (name, *types, *(repr(x) for x in leaves if not isinstance(x, Tensor)))
        bind: Any = partial(
            _torch, (lambda x: x) if name == "copy" else tape.function_of(func), leaves, spec
        )
        if name == "copy" and not first.is_floating_point():
            bind = _copy
        alike = len(set(types[:-1])) == 1 or all(tensor.ndim for tensor in tensors)
        if dtype is not None or (
            name in _POINTWISE and alike and (name != "exp" or first.is_contiguous())
        ):
            operands = [self._at(tensor).expand(out.shape).flatten().clone() for tensor in tensors]
            bind = bind if dtype is None else partial(_ufunc, UFUNCS.get(name) or getattr(np, name))
            return _Call(key, bind, operands, self._hold(out).flatten(), types)
        if by_rows:
            operand = self._at(first).flatten(0, -2).clone()
            if name in _REDUCTIONS and (
                name != "sum" or not first.is_floating_point() or tape.adds_in_order(args, out)
            ):
                bind = partial(_reduce, _REDUCTIONS[name])
                if name in (
                    "any",
                    "all",
                    "sum",
                ):  # among more numbers that change nothing, more of them are one call
                    more = -operand.shape[1] % (4 if first.is_floating_point() else 16)
                    number = self._at(self._fix(torch.tensor(name == "all", dtype=first.dtype)))
                    operand = pad(operand, (0, more), value=int(number))
            return _Call(
                (*key, operand.shape[1]), bind, [operand], self._hold(out).flatten(), types
            )
        if not out.is_contiguous():
            raise Unfit
        if (
            name == "index"
            and len(tensors) == 2
            and tensors[1].ndim == 1
            and types[1] == torch.int64
        ):
            bind = partial(_take, len(args[1]) - 1)
        views = [(tensor.shape, tensor.stride(), tensor.storage_offset()) for tensor in tensors]
        operands = [self._whole(tensor).clamp(min=0) for tensor in tensors]
        return _Call(object(), bind, operands, self._hold(out), types, views)

    # --- the calls ----------------------------------------------------------------------------------------------------

    def _groups(self) -> Iterator[list[_Call]]:
        """The calls to make together, in an order in which what they need is there."""
        maker = torch.full((self._sizes.total() + 1,), -1)
        for index, call in enumerate(self._calls):
            maker[call.result] = index
        needs = [
            set(maker[torch.cat([x.flatten() for x in call.operands])].tolist()) - {-1}
            for call in self._calls
        ]
        height = [0] * len(needs)  # how many have to follow one after the other
        for index in reversed(range(len(needs))):
            for i in needs[index]:
                height[i] = max(height[i], height[index] + 1)
        left = dict(enumerate(self._calls))
        while left:
            ready = defaultdict[Hashable, list[int]](list)
            for i in left:
                if not needs[i] & left.keys():
                    ready[left[i].key].append(i)
            equal = Counter(call.key for call in left.values())
            # First those of which no more will come, then those on which most has to wait.
            best = max(
                ready,
                key=lambda key: (len(ready[key]) == equal[key], max(height[i] for i in ready[key])),
            )
            yield [left.pop(i) for i in ready[best]]

    def _settle(self) -> None:
        """Give every value its place, and find the calls that compute them there."""
        self._place, used = (
            torch.zeros(self._sizes.total() + 1, dtype=torch.int64),
            Counter[torch.dtype](),
        )
        arenas = self._arenas = {
            t: torch.zeros(size, dtype=t).numpy() for t, size in self._sizes.items()
        }

        def settled(dtype: torch.dtype, some: Sequence[Tensor]) -> np.ndarray:
            numbers = torch.cat(list(some)) if len(some) > 1 else some[0]
            start, used[dtype] = used[dtype], used[dtype] + numbers.numel()
            self._place[numbers] = torch.arange(start, used[dtype]).view(numbers.shape)
            return arenas[dtype][start : used[dtype]].reshape(tuple(numbers.shape))

        self._loads, self._runs = [], list[Run]()
        for dtype in arenas:
            if which := [i for i, (tensor, _) in enumerate(self._reads) if tensor.dtype == dtype]:
                self._loads.append((which, settled(dtype, [self._reads[i][1] for i in which])))
        for value, numbers in self._fixed:
            settled(value.dtype, [numbers])[...] = value.numpy()
        groups, operands, results = (
            list(self._groups()),
            dict[tuple[int, int], Any](),
            list[np.ndarray](),
        )
        made = torch.full((len(self._place),), -1)  # by which group
        gathers = defaultdict[torch.dtype, list[Any]](list)
        for index, group in enumerate(groups):
            group.sort(key=lambda call: self._place[call.operands[0]].flatten()[:1].tolist())
            for k, dtype in enumerate(group[0].types[:-1]):
                numbers = torch.cat([call.operands[k] for call in group])
                where = self._place[numbers]
                start = where.flatten()[:1].sum().item()
                operands[index, k] = arenas[dtype][start:][: where.numel()].reshape(-1)
                if not torch.equal(where.flatten(), torch.arange(start, start + where.numel())):
                    gathers[dtype].append((index, k, where, int(made[numbers].max())))
                else:
                    operands[index, k] = operands[index, k].reshape(tuple(where.shape))
            results.append(settled(group[0].types[-1], [call.result for call in group]))
            for call in group:
                made[call.result] = index
        for index, (call, *_) in enumerate(groups):
            for dtype, waiting in gathers.items():
                if (
                    waiting and waiting[0][0] == index
                ):  # with it all that later ones need and that is there
                    some = [item for item in waiting if item[3] < index]
                    gathers[dtype] = [item for item in waiting if item[3] >= index]
                    places = torch.cat([where.flatten() for _, _, where, _ in some]).numpy()
                    buffer = arenas[dtype].take(places, mode="clip")
                    self._runs.append(partial(arenas[dtype].take, places, 0, buffer, "clip"))
                    for i, k, where, _ in some:
                        operands[i, k] = buffer[: where.numel()].reshape(tuple(where.shape))
                        buffer = buffer[where.numel() :]
            given = [operands[index, k] for k in range(len(call.operands))]
            if call.views:
                pairs = zip(map(torch.from_numpy, given), call.views, strict=True)
                given = [memory.as_strided(*view).numpy() for memory, view in pairs]
            self._runs.append(call.bind(given, results[index]))

    def _connect(
        self, inputs: Mapping[int, Place], outputs: Sequence[tuple[Place, Tensor]]
    ) -> None:
        """Find what is read before the calls, and written after them."""
        reads = [tensor for tensor, _ in self._reads]
        self._names = [
            inputs.get(id(tensor), ({"constant": tensor}, "constant")) for tensor in reads
        ]
        self._examples = [(tuple(tensor.shape), tensor.dtype) for tensor in reads]
        self._seen: list[Any] = [None] * len(reads)
        self._arrays: list[Any] = [None] * len(reads)
        self._written = []
        for i, (tensor, numbers) in enumerate(self._reads):
            if not torch.equal(now := self._at(tensor).flatten(), numbers):
                self._written.append((i, self._arenas[tensor.dtype].take, self._place[now].numpy()))
        index = {id(tensor): i for i, tensor in enumerate(reads) if id(tensor) in inputs}
        self._kept = [
            (place, index[id(tensor)]) for place, tensor in outputs if id(tensor) in index
        ]
        made = [(place, tensor) for place, tensor in outputs if id(tensor) not in index]
        made.sort(key=lambda item: list(self._sizes).index(item[1].dtype))
        owned = {id(self._whole(reads[i])) for i in index.values()}
        if len({id(tensor) for _, tensor in made}) < len(made) or any(
            id(self._whole(t)) in owned for _, t in made
        ):
            raise Unfit  # two names of one tensor, or a view of an input
        self._made = [place for place, _ in made]
        by_type = [
            [t for _, t in made if t.dtype == dtype]
            for dtype in dict.fromkeys(t.dtype for _, t in made)
        ]
        places = [
            self._place[torch.cat([self._at(t).flatten() for t in some])].numpy()
            for some in by_type
        ]
        self._takes = [
            (self._arenas[some[0].dtype].take, where)
            for some, where in zip(by_type, places, strict=True)
        ]
        self._results = _allocate(by_type)


def _allocate(
    by_type: Sequence[Sequence[Tensor]],
) -> Iterator[tuple[Sequence[np.ndarray], Sequence[Tensor]]]:
    """For one call after the other, memory for results like some tensors of each type: an array each, and its parts."""
    while by_type:
        blocks, columns = [], []
        for some in by_type:
            sizes = [tensor.numel() for tensor in some]
            blocks.append(torch.empty(_AHEAD, sum(sizes), dtype=some[0].dtype))
            parts = zip(blocks[-1].split(sizes, dim=1), some, strict=True)
            columns += [part.view(_AHEAD, *tensor.shape).unbind() for part, tensor in parts]
        rows = zip(*(block.numpy() for block in blocks), strict=True)
        yield from zip(rows, zip(*columns, strict=True), strict=True)
    yield from repeat(((), ()))


def _ufunc(ufunc: np.ufunc, operands: list[np.ndarray], result: np.ndarray) -> Run:
    return partial(ufunc, *operands, out=result)


def _copy(operands: list[np.ndarray], result: np.ndarray) -> Run:
    return partial(np.copyto, result, operands[0], "unsafe")


def _reduce(ufunc: np.ufunc, operands: list[np.ndarray], result: np.ndarray) -> Run:
    return partial(ufunc.reduce, operands[0], -1, None, result)


def _take(axis: int, operands: list[np.ndarray], result: np.ndarray) -> Run:
    return partial(operands[0].take, operands[1], axis, result)


def _torch(
    function: Any, leaves: list[Any], spec: Any, operands: list[np.ndarray], result: np.ndarray
) -> Run:
    tensors, out = map(torch.from_numpy, operands), torch.from_numpy(result)
    args, kwargs = tree_unflatten(
        [next(tensors) if isinstance(x, Tensor) else x for x in leaves], spec
    )
    if tape.can_write_to(out, function, args, kwargs):
        return partial(function, *args, **kwargs, out=out)
    return lambda: out.copy_(function(*args, **kwargs))
