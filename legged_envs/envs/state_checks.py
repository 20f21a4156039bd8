"""Checks of a saved state before anything of it is loaded."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import torch

from legged_envs.state import State, Tree

Names = tuple[str | int, ...]
"""Keys and indices that lead to a part of a state."""


def check_state(given: Tree, own: Tree, names: Names = ()) -> None:
    """Check that a state has the parts of an environment's own state, each of the expected kind.

    Args:
        given: The state to load.
        own: State of the environment. A None in it fits anything: such a part may exist at some
            times only.
        names: Keys and indices that lead to ``own``, for errors.

    Raises:
        ValueError: At the first part that differs.
    """
    if own is None:
        return
    if isinstance(own, Mapping):
        _check_keys(given, own, names)
        for key, part in own.items():
            check_state(given[key], part, (*names, key))
    elif isinstance(own, (list, tuple)):
        if not isinstance(given, (list, tuple)) or len(given) != len(own):
            raise _other(names, given, f"{len(own)} entries")
        for i, part in enumerate(own):
            check_state(given[i], part, (*names, i))
    elif not _is_alike(given, own):
        raise _other(names, given, _describe(own))


def _check_keys(given: Tree, own: Mapping[Any, Tree], names: Names) -> None:
    if not isinstance(given, Mapping):
        raise _other(names, given, f"{sorted(own)}")
    if given.keys() != own.keys():
        raise ValueError(
            f"{_path(names)} is of another environment: it has {sorted(map(str, given))} where "
            f"this one has {sorted(map(str, own))}"
        )


def _is_alike(given: Tree, own: Tree) -> bool:
    """Return True if a leaf of a state has the type, dtype and shape of the own one."""
    if isinstance(own, torch.Tensor):
        if not isinstance(given, torch.Tensor):
            return False
        return given.dtype == own.dtype and given.shape == own.shape
    if isinstance(own, bool):
        return isinstance(given, bool)
    if isinstance(own, Integral):
        return isinstance(given, Integral) and not isinstance(given, bool)
    if isinstance(own, Real):
        return isinstance(given, Real) and not isinstance(given, bool)
    if hasattr(own, "dtype"):
        same_kind = getattr(given, "dtype", None) == own.dtype
        return bool(same_kind and getattr(given, "shape", None) == own.shape)
    return isinstance(given, type(own))


def check_streams(given: Tree, num_envs: int) -> None:
    """Check the random streams of a state: any number of them, each with its key and counter.

    Args:
        given: Streams by name.
        num_envs: Number of environments.

    Raises:
        ValueError: If a stream is incomplete.
    """
    names: Names = ("random", "streams")
    if not isinstance(given, Mapping):
        raise _other(names, given, "streams by name")
    numbers = torch.zeros(num_envs, 1, dtype=torch.int64)
    own: State = {"key": numbers, "counter": numbers}
    for name, stream in given.items():
        if not isinstance(name, str):
            raise _other(names, name, "names")
        check_state(stream, own, (*names, name))


def _other(names: Names, given: Tree, expected: str) -> ValueError:
    return ValueError(
        f"{_path(names)} is of another environment: it has {_describe(given)} where this one has "
        f"{expected}"
    )


def _path(names: Names) -> str:
    return "the state" + "".join(f"[{name!r}]" for name in names)


def _describe(value: Tree) -> str:
    if hasattr(value, "dtype"):
        return f"{value.dtype} {tuple(value.shape)}"
    if isinstance(value, Mapping):
        return f"{sorted(map(str, value))}"
    if isinstance(value, (list, tuple)):
        return f"{len(value)} entries"
    return type(value).__name__
