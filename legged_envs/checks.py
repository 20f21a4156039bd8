"""Checks of plain arguments and configuration fields. Each error says what was given and what is expected."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from typing import Any


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """``value``, which any kind of integer may be, as an int.

    Raises:
        ValueError: If it is no integer, or below ``least``.
    """
    try:
        number = None if str(type(value).__name__).startswith("bool") else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        expected = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    return number


def check_number(
    name: str,
    value: Any,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    above: float = -math.inf,
    below: float = math.inf,
) -> None:
    """Raise a ``ValueError`` unless ``value`` is a finite number within the bounds."""
    try:
        fits = math.isfinite(value) and least <= value <= most and above < value < below
    except TypeError:
        fits = False
    if not fits:
        bounds = ((least, "at least"), (above, "above"), (most, "at most"), (below, "below"))
        wanted = " and ".join(f"{word} {bound:g}" for bound, word in bounds if math.isfinite(bound))
        raise ValueError(f"{name} must be a finite number{wanted and ' ' + wanted}, got {value!r}")


def check_range(name: str, value: Any, least: float = -math.inf, *, above: float = -math.inf) -> None:
    """Raise a ``ValueError`` unless ``value`` is (low, high) with low ≤ high, and low within the bounds."""
    try:
        low, high = value
        fits = least <= low <= high and above < low
    except (TypeError, ValueError):
        fits = False
    if not fits:
        wanted = f" above {above:g}" if math.isfinite(above) else f" of at least {least:g}" if least > -math.inf else ""
        raise ValueError(f"{name} must be (low, high){wanted}, got {value!r}")


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Raise a ``ValueError`` unless ``value`` is one of ``choices``, of the same type."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ValueError(f"{name} must be one of {tuple(choices)}, got {value!r}")
