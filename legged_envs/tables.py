"""Texts of objects: one line as ``repr``, tables when printed, HTML tables in notebooks."""

from collections.abc import Iterable, Sequence
from html import escape

Table = tuple[str, Sequence[str], Sequence[Sequence[object]]]
"""A table to print: its title, the headers of its columns, and its rows of cells."""

MAX_REPR_LENGTH = 150
"""Largest number of characters of the ``repr`` of an object."""


class TableRepr:
    """Base class of objects with a ``repr`` of one short line and a ``str`` of tables.

    Notebooks show the tables as HTML. An f-string shows the short line and not the tables. This
    keeps the ``repr`` of Gymnasium's wrappers readable, because they include the wrapped object.
    """

    def _describe(self) -> str:
        """Return the text between the brackets of the ``repr``."""
        return ""

    def _as_tables(self) -> Iterable[Table]:
        """Return the tables of ``str``. Without tables, ``str`` is the ``repr``."""
        return ()

    def __repr__(self) -> str:
        name = type(self).__name__
        line = f"{name}({self._describe()})"
        return shorten(line, MAX_REPR_LENGTH)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __str__(self) -> str:
        texts = [format_text(table) for table in self._as_tables()]
        if not texts:
            return repr(self)
        return "\n\n".join(texts)

    def _repr_html_(self) -> str | None:
        """Return the tables for a notebook. None without tables: it then shows the ``repr``."""
        elements = [format_html(table) for table in self._as_tables()]
        if not elements:
            return None
        return "".join(elements)


def shorten(text: str, longest: int) -> str:
    """Shorten a text to one line of at most ``longest`` characters, by a cut in its middle."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    # The last characters stay: they close the brackets.
    beginning = line[: longest - 6]
    end = line[-3:]
    return f"{beginning} … {end}"


def printable(text: str) -> str:
    """Return a text as one line, with a space instead of each character that is not printed.

    Line breaks, control characters of a terminal and marks of writing direction are such.
    """
    characters = [char if char.isprintable() else " " for char in text]
    return "".join(characters)


def format_cell(value: object) -> str:
    """Return the text of a table's cell: the name of a function, or a short form of a number."""
    if isinstance(value, dict):
        items = [f"{name}={format_cell(item)}" for name, item in value.items()]
        return ", ".join(items)
    if isinstance(value, float):
        return f"{value:g}"
    if value is None:
        return ""
    name: str | None = getattr(value, "__name__", None)
    if name is not None:
        return name
    words = f"{value}".split()
    # Names of a stranger's file are shown too: they do not control the terminal.
    return printable(" ".join(words))


def format_text(table: Table) -> str:
    """Return a table as plain text with aligned columns."""
    title, header, rows = table
    header_cells = [format_cell(value) for value in header]
    row_cells = [[format_cell(value) for value in row] for row in rows]
    widths = []
    for column in zip(header_cells, *row_cells, strict=True):
        lengths = [len(cell) for cell in column]
        widths.append(max(lengths))
    dashes = ["-" * width for width in widths]
    lines = [title, _pad(header_cells, widths), _pad(dashes, widths)]
    for cells in row_cells:
        lines.append(_pad(cells, widths))
    return "\n".join(lines).rstrip()


def _pad(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join(padded).rstrip()


def format_html(table: Table) -> str:
    """Return a table as an HTML element, for notebooks."""
    title, header, rows = table
    caption = f"<caption>{escape(title)}</caption>"
    html_rows = [_html_row("th", header)]
    for row in rows:
        html_rows.append(_html_row("td", row))
    body = "".join(html_rows)
    return f"<table>{caption}{body}</table>"


def _html_row(tag: str, row: Sequence[object]) -> str:
    cells = []
    for value in row:
        text = escape(format_cell(value))
        cells.append(f"<{tag}>{text}</{tag}>")
    return f"<tr>{''.join(cells)}</tr>"
