"""Checks of plain arguments and configuration fields. Each error says what was given and what is expected."""

import difflib
import operator
import re
from collections.abc import Collection, Iterable, Sequence
from math import inf, isfinite
from typing import Any


def whole_number(name: str, value: Any, least: int = 1, most: float = inf) -> int:
    """``value``, an integer of any kind, as an int; ValueError if it is none, below ``least`` or above ``most``."""
    try:
        number = None if type(value).__name__.startswith("bool") else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        expected = "a positive integer" if least == 1 else f"an integer of at least {least}"
        expected += f" and at most {most}" if isfinite(most) else ""
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    return number


def check_number(
    name: str,
    value: Any,
    least: float = -inf,
    most: float = inf,
    *,
    above: float = -inf,
    below: float = inf,
) -> None:
    """Raise a ``ValueError`` unless ``value`` is a finite number within the bounds."""
    try:
        fits = isfinite(value) and least <= value <= most and above < value < below
    except TypeError:
        fits = False
    if not fits:
        bounds = {"at least": least, "above": above, "at most": most, "below": below}
        wanted = " and ".join(
            f"{word} {bound:g}" for word, bound in bounds.items() if isfinite(bound)
        )
        raise ValueError(f"{name} must be a finite number{wanted and ' ' + wanted}, got {value!r}")


def check_range(name: str, value: Any, *, above: float = -inf) -> None:
    """Raise a ``ValueError`` unless ``value`` is (low, high) with ``above`` < low ≤ high."""
    try:
        low, high = value
        fits = above < low <= high
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(
            f"{name} must be (low, high){f' above {above:g}' if isfinite(above) else ''}, got {value!r}"
        )


def check_known(what: str, names: Iterable[str], known: Collection[str], kind: str) -> None:
    """Raise a ``ValueError`` that says ``what`` about the first of ``names`` that is not ``known``, and lists these."""
    for name in names:
        if name not in known:
            raise ValueError(
                f"{what} {name!r}; {did_you_mean(name, known)}{kind}: {', '.join(map(str, known))}"
            )


def check_spelling(
    where: str, names: Iterable[str], known: Collection[str], cutoff: float = 0.85
) -> None:
    """Raise a ``ValueError`` if one of ``names`` is nearly one of ``known``; any other name is somebody else's."""
    for name in names:
        if name not in known and (question := did_you_mean(name, known, cutoff)):
            raise ValueError(f"{where} has {name!r}; {question}known are: {', '.join(known)}")


def did_you_mean(name: Any, known: Iterable[Any], cutoff: float = 0.6) -> str:
    """A question with the one of ``known`` that is like ``name``, whatever its case, and a space; empty without one.
    ``cutoff``, 0 to 1, is how like it must be."""
    lower = {str(each).lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), lower, n=1, cutoff=cutoff)
    return f"did you mean {lower[close[0]]!r}? " if close else ""


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Raise a ``ValueError`` unless ``value`` is one of ``choices``, of the same type."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ValueError(f"{name} must be one of {tuple(choices)}, got {value!r}")


def match_names(
    kind: str, patterns: str | Sequence[str], names: Sequence[str], preserve_order: bool = False
) -> tuple[list[int], list[str]]:
    """Indices, and names, of those of ``names`` that fit one of the regular expressions, in their own order or in that
    of the expressions. ValueError if one fits none, or two fit the same name."""
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    found = {
        pattern: [i for i, name in enumerate(names) if re.fullmatch(pattern, name)]
        for pattern in patterns
    }
    check_known(
        f"no {kind} matches",
        (pattern for pattern, ids in found.items() if not ids),
        names,
        "there are",
    )
    ids = [i for each in found.values() for i in each]
    if len({*ids}) < len(ids):
        raise ValueError(
            f"{kind} {names[max(ids, key=ids.count)]!r} matches more than one of {patterns}"
        )
    ids = ids if preserve_order else sorted(ids)
    return ids, [names[i] for i in ids]
