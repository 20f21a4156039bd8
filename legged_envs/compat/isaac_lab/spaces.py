"""Spaces as Isaac Lab's configurations write them."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple

from legged_envs.checks import whole_number


def space_from(spec: Any, low: float, high: float, name: str = "space") -> gym.Space[Any]:
    """Return the space that a configuration describes.

    Args:
        spec: One of these:

            - a space: itself;
            - n or [n, m, …]: a float32 box of shape (n,) or (n, m, …);
            - {n}: one of n choices; [{n}, {m}, …]: several choices;
            - a dict or a tuple of these: a dict or tuple of spaces.
        low: Lower bound of boxes.
        high: Upper bound of boxes.
        name: Name of the field, for the error.

    Raises:
        ValueError: If ``spec`` is none of these.
    """
    space: gym.Space[Any] | None = None
    if isinstance(spec, gym.Space):
        space = spec
    elif isinstance(spec, int):
        space = Box(low, high, (whole_number(name, spec),))
    elif isinstance(spec, set) and len(spec) == 1:
        (choices,) = spec
        space = Discrete(whole_number(f"{name}: the number of choices", choices))
    elif isinstance(spec, Mapping) and spec:
        spaces = {}
        for key, part in spec.items():
            spaces[key] = space_from(part, low, high, f"{name}[{key!r}]")
        space = Dict(spaces)
    elif isinstance(spec, (list, tuple)) and spec:
        space = _space_from_sequence(spec, low, high, name)
    if space is None:
        raise ValueError(
            f"{name} must be a gymnasium space, a size, a list of sizes, {{n}}, [{{n}}, …], "
            f"or a dict or tuple of these, got {spec!r}"
        )
    return space


def _space_from_sequence(
    spec: Sequence[Any], low: float, high: float, name: str
) -> gym.Space[Any] | None:
    """Return the space that a list or tuple describes; None if it describes none."""
    # Each part is checked in a list too: sizes and choices must be whole numbers.
    parts = []
    for index, part in enumerate(spec):
        parts.append(space_from(part, low, high, f"{name}[{index}]"))
    if isinstance(spec, tuple):
        return Tuple(parts)
    if all(isinstance(choices, set) for choices in spec):
        return MultiDiscrete([part.n for part in parts if isinstance(part, Discrete)])
    if all(isinstance(size, int) for size in spec):
        return Box(low, high, tuple(spec))
    return None
