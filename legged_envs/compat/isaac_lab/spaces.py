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
    if isinstance(spec, int):
        return Box(low, high, (whole_number(name, spec),))
    if isinstance(spec, set) and len(spec) == 1:
        return Discrete(whole_number(f"{name}: the number of choices", *spec))
    if isinstance(spec, Mapping) and spec:
        return Dict(
            {key: space_from(part, low, high, f"{name}[{key!r}]") for key, part in spec.items()}
        )
    if isinstance(spec, (list, tuple)) and spec:
        parts = [space_from(part, low, high, f"{name}[{i}]") for i, part in enumerate(spec)]
        if isinstance(spec, tuple):
            return Tuple(parts)
        if all(isinstance(part, set) for part in spec):
            return MultiDiscrete([part.n for part in parts])  # type: ignore[attr-defined]
        if all(isinstance(size, int) for size in spec):
            return Box(low, high, tuple(spec))
    expected = (
        "a gymnasium space, a size, a list of sizes, {n}, [{n}, …], or a dict or tuple of these"
    )
    raise ValueError(f"{name} must be {expected}, got {spec!r}")
