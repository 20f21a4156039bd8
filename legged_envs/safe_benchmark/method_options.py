"""Options of a method as a part of its name, such as ``fixed,constraint.penalty=0.2``.

Two sets of options make two methods, with separate folders, results and rows. Names of options are
those of ``legged-envs train … ppo``, without the leading dashes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from legged_envs.checks import check_choice, check_known
from legged_envs.envs.changes import fits
from legged_envs.runs.options import check_option_numbers, read_value
from legged_envs.training.command import name_of, option_values
from legged_envs.training.options import PPOCfg

SEPARATOR = ","
"""Text between a method and its options."""

JOINT = "+"
"""Text between the values of an option that has several."""

NAMED_BY_METHOD = ("constraint.method", "lagrange.enabled")
"""Options that the name of a method stands for."""

FIXED = "fixed"
"""Name of the method with constant multipliers."""

PENALTY = "constraint.penalty"
"""Name of the option with these multipliers."""

Options = TypeVar("Options")


def base_of(word: str) -> str:
    """Return the name of a method without its options."""
    return word.split(SEPARATOR)[0]


def read_method(word: str) -> PPOCfg:
    """Return the options of PPO that the name of a method stands for.

    Args:
        word: A value of ``--constraint.method``, followed by options, such as
            ``p3o,constraint.kappa=0.1,constraint.costs=energy+stumble``.

    Raises:
        ValueError: If there is no such option, it is given twice, or its value is wrong.
    """
    method, *texts = word.split(SEPARATOR)
    algo = with_method(PPOCfg(), method)
    known = [name for name in option_values(algo) if name not in NAMED_BY_METHOD]
    given: list[str] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(
                f"--methods {word}: {text!r} must be an option and its value, such as "
                "constraint.penalty=0.2"
            )
        check_known(f"--methods {word}: there is no option", (name,), known, "options")
        if name in given:
            raise ValueError(f"--methods {word} has {name!r} twice: give each option once")
        given.append(name)
        algo = _with_value(algo, name.split("."), value, f"--methods {word}: {name}")
    check_option_numbers(algo)
    return algo


def method_name(algo: PPOCfg) -> str:
    """Return the name of a method with its options. Options with their default are left out."""
    usual = option_values(PPOCfg())
    parts: list[str] = [algo.constraint.method]
    for name, value in option_values(algo).items():
        if name not in NAMED_BY_METHOD and value != usual[name]:
            parts.append(f"{name}={_text(value)}")
    return SEPARATOR.join(parts)


def with_method(algo: PPOCfg, method: Any) -> PPOCfg:
    """Return options of PPO with a value of ``--constraint.method``."""
    return replace(algo, constraint=replace(algo.constraint, method=method))


def read_trained(trained: Mapping[str, Any]) -> PPOCfg:
    """Return the options of PPO that the configuration of a training has.

    ``--lagrange.enabled`` is the method ``lagrange`` that acts from the first update and aims at
    the limit itself.

    Args:
        trained: Entry ``algo`` of the configuration.

    Raises:
        ValueError: If these are options of another algorithm.
    """
    trained = dict(trained)
    if "mirror" in trained:
        # The name in earlier versions.
        trained["symmetry"] = "batches" if trained.pop("mirror") else "off"
    others = sorted(trained.keys() - {option.name for option in fields(PPOCfg)})
    if others:
        raise ValueError(f"its options are not those of ppo: {', '.join(others)}")
    algo = _restored(PPOCfg(), trained)
    if algo.lagrange.enabled:
        constraint = replace(algo.constraint, method="lagrange", start=0.0, aim=1.0)
        lagrange = replace(algo.lagrange, enabled=False)
        algo = replace(algo, constraint=constraint, lagrange=lagrange)
    return algo


def differing_options(trained: PPOCfg, usual: PPOCfg) -> list[str]:
    """Return the options of a training that differ from the usual ones, such as ``entropy=0.01``.

    Args:
        trained: Options of the training.
        usual: Options of a training with the method alone, completed with the task's defaults.
    """
    expected = option_values(usual)
    differing = []
    for name, value in option_values(trained).items():
        if value != expected[name]:
            differing.append(f"{name}={_text(value)}")
    return differing


def _with_value(options: Options, names: Sequence[str], text: str, where: str) -> Options:
    """Return a copy of nested options with a value that is given as text.

    Args:
        options: Dataclass of options.
        names: Name of the option, and before it the names of the options that it is nested in.
        text: The value.
        where: Beginning of an error.
    """
    head, *rest = names
    dataclass: Any = options
    (option,) = (option for option in fields(dataclass) if name_of(option) == head)
    value: Any
    if rest:
        value = _with_value(getattr(options, option.name), rest, text, where)
    else:
        value = _read(text, option.type, where)
    changed: Options = replace(dataclass, **{option.name: value})
    return changed


def _read(text: str, hint: Any, where: str) -> Any:
    """Return the value that a text stands for, of the type of its option."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) is Literal:
        check_choice(where, text, get_args(hint))
        return text
    alternatives = (hint, *get_args(hint))
    value = read_value(text)
    if any(get_origin(each) is tuple for each in alternatives):
        value = tuple(read_value(part) for part in text.split(JOINT))
    elif float in alternatives and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not fits(value, hint):
        expected = getattr(hint, "__name__", str(hint))
        raise ValueError(f"{where} must be {expected}, got {text!r}")
    return value


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return JOINT.join(map(str, value))
    return str(value)


def _restored(options: Options, values: Mapping[str, Any]) -> Options:
    """Return options with the values of a JSON file. Options that it lacks stay as they are, and
    values of other versions' options are left out."""
    found = {}
    dataclass: Any = options
    for option in fields(dataclass):
        if option.name not in values:
            continue
        value = values[option.name]
        present = getattr(options, option.name)
        if is_dataclass(present):
            value = _restored(present, value)
        elif isinstance(value, list):
            # JSON has lists for tuples.
            value = tuple(value)
        found[option.name] = value
    restored: Options = replace(dataclass, **found)
    return restored
