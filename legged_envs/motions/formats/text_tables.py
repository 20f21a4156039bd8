"""Splits text tables into cells, and reads the frame rate from a column of times."""

from pathlib import Path

import torch

from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.tables import plain_rate
from legged_envs.motions.motion import MotionError

SEPARATORS = ("\t", ";", ",")
"""Separators of cells. The file has the first separator that occurs in its last line."""
UNEVEN = 0.1
"""Largest deviation of a time step from the median, as a fraction of it."""


def read_cells(path: Path) -> tuple[list[list[str]], int]:
    """Return the cells of each line, and the number of the first line.

    Empty lines at the start and the end are left out, and comments at the start.
    """
    try:
        # With "sig" a byte order mark at the start is left out.
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise MotionError(
            f"{path}: line {number}: not UTF-8 text: {error}: unpack it, or save it as UTF-8"
        ) from error
    lines = text.rstrip().splitlines()
    first = 1
    while lines and _is_idle(lines):
        lines.pop(0)
        first += 1
    if not lines:
        return [], first
    separator: str | None = None
    for candidate in SEPARATORS:
        # The last line is one of numbers. The first one can be a comment.
        if candidate in lines[-1]:
            separator = candidate
            break
    # None separates at blanks.
    table = [line.split(separator) for line in lines]
    # Some programs end each line with a separator.
    if all(len(cells) > 1 and not cells[-1].strip() for cells in table):
        table = [cells[:-1] for cells in table]
    return table, first


def _is_idle(lines: list[str]) -> bool:
    """Return True if the first line is empty, or is a comment above another comment."""
    if not lines[0].strip():
        return True
    # A comment right above the numbers may be the header.
    return len(lines) > 1 and lines[0].startswith("#") and lines[1].startswith("#")


def rate_of_times(times: torch.Tensor, origin: str, first: int, reading: MotionReading) -> float:
    """Return the frames per second of a column of times or of frame numbers.

    Raises:
        MotionError: The times do not rise evenly.
    """
    steps = times.diff()
    usual = steps.median()
    uneven = ((steps - usual).abs() > UNEVEN * usual).nonzero()
    if usual <= 0.0 or len(uneven) > 0:
        line = first + 1 + (int(uneven[0]) if len(uneven) > 0 else 0)
        raise MotionError(
            f"{origin}: line {line}: the times must rise evenly, by {usual:g} as in most lines: "
            "resample the file to a constant rate"
        )
    if usual >= 1.0 and reading.rate is None:
        raise MotionError(
            f"{origin}: the first column rises by {usual:g} per line, so it counts frames or ms "
            "and is not a time in s: give the frames per second with --motion.rate (rate=…)"
        )
    return plain_rate(1.0 / steps.mean().item())
