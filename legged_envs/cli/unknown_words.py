"""Explains words of a command line that no option takes, and refuses lists given twice."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args

from tyro.conf import Positional, Suppress

from legged_envs.checks import did_you_mean
from legged_envs.training.options import ALGORITHMS, TrainCfg

IMPORT_OPTION = "--import"
"""Option before the name of a module that registers tasks, such as those that a run names."""

SEVERAL_VALUES = ("--changes", "--clips", "--motions", "--seeds", "--grid", "--random")
"""Options that take several values, of which a second use would replace those of the first."""

GENERAL_OPTIONS = ("--help", "--version", "--traceback", IMPORT_OPTION)
"""Options of `legged-envs` itself."""


def explain_unknown_word(word: str, options: type[Any]) -> str:
    """Return one sentence about a word that a verb does not know.

    Args:
        word: The word.
        options: Dataclass of the verb's options.
    """
    known = [*option_names(options), *GENERAL_OPTIONS]
    # tyro knows the options of an algorithm only after its name on the command line.
    if issubclass(options, TrainCfg):
        owners = []
        for algorithm, algorithm_options in ALGORITHMS.items():
            names = option_names(algorithm_options)
            known.extend(names)
            if word in names:
                owners.append(algorithm)
        if owners:
            return (
                f"{word} is an option of {', '.join(owners)}: "
                f"it must follow one of {', '.join(ALGORITHMS)}"
            )
        known.extend(ALGORITHMS)
    question = did_you_mean(word, known)
    return f"unexpected {word!r}; {question}".rstrip("; ")


def check_repeated_options(words: Sequence[str]) -> None:
    """Refuse an option of several values that is given twice, of which only the last would count.

    Args:
        words: The words after the name of a verb.

    Raises:
        ValueError: If an option of :data:`SEVERAL_VALUES` is given twice. The message names it.
    """
    given = [word.partition("=")[0] for word in words]
    for name in SEVERAL_VALUES:
        if given.count(name) > 1:
            raise ValueError(f"{name} is given twice: write all of its values after one {name}")


def option_names(options: type[Any], prefix: str = "--") -> list[str]:
    """Return the names of all options of a dataclass, as they are written on the command line.

    Args:
        options: The dataclass. An option that is itself a dataclass has the options
            ``--name.field``.
        prefix: Text before each name.
    """
    names = []
    for option in fields(options):
        name = option.name.replace("_", "-")
        # A positional argument is written without its name, and a suppressed one is no option.
        if {Positional, Suppress} & set(get_args(option.type)[1:]):
            continue
        if is_dataclass(option.type) and isinstance(option.type, type):
            names.extend(option_names(option.type, prefix=f"{prefix}{name}."))
            continue
        for marker in get_args(option.type)[1:]:
            # tyro.conf.arg may give an option another name, and keep its earlier one.
            name = getattr(marker, "name", None) or name
            names.extend(getattr(marker, "aliases", None) or ())
        names.append(prefix + name)
        # tyro makes two options of a bool.
        if option.type is bool:
            names.append(f"{prefix}no-{name}")
    return names
