"""Functions on arrays of any kind, on trees of arrays, and on their rows.

An array is a NumPy array, a torch tensor or any other array that follows the array API standard.
A tree is an observation, an action or an ``info``. A row is what belongs to one environment.
"""

from collections.abc import Callable, Set
from types import ModuleType
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_torch_array
from numpy.typing import NDArray

try:  # np.clip takes longer to reach this ufunc than the ufunc takes to clip
    from numpy._core.umath import clip as _numpy_clip  # type: ignore[attr-defined]
except ImportError:
    _numpy_clip = np.clip

NUMPY_TYPES = (np.ndarray, np.generic)
NumPyArray: TypeAlias = NDArray[Any]

Operand: TypeAlias = Any
"""Whatever an array's own operators accept: an array of the same kind, a number or an index."""
Info: TypeAlias = dict[str, Any]
"""Extra results of a step or reset: arrays with a row for each environment, and anything else."""
TreeType = TypeVar("TreeType")


class Array(Protocol):
    """An array of any kind.

    The members are used directly by the wrappers. Everything else goes through
    :func:`namespace`.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def ndim(self) -> int: ...
    def __getitem__(self, key: Operand, /) -> "Array": ...
    def __add__(self, other: Operand, /) -> "Array": ...
    def __radd__(self, other: Operand, /) -> "Array": ...
    def __sub__(self, other: Operand, /) -> "Array": ...
    def __rsub__(self, other: Operand, /) -> "Array": ...
    def __mul__(self, other: Operand, /) -> "Array": ...
    def __rmul__(self, other: Operand, /) -> "Array": ...
    def __truediv__(self, other: Operand, /) -> "Array": ...
    def __matmul__(self, other: Operand, /) -> "Array": ...
    def __or__(self, other: Operand, /) -> "Array": ...
    def __and__(self, other: Operand, /) -> "Array": ...
    def __invert__(self) -> "Array": ...
    def __gt__(self, other: Operand, /) -> "Array": ...
    def __lt__(self, other: Operand, /) -> "Array": ...
    def __le__(self, other: Operand, /) -> "Array": ...


Tree: TypeAlias = Array | dict[str, "Tree"] | tuple["Tree", ...]
"""An observation or action: an array, or a dict or tuple of trees."""


# --- kinds of arrays ------------------------------------------------------------------------------


def namespace(array: object) -> ModuleType:
    """Return the functions of an array's library.

    For NumPy these are NumPy's own functions, because ``array_api_compat`` takes longer.
    """
    return np if isinstance(array, NUMPY_TYPES) else array_namespace(array)


def as_numpy(array: Array) -> NumPyArray:
    """Return an array as a NumPy array, which shares memory with the original on the CPU."""
    if is_torch_array(array):
        return np.asarray(array.detach().cpu())
    return np.asarray(array)


def shareable(array: NumPyArray) -> NumPyArray:
    """Return a NumPy array that other libraries can share.

    A read-only array or an array with negative strides is copied, any other is returned itself.
    """
    if array.flags.writeable and min(array.strides, default=0) >= 0:
        return array
    return np.array(array, order="C")


def as_kind_of(array: Array, example: Array) -> Array:
    """Return an array as one of the kind and on the device of ``example``.

    The result shares memory with the original where possible.
    """
    if isinstance(example, NUMPY_TYPES):
        return array if isinstance(array, np.ndarray) else as_numpy(array)
    # By way of NumPy, because array libraries do not know each other.
    if type(array) is not type(example):
        array = shareable(as_numpy(array))
    converted: Array = namespace(example).asarray(array, device=device(example))
    return converted


def copied(array: Array) -> Array:
    """Return a copy of an array."""
    if isinstance(array, np.ndarray):
        return array.copy()
    if is_torch_array(array):
        return array.clone()
    copy: Array = namespace(array).asarray(array, copy=True)
    return copy


# --- numbers --------------------------------------------------------------------------------------


def float64(array: Array) -> Array:
    """Return a copy in float64, of the same kind. A NumPy scalar becomes an array of shape ()."""
    if isinstance(array, NUMPY_TYPES):
        return np.array(array, np.float64)
    xp = namespace(array)
    converted: Array = xp.astype(array, xp.float64)
    return converted


def clip(array: Array, low: float | Array, high: float | Array) -> Array:
    """Return ``array`` limited to [low, high]."""
    clipped: Array
    if isinstance(array, np.ndarray):
        clipped = _numpy_clip(array, low, high)
    else:
        clipped = namespace(array).clip(array, low, high)
    return clipped


def detached(array: Array) -> Array:
    """Return an array without its gradient graph.

    A number that is kept from step to step would otherwise keep the graphs of all steps alive.
    """
    if getattr(array, "requires_grad", False):
        return cast("Array", cast("Any", array).detach())
    return array


def accumulate(total: Array | None, values: Array) -> Array:
    """Return ``total + values`` in float64, without gradients. A ``total`` of None counts as 0."""
    if isinstance(total, np.ndarray) and isinstance(values, np.ndarray):
        # Converted first, because NumPy takes longer to add arrays of two types.
        added: Array = total + values.astype(np.float64)
        return added
    exact = float64(detached(values))
    if total is None:
        return exact
    return as_kind_of(total, exact) + exact


def zeros_per_env(observation: Tree, num_envs: int, dtype: str) -> Array:
    """Return zeros of the kind and on the device of a batch of observations.

    Args:
        observation: The batch of observations.
        num_envs: Number of zeros.
        dtype: Name of the dtype in the array library, such as ``"int64"``.

    Returns:
        The zeros. Shape: (num_envs,).
    """
    example = first_array(observation)
    xp = array_namespace(example)
    zeros: Array = xp.zeros(num_envs, dtype=getattr(xp, dtype), device=device(example))
    return zeros


# --- trees ----------------------------------------------------------------------------------------


def first_array(tree: Tree) -> Array:
    """Return the first array of an observation, an example of the kind and device of all."""
    while isinstance(tree, (dict, tuple)):
        children = tree.values() if isinstance(tree, dict) else tree
        tree = next(iter(children))
    return tree


def map_arrays(function: Callable[[Any], Any], tree: TreeType) -> TreeType:
    """Replace every array of numbers in a tree of dicts, tuples and lists.

    Args:
        function: Called with each array; returns the value that takes the array's place.
        tree: The tree, which is not changed.

    Returns:
        The new tree, which shares everything that is not an array of numbers with ``tree``.
    """
    mapped: Any = tree
    if isinstance(tree, dict):
        mapped = {key: map_arrays(function, value) for key, value in tree.items()}
    elif type(tree) in (tuple, list):
        items: Any = tree
        mapped = type(items)(map_arrays(function, item) for item in items)
    elif _is_array_of_numbers(tree):
        mapped = function(tree)
    return cast("TreeType", mapped)


def _is_array_of_numbers(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    # Numbers are sorted out before is_array_api_obj, which takes longest of all.
    if isinstance(value, (np.generic, int, float)):
        return False
    return is_array_api_obj(value)


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Call a function with the leaves of one or more trees that have the same structure.

    Args:
        function: Called with the leaf of each tree.
        tree: The tree that defines the structure. Dicts and tuples of the tree are not leaves.
        *others: More trees.

    Returns:
        A tree of the results.
    """
    if isinstance(tree, dict):
        mapped = {}
        for key, value in tree.items():
            mapped[key] = map_leaves(function, value, *(other[key] for other in others))
        return mapped
    if isinstance(tree, tuple):
        return tuple(map_leaves(function, *leaves) for leaves in zip(tree, *others, strict=True))
    return function(tree, *others)


