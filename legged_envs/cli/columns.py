"""Plain tables of the command line: aligned columns without frames, for terminals and pipes."""

import shutil
import sys
import textwrap
from collections.abc import Sequence

from legged_envs.tables import printable

GAP = "  "
"""Text between two columns."""

LEAST_WRAPPED = 16
"""Width of the last column below which its text is not wrapped, characters."""


def terminal_width() -> int | None:
    """Return the number of characters of a terminal's line. None: the output is not a terminal."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def format_columns(rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Return rows of cells as lines of aligned columns.

    Args:
        rows: Cells of each row. All rows have the same number of cells.
        width: Longest line, characters. Texts of the last column are wrapped to it. None: each row
            is one line, which other programs can read.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = []
    for column in zip(*cells, strict=True):
        lengths = [len(cell) for cell in column]
        widths.append(max(lengths))
    lines = []
    for row in cells:
        lines.extend(_format_row(row, widths, width))
    return "\n".join(lines)


def _format_row(row: Sequence[str], widths: Sequence[int], width: int | None) -> list[str]:
    """Return the lines of one row: more than one if the text of its last column is wrapped."""
    *first, last = row
    padded = [cell.ljust(size) for cell, size in zip(first, widths, strict=False)]
    start = "".join(cell + GAP for cell in padded)
    if width is None or width - len(start) < LEAST_WRAPPED:
        return [(start + last).rstrip()]
    wrapped = textwrap.wrap(last, width - len(start)) or [""]
    lines = [(start + wrapped[0]).rstrip()]
    for more in wrapped[1:]:
        lines.append(" " * len(start) + more)
    return lines
