"""Labels of plots: units of learning curves, and the values that a run should reach or keep."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

UNITS = {
    "reward": "1/s",
    "lin_vel_error": "m/s",
    "ang_vel_error": "rad/s",
    "joint_error": "rad",
    "level": "mean over robots",
    "loss_kl": "nat",
    "steps_per_second": "1/s",
    "episode_length_s": "s",
}
"""Unit of each column that has one."""
COST_PREFIX = "cost/"
"""Beginning of the names of the columns of costs. They are means per step, as their limits are."""


class Bound(NamedTuple):
    """A value that a column should reach or keep, drawn as a dashed line."""

    kind: str
    """``"goal"`` or ``"limit"``."""
    value: float
    """The value, in the unit of the column."""


Bounds = Mapping[str, Bound]
"""Bounds by the names of the columns."""


def make_bounds(goal: Mapping[str, float], cost_limits: Mapping[str, float]) -> dict[str, Bound]:
    """Return the bounds of the columns of a learning curve.

    Args:
        goal: Largest errors of a policy that reaches the goal of its task, by column.
        cost_limits: Largest allowed means per step, by cost.
    """
    bounds = {name: Bound("goal", value) for name, value in goal.items()}
    for name, limit in cost_limits.items():
        bounds[f"{COST_PREFIX}{name}"] = Bound("limit", limit)
    return bounds


def common_bounds(runs: Iterable[Bounds]) -> dict[str, Bound]:
    """Return the bounds on which all runs agree that have the column."""
    common: dict[str, Bound] = {}
    different = set()
    for bounds in runs:
        for name, bound in bounds.items():
            if common.setdefault(name, bound) != bound:
                different.add(name)
    return {name: bound for name, bound in common.items() if name not in different}


def read_cost_limits(task: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits of the costs in the configuration of a run, by cost.

    Args:
        task: Configuration of the task, as ``config.json`` has it.
    """
    costs = task.get("costs")
    limits = {}
    # A file of another version or program may have other things.
    for name, term in costs.items() if isinstance(costs, dict) else ():
        limit = term.get("limit") if isinstance(term, dict) else None
        if isinstance(limit, int | float):
            limits[name] = float(limit)
    return limits


def make_title(name: str, bound: Bound | None) -> str:
    """Return the title of a plot: the column, its unit, and its goal or limit.

    Args:
        name: Name of the column.
        bound: Its bound. None: it has none.
    """
    unit = UNITS.get(name)
    if unit == "s":
        # The unit stands in the name already.
        name = name.removesuffix("_s")
    title = name.replace("_", " ")
    if unit is not None:
        title += f", {unit}"
    if bound is not None:
        title += f" ({bound.kind} {bound.value:g})"
    return title


def plain_label(label: str) -> str:
    """Return a path in a form that a legend shows.

    Matplotlib hides labels that start with an underscore, and reads formulas between dollar signs.
    """
    escaped = label.replace("$", r"\$")
    if label.startswith("_"):
        return f"./{escaped}"
    return escaped
