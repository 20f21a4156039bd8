"""Plan of a sweep: the runs that its options ask for, each with a name, a seed and changes."""

import math
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypedDict

from legged_envs.checks import whole_number
from legged_envs.runs.options import LARGEST_SEED, read_value
from legged_envs.sweeps.options import SweepCfg

SWEEP = "sweep.json"
"""Name of the file in a sweep's folder with its runs and the command of each."""

DRAWING_SEED = 1
"""Seed of the values that ``--random`` draws."""

DIGITS = 4
"""Number of significant digits of a drawn value, so that names and tables can be read."""

LONGEST_NAME = 120
"""Largest number of characters of a run's name, which is the name of its folder."""

OPENING = "([{"
"""Characters after which a comma does not separate two values."""
CLOSING = ")]}"
"""Characters that end what one of :data:`OPENING` began."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep."""

    name: str
    """Name of the run, and of its folder."""
    seed: int
    """Seed of the training."""
    changes: dict[str, object]
    """Changes to the task that are special to this run, by dotted path."""


class TrialRun(TypedDict):
    """A run as Tune and the folder of the sweep keep it: plain data."""

    name: str
    """Name of the run."""
    folder: str
    """Absolute path of its run folder."""
    command: str
    """Command line of its training, which also works without a sweep."""
    imports: list[str]
    """Modules that the training imports. Sweeps of earlier versions lack this entry."""
    working_directory: str
    """Folder in which the command was given."""
    cpus: int
    """Number of cores and threads of the training."""
    gpus: int
    """Number of GPUs of the training."""
    iterations: int | None
    """Number of updates of the training. None: it ends after ``minutes``."""
    minutes: float | None
    """Time of the training, min."""


@dataclass(frozen=True)
class Range:
    """A range of values that ``--random`` draws from."""

    low: float
    """Smallest value."""
    high: float
    """Largest value."""
    is_log: bool = False
    """True: uniform in the logarithm of the magnitude. False: uniform in the value."""

    def draw(self, generator: random.Random) -> float:
        """Return a value, rounded to :data:`DIGITS` digits."""
        if self.is_log:
            # Weights of penalties are negative: the magnitude is drawn, and the sign kept.
            sign = math.copysign(1.0, self.low)
            logarithm = generator.uniform(math.log(abs(self.low)), math.log(abs(self.high)))
            value = sign * math.exp(logarithm)
        else:
            value = generator.uniform(self.low, self.high)
        rounded = float(f"{value:.{DIGITS}g}")
        return min(max(rounded, self.low), self.high)


@dataclass
class Space:
    """Values of the settings of a sweep, by dotted path."""

    lists: dict[str, list[object]] = field(default_factory=dict)
    """Lists of values from ``--grid``."""
    ranges: dict[str, Range] = field(default_factory=dict)
    """Ranges from ``--random``."""


def plan_runs(cfg: SweepCfg) -> list[PlannedRun]:
    """Return the runs of a sweep: all settings with the first seed, then with the next.

    Args:
        cfg: Options of the sweep.

    Raises:
        ValueError: If ``--seeds``, ``--grid``, ``--random`` or ``--samples`` cannot be read, or
            contradict each other.
    """
    seeds = [whole_number("--seeds", seed, least=0, most=LARGEST_SEED) for seed in cfg.seeds]
    if not seeds:
        raise ValueError("--seeds needs at least one seed")
    _check_distinct("--seeds", seeds)
    space = read_space(cfg)
    settings = _settings(space, cfg.samples)
    shown = _short_paths([*space.lists, *space.ranges])
    runs = []
    for seed in seeds:
        for number, changes in enumerate(settings, start=1):
            words = [f"{shown[path]}={value}" for path, value in changes.items()]
            name = _run_name(words, seed, number if space.ranges else None)
            runs.append(PlannedRun(name, seed, changes))
    # Values may differ only in characters that a name cannot have.
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        runs = [
            PlannedRun(f"{number}_{run.name}", run.seed, run.changes)
            for number, run in enumerate(runs, start=1)
        ]
    return runs


