"""The command line of a training, from its options."""

from collections.abc import Sequence
from dataclasses import Field, fields, is_dataclass
from typing import Any, get_args

from legged_envs.training.options import ALGORITHMS, TrainCfg


def train_words(cfg: TrainCfg) -> list[str]:
    """Return the words of a command line that starts a training with given options.

    Args:
        cfg: Options of the training. Options with their default values are left out.

    Returns:
        ``["train", task_id, …]``, the words after ``legged-envs``.
    """
    words = _option_words(cfg, TrainCfg(cfg.task_id), "--")
    if cfg.algo is not None:
        (name,) = (name for name, kind in ALGORITHMS.items() if kind is type(cfg.algo))
        # Options of the algorithm follow its name.
        words += [name, *_option_words(cfg.algo, type(cfg.algo)(), "--")]
    return ["train", cfg.task_id, *words, *import_words(cfg.imports)]


def import_words(modules: Sequence[str]) -> list[str]:
    """Return the words of a command line that import modules."""
    words = []
    for module in modules:
        words += ["--import", module]
    return words


def option_values(options: Any, prefix: str = "") -> dict[str, Any]:
    """Return the values of nested options by their names, such as ``constraint.kappa-initial``.

    Args:
        options: Dataclass of options.
        prefix: Text before each name.
    """
    values: dict[str, Any] = {}
    for option in fields(options):
        value = getattr(options, option.name)
        name = prefix + name_of(option)
        if is_dataclass(value):
            values |= option_values(value, f"{name}.")
        else:
            values[name] = value
    return values


def _option_words(options: Any, default: Any, prefix: str) -> list[str]:
    """Return the words of the options that differ from their defaults.

    Args:
        options: Dataclass of options.
        default: The same with default values.
        prefix: Text before each name.
    """
    words = []
    for option in fields(options):
        if option.name in ("task_id", "algo", "imports"):
            continue
        value = getattr(options, option.name)
        usual = getattr(default, option.name)
        name = prefix + name_of(option)
        if is_dataclass(usual):
            words += _option_words(value, usual, f"{name}.")
        elif value == usual:
            continue
        elif value is False:
            words.append(f"{prefix}no-{name_of(option)}")
        else:
            words += _value_words(name, value)
    return words


def name_of(option: Field[Any]) -> str:
    """Return the name of an option on the command line, without its prefix."""
    for marker in get_args(option.type)[1:]:
        # tyro.conf.arg may give it another name.
        name = getattr(marker, "name", None)
        if name:
            return str(name)
    return option.name.replace("_", "-")


def _value_words(name: str, value: object) -> list[str]:
    if value is True:
        return [name]
    if isinstance(value, dict):
        words = [name]
        for path, change in value.items():
            words += [path, repr(change)]
        return words
    if isinstance(value, (list, tuple)):
        return [name, *map(str, value)]
    return [name, str(value)]
