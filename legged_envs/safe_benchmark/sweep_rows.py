"""Limit sweeps, one method over several limits, and multiplier profiles, over fixed penalties.

The choice of a limit decides the ranking of methods, and return and cost over fixed multipliers
show how well a multiplier can be chosen at all (Spoor et al. 2025, arXiv 2510.17564).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from legged_envs.envs.cost_suites import level_factor, read_suite
from legged_envs.safe_benchmark.method_options import (
    FIXED,
    SEPARATOR,
    base_of,
    method_name,
    read_method,
)
from legged_envs.safe_benchmark.results import RunResult
from legged_envs.safe_benchmark.rows import Row, column, make_rows
from legged_envs.safe_benchmark.run import BASELINE
from legged_envs.safe_benchmark.statistics import Estimate, estimate
from legged_envs.safe_benchmark.table import interval, number
from legged_envs.tables import Table


@dataclass(frozen=True)
class Sweep:
    """Rows over the values of one quantity."""

    task: str
    """Task without Legged/ and version."""
    name: str
    """Method of a limit sweep, level of a multiplier profile."""
    values: list[float]
    """Values of the quantity, rising."""
    rows: list[Row]
    """Row at each of them."""

    @property
    def n(self) -> str:
        """Number of seeds of the rows, such as ``3`` or ``3–5``."""
        counts = sorted({row.n for row in self.rows})
        return str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"


def limit_sweeps(results: Sequence[RunResult]) -> list[Sweep]:
    """Return the constrained methods that have several levels of a task.

    The values are the limits, as shares of the cost of the unconstrained policy: 0.5 for
    ``medium``.
    """
    groups: dict[tuple[str, str], dict[float, Row]] = {}
    for (task, level), rows in make_rows(results).items():
        for row in rows:
            if row.method != BASELINE:
                groups.setdefault((task, row.method), {})[1.0 / level_factor(level)] = row
    return _sweeps(groups)


def multiplier_profiles(results: Sequence[RunResult]) -> list[Sweep]:
    """Return the rows of the fixed penalty by task and level, where there are several penalties.

    The values are the penalties. The unconstrained policy has the penalty 0. Rows with other
    options than the penalty make a profile of their own.
    """
    groups: dict[tuple[str, str], dict[float, Row]] = {}
    for (task, level), rows in make_rows(results).items():
        baseline = [row for row in rows if row.method == BASELINE]
        for row in rows:
            if base_of(row.method) != FIXED:
                continue
            constraint = read_method(row.method).constraint
            name = SEPARATOR.join((level, *_other_options(row.method)))
            group = groups.setdefault((task, name), {})
            if baseline:
                group[0.0] = baseline[0]
            group[constraint.penalty] = row
    # The unconstrained policy and one penalty are no profile yet.
    return sorted(_sweeps(groups, least=3), key=lambda sweep: (sweep.task, sweep.name))


def _other_options(method: str) -> list[str]:
    """Return the options of a fixed penalty without the penalty."""
    algo = read_method(method)
    usual = replace(algo.constraint, penalty=read_method(FIXED).constraint.penalty)
    return method_name(replace(algo, constraint=usual)).split(SEPARATOR)[1:]


def _sweeps(groups: dict[tuple[str, str], dict[float, Row]], least: int = 2) -> list[Sweep]:
    sweeps = []
    for (task, name), by_value in groups.items():
        if len(by_value) >= least:
            values = sorted(by_value)
            sweeps.append(Sweep(task, name, values, [by_value[value] for value in values]))
    return sweeps


def share_of_unconstrained(row: Row) -> Estimate:
    """Return the largest ratio J_k / U_k of a cost to that of the unconstrained policy.

    Interquartile mean over the seeds of the largest ratio over the binding costs k, those that the
    unconstrained policy exceeds. U_k is its cost in the calibration.
    """
    first = row.results[0]
    costs = read_suite(first.suite)["tasks"][first.task_id]["costs"]
    largest = []
    for result in row.results:
        ratios = []
        for name, cost in costs.items():
            if cost["binding"]:
                ratios.append(result.costs[name].mean / cost["unconstrained"])
        largest.append(max(ratios))
    return estimate(column(largest))


def limit_table(sweep: Sweep) -> Table:
    """Return the table of a limit sweep."""
    cells = []
    for value, row in zip(sweep.values, sweep.rows, strict=True):
        cells.append(
            [
                f"{value:.2f}",
                str(row.n),
                str(row.feasible),
                interval(share_of_unconstrained(row)),
                interval(row.ratio),
                interval(row.returns),
                interval(row.error),
            ]
        )
    header = (
        "limit / unconstrained",
        "n",
        "feasible",
        "largest J / unconstrained [95 %]",
        "worst J/d [95 %]",
        "return [95 %]",
        "relative error [95 %]",
    )
    return f"{sweep.task}, {sweep.name}: limit sweep", header, cells


def profile_table(sweep: Sweep) -> Table:
    """Return the table of a multiplier profile."""
    costs = list(sweep.rows[0].results[0].costs)
    cells = []
    for value, row in zip(sweep.values, sweep.rows, strict=True):
        ratios = row.ratios
        cells.append(
            [
                f"{value:g}",
                str(row.n),
                str(row.feasible),
                interval(row.returns),
                interval(row.error),
                *(number(ratios[name], ".2f") for name in costs),
            ]
        )
    names = [f"J/d {name}" for name in costs]
    header = ("penalty", "n", "feasible", "return [95 %]", "relative error [95 %]", *names)
    return f"{sweep.task}, {sweep.name}: multiplier profile", header, cells
