"""Types and checks of command-line options that several commands share."""

import ast
import os
from dataclasses import fields, is_dataclass
from math import inf
from typing import Annotated, Any

from tyro.conf import Positional, arg
from tyro.constructors import PrimitiveConstructorSpec

from legged_envs.checks import check_number, whole_number

TaskId = Annotated[str, Positional, arg(metavar="TASK_ID")]
"""Type of the positional argument TASK_ID of a command: the id of a registered task."""


def read_value(word: str) -> Any:
    """Return the value that a word of a command line stands for.

    A Python literal, such as ``2``, ``(-0.5, 0.5)`` or ``None``, is parsed. Any other word, such as
    a name, is a string, so that it needs no quotes.
    """
    try:
        return ast.literal_eval(word)
    except (ValueError, TypeError, SyntaxError):
        return word


def _read_words(words: list[str]) -> Any:
    return read_value(words[0])


def _is_value(value: Any) -> bool:
    return True


def _write_value(value: Any) -> list[str]:
    return [repr(value)]


Value = Annotated[
    Any,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="VALUE",
        instance_from_str=_read_words,
        is_instance=_is_value,
        str_from_instance=_write_value,
    ),
]
"""Type of an option with any value. A Python literal, such as ``2``, ``(-0.5, 0.5)`` or ``None``,
is parsed. Any other word is read as a string."""

LARGEST_SEED = 2**63 - 1
"""Largest integer that PyTorch accepts as a seed."""

BYTES_PER_ROBOT = 20_000
"""Lower bound of the memory that one environment needs, bytes."""

INTEGERS_FROM_ZERO = ("seed", "threads", "decay_iterations")
"""Names of integer options with a smallest value of 0. That of all others is 1."""

NUMBERS_ABOVE_ZERO = (
    "minutes",
    "checkpoint_minutes",
    "learning_rate",
    "max_grad_norm",
    "clip",
    "init_std",
    "init_free_std",
    "noise_kept",
    "encoder_learning_rate",
    "temperature",
    "kappa_growth",
    "aim",
    "barrier",
    "margin",
    "kl_limit",
)
"""Names of float options that must be above 0. All others must be at least 0."""

SIGNED_NUMBERS = ("lift",)
"""Names of float options that may be below 0."""

NUMBERS_TO_ONE = (
    "gamma",
    "final_gamma",
    "gae_lambda",
    "coarse",
    "start",
    "tau",
    "initial_probability",
    "min_probability",
    "max_probability",
)
"""Names of float options that must be at most 1."""


def check_size(option: str, number: int) -> None:
    """Check that the memory of this machine suffices for a number of robots.

    Args:
        option: Name of the option that gave the number, such as ``--num-envs``, for the error.
        number: Number of robots that are simulated in parallel.

    Raises:
        ValueError: If ``number`` is not a positive integer, or the robots need more memory than the
            machine has.
    """
    # Without this check, the operating system would kill the process without an explanation.
    needed = BYTES_PER_ROBOT * whole_number(option, number) / 1e9
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    if needed > memory:
        raise ValueError(
            f"{option} {number} needs {needed:,.0f} GB of memory, this machine has {memory:,.0f}"
        )


def check_option_numbers(options: Any, prefix: str = "--") -> None:
    """Check the ranges of all numbers in a dataclass of options, including nested dataclasses.

    Args:
        options: Dataclass of options, such as ``TrainCfg``. A range depends on the field's name.
        prefix: Prefix of an option's name in an error.

    Raises:
        ValueError: If a number is out of the range of its option.
    """
    for option in fields(options):
        name = prefix + option.name.replace("_", "-")
        value = getattr(options, option.name)
        if is_dataclass(option.type):
            check_option_numbers(value, prefix=f"{name}.")
        elif value is None:
            continue
        elif option.type in (float, float | None):
            _check_float(name, value, option.name)
        elif option.type in (int, int | None):
            _check_integer(name, value, option.name)
        elif option.type in (tuple[int, ...], tuple[int, ...] | None):
            for number in value:
                _check_integer(name, number, option.name)


def _check_float(name: str, value: float, field_name: str) -> None:
    most = 1.0 if field_name in NUMBERS_TO_ONE else inf
    if field_name in SIGNED_NUMBERS:
        check_number(name, value)
    elif field_name in NUMBERS_ABOVE_ZERO:
        check_number(name, value, above=0.0, most=most)
    else:
        check_number(name, value, least=0.0, most=most)


def _check_integer(name: str, value: int, field_name: str) -> None:
    # By name, because the same option has the same range in all commands.
    least = 0 if field_name in INTEGERS_FROM_ZERO else 1
    whole_number(name, value, least=least)
