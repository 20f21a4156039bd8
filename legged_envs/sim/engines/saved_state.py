"""Saved states of engines: nested dicts of arrays, flattened and compared."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def flatten(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a state; those of dicts in it are named ``"<dict>.<name>"``."""
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
    """Raise an error unless a flat state has exactly the expected arrays.

    Args:
        given: Flat state, as of `flatten`.
        expected: Shape of each array of the flat state of this simulation.

    Raises:
        ValueError: An array is missing, unknown or has another shape; the error names the first.
    """
    for name in {**expected, **given}:
        given_shape = tuple(np.shape(given[name])) if name in given else None
        expected_shape = expected.get(name)
        if given_shape != expected_shape:
            raise ValueError(
                f"the state is of another simulation: the shape of {name} is {given_shape}, "
                f"here it is {expected_shape}"
            )
