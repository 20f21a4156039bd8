"""Help texts of the options: plain names of values, and only meaningful defaults."""

import re
import textwrap
from types import NoneType
from typing import Any, get_args

from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
)

NO_DEFAULT = re.compile(r"\(default:[\s│|]*(?:None)?[\s│|]*\)")
"""Default value of an option that may be missing, perhaps on two lines of a frame."""

ERASED = "\0"
"""Character in the place of a text that was taken out."""

ERASED_LINE = re.compile(rf"^[ │|]*{ERASED}[ │|{ERASED}]*$\n", re.MULTILINE)
"""Line from which the whole text was taken out."""

FIRST_OPTION = re.compile(r"^( +-h, --help +)", re.MULTILINE)
"""Name of the option that every help text has, with the spaces before its description."""

RULE = re.compile(r"^ *-{20,}$", re.MULTILINE)
"""Line below a title, which is as long as the longest line."""

NONE = "None"
"""Word of a command line that stands for a missing value."""

REGISTRY = ConstructorRegistry()
"""Rules by which tyro reads the values of options."""


@REGISTRY.primitive_rule
def read_optional(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Return how to read a value that may be None, with the name of the value only in the help.

    tyro's own rule writes ``{None}|FLOAT``.

    Args:
        info: Type of an option.

    Returns:
        The rule. None: the type is no such type, and tyro's rules apply.
    """
    kinds = get_args(info.type)
    if NoneType not in kinds or len(kinds) != 2:
        return None
    kind = kinds[0] if kinds[1] is NoneType else kinds[1]
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(kind, info.markers))
    if not isinstance(spec, PrimitiveConstructorSpec):
        return None

    def read(words: list[str]) -> Any:
        return None if words == [NONE] else spec.instance_from_str(words)

    def is_value(value: Any) -> bool:
        return value is None or bool(spec.is_instance(value))

    def write(value: Any) -> list[str]:
        return [NONE] if value is None else spec.str_from_instance(value)

    return PrimitiveConstructorSpec(
        nargs=spec.nargs,
        metavar=spec.metavar,
        instance_from_str=read,
        is_instance=is_value,
        str_from_instance=write,
        choices=None if spec.choices is None else (*spec.choices, NONE),
    )


def shorten_help(text: str) -> str:
    """Return a help text of tyro without defaults that are empty or None.

    Args:
        text: Text, which may be in frames. These stay as they are.
    """
    shorter = ERASED_LINE.sub("", NO_DEFAULT.sub(_erase, text)).replace(ERASED, " ")
    lines = [line.rstrip() for line in shorter.splitlines()]
    return "\n".join(lines)


def wrap_help(text: str) -> str:
    """Return a help text in which descriptions of options fill their lines.

    tyro keeps the line breaks of the source code.

    Args:
        text: Text without frames, from :func:`shorten_help`.
    """
    start = FIRST_OPTION.search(text)
    rules = RULE.findall(text)
    if start is None or not rules:
        return text
    column = len(start.group(1))
    width = max(len(rule) for rule in rules)
    lines: list[str] = []
    words: list[str] = []
    name = ""
    for line in [*text.splitlines(), ""]:
        # The name of an option ends before two spaces at the latest, or its text is on other lines.
        is_text = len(line) > column and not line[column - 2 : column].strip()
        starts_option = bool(line[:column].strip())
        if words and (starts_option or not is_text):
            lines += _fill(name, words, column, width)
            words = []
        if not is_text:
            lines.append(line)
            continue
        if starts_option:
            name = line[:column]
        elif not words:
            name = ""
        words += line[column:].split()
    return "\n".join(lines[:-1])


def _fill(name: str, words: list[str], column: int, width: int) -> list[str]:
    """Return the lines of an option: its name, if it is short, and its description."""
    indent = " " * column
    filled = textwrap.wrap(
        " ".join(words),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    filled[0] = name.ljust(column) + filled[0][column:]
    return filled


def _erase(match: re.Match[str]) -> str:
    # Line breaks and frames keep their places.
    return re.sub(r"[^\s│|]", ERASED, match.group())
