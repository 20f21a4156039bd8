"""Functions for saved states of engines, which are nested dicts of arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def flatten(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state without nested dicts.

    The entry ``name`` of a dict ``outer`` in the state becomes ``"outer.name"``.
    """
    plain = {}
    nested = {}
    for entry, value in state.items():
        if not isinstance(value, dict):
            plain[entry] = value
            continue
        for name, array in value.items():
            nested[f"{entry}.{name}"] = array
    return {**plain, **nested}


def check_shapes(given: Mapping[str, Any], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Raise an error unless a saved state has exactly the arrays that a simulation expects.

    Args:
        given: Saved state, from `flatten`.
        expected: Names of the arrays of the simulation's own flat state, and the shape of each.

    Raises:
        ValueError: An array is missing, unknown or has another shape. The message names the first
            one.
    """
    for name in {**expected, **given}:
        given_shape = tuple(np.shape(given[name])) if name in given else None
        expected_shape = expected.get(name)
        if given_shape != expected_shape:
            raise ValueError(
                f"the state belongs to another simulation: the shape of {name} is {given_shape}, "
                f"here it is {expected_shape}"
            )
