"""Results of training runs, read from their folders during or after the training."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from legged_envs.errors import is_mistake
from legged_envs.runs.checkpoint_file import read_checkpoint_file
from legged_envs.runs.run_folder import ABOUT, CONFIG, CURVE, EVALUATION, as_json, flatten_numbers
from legged_envs.tables import shorten

DefaultConfig = Callable[[str], Mapping[str, Any]]
"""Id of a task → the `training` and `task` configurations of a training with default options."""

SEED_OPTION = "seed"
"""Option of a training that makes runs of one configuration differ by chance."""

INCIDENTAL_OPTIONS = (
    "run_dir",
    "resume",
    "keep",
    "threads",
    "video",
    "video_seconds",
    "checkpoint_minutes",
    "tracker",
)
"""Names of the options of a training that do not affect the policy. Comparisons ignore them."""

ABSENT = "–"
"""Text that a table shows for a missing value."""

LARGEST_JSON = 2**26
"""Largest size of a file of a run that is read as JSON, bytes."""

LARGEST_CURVE = 2**29
"""Largest size of a learning curve, bytes."""

STALE_SECONDS = 300.0
"""Time since the last change of a file after which an unfinished run is reported as stopped, s."""

JsonValue = Any
"""Value that was parsed from JSON: number, string, bool, None, list or dict."""


class Run:
    """Contents of a run folder at the time of reading, for reports and comparisons.

    The training of the run may still be in progress.

    Args:
        path: Run folder of a training.

    Raises:
        FileNotFoundError: If the folder does not hold a run.
        ValueError: If a file in it is damaged or was not written by a training.
    """

    def __init__(self, path: Path):
        if not (path / CONFIG).is_file():
            raise FileNotFoundError(
                f"there is no run in {str(path)!r}: it has no {CONFIG} of legged-envs train"
            )
        self.path = path
        """Path of the run folder, as given."""
        self.config = self._read_json(CONFIG, ("training", "task"))
        """Configuration of the run: `training`, the options, and `task`, the task."""
        self.evaluation = self._read_json(EVALUATION, ("env_steps", "costs", "cost_limits"))
        """Evaluation of the trained policy, by name. Empty before the training is finished."""
        self.sessions = self._read_json(ABOUT, ())
        """Descriptions of the processes that trained the run, in order. Empty for runs of earlier
        versions of this package."""
        training = self.config["training"]
        # `status` reads these, and a file of another program may have other things.
        needed = {"task_id", "iterations", "minutes"}
        if not isinstance(training, dict) or not needed <= training.keys():
            raise ValueError(
                f"{str(path / CONFIG)!r} has no training with task_id, iterations and minutes"
            )
        self.task_id = str(training["task_id"])
        """Registered id of the task."""
        self.curve = self._read_curve()
        """Learning curve: numbers of each update by name, in the order of the updates."""
        self.last: dict[str, float] = self.curve[-1] if self.curve else {}
        """Numbers of the last update by name. Empty before the first update."""
        self.results = self._results()
        """Numbers of the evaluation for comparisons, with names such as `costs/foot_slip`. Includes
        `env_steps` and `training_seconds` of the last update."""

    def _results(self) -> dict[str, float]:
        # Limits are not results.
        results = {**self.evaluation, "cost_limits": None}
        # A run that continues is further than its evaluation.
        if self.last:
            results["env_steps"] = self.last["env_steps"]
            results["training_seconds"] = self.last["seconds"]
        return flatten_numbers(results)

    def _read_json(self, name: str, needed: Sequence[str]) -> JsonValue:
        """Return the content of a file of the run, an empty dict if there is no such file."""
        path = self.path / name
        if not path.is_file():
            return {}
        check_own_file(path, LARGEST_JSON)
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{str(path)!r} is not JSON as legged-envs train writes it: {error}"
            ) from error
        missing = [key for key in needed if not isinstance(values, dict) or key not in values]
        if missing:
            raise ValueError(
                f"{str(path)!r} was not written by legged-envs train: "
                f"it has no {', '.join(missing)}"
            )
        return values

    def _read_curve(self) -> list[dict[str, float]]:
        path = self.path / CURVE
        if path.is_file():
            check_own_file(path, LARGEST_CURVE)
            return _read_rows(path)
        # Runs of earlier versions have the rows only in their checkpoint.
        try:
            return list(read_checkpoint_file(self.path, self.task_id)["curve"])
        except (FileNotFoundError, ValueError):
            return []

    @property
    def status(self) -> str:
        """Progress of the run as text, such as "stopped at 40%, last written 900 s ago".

        It is "finished" if the run was evaluated and not trained further since.
        """
        steps = self.last.get("env_steps", 0)
        if self.evaluation and self.evaluation["env_steps"] >= steps:
            return "finished"
        training = self.config["training"]
        updates = training["iterations"]
        minutes = training["minutes"]
        # A training ends after a number of updates, or otherwise after a time.
        if updates:
            done = self.last.get("iteration", 0) / updates
        else:
            done = self.last.get("seconds", 0) / (60 * minutes)
        written = [file.stat().st_mtime for file in self.path.iterdir() if file.is_file()]
        age = time.time() - max(written)
        activity = "still going" if age < STALE_SECONDS else "stopped"
        return f"{activity} at {min(done, 1.0):.0%}, last written {age:.0f} s ago"

    def differences(self, default_config: DefaultConfig) -> dict[str, list[JsonValue]] | None:
        """Compare the run's configuration with the defaults of the installed version.

        Args:
            default_config: Function that returns the default configurations of a task.

        Returns:
            Values of each differing option, by its dotted name: first in the run, then by default.
            None if this installation does not have the task.
        """
        # The module of another package may raise anything.
        try:
            values = default_config(self.task_id)
            # Both sides as JSON values: a tuple is a list in the file of the run.
            default = json.loads(json.dumps(values, default=as_json))
            options = (SEED_OPTION, *INCIDENTAL_OPTIONS)
            return find_differences(
                [without_options(self.config, options), without_options(default, options)]
            )
        except Exception:
            return None


def _read_rows(path: Path) -> list[dict[str, float]]:
    """Return the rows of a learning curve, a line of JSON each.

    A last line without a line break is left out, because the training may still be writing it.

    Raises:
        ValueError: If a line is not JSON, or if an object in it does not have numbers by name.
    """
    rows = []
    # Only line breaks end a row. str.splitlines would also cut a name that has a U+2028.
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{str(path)!r}, line {number}, is not a row of a curve: {error}"
            ) from error
        # A row that is not an object is refused where its numbers are read.
        if isinstance(row, dict) and not _has_numbers_by_name(row):
            raise ValueError(
                f"{str(path)!r}, line {number}, must be numbers by name, "
                f"got {shorten(line, 100)}: delete the line"
            )
        rows.append(row)
    return rows


def _has_numbers_by_name(row: dict[str, object]) -> bool:
    return all(map(_is_writable, row)) and all(map(_is_number, row.values()))


def _is_writable(name: str) -> bool:
    """Return False if a name has half of a surrogate pair, which no file in UTF-8 can hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def check_own_file(path: Path, largest: int) -> None:
    """Check that a file of a run folder is in that folder, and not too large to be read.

    A link in the folder of a stranger may lead to any file of this machine, and a report is made
    to be passed on.

    Args:
        path: The file.
        largest: Largest size that is read, bytes.

    Raises:
        ValueError: If it is a link to a file outside of its folder, or too large.
    """
    folder = path.parent.resolve()
    if not path.resolve().is_relative_to(folder):
        raise ValueError(
            f"{str(path)!r} is a link to a file outside of its run: copy the file into the run"
        )
    size = path.stat().st_size
    if size > largest:
        raise ValueError(
            f"{str(path)!r} has {size:,} bytes, at most {largest:,} are read: make it smaller"
        )


