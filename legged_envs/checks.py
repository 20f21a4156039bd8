"""Checks of plain arguments and configuration fields.

Each error says what was given and what is expected.
"""

import difflib
import operator
import re
from collections.abc import Collection, Iterable, Sequence
from math import inf, isfinite
from typing import Any, SupportsIndex


def whole_number(name: str, value: object, least: int = 1, most: float = inf) -> int:
    """Convert an integer of any type to ``int``.

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
        above: Exclusive lower bound.
        below: Exclusive upper bound.

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
    except TypeError:
        return False


def check_range(name: str, value: Any, *, above: float = -inf) -> None:
    """Check that a value is a pair (low, high) with ``above`` < low ≤ high.

    Args:
        name: Name of the argument, for the error.
        value: Value to check.
        above: Exclusive lower bound.

    Raises:
        ValueError: If ``value`` is not such a pair.
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
    """Check that all names are known.

    Args:
        what: Beginning of the error, such as ``"unknown robot"``. The name follows.
        names: Names that were given.
        known: Names that exist.
        kind: What the known names are, for the list at the end of the error.

    Raises:
        ValueError: For the first name that is not known.
    """
    for name in names:
        if name not in known:
            existing = ", ".join(str(each) for each in known)
            raise ValueError(f"{what} {name!r}; {did_you_mean(name, known)}{kind}: {existing}")


def check_spelling(
    where: str, names: Iterable[str], known: Collection[str], cutoff: float = 0.85
) -> None:
    """Check that no name is a misspelt known one. Other unknown names are allowed.

    Args:
        where: Object that has the names, for the error.
        names: Names that were given.
        known: Names that have a meaning.
        cutoff: Similarity from which a name counts as misspelt, 0 to 1.

    Raises:
        ValueError: For the first name that is nearly a known one.
    """
    for name in names:
        if name in known:
            continue
        question = did_you_mean(name, known, cutoff)
        if question:
            raise ValueError(f"{where} has {name!r}; {question}known are: {', '.join(known)}")


def did_you_mean(name: object, known: Iterable[object], cutoff: float = 0.6) -> str:
    """Return a question that suggests the most similar known name, or an empty string.

    Args:
        name: Name that was given. Its case does not matter.
        known: Names that exist.
        cutoff: Least similarity of a suggestion, 0 to 1.

    Returns:
        For example ``"did you mean 'go2'? "``, with a space at the end.
    """
    by_lower_case = {str(each).lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), by_lower_case, n=1, cutoff=cutoff)
    if not close:
        return ""
    return f"did you mean {by_lower_case[close[0]]!r}? "


def check_choice(name: str, value: object, choices: Collection[object]) -> None:
    """Check that a value is one of several.

    Args:
        name: Name of the argument, for the error.
        value: Value to check.
        choices: Accepted values. Types count: True is not 1.

    Raises:
        ValueError: If ``value`` is not one of them.
    """
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return
    raise ValueError(f"{name} must be one of {tuple(choices)}, got {value!r}")


def match_names(
    kind: str, patterns: str | Sequence[str], names: Sequence[str], preserve_order: bool = False
) -> tuple[list[int], list[str]]:
    """Find the names that match regular expressions.

    Args:
        kind: What the names are, for the errors, such as ``"joint"``.
        patterns: One or several expressions. Each must match a whole name.
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
    return [i for i, name in enumerate(names) if re.fullmatch(pattern, name)]
