"""Arrays of any kind (NumPy, torch and others that follow the array API standard), trees of them, and their rows."""

from collections.abc import Callable, Set
from types import ModuleType
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_torch_array
from numpy.typing import NDArray

try:  # np.clip spends more time on the way to this ufunc than in it
    from numpy._core.umath import clip as _numpy_clip  # type: ignore[attr-defined]
except ImportError:
    _numpy_clip = np.clip

NUMPY = (np.ndarray, np.generic)
NumPyArray: TypeAlias = NDArray[Any]


class Array(Protocol):
    """An array of any kind: what the wrappers do with one beside calling its library."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> object: ...
    @property
    def ndim(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __or__(self, other: Any, /) -> Any: ...
    def __and__(self, other: Any, /) -> Any: ...
    def __invert__(self) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...


Tree: TypeAlias = "Array | dict[str, Tree] | tuple[Tree, ...]"
"""An observation or action: an array, or a dict or tuple of trees."""
Info: TypeAlias = dict[str, Any]
"""What a step or reset reports beside its values: arrays with a row for each environment, and anything else."""


def namespace(array: object) -> ModuleType:
    """The functions of an array's library. NumPy's own for NumPy: those of ``array_api_compat`` take longer."""
    return np if isinstance(array, NUMPY) else array_namespace(array)


def as_numpy(array: Array) -> NumPyArray:
    """An array of any kind as a NumPy array, which shares its memory where the device allows it."""
    return np.asarray(array.detach().cpu() if is_torch_array(array) else array)


def shareable(array: NumPyArray) -> NumPyArray:
    """A NumPy array that other libraries can share: a copy of one that is read-only or has negative strides."""
    if array.flags.writeable and min(array.strides, default=0) >= 0:
        return array
    return np.array(array, order="C")


def as_kind_of(array: Array, example: Array) -> Array:
    """An array as one of the kind and on the device of ``example``, which shares its memory where that is possible."""
    if isinstance(example, NUMPY):
        return array if isinstance(array, np.ndarray) else as_numpy(array)
    if type(array) is not type(example):
        array = shareable(as_numpy(array))
    return cast(Array, namespace(example).asarray(array, device=device(example)))


def copied(array: Array) -> Array:
    if isinstance(array, np.ndarray):
        return array.copy()
    return array.clone() if is_torch_array(array) else namespace(array).asarray(array, copy=True)


def float64(array: Array) -> Array:
    """A copy in float64, of the same kind; of a NumPy scalar an array without dimensions."""
    if isinstance(array, NUMPY):
        return np.array(array, np.float64)
    xp = namespace(array)
    return cast(Array, xp.astype(array, xp.float64))


def clip(array: Array, low: Any, high: Any) -> Array:
    if isinstance(array, np.ndarray):
        return cast(Array, _numpy_clip(array, low, high))
    return cast(Array, namespace(array).clip(array, low, high))


def detached(array: Array) -> Array:
    """An array apart from the graph of its gradients, which a number that is kept from step to step must not keep."""
    return cast(Any, array).detach() if getattr(array, "requires_grad", False) else array


def accumulate(total: Array | None, values: Array) -> Array:
    """``total + values`` in float64, of values of any numbers apart from the graph of their gradients; None is 0."""
    if type(total) is type(values) is np.ndarray:
        return total + values.astype(np.float64)  # NumPy takes longer to add two types
    exact = float64(detached(values))
    return exact if total is None else cast(Array, as_kind_of(total, exact) + exact)


def zeros_like_rows(tree: Tree, num_envs: int, dtype: str) -> Array:
    """Zeros of shape (num_envs,), of the kind and on the device of a batch of observations."""
    array = first_array(tree)
    xp = array_namespace(array)
    return cast(Array, xp.zeros(num_envs, dtype=getattr(xp, dtype), device=device(array)))


def first_array(tree: Tree) -> Array:
    """The first array of an observation: it tells the kind and the device of all."""
    while isinstance(tree, (dict, tuple)):
        tree = next(iter(tree.values() if isinstance(tree, dict) else tree))
    return tree


def map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:
    """``tree`` with every array of numbers in its dicts, tuples and lists replaced; all else stays as it is."""
    if isinstance(tree, dict):
        return {key: map_arrays(function, value) for key, value in tree.items()}
    if type(tree) in (tuple, list):
        return type(tree)(map_arrays(function, value) for value in tree)
    if isinstance(tree, np.ndarray):
        return function(tree) if tree.dtype.kind in "biufc" else tree
    # Asking a number whether it is an array takes longest.
    return (
        function(tree)
        if not isinstance(tree, (np.generic, int, float)) and is_array_api_obj(tree)
        else tree
    )


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Call a function with the leaves of trees of one structure, which that of the first is; returns such a tree."""
    if isinstance(tree, dict):
        return {
            key: map_leaves(function, tree[key], *(other[key] for other in others)) for key in tree
        }
    if isinstance(tree, tuple):
        return tuple(map_leaves(function, *parts) for parts in zip(tree, *others, strict=True))
    return function(tree, *others)


def any_row(mask: Array) -> bool:
    if isinstance(mask, np.ndarray):
        return b"\1" in mask.tobytes()  # much faster than any()
    return bool(namespace(mask).any(mask))


def either(one: Array, other: Array) -> Array | None:
    """The rows in which one of two masks of one kind holds; None if there is no such row."""
    rows: Array = one | other
    return rows if any_row(rows) else None


def where_rows(mask: Array, these: Any, others: Tree) -> Any:
    """Rows of one tree of arrays (num_envs, …), or a number, where ``mask`` (num_envs,) holds, of another elsewhere."""

    def choose(one: Any, other: Array) -> Array:
        rows = as_kind_of(mask, other)[(slice(None), *(None,) * (other.ndim - 1))]
        return cast(Array, namespace(other).where(rows, one, other))

    return map_leaves(choose, these, others)


def blank_rows(mask: Array, array: Array) -> Array:
    """``array`` with 0, False or None in the rows of ``mask``."""
    if isinstance(array, np.ndarray):
        blanked = array.copy()
        blanked[as_numpy(mask)] = None if array.dtype == object else 0
        return blanked
    return cast(Array, where_rows(mask, namespace(array).zeros_like(array), array))


def info_rows(mask: Array, later: Info, earlier: Info, whole: Set[str] = frozenset()) -> Info:
    """An ``info`` with rows of ``later`` where ``mask`` holds, else of ``earlier``; a missing key's are blank. What has
    no rows is taken from ``later`` where that has the key; keys of ``whole`` have none, whatever their length."""
    result: Info = {}
    for key in {**earlier, **later}:
        values = [info[key] for info in (later, earlier) if key in info]
        if key not in whole and all(isinstance(value, dict) for value in values):
            result[key] = info_rows(mask, later.get(key, {}), earlier.get(key, {}), whole)
        elif key in whole or not all(_has_rows(value, mask) for value in values):
            result[key] = values[0]
        elif len(values) == 2:
            result[key] = where_rows(mask, *values)
        else:
            result[key] = blank_rows(~mask if key in later else mask, values[0])
    return result


def _has_rows(value: Any, mask: Array) -> bool:
    return getattr(value, "ndim", 0) > 0 and value.shape[0] == mask.shape[0]
