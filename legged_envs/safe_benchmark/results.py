"""Results of the runs: a small JSON file for each, and checks of what is compared."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from legged_envs.checks import check_known
from legged_envs.envs.cost_suites import level_limit, read_suite
from legged_envs.policy.header import without_nan
from legged_envs.runs.run_folder import write_json
from legged_envs.safe_benchmark.run import BASELINE, RunIdentity

ALIKE = ("package_version", "env_steps", "episodes", "evaluation_seed")
"""Entries of a result that the seeds of a method have in common."""


@dataclass(frozen=True)
class CostResult:
    """Numbers of a cost of a run."""

    mean: float
    """Mean J of the cost per step, over an episode, then over episodes."""
    limit: float
    """Limit d of the mean."""
    ratio: float
    """J / d. At most 1 where the limit is kept."""
    exceeded: float
    """Share of the episodes with a mean above the limit."""
    cvar: float
    """CVaR₀.₁: mean over the tenth of the episodes with the largest mean."""


@dataclass(frozen=True, kw_only=True)
class RunResult(RunIdentity):
    """Result of one run."""

    suite: str
    """Name and version of the suite of costs and limits."""
    source: str
    """What follows ``--methods`` for the method: its name, or ``FILE.py:Class``."""
    command: str
    """Command line that trains the run."""
    package_version: str
    """Version of this package in the training."""
    hardware: str
    """Machine of the training."""
    env_steps: int
    """Environment steps of the training, over all robots."""
    steps_per_second: float
    """Environment steps per second of the training, median over updates."""
    violating_updates: float
    """Share of the updates in which a mean cost of the robots in training was above its limit."""
    episodes: int
    """Number of episodes of the evaluation."""
    episode_seconds: float
    """Duration of an episode, s."""
    evaluation_seed: int
    """Seed of the episodes."""
    lin_vel_error: float
    """Error of the horizontal velocity after the first second, m/s."""
    ang_vel_error: float
    """Error of the yaw rate after the first second, rad/s."""
    distance: float
    """Distance walked in the commanded direction in an episode, m."""
    commanded_distance: float
    """Distance that the command asks for until the episode ends, m."""
    falls: float
    """Share of the episodes that a termination ended, such as a fall."""
    crossed: float | None
    """Share of the episodes that crossed their tile of rough ground. None on flat ground."""
    costs: dict[str, CostResult]
    """Numbers of each cost."""
    episode_return: float | None = None
    """Sum of the rewards of an episode, mean over episodes. None in results of version 0.2.0."""

    @property
    def worst(self) -> str:
        """Name of the cost with the largest J / d."""
        return max(self.costs, key=lambda name: self.costs[name].ratio)

    @property
    def worst_ratio(self) -> float:
        """Largest J / d."""
        return self.costs[self.worst].ratio

    @property
    def is_feasible(self) -> bool:
        """True if every cost keeps its limit."""
        return self.worst_ratio <= 1.0


def write_result(folder: Path, result: RunResult) -> Path:
    """Write a result as ``folder/NAME.json``, and return this path."""
    path = folder / f"{result.name}.json"
    write_json(path, without_nan(rounded(asdict(result))))
    return path


def rounded(value: Any) -> Any:
    """Return nested values with six significant digits of each float."""
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return value


def read_result(path: Path) -> RunResult:
    """Read the file of a result.

    Raises:
        ValueError: If the file is not a result, or its name differs from its run.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        names = {field.name for field in fields(RunResult)}
        missing = sorted((names ^ values.keys()) - {"episode_return"})
        if missing:
            raise ValueError(f"missing or unknown entries are {', '.join(missing)}")
        # JSON has no NaN: it is null.
        for name in ("steps_per_second", "violating_updates", "lin_vel_error", "ang_vel_error"):
            if values[name] is None:
                values[name] = float("nan")
        values["costs"] = {name: CostResult(**cost) for name, cost in values["costs"].items()}
        result = RunResult(**values)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{str(path)!r} is not a result of legged-envs benchmark safe: {error}"
        ) from error
    if path.stem != result.name:
        raise ValueError(
            f"{str(path)!r} has the result of {result.name}, which would count twice or under a "
            "wrong name: rename it, or remove the copy"
        )
    return result


