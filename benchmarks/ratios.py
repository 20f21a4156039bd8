"""The order of turns in a round, and ratios within rounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def rotated(items: list[Item], turn: int) -> list[Item]:
    """Return ``items`` in the order of a turn: each one is first equally often."""
    shift = turn % len(items)
    return items[shift:] + items[:shift]


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Return the median of the ratios within a round."""
    ratios = []
    for numerator, denominator in zip(numerators, denominators, strict=True):
        ratios.append(numerator / denominator)
    return statistics.median(ratios)
