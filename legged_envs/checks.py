"""Functions that check arguments and configuration fields.

Each error states the name of the argument, the value that was given and the values that are
accepted.
"""

import difflib
import operator
import re
from collections.abc import Collection, Iterable, Sequence
from math import inf, isfinite
from typing import Any, SupportsIndex

LARGEST_COUNT = 2**31 - 1
"""Largest number of type int32."""


def whole_number(name: str, value: object, least: int = 1, most: float = inf) -> int:
    """Check that a value is a whole number within bounds, and convert it to ``int``.

    Args:
        name: Name of the argument, for the error.
        value: Python, NumPy or torch integer. A bool is not an integer here.
        least: Smallest accepted value.
        most: Largest accepted value.

    Returns:
        The value as an ``int``.

    Raises:
        ValueError: If ``value`` is not an integer within the bounds.
    """
    number = _as_int(value)
    if number is not None and least <= number <= most:
        return number
    expected = "a positive integer" if least == 1 else f"an integer of at least {least}"
    if isfinite(most):
        expected += f" and at most {most}"
    raise ValueError(f"{name} must be {expected}, got {value!r}")


def _as_int(value: object) -> int | None:
    # By its name, because NumPy's bool is not a subclass of Python's.
    is_bool = type(value).__name__.startswith("bool")
    if is_bool or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # Arrays and tensors of floats have `__index__`, but refuse it.
        return None


def check_number(
    name: str,
    value: object,
    least: float = -inf,
    most: float = inf,
    *,
    above: float = -inf,
    below: float = inf,
) -> None:
    """Check that a value is a finite number within bounds.

    Args:
        name: Name of the argument, for the error.
        value: Value to check.
        least: Smallest accepted value.
        most: Largest accepted value.
        above: Bound that the value must exceed.
        below: Bound that the value must stay below.

    Raises:
        ValueError: If ``value`` is not finite, not a number, or out of bounds.
    """
    if _is_within(value, least, most, above, below):
        return
    bounds = {"at least": least, "above": above, "at most": most, "below": below}
    words = [f"{word} {bound:g}" for word, bound in bounds.items() if isfinite(bound)]
    expected = f"a finite number {' and '.join(words)}".rstrip()
    raise ValueError(f"{name} must be {expected}, got {value!r}")


def _is_within(value: Any, least: float, most: float, above: float, below: float) -> bool:
    # The value itself is compared, not its float: a NumPy float32 rounds the bounds to its type.
    try:
        return bool(isfinite(value) and least <= value <= most and above < value < below)
    except (TypeError, OverflowError):  # An integer can be larger than any float.
        return False


def check_range(name: str, value: Any, *, above: float = -inf) -> None:
    """Check that a value is a pair (low, high) with ``above`` < low ≤ high.

    Args:
        name: Name of the argument, for the error.
        value: Value to check.
        above: Bound that ``low`` must exceed.

    Raises:
        ValueError: If ``value`` is not a pair of two numbers, or they break these inequalities.
    """
    try:
        low, high = value
        fits = above < low <= high
    except (TypeError, ValueError):
        fits = False
    if fits:
        return
    bound = f" above {above:g}" if isfinite(above) else ""
    raise ValueError(f"{name} must be (low, high){bound}, got {value!r}")


def check_known(what: str, names: Iterable[str], known: Collection[str], kind: str) -> None:
    """Check that all given names, for example of robots or reward terms, exist.

    Args:
        what: First words of the error, such as ``"unknown robot"``. The unknown name follows them.
        names: Names that were given.
        known: Names that exist.
        kind: Plural noun for the existing names, such as ``"robots"``. The error lists them.

    Raises:
        ValueError: If a name does not exist. The error has the first of them and a suggestion.
    """
    for name in names:
        if name not in known:
            existing = ", ".join(str(each) for each in known)
            raise ValueError(f"{what} {name!r}; {did_you_mean(name, known)}{kind}: {existing}")


def check_spelling(
    where: str, names: Iterable[str], known: Collection[str], cutoff: float = 0.85
) -> None:
    """Check that no given name looks like a misspelling of a known name.

    It is for objects with free names: names that are unlike every known name are allowed.

    Args:
        where: Object that has the names, for the error.
        names: Names that were given.
        known: Names that have a meaning.
        cutoff: Similarity to a known name, 0 to 1, above which a name counts as a misspelling.

    Raises:
        ValueError: If a name is similar to a known name and not equal to it.
    """
    for name in names:
        if name in known:
            continue
        question = did_you_mean(name, known, cutoff)
        if question:
            raise ValueError(f"{where} has {name!r}; {question}known are: {', '.join(known)}")


def did_you_mean(name: object, known: Iterable[object], cutoff: float = 0.6) -> str:
    """Return the words "did you mean …?" for an error about an unknown name.

    Args:
        name: Unknown name that was given. Its case does not matter.
        known: Names that exist. The most similar one is suggested.
        cutoff: Smallest similarity of a suggestion, 0 to 1.

    Returns:
        For example ``"did you mean 'go2'? "``, with a space at the end. An empty string if no name
        is similar.
    """
    by_lower_case = {str(each).lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), by_lower_case, n=1, cutoff=cutoff)
    if not close:
        return ""
    return f"did you mean {by_lower_case[close[0]]!r}? "


def check_choice(name: str, value: object, choices: Collection[object]) -> None:
    """Check that a value is one of the accepted choices.

    Args:
        name: Name of the argument, for the error.
        value: Value to check.
        choices: Accepted values. The type must be equal too: True is not accepted for 1.

    Raises:
        ValueError: If ``value`` is not one of ``choices``.
    """
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return
    raise ValueError(f"{name} must be one of {tuple(choices)}, got {value!r}")


def match_names(
    kind: str, patterns: str | Sequence[str], names: Sequence[str], preserve_order: bool = False
) -> tuple[list[int], list[str]]:
    """Find the names, for example of joints, that match regular expressions.

    Args:
        kind: Noun for a name, such as ``"joint"``, for the errors.
        patterns: One or several expressions. An expression must match a whole name.
        names: Names to choose from.
        preserve_order: True for the order of the expressions, False for the order of ``names``.

    Returns:
        Indices of the matching names, and the names.

    Raises:
        ValueError: If an expression matches nothing, or a name is matched twice.
    """
    expressions = [patterns] if isinstance(patterns, str) else list(patterns)
    matches = {pattern: _matching(pattern, names) for pattern in expressions}
    without_match = [pattern for pattern, ids in matches.items() if not ids]
    check_known(f"no {kind} matches", without_match, names, "there are")
    indices: list[int] = []
    for ids in matches.values():
        indices.extend(ids)
    if len(set(indices)) < len(indices):
        repeated = max(indices, key=indices.count)
        raise ValueError(f"{kind} {names[repeated]!r} matches more than one of {expressions}")
    if not preserve_order:
        indices.sort()
    return indices, [names[i] for i in indices]


def _matching(pattern: str, names: Sequence[str]) -> list[int]:
    return [i for i, name in enumerate(names) if re.fullmatch(pattern, name, re.DOTALL)]
