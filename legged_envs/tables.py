"""Texts of objects: one line in errors and lists, tables when printed, HTML in notebooks."""

from collections.abc import Iterable, Sequence
from html import escape

Table = tuple[str, Sequence[str], Sequence[Sequence[object]]]
"""Title, header and rows."""

MAX_REPR_LENGTH = 150
"""Largest number of characters of a ``repr``."""


class TableRepr:
    """Base of objects with a ``repr`` of one short line and a ``str`` of tables.

    Notebooks show the tables as HTML. In an f-string an object is the line, not the tables. So
    wrappers of other packages, which write the object they wrap into their own ``repr``, stay
    readable.
    """

    def _describe(self) -> str:
        """Return the text between the brackets of the ``repr``."""
        return ""

    def _as_tables(self) -> Iterable[Table]:
        """Return the tables of ``str``. Without tables, ``str`` is the ``repr``."""
        return ()

    def __repr__(self) -> str:
        return shorten(f"{type(self).__name__}({self._describe()})", MAX_REPR_LENGTH)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __str__(self) -> str:
        texts = [_format_text(table) for table in self._as_tables()]
        return "\n\n".join(texts) or repr(self)

    def _repr_html_(self) -> str | None:
        """Return the tables for a notebook. None without tables: it then shows the ``repr``."""
        return "".join(format_html(table) for table in self._as_tables()) or None


def shorten(text: str, longest: int) -> str:
    """Return a text on one line, with its middle cut out if it exceeds ``longest`` characters."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    # The last characters stay: they close the brackets.
    return f"{line[: longest - 6]} … {line[-3:]}"


def format_cell(value: object) -> str:
    """Return the text of a value in a table: a function by its name, a number in short form."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={format_cell(item)}" for name, item in value.items())
    if isinstance(value, float):
        return f"{value:g}"
    if value is None:
        return ""
    name: str | None = getattr(value, "__name__", None)
    return " ".join(f"{value}".split()) if name is None else name


def _format_text(table: Table) -> str:
    title, header, rows = table
    header_cells = [format_cell(value) for value in header]
    row_cells = [[format_cell(value) for value in row] for row in rows]
    columns = zip(header_cells, *row_cells, strict=True)
    widths = [max(len(cell) for cell in column) for column in columns]
    lines = [title, _pad(header_cells, widths), "  ".join("-" * width for width in widths)]
    for cells in row_cells:
        lines.append(_pad(cells, widths))
    return "\n".join(lines).rstrip()


def _pad(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join(padded).rstrip()


def format_html(table: Table) -> str:
    """Return a table as an HTML element."""
    title, header, rows = table
    html_rows = [_html_row("th", header)]
    for row in rows:
        html_rows.append(_html_row("td", row))
    return f"<table><caption>{escape(title)}</caption>{''.join(html_rows)}</table>"


def _html_row(tag: str, row: Sequence[object]) -> str:
    cells = [f"<{tag}>{escape(format_cell(value))}</{tag}>" for value in row]
    return f"<tr>{''.join(cells)}</tr>"
