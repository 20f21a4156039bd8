"""Explains words of a command line that no option takes, and refuses lists given twice."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args

from tyro.conf import Positional, Suppress

from legged_envs.checks import did_you_mean
from legged_envs.training.options import ALGORITHMS, TrainCfg

IMPORT_OPTION = "--import"
"""Option before the name of a module that registers tasks."""

SEVERAL_VALUES = (
    "--changes",
    "--clips",
    "--motions",
    "--seeds",
    "--grid",
    "--random",
    "--tasks",
    "--levels",
    "--methods",
)
"""Options that take several values, of which a second use would replace the first values."""

GENERAL_OPTIONS = ("--help", "--version", "--traceback", IMPORT_OPTION)
"""Options of `legged-envs` itself."""

OTHER_NAMES = {
    "--lr": ("--learning-rate",),
    "--discount": ("--gamma",),
    "--lambda": ("--gae-lambda",),
    "--lam": ("--gae-lambda",),
    "--entropy-coef": ("--entropy",),
    "--ent-coef": ("--entropy",),
    "--clip-param": ("--clip",),
    "--clip-range": ("--clip",),
    "--num-mini-batches": ("--mini-batches",),
    "--minibatches": ("--mini-batches",),
    "--batch-size": ("--mini-batches",),
    "--num-steps": ("--steps-per-env",),
    "--n-steps": ("--steps-per-env",),
    "--steps": ("--iterations", "--seconds"),
    "--timesteps": ("--iterations",),
    "--total-timesteps": ("--iterations",),
    "--max-iterations": ("--iterations",),
    "--updates": ("--iterations",),
    "--num-environments": ("--num-envs",),
    "--nenvs": ("--num-envs",),
    "--n-envs": ("--num-envs",),
    "--robots": ("--num-envs",),
    "--checkpoint": ("--policy", "--resume"),
    "--ckpt": ("--policy", "--resume"),
    "--load": ("--policy", "--resume"),
    "--load-run": ("--policy", "--resume"),
    "--model": ("--policy", "--resume"),
    "--run": ("--policy", "--resume"),
    "--pretrained": ("--policy", "--warm-start"),
    "--finetune": ("--warm-start",),
    "--out": ("--run-dir", "--video", "--json"),
    "--output": ("--run-dir", "--video", "--json"),
    "--log-dir": ("--run-dir",),
    "--logdir": ("--run-dir",),
    "--experiment-name": ("--run-dir",),
    "--logger": ("--tracker",),
    "--wandb": ("--tracker",),
    "--engine": ("--sim",),
    "--backend": ("--sim",),
    "--simulator": ("--sim",),
    "--physics": ("--sim",),
    "--gpu": ("--device",),
    "--cuda": ("--device",),
    "--record-video": ("--video",),
    "--save-video": ("--video",),
    "--render": ("--video",),
    "--mp4": ("--video",),
    "--duration": ("--seconds", "--minutes"),
    "--time": ("--seconds", "--minutes"),
    "--speed": ("--vx",),
    "--velocity": ("--vx",),
    "--browser": ("--web",),
    "--viser": ("--web",),
    "--motion-file": ("--motions",),
    "--override": ("--changes",),
    "--mirror": ("--symmetry",),
    "--no-mirror": ("--symmetry",),
    "--set": ("--changes",),
}
"""Name of an option in other programs → names of the option here, the first that a verb has."""

ADVICE = {
    "--headless": "no window opens without a display, and a training opens none: leave it out",
    "--task": "the task follows the command without an option: legged-envs train TASK_ID",
    "--env": "the task follows the command without an option: legged-envs train TASK_ID",
    "--env-id": "the task follows the command without an option: legged-envs train TASK_ID",
}
"""Option of other programs → what to do instead, as the end of a sentence."""


def explain_unknown_word(word: str, options: type[Any]) -> str:
    """Return one sentence about a word that a verb does not know.

    Args:
        word: The word.
        options: Dataclass of the verb's options.
    """
    known = [*all_option_names(options), *GENERAL_OPTIONS]
    # tyro knows the options of an algorithm only after its name on the command line.
    if issubclass(options, TrainCfg):
        owners = algorithms_with(word)
        if owners:
            return (
                f"{word} is an option of {', '.join(owners)}: "
                f"it must follow one of {', '.join(ALGORITHMS)}"
            )
        if word in ALGORITHMS:
            return f"unexpected {word!r}: name one algorithm, and no '--' before it"
        known.extend(ALGORITHMS)
    for name in OTHER_NAMES.get(word, ()):
        if name in known:
            # Only training has options that stand in no other place.
            owners = [] if name in option_names(options) else algorithms_with(name)
            place = f", an option that follows the word {owners[0]}" if owners else ""
            return f"unexpected {word!r}; did you mean {name!r}{place}?"
    question = did_you_mean(word, known)
    return f"unexpected {word!r}; {question}".rstrip("; ")


def check_foreign_options(words: Sequence[str], options: type[Any]) -> None:
    """Refuse options of other programs that have no counterpart here, with what to do instead.

    Args:
        words: The words after the name of a verb.
        options: Dataclass of the verb's options.

    Raises:
        ValueError: If there is such an option. The message names it.
    """
    for word in words:
        name = word.partition("=")[0]
        if name in ADVICE and name not in option_names(options):
            raise ValueError(f"unexpected {name!r}; {ADVICE[name]}")


def algorithms_with(name: str) -> list[str]:
    """Return the algorithms that have an option, such as ``--learning-rate``."""
    owners = []
    for algorithm, options in ALGORITHMS.items():
        if name in option_names(options):
            owners.append(algorithm)
    return owners


def all_option_names(options: type[Any]) -> list[str]:
    """Return the names of all options of a verb; for a training, also the options of all
    algorithms.

    Args:
        options: Dataclass of the verb's options.
    """
    names = option_names(options)
    if issubclass(options, TrainCfg):
        for algorithm_options in ALGORITHMS.values():
            names.extend(option_names(algorithm_options))
    # In the order in which they are found first.
    return list(dict.fromkeys(names))


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
        # A positional argument is written without its name, and a suppressed one is not an option.
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