def read_space(cfg: SweepCfg) -> Space:
    """Return what ``--grid`` and ``--random`` ask for.

    Raises:
        ValueError: If one of their words cannot be read, or a path is given twice.
    """
    space = Space()
    for word in cfg.grid:
        path, text = _split_word("--grid", word, "PATH=VALUE,VALUE")
        _check_new(path, [*cfg.changes, *space.lists])
        values = [read_value(value) for value in split_values(text)]
        _check_distinct(f"--grid {path}", values)
        space.lists[path] = values
    for word in cfg.random:
        path, text = _split_word("--random", word, "PATH=LOW,HIGH")
        _check_new(path, [*cfg.changes, *space.lists, *space.ranges])
        space.ranges[path] = _read_range(word, split_values(text))
    if cfg.samples is not None:
        whole_number("--samples", cfg.samples)
        if not space.ranges:
            raise ValueError(f"--samples {cfg.samples} is the number of draws of --random: add it")
    return space


def split_values(text: str) -> list[str]:
    """Split a text at its commas, but not at those within brackets.

    >>> split_values("0.5,(1, 2),None")
    ['0.5', '(1, 2)', 'None']
    """
    depth = 0
    values = [""]
    for character in text:
        if character == "," and depth == 0:
            values.append("")
            continue
        if character in OPENING:
            depth += 1
        if character in CLOSING:
            depth -= 1
        values[-1] += character
    return [value.strip() for value in values]


def _split_word(option: str, word: str, form: str) -> tuple[str, str]:
    path, _, text = word.partition("=")
    if not path or not text or "" in split_values(text):
        raise ValueError(f"{option} must be {form}, without empty parts, got {word!r}")
    return path, text


def _check_new(path: str, given: Iterable[str]) -> None:
    if path in given:
        raise ValueError(
            f"{path} is given twice in --changes, --grid and --random: leave one of them out"
        )


def _check_distinct(option: str, values: Sequence[object]) -> None:
    for i, value in enumerate(values):
        # By type too: True is 1 in Python.
        if any(type(value) is type(other) and value == other for other in values[:i]):
            raise ValueError(f"{option} has {value!r} twice: give each value once")


def _read_range(word: str, parts: Sequence[str]) -> Range:
    is_log = parts[2:] == ["log"]
    numbers = [read_value(part) for part in parts[:2]]
    are_numbers = all(type(number) in (int, float) and math.isfinite(number) for number in numbers)
    if len(numbers) < 2 or not are_numbers or (parts[2:] and not is_log):
        raise ValueError(
            f"--random must be PATH=LOW,HIGH or PATH=LOW,HIGH,log with two numbers, got {word!r}"
        )
    low, high = map(float, numbers)
    if not low < high:
        raise ValueError(f"--random {word!r}: LOW must be below HIGH, got {low:g} and {high:g}")
    if is_log and low * high <= 0.0:
        raise ValueError(
            f"--random {word!r}: a logarithm needs two numbers above 0, or two below 0; "
            "leave out ',log'"
        )
    return Range(low, high, is_log)


def _settings(space: Space, samples: int | None) -> list[dict[str, object]]:
    """Return the changes of each setting: each draw combined with the whole grid."""
    generator = random.Random(DRAWING_SEED)
    settings = []
    for _ in range(samples or 1):
        drawn = {path: values.draw(generator) for path, values in space.ranges.items()}
        for values in product(*space.lists.values()):
            chosen: dict[str, object] = dict(zip(space.lists, values, strict=True))
            chosen.update(drawn)
            settings.append(chosen)
    return settings


def _short_paths(paths: Sequence[str]) -> dict[str, str]:
    """Return the last two parts of each path, or the whole path where they are not unique."""
    short = {path: ".".join(path.split(".")[-2:]) for path in paths}
    if len(set(short.values())) < len(paths):
        return {path: path for path in paths}
    return short


def _run_name(words: Sequence[str], seed: int, number: int | None) -> str:
    """Return the name of a run and its folder, such as ``joint_torque.weight=-0.0001_seed=1``."""
    name = re.sub(r"[^\w.=+-]+", "_", "_".join([*words, f"seed={seed}"]))
    if number is None and len(name) <= LONGEST_NAME:
        return name
    # Drawn values may be equal, and a name that is cut may equal another run's name.
    return f"{number or ''}_{name[-LONGEST_NAME:]}".lstrip("_")
