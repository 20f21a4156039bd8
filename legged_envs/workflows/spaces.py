"""Spaces as Isaac Lab's configurations write them."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple

from legged_envs.checks import whole_number


def space_from(spec: Any, low: float, high: float, name: str = "space") -> gym.Space[Any]:
    """The space that ``spec`` stands for:
    | a space: itself
    | n or [n, m, …]: a float32 box of shape (n,) or (n, m, …), from ``low`` to ``high``
    | {n}: one of n choices, [{n}, {m}, …]: several such
    | a dict or a tuple of these: one of spaces
    ValueError, with the ``name`` of the field, if it is none of these."""
    if isinstance(spec, gym.Space):
        return spec
    if isinstance(spec, Mapping) and spec:
        return Dict({key: space_from(part, low, high, f"{name}[{key!r}]") for key, part in spec.items()})
    if isinstance(spec, tuple) and spec:
        return Tuple([space_from(part, low, high, f"{name}[{i}]") for i, part in enumerate(spec)])
    if isinstance(spec, set) and len(spec) == 1:
        return Discrete(_choices(spec, name))
    if isinstance(spec, list) and spec:
        if all(isinstance(part, set) and len(part) == 1 for part in spec):
            return MultiDiscrete([_choices(part, f"{name}[{i}]") for i, part in enumerate(spec)])
        return Box(low, high, tuple(whole_number(f"{name}[{i}]", size) for i, size in enumerate(spec)))
    if isinstance(spec, int) and not isinstance(spec, bool):
        return Box(low, high, (whole_number(name, spec),))
    expected = "a gymnasium space, a size, a list of sizes, {n}, [{n}, …], or a dict or tuple of these"
    raise ValueError(f"{name} must be {expected}, got {spec!r}")


def _choices(spec: set[Any], name: str) -> int:
    return whole_number(f"{name}: the number of choices", *spec)
