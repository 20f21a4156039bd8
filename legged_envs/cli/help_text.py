"""Help texts of the options: plain names of values, and only defaults that say something."""

import re
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


def _erase(match: re.Match[str]) -> str:
    # Line breaks and frames keep their places.
    return re.sub(r"[^\s│|]", ERASED, match.group())