# --- rows -----------------------------------------------------------------------------------------


def any_row(mask: Array) -> bool:
    """Return True if a mask holds in at least one row."""
    if isinstance(mask, np.ndarray):
        # Much faster than any().
        return b"\1" in mask.tobytes()
    return bool(namespace(mask).any(mask))


def union_rows(one: Array, other: Array) -> Array | None:
    """Return the rows in which one of two masks holds, or None if there are no such rows."""
    rows = one | other
    return rows if any_row(rows) else None


def align_rows(mask: Array, ndim: int) -> Array:
    """Return a mask (num_envs,) with dimensions of 1 behind it, ``ndim`` dimensions in all."""
    trailing = (None,) * (ndim - 1)
    return mask[(slice(None), *trailing)]


def where_rows(mask: Array, these: Any, others: TreeType) -> TreeType:
    """Choose between the rows of two trees.

    Args:
        mask: Rows that come from ``these``. Shape: (num_envs,), bool.
        these: A tree of arrays (num_envs, …) with the structure of ``others``, or a number.
        others: A tree of arrays (num_envs, …).

    Returns:
        A new tree with the structure of ``others``.
    """

    def choose(one: Array | float, other: Array) -> Array:
        rows = align_rows(as_kind_of(mask, other), other.ndim)
        chosen: Array = namespace(other).where(rows, one, other)
        return chosen

    return cast("TreeType", map_leaves(choose, these, others))


def blank_rows(mask: Array, array: Array) -> Array:
    """Return a copy of ``array`` with 0, False or None in the rows of ``mask``."""
    if isinstance(array, np.ndarray):
        blanked = array.copy()
        blanked[as_numpy(mask)] = None if array.dtype == object else 0
        return blanked
    zeros: Array = namespace(array).zeros_like(array)
    return where_rows(mask, zeros, array)


def info_rows(mask: Array, later: Info, earlier: Info, whole: Set[str] = frozenset()) -> Info:
    """Merge two infos row by row.

    Args:
        mask: Rows that come from ``later``. Shape: (num_envs,), bool.
        later: One info. A value without rows is taken from it if it has the key.
        earlier: The other info.
        whole: Keys with values that have no row for each environment, whatever their length is.

    Returns:
        A new info. Where only one info has a key, the rows of the other are blank.
    """
    merged: Info = {}
    for key in {**earlier, **later}:
        values = [info[key] for info in (later, earlier) if key in info]
        newest = values[0]
        if key in whole:
            merged[key] = newest
        elif all(isinstance(value, dict) for value in values):
            merged[key] = info_rows(mask, later.get(key, {}), earlier.get(key, {}), whole)
        elif not all(_has_rows(value, mask) for value in values):
            merged[key] = newest
        elif len(values) == 2:
            merged[key] = where_rows(mask, later[key], earlier[key])
        elif key in later:
            merged[key] = blank_rows(~mask, newest)
        else:
            merged[key] = blank_rows(mask, newest)
    return merged


def _has_rows(value: Any, mask: Array) -> bool:
    if getattr(value, "ndim", 0) == 0:
        return False
    return bool(value.shape[0] == mask.shape[0])
