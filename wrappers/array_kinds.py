"""What the wrappers do with arrays of any kind: NumPy, torch and others that follow the array API standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_torch_array

NUMPY = (np.ndarray, np.generic)


def namespace(array: Any) -> Any:
    """The array's functions. NumPy's own for NumPy: those of ``array_api_compat`` take longer."""
    return np if isinstance(array, NUMPY) else array_namespace(array)


def any_row(mask: Any) -> bool:
    """Whether a mask holds for any row."""
    if isinstance(mask, np.ndarray):
        return b"\1" in mask.tobytes()  # much faster than any()
    return bool(array_namespace(mask).any(mask))


def float64(array: Any) -> Any:
    """A copy in float64, of the same kind; of a NumPy scalar an array without dimensions."""
    if isinstance(array, NUMPY):
        return np.array(array, np.float64)
    xp = array_namespace(array)
    return xp.astype(array, xp.float64)


def detached(array: Any) -> Any:
    """An array apart from the graph of its gradients, which a number that is kept from step to step must not keep."""
    return array.detach() if getattr(array, "requires_grad", False) else array


def accumulate(total: Any, values: Any) -> Any:
    """``total + values`` of a float64 total and values of any numbers, apart from the graph of their gradients."""
    values = detached(values)
    try:
        return total + values
    except TypeError:  # the array API standard leaves it open what integers and floats make together
        return total + float64(values)


def to_numpy(array: Any) -> np.ndarray:
    """A NumPy copy of an array of any kind, on any device."""
    return np.asarray(array.detach().cpu() if is_torch_array(array) else array).copy()


def like(array: Any, other: Any) -> Any:
    """The values of a NumPy array as an array of the kind and on the device of ``other``, with their dtype.

    An array that is of another kind already is returned as it is.
    """
    if not isinstance(array, np.ndarray) or isinstance(other, NUMPY):
        return array
    xp = namespace(other)
    return xp.asarray(array, dtype=getattr(xp, array.dtype.name), device=device(other))


def where_rows(mask: Any, these: Any, others: Any) -> Any:
    """One array's rows where a mask holds, another's elsewhere. Shapes: (num_envs,) and (num_envs, …) twice."""
    return namespace(others).where(mask[(slice(None), *(None,) * (others.ndim - 1))], these, others)


def as_numpy(array: Any) -> np.ndarray:
    """An array of any kind as a NumPy array, which shares its memory where the device allows it."""
    return array.detach().cpu().numpy() if is_torch_array(array) else np.asarray(array)


def as_kind_of(array: Any, example: Any) -> Any:
    """An array as one of the kind and on the device of ``example``, which shares its memory where that is possible."""
    if isinstance(example, np.ndarray):
        return array if isinstance(array, np.ndarray) else as_numpy(array)
    if type(array) is not type(example):
        array = as_numpy(array)
    return array_namespace(example).asarray(array, device=device(example))


def map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:
    """``tree`` with every array of numbers in its dicts, tuples and lists replaced; all else stays as it is."""
    if isinstance(tree, dict):
        return {key: map_arrays(function, value) for key, value in tree.items()}
    if type(tree) in (tuple, list):
        return type(tree)(map_arrays(function, value) for value in tree)
    if isinstance(tree, np.ndarray):
        return function(tree) if tree.dtype.kind in "biufc" else tree
    return function(tree) if is_array_api_obj(tree) and not isinstance(tree, np.generic) else tree


def copied(array: Any) -> Any:
    """A copy of an array, or None."""
    if array is None:
        return None
    if isinstance(array, np.ndarray):
        return array.copy()
    return array.clone() if is_torch_array(array) else namespace(array).asarray(array, copy=True)
