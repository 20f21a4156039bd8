"""Motions as tables of numbers, one frame a row: base position, orientation (x, y, z, w), joint positions, more."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from typing import Any

import torch

from legged_envs.motions.motion import MotionError, check_unit

ROOT_COLUMNS = ("root x", "root y", "root z", "root qx", "root qy", "root qz", "root qw")


def read_table(
    rows: Sequence[Any], columns: Sequence[str], origin: str, row: str = "frame", first: int = 0
) -> torch.Tensor:
    """The numbers of a table, float64. Shape: (len(rows), len(columns)).

    Args:
        rows: Lists of numbers, one per column.
        columns: Names of the columns, :data:`ROOT_COLUMNS` first.
        origin: The file, for messages.
        row: What a row is called in the file.
        first: Number of the first row in the file.

    Raises:
        MotionError: A row that is no list of as many numbers, a number that is not finite, an orientation that is no
            unit quaternion.
    """
    for i, values in enumerate(rows, first):
        if not isinstance(values, list) or len(values) != len(columns):
            got = len(values) if isinstance(values, list) else type(values).__name__
            raise MotionError(f"{origin}: {row} {i}: expected {len(columns)} columns, got {got}")
        for column, value in zip(columns, values, strict=True):
            if not is_finite(value):
                got = reprlib.repr(value)
                raise MotionError(f"{origin}: {row} {i}: column[{column}] must be a finite number, got {got}")
    table = torch.tensor(rows, dtype=torch.float64).reshape(-1, len(columns))
    check_unit(table[:, 3:7], origin, "root quaternion (x, y, z, w)", row, first)
    return table


def is_finite(value: object) -> bool:
    """Whether ``value`` is a number that a float can hold, neither infinite nor NaN."""
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
