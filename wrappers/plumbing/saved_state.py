"""Saving and loading of the single values that make up a wrapper's state."""

from collections import deque
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from array_api_compat import is_array_api_obj

from legged_envs.wrappers.plumbing import arrays

Saved: TypeAlias = Any
"""A saved value of a wrapper: a number, array or list, or a dict of them."""


@runtime_checkable
class HasState(Protocol):
    """The interface of a part of a wrapper with its own state, such as a ``Normalizer``."""

    def state_dict(self) -> Saved: ...
    def check_state(self, state: Saved, /) -> None: ...
    def load_state_dict(self, state: Saved, /) -> None: ...


def saved_value(value: object) -> Saved:
    """Return a copy of an attribute of a wrapper, as an entry of the wrapper's ``state_dict``."""
    if isinstance(value, HasState):
        return value.state_dict()
    if isinstance(value, dict):
        return {key: saved_value(part) for key, part in value.items()}
    if isinstance(value, deque):
        return list(value)
    return arrays.map_arrays(arrays.copied, value)


def check_value(current: object, saved: Saved) -> None:
    """Check that a saved value can replace the present value of a wrapper's attribute.

    Args:
        current: Present value of the attribute.
        saved: Value of the attribute in a saved state.

    Raises:
        KeyError: An entry of a dict is missing in ``saved``.
        ValueError: An array or an object in ``saved`` has another shape or other settings.
    """
    if isinstance(current, HasState):
        current.check_state(saved)
    # A single number may be of any kind of number.
    elif is_array_api_obj(current) and getattr(current, "ndim", 0) > 0:
        _check_array(current, saved)
    elif isinstance(current, dict):
        for key, part in current.items():
            check_value(part, saved[key])
    elif not isinstance(saved, _accepted_types(current)):
        raise ValueError(f"expected a {type(current).__name__} like {current!r}, got {saved!r}")


def load_value(current: object, saved: Saved) -> object:
    """Return the value to use instead of the current one when a saved one is loaded.

    Args:
        current: The value of the wrapper. Dicts and parts with a state are loaded in place.
        saved: The value from a state, which :func:`check_value` has accepted.

    Returns:
        ``current`` itself if it was loaded in place, otherwise a copy of ``saved``.
    """
    if isinstance(current, HasState):
        current.load_state_dict(saved)
        return current
    if isinstance(current, dict):
        for key, part in current.items():
            current[key] = load_value(part, saved[key])
        return current
    if isinstance(current, deque):
        return deque(saved, current.maxlen)
    return arrays.map_arrays(arrays.copied, saved)


def _check_array(current: Any, saved: Saved) -> None:
    # None stands for an array that did not exist yet, such as before the first reset.
    if saved is None:
        return
    is_mask = "bool" in str(current.dtype)
    given = str(getattr(saved, "dtype", type(saved).__name__))
    if ("bool" in given) != is_mask or "object" in given or not hasattr(saved, "dtype"):
        raise ValueError(f"expected an array of {current.dtype}, got {given}")


def _accepted_types(current: object) -> tuple[type, ...]:
    # By exact type: a bool is an int too, and must not be replaced by a number.
    if type(current) is bool:
        return (bool,)
    if type(current) is int:
        return (int, np.integer)
    if type(current) is deque:
        return (list, deque)
    return (object,)
