"""What objects say of themselves: a line in an error or a list, tables when printed, HTML in a notebook."""

from collections.abc import Iterable, Sequence
from html import escape

Table = tuple[str, Sequence[str], Sequence[Sequence[object]]]
"""Title, header and rows."""
MAX_REPR_LENGTH = 150
"""Most characters of a ``repr``."""


class TableRepr:
    """An object whose ``repr`` is one short line, and that prints as tables. In an f-string it is the line too, and so
    in the ``repr`` of other people's wrappers around it."""

    def _describe(self) -> str:
        """What stands in the brackets of the line."""
        return ""

    def _as_tables(self) -> Iterable[Table]:
        return ()

    def __repr__(self) -> str:
        return shorten(f"{type(self).__name__}({self._describe()})", MAX_REPR_LENGTH)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __str__(self) -> str:
        return "\n\n".join(map(_text, self._as_tables())) or repr(self)

    def _repr_html_(self) -> str | None:
        return "".join(map(format_html, self._as_tables())) or None


def shorten(text: str, longest: int) -> str:
    """A text on one line, cut in the middle if it is too long: ends tell more."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 6]} … {text[-3:]}"


def format_cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={format_cell(item)}" for name, item in value.items())
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else getattr(value, "__name__", " ".join(f"{value}".split()))


def _text(table: Table) -> str:
    title, *lines = table[0], table[1], *table[2]
    cells = [list(map(format_cell, row)) for row in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    padded = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    return "\n".join(
        [title, padded[0], "  ".join("-" * width for width in widths), *padded[1:]]
    ).rstrip()


def format_html(table: Table) -> str:
    title, header, rows = table
    body = ""
    for tag, row in [("th", header), *(("td", row) for row in rows)]:
        body += (
            f"<tr>{''.join(f'<{tag}>{escape(format_cell(value))}</{tag}>' for value in row)}</tr>"
        )
    return f"<table><caption>{escape(title)}</caption>{body}</table>"