def read_runs(verb: str, paths: Sequence[Path]) -> list[Run]:
    """Read several run folders. A folder that is named twice is read once.

    Args:
        verb: Name of the command that reads them, for the error.
        paths: Run folders.

    Raises:
        FileNotFoundError: If a folder does not hold a run.
        ValueError: If ``paths`` is empty, or a file is damaged or was not written by a training.
    """
    if not paths:
        raise ValueError(f"{verb} needs at least one RUN, a folder that legged-envs train wrote")
    # Links and relative paths may name one folder twice.
    by_place = {path.resolve(): path for path in paths}
    runs = []
    for path in by_place.values():
        with explain_damaged_files(path):
            runs.append(Run(path))
    return runs


@contextmanager
def explain_damaged_files(*paths: Path) -> Iterator[None]:
    """Convert errors that damaged files cause into a ValueError with the paths of the runs.

    Args:
        *paths: Run folders that are read in the ``with`` block.

    Raises:
        ValueError: If the block raises an error that no ``raise`` of this package made.
    """
    try:
        yield
    # Of any kind: a damaged file may hold anything, which fails where it is used.
    except Exception as error:
        if is_mistake(error):
            raise
        folders = ", ".join(repr(str(path)) for path in paths)
        reason = shorten(f"{type(error).__name__}: {error}", 200)
        raise ValueError(
            f"a file of {folders} was not written by legged-envs train: {reason}"
        ) from error


def group_by_configuration(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Group runs with equal configurations, which differ only in their seed.

    Args:
        runs: Runs to group.

    Returns:
        Runs of each group, by a label: the folder of the first run and the number of others.
    """
    options = (SEED_OPTION, *INCIDENTAL_OPTIONS)
    alike: dict[str, list[Run]] = {}
    for run in runs:
        configuration = json.dumps(without_options(run.config, options), sort_keys=True)
        alike.setdefault(configuration, []).append(run)
    groups = {}
    for group in alike.values():
        label = str(group[0].path)
        if len(group) > 1:
            label += f" and {len(group) - 1} more"
        groups[label] = group
    return groups


def without_options(config: Mapping[str, Any], options: Sequence[str]) -> dict[str, Any]:
    """Return a configuration without some options of its training."""
    training = config["training"]
    kept = {name: value for name, value in training.items() if name not in options}
    return {**config, "training": kept}


def find_differences(values: Sequence[JsonValue], path: str = "") -> dict[str, list[JsonValue]]:
    """Return the paths at which nested dicts of JSON values differ.

    Args:
        values: The dicts.
        path: Name of these dicts in a larger one.

    Returns:
        Name such as `task.sim.dt` → the value in each of the dicts.
    """
    if not all(isinstance(value, dict) for value in values):
        # 1 and 1.0 are equal in Python, and lists cannot be in a set.
        texts = {json.dumps(value) for value in values}
        return {path: list(values)} if len(texts) > 1 else {}
    # A dict keeps the order of the first configuration, and a set would not.
    names: dict[str, None] = {}
    for value in values:
        names.update(dict.fromkeys(value))
    differences: dict[str, list[JsonValue]] = {}
    for name in names:
        parts = [value.get(name, ABSENT) for value in values]
        differences.update(find_differences(parts, f"{path}.{name}".strip(".")))
    return differences
