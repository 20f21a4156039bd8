"""Costs of the runs of a crosscheck, and which limits hold on one engine and not on another."""

from collections.abc import Mapping

import numpy as np
from rich.table import Table

from legged_envs.evaluation.plain_loop import Recording

Costs = dict[str, float | None]
"""Mean of each cost per step, by name. None: the run does not measure costs."""


def mean_costs(run: Recording, counted: np.ndarray, limits: Mapping[str, float]) -> Costs:
    """Return the mean of each cost per step of a run.

    Args:
        run: Recording of the run, with ``costs``, (steps, robots, K), if it measures them.
        counted: True in the steps of the means. Shape: (steps, robots).
        limits: Limit of each of the K costs, by name, in the order of the columns.
    """
    if "costs" not in run or not counted.any():
        return dict.fromkeys(limits)
    means = run["costs"][counted].mean(0, dtype=np.float64)
    return dict(zip(limits, means.tolist(), strict=True))


def add_cost_rows(table: Table, costs: Mapping[str, Costs], limits: Mapping[str, float]) -> None:
    """Add a row for each cost to a table with a column for each run.

    A cost above its limit is marked with ``>``.
    """
    for name, limit in limits.items():
        cells = [_cell(of_run[name], limit) for of_run in costs.values()]
        table.add_row(f"cost {name}, limit {limit:g}", *cells)


def _cell(mean: float | None, limit: float) -> str:
    if mean is None:
        return "–"
    return f"{mean:.4f} > limit" if mean > limit else f"{mean:.4f}"


def engine_differences(costs: Mapping[str, Costs], limits: Mapping[str, float]) -> list[str]:
    """Return a sentence for each limit that holds in the first run and is broken in another.

    Args:
        costs: Result of :func:`mean_costs` of each run, by name of the run.
        limits: Limit of each cost, by name.
    """
    first_run, first = next(iter(costs.items()))
    sentences = []
    for name, limit in limits.items():
        kept = first[name]
        if kept is None or kept > limit:
            continue
        for run, of_run in costs.items():
            mean = of_run[name]
            if mean is not None and mean > limit:
                sentences.append(
                    f"cost {name} keeps its limit {limit:g} on {first_run} ({kept:.4f}) "
                    f"and breaks it on {run} ({mean:.4f})"
                )
    return sentences
