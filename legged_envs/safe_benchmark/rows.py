"""Rows of the table: the runs of a task, a level and a method, with statistics over their seeds."""

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from legged_envs.safe_benchmark.options import EPISODES
from legged_envs.safe_benchmark.results import RunResult, by_setting
from legged_envs.safe_benchmark.run import BASELINE
from legged_envs.safe_benchmark.statistics import Estimate, estimate, interquartile_mean

SIZE_OPTIONS = ("--num-envs", "--iterations")
"""Options of a training that ``legged-envs benchmark safe`` has too, for runs of another size."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The runs of a task, a level and a method."""

    results: list[RunResult]
    """Results of the seeds."""
    errors: list[float]
    """Relative tracking error of each seed. NaN without an unconstrained run."""
    error: Estimate
    """Interquartile mean of the relative tracking errors."""
    ratio: Estimate
    """Interquartile mean over the seeds of the largest J / d."""

    @property
    def returns(self) -> Estimate:
        """Interquartile mean of the returns of an episode. NaN if a result has none."""
        values = [result.episode_return for result in self.results]
        return estimate(column([math.nan if value is None else value for value in values]))

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.results[0].method

    @property
    def n(self) -> int:
        """Number of seeds."""
        return len(self.results)

    @property
    def feasible(self) -> int:
        """Number of seeds that keep every limit."""
        return sum(result.is_feasible for result in self.results)

    @property
    def worst(self) -> str:
        """Cost that is the worst of most seeds."""
        return Counter(result.worst for result in self.results).most_common(1)[0][0]

    @property
    def ratios(self) -> dict[str, float]:
        """Interquartile mean over the seeds of J / d of each cost."""
        ratios = {}
        for name in self.results[0].costs:
            values = [result.costs[name].ratio for result in self.results]
            ratios[name] = interquartile_mean(column(values))
        return ratios

    @property
    def exceeded(self) -> float:
        """Share of the episodes above their limit, of the cost for which it is largest."""
        shares = []
        for name in self.results[0].costs:
            shares.append(fmean(result.costs[name].exceeded for result in self.results))
        return max(shares)

    @property
    def cvar(self) -> float:
        """CVaR₀.₁ / d, of the cost for which it is largest."""
        ratios = []
        for name in self.results[0].costs:
            tails = [result.costs[name].cvar / result.costs[name].limit for result in self.results]
            ratios.append(fmean(tails))
        return max(ratios)

    def mean(self, entry: str) -> float:
        """Return the mean over the seeds of an entry of the results. NaN if a seed lacks it."""
        values = [getattr(result, entry) for result in self.results]
        if None in values:
            return math.nan
        return fmean(values)

    @property
    def command(self) -> str:
        """Command line that trains and evaluates the runs of this row and of the baseline."""
        first = self.results[0]
        methods = dict.fromkeys((BASELINE, first.source))
        words = ["legged-envs", "benchmark", "safe", "--tasks", first.task]
        words += ["--levels", first.level, "--methods", *methods]
        # The option is a number n: the seeds are 1 to n.
        words += ["--seeds", str(max(result.seed for result in self.results))]
        trained = shlex.split(first.command)
        for option in SIZE_OPTIONS:
            if option in trained:
                words += [option, trained[trained.index(option) + 1]]
        if first.episodes != EPISODES:
            words += ["--episodes", str(first.episodes)]
        return shlex.join(words)


def column(values: Sequence[float]) -> np.ndarray:
    """Return the scores of the seeds on one task. Shape: (seeds, 1)."""
    return np.array(values, dtype=np.float64)[:, None]


def relative_error(result: RunResult, baseline: Sequence[RunResult]) -> float:
    """Return the tracking error of a run relative to the unconstrained policy.

    It is the mean of two ratios, of the velocity error and of the yaw rate error, each to the mean
    error of the unconstrained seeds.

    Args:
        result: The run.
        baseline: The unconstrained runs of the same task and level. Empty: the error is NaN.
    """
    if not baseline:
        return math.nan
    lin_vel_error = fmean(other.lin_vel_error for other in baseline)
    ang_vel_error = fmean(other.ang_vel_error for other in baseline)
    return 0.5 * (result.lin_vel_error / lin_vel_error + result.ang_vel_error / ang_vel_error)


def make_rows(results: Sequence[RunResult]) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of each task and level.

    The unconstrained row is the first. Others follow by the share of feasible seeds, then by their
    relative error.
    """
    tables = {}
    for setting, group in by_setting(results).items():
        baseline = [result for result in group if result.method == BASELINE]
        by_method: dict[str, list[RunResult]] = {}
        for result in sorted(group, key=lambda result: result.seed):
            by_method.setdefault(result.method, []).append(result)
        rows = []
        for runs in by_method.values():
            errors = [relative_error(result, baseline) for result in runs]
            row = Row(
                results=runs,
                errors=errors,
                error=estimate(column(errors)),
                ratio=estimate(column([result.worst_ratio for result in runs])),
            )
            rows.append(row)
        tables[setting] = sorted(rows, key=_place)
    return tables


def _place(row: Row) -> tuple[float, ...]:
    is_baseline = row.method == BASELINE
    return (not is_baseline, -row.feasible / row.n, row.error.value, row.ratio.value)
