"""Tables of the benchmark, which the terminal and the page show."""

import math
from collections.abc import Sequence

import numpy as np

from legged_envs.envs.cost_suites import LEVELS
from legged_envs.safe_benchmark.rows import Row, column
from legged_envs.safe_benchmark.statistics import Estimate, improvement
from legged_envs.tables import Table

ABSENT = "–"
"""Text of a cell without a number."""


def number(value: float, style: str = ".3g") -> str:
    """Return a number as text, a dash for NaN."""
    return ABSENT if math.isnan(value) else format(value, style)


def percentage(share: float) -> str:
    """Return a share as a percentage without its sign, a dash for NaN."""
    return number(100.0 * share, ".0f" if share >= 0.1 else ".1f")


def interval(found: Estimate) -> str:
    """Return a number with its 95 % interval, such as ``0.98 [0.95, 1.02]``."""
    text = number(found.value, ".2f")
    if not math.isnan(found.low):
        text += f" [{found.low:.2f}, {found.high:.2f}]"
    return text


def distances(row: Row) -> str:
    """Return the distance that robots walk and the distance that the command asks for."""
    walked = number(row.mean("distance"), ".2f")
    return f"{walked} / {number(row.mean('commanded_distance'), '.2f')}"


def title_of(setting: tuple[str, str], rows: Sequence[Row]) -> str:
    """Return the title of a table: task, level, length of the trainings and number of runs."""
    task, level = setting
    steps = max(result.env_steps for row in rows for result in row.results)
    runs = sum(row.n for row in rows)
    if level not in LEVELS:
        level = f"limits at 1/{level} of the unconstrained costs"
    return f"{task}, {level}: {steps / 1e6:.2f} M steps, {runs} runs"


def main_cells(row: Row) -> dict[str, str]:
    """Return the cells of the main table by their headers: limits, errors, distance and falls."""
    cells = {
        "method": row.method,
        "feasible seeds": f"{row.feasible} of {row.n}",
        "worst J/d [95 %]": interval(row.ratio),
        "worst cost": row.worst,
        "relative error [95 %]": interval(row.error),
        "velocity error, m/s": number(row.mean("lin_vel_error")),
        "turning error, rad/s": number(row.mean("ang_vel_error")),
        "distance / commanded, m": distances(row),
        "falls, %": percentage(row.mean("falls")),
    }
    crossed = row.mean("crossed")
    # Only tasks on rough ground have it.
    if not math.isnan(crossed):
        cells["crossed, %"] = percentage(crossed)
    return cells


def risk_cells(row: Row) -> dict[str, str]:
    """Return the cells of the table of risk and speed by their headers."""
    return {
        "method": row.method,
        "n": str(row.n),
        "episodes above a limit, %": percentage(row.exceeded),
        "CVaR₀.₁/d": number(row.cvar, ".2f"),
        "updates above a limit, %": percentage(row.mean("violating_updates")),
        "steps/s": number(row.mean("steps_per_second"), ".0f"),
    }


def main_table(rows: Sequence[Row]) -> Table:
    """Return the main table of a task and level."""
    return "Limits, errors and falls", *_table([main_cells(row) for row in rows])


def risk_table(rows: Sequence[Row]) -> Table:
    """Return the table of risk, violations in training, and speed."""
    title = "Risk, violations in training, speed"
    return title, *_table([risk_cells(row) for row in rows])


def _table(rows: Sequence[dict[str, str]]) -> tuple[list[str], list[list[str]]]:
    """Return the headers and the cells of rows that all have the same headers."""
    return list(rows[0]), [list(cells.values()) for cells in rows]


def improvement_table(rows: Sequence[Row]) -> Table:
    """Return the probabilities that a run of one method has a lower worst J / d than another."""
    cells = []
    for row in rows:
        scores = _ratios(row)
        line = [row.method]
        for other in rows:
            if other is row:
                line.append(ABSENT)
                continue
            line.append(f"{improvement(scores, _ratios(other)):.2f}")
        cells.append(line)
    title = "Probability that a run of the row has a lower worst J/d than a run of the column"
    return title, ("method", *(row.method for row in rows)), cells


def _ratios(row: Row) -> np.ndarray:
    return column([result.worst_ratio for result in row.results])
