"""A range of indices, as Isaac Gym gives it."""

from dataclasses import dataclass


@dataclass
class IndexRange:
    """The indices ``start`` to ``start + count − 1``."""

    start: int
    """First index."""
    count: int
    """Number of indices."""
