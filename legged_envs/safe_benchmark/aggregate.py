"""Statistics of each method over several tasks and levels, from seeds that all of them have."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from legged_envs.envs.cost_suites import LEVELS
from legged_envs.safe_benchmark.results import RunResult
from legged_envs.safe_benchmark.rows import Row, make_rows
from legged_envs.safe_benchmark.run import BASELINE
from legged_envs.safe_benchmark.statistics import Estimate, estimate, improvement_estimate
from legged_envs.safe_benchmark.table import interval
from legged_envs.tables import Table

Setting = tuple[str, str]
"""A task and a level."""


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """The runs of a method on several tasks and levels."""

    method: str
    """Name of the method."""
    seeds: tuple[int, ...]
    """Seeds that each of the settings has."""
    ratios: np.ndarray
    """Largest J / d. Shape: (seeds, settings)."""
    errors: np.ndarray
    """Relative tracking errors. NaN without an unconstrained run. Shape: (seeds, settings)."""

    @property
    def n(self) -> int:
        """Number of runs."""
        return self.ratios.size

    @property
    def feasible(self) -> int:
        """Number of runs that keep every limit."""
        return int((self.ratios <= 1.0).sum())

    @property
    def ratio(self) -> Estimate:
        """Interquartile mean of the largest J / d."""
        return estimate(self.ratios)

    @property
    def error(self) -> Estimate:
        """Interquartile mean of the relative tracking errors."""
        return estimate(self.errors)


@dataclass(frozen=True)
class Aggregation:
    """What several tasks and levels say about the methods."""

    settings: tuple[Setting, ...]
    """Tasks and levels, at least two."""
    methods: list[Aggregate]
    """Methods that have runs in each of them."""
    notices: list[str]
    """Methods and seeds that are left out, one line each."""


def aggregate(results: Sequence[RunResult]) -> Aggregation | None:
    """Return the methods over all tasks and levels, or None if there is only one.

    Levels that are factors belong to limit sweeps and do not count, nor do settings that have
    only unconstrained runs.

    Args:
        results: Results of one suite.
    """
    tables: dict[Setting, dict[str, Row]] = {}
    for setting, rows in make_rows(results).items():
        by_method = {row.method: row for row in rows}
        if setting[1] in LEVELS and by_method.keys() - {BASELINE}:
            tables[setting] = by_method
    if len(tables) < 2:
        return None
    methods = []
    lacking: dict[str, list[str]] = {}
    for method in dict.fromkeys(name for table in tables.values() for name in table):
        missing = [" ".join(setting) for setting, table in tables.items() if method not in table]
        if missing:
            reason = f"left out, because they lack {', '.join(missing)}"
            lacking.setdefault(reason, []).append(method)
            continue
        rows = [table[method] for table in tables.values()]
        seeds, left_out = common_seeds(rows)
        if left_out:
            reason = "seeds left out, because not all tasks and levels have them: "
            reason += ", ".join(map(str, left_out))
            lacking.setdefault(reason, []).append(method)
        if seeds:
            methods.append(_stack(method, seeds, rows))
    notices = [f"all tasks, {'; '.join(names)}: {reason}" for reason, names in lacking.items()]
    return Aggregation(tuple(tables), methods, notices)


def common_seeds(rows: Sequence[Row]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the seeds that all rows have, and those that only some have."""
    of_rows = [{result.seed for result in row.results} for row in rows]
    common = set.intersection(*of_rows)
    some = set.union(*of_rows) - common
    return tuple(sorted(common)), tuple(sorted(some))


def _stack(method: str, seeds: tuple[int, ...], rows: Sequence[Row]) -> Aggregate:
    """Return the runs of the given seeds of a method. There is one row for each setting."""
    ratios = []
    errors = []
    for row in rows:
        places = [[result.seed for result in row.results].index(seed) for seed in seeds]
        ratios.append([row.results[place].worst_ratio for place in places])
        errors.append([row.errors[place] for place in places])
    return Aggregate(
        method=method, seeds=seeds, ratios=np.array(ratios).T, errors=np.array(errors).T
    )


def aggregate_table(found: Aggregation) -> Table:
    """Return the table of the interquartile means over tasks and levels."""
    cells = []
    for each in found.methods:
        cells.append(
            [
                each.method,
                f"{len(each.seeds)} × {len(found.settings)}",
                f"{each.feasible} of {each.n}",
                interval(each.ratio),
                interval(each.error),
            ]
        )
    header = (
        "method",
        "seeds × settings",
        "feasible runs",
        "worst J/d [95 %]",
        "relative error [95 %]",
    )
    return "Interquartile means over tasks and levels", header, cells


def aggregate_improvement_table(found: Aggregation, score: str) -> Table:
    """Return the probabilities that a run of one method has a lower score than one of another.

    Args:
        found: The methods.
        score: ``"ratio"`` for the largest J / d, ``"error"`` for the relative tracking error.
    """
    scores = {each.method: each.ratios for each in found.methods}
    if score == "error":
        scores = {each.method: each.errors for each in found.methods}
    cells = []
    for method, own in scores.items():
        line = [method]
        for other, theirs in scores.items():
            line.append("–" if other == method else interval(improvement_estimate(own, theirs)))
        cells.append(line)
    name = "worst J/d" if score == "ratio" else "relative error"
    title = f"Probability that a run of the row has a lower {name} than a run of the column [95 %]"
    return title, ("method", *scores), cells
