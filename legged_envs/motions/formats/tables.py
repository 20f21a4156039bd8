"""Checks rows of numbers from text files, and names the row and column of a wrong one."""

import reprlib
import sys
from collections.abc import Sequence
from typing import Any

import torch

from legged_envs.motions.motion import MotionError, require

ROOT_COLUMNS = ("root x", "root y", "root z", "root qx", "root qy", "root qz", "root qw")
"""Names of the columns with the pose of the base, which come first in a row."""


def check_table(
    rows: Sequence[Any], columns: Sequence[str], origin: str, row: str = "frame", first: int = 0
) -> torch.Tensor:
    """Check rows of numbers and convert them to float64.

    Args:
        rows: The rows, which should be lists of numbers.
        columns: Names of the columns.
        origin: File of the motion, for error messages.
        row: Name of a row in error messages, such as ``"frame"`` or ``"line"``.
        first: Number of the first row in error messages.

    Returns:
        The table. Shape: (number of rows, number of columns).

    Raises:
        MotionError: A row has another width, or an entry is not a finite number.
    """
    for number, values in enumerate(rows, first):
        got = len(values) if isinstance(values, list) else type(values).__name__
        is_wide = got == len(columns)
        require(is_wide, origin, f"{row} {number}", f"{len(columns)} columns wide", got)
        for column, value in zip(columns, values, strict=True):
            if not is_finite(value):
                raise MotionError(
                    f"{origin}: {row} {number}: column[{column}] must be a finite number, "
                    f"got {reprlib.repr(value)}"
                )
    # An empty file is without rows, but still with columns.
    return torch.tensor(rows, dtype=torch.float64).reshape(-1, len(columns))


def is_finite(value: object) -> bool:
    """Return True for a number, not a bool, that is finite and not too large for a float."""
    # bool is an int in Python, and JSON's integers can be too large for a float.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max


def plain_rate(rate: float) -> float:
    """Return the whole number that a frame rate is meant to be, or the rate itself.

    Times with few digits give 29.99 or 30.0003 for 30.
    """
    whole = round(rate)
    return float(whole) if abs(rate - whole) < 2e-3 * rate else rate


def parse_number(cell: str) -> float | str:
    """Return the number in a cell of a text table, or the cell's text if it is not a number."""
    # Some programs put quotes around every cell.
    text = cell.strip(' \t"')
    # float() would read 1_0 as 10.
    if "_" in text:
        return text
    try:
        return float(text)
    except ValueError:
        return text
