"""Columns that a wrapper appends to observations."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict

from legged_envs.wrappers.plumbing.arrays import Array, Tree, as_kind_of, map_leaves, namespace
from legged_envs.wrappers.plumbing.layers import Space


def with_columns(space: Space, number: int) -> Space:
    """Return the space of observations with more numbers, which have no bounds.

    Args:
        space: A Box of floats in one row, or a Dict of these.
        number: Number of numbers that each Box gets.

    Raises:
        TypeError: If ``space`` is something else.
    """
    if isinstance(space, Dict):
        return Dict({key: with_columns(part, number) for key, part in space.items()})
    if not isinstance(space, Box) or len(space.shape) != 1 or space.dtype.kind != "f":
        raise TypeError(
            f"observations must be a Box of floats in one row or a Dict of these, got {space}"
        )
    bound = np.full(number, np.inf)
    low = np.concatenate((space.low, -bound)).astype(space.dtype)
    high = np.concatenate((space.high, bound)).astype(space.dtype)
    return Box(low, high, dtype=low.dtype.type)


def append_columns(observation: Tree, columns: Array) -> Any:
    """Return observations with columns appended to each array.

    Args:
        observation: Arrays (num_envs, n), in dicts or not.
        columns: Array (num_envs, K) of any kind and dtype.
    """

    def append(array: Array) -> Array:
        xp = namespace(array)
        behind = xp.astype(as_kind_of(columns, array), array.dtype)
        joined: Array = xp.concat((array, behind), axis=1)
        return joined

    return map_leaves(append, observation)