def read_results(folder: Path, suite: str) -> list[RunResult]:
    """Read all results of a folder, in the order of their names.

    Raises:
        FileNotFoundError: If there is none.
        ValueError: If a file is damaged, of another version of the suite, or a second copy, or if
            seeds of a method differ in more than their seed.
    """
    results = [read_result(path) for path in sorted(folder.glob("*.json"))]
    if not results:
        raise FileNotFoundError(
            f"there are no results in {str(folder)!r}: train with --tasks, or evaluate finished "
            "runs with --evaluate-only"
        )
    for result in results:
        if result.suite != suite:
            raise ValueError(
                f"{str(folder)!r} has results of {suite} and of {result.suite} ({result.name}): "
                "keep each version in a separate folder"
            )
        check_limits(result)
    check_distinct(results)
    check_alike(results)
    return results


def check_limits(result: RunResult) -> None:
    """Raise a ValueError if costs or limits of a result differ from its suite."""
    tasks = read_suite(result.suite)["tasks"]
    check_known(f"{result.suite} has no limits for", (result.task_id,), tasks, "tasks")
    costs = tasks[result.task_id]["costs"]
    expected = {name: level_limit(cost, result.level) for name, cost in costs.items()}
    limits = {name: cost.limit for name, cost in result.costs.items()}
    if limits != expected:
        raise ValueError(
            f"the result of {result.name} has the limits {limits}, and {result.suite} has "
            f"{expected}: evaluate the run again"
        )


def check_distinct(results: Sequence[RunResult]) -> None:
    """Raise a ValueError if one run is there twice, under the names of two seeds."""
    seen: dict[tuple[Any, ...], RunResult] = {}
    for result in results:
        means = tuple(cost.mean for cost in result.costs.values())
        numbers = (result.task, result.level, result.method, result.lin_vel_error, means)
        other = seen.setdefault(numbers, result)
        if other is not result:
            raise ValueError(
                f"{other.name} and {result.name} have the same numbers, so one run is there twice: "
                "remove the wrong one"
            )


def check_alike(results: Sequence[RunResult]) -> None:
    """Raise a ValueError if seeds of a method were trained or evaluated differently.

    A mean over them would hide the difference.
    """
    firsts: dict[tuple[str, str, str], RunResult] = {}
    for result in results:
        first = firsts.setdefault((result.task, result.level, result.method), result)
        for entry in ALIKE:
            values = getattr(first, entry), getattr(result, entry)
            if values[0] != values[1]:
                raise ValueError(
                    f"{first.name} has {entry.replace('_', ' ')} {values[0]}, and {result.name} "
                    f"has {values[1]}: seeds of a method must agree, so make one of them again or "
                    "move it away"
                )


def notices(results: Sequence[RunResult]) -> list[str]:
    """Return what limits a comparison of results, one line each.

    Missing seeds, missing unconstrained runs, and trainings or evaluations of different size.
    """
    lines = []
    for (task, level), group in by_setting(results).items():
        place = f"{task} {level}"
        methods = {result.method: None for result in group}
        all_seeds = {result.seed for result in group}
        if BASELINE not in methods:
            lines.append(
                f"{place}: there is no unconstrained run (method {BASELINE}), so no relative errors"
            )
        lacking: dict[str, list[str]] = {}
        for method in methods:
            missing = all_seeds - {result.seed for result in group if result.method == method}
            if missing:
                lacking.setdefault(", ".join(map(str, sorted(missing))), []).append(method)
        for seeds, names in lacking.items():
            lines.append(f"{place}, {'; '.join(names)}: missing seeds: {seeds}")
        for entry in ("env_steps", "episodes", "evaluation_seed"):
            values = sorted({getattr(result, entry) for result in group})
            if len(values) > 1:
                named = entry.replace("_", " ")
                listed = " and ".join(f"{value:,}" for value in values)
                lines.append(f"{place}: different {named} are compared: {listed}")
    versions = sorted({result.package_version for result in results})
    if len(versions) > 1:
        lines.append(f"trained with different versions of legged-envs: {', '.join(versions)}")
    return lines


def by_setting(results: Sequence[RunResult]) -> dict[tuple[str, str], list[RunResult]]:
    """Return the results of each task and level."""
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for result in results:
        groups.setdefault((result.task, result.level), []).append(result)
    return groups
