"""Figures of the benchmark: errors against limits, performance profiles and costs."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from legged_envs.safe_benchmark.rows import Row, column
from legged_envs.safe_benchmark.statistics import Estimate, profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (5.6, 4.2)
"""Width and height of a figure, inches."""

THRESHOLDS = 101
"""Number of τ of a profile."""

MARKERS = "oDsv^<>PX*hpd"
"""Markers of the methods in turn, so that they differ without colours too."""


def new_figure() -> tuple["Figure", "Axes"]:
    """Return a figure with one plot. Without pyplot it needs no display and leaves no state."""
    from matplotlib.figure import Figure

    figure = Figure(SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.grid(alpha=0.3)
    return figure, axes


def draw_front(rows: Sequence[Row]) -> "Figure":
    """Draw the relative tracking error of each method over its largest J / d.

    A large marker is the interquartile mean with its 95 % intervals, small ones are seeds. The
    line joins methods that no other one beats in both numbers.

    Args:
        rows: Rows of a task and level, with relative errors.
    """
    figure, axes = new_figure()
    for i, row in enumerate(rows):
        colour = f"C{i % 10}"
        marker = MARKERS[i % len(MARKERS)]
        ratios = [result.worst_ratio for result in row.results]
        axes.scatter(ratios, row.errors, s=10, color=colour, alpha=0.5, linewidths=0.0)
        axes.errorbar(
            row.ratio.value,
            row.error.value,
            xerr=_error_bar(row.ratio),
            yerr=_error_bar(row.error),
            fmt=marker,
            color=colour,
            markersize=8,
            elinewidth=1.0,
            label=f"{row.method}, n = {row.n}",
        )
    front = pareto_front([(row.ratio.value, row.error.value) for row in rows])
    axes.plot(*zip(*front, strict=True), color="grey", linewidth=1.0, linestyle="--", zorder=0)
    axes.axvline(1.0, color="black", linewidth=1.0, linestyle=":")
    axes.axhline(1.0, color="black", linewidth=1.0, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="largest J/d (limit at 1)", ylabel="tracking error / unconstrained")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure


def _error_bar(found: Estimate) -> np.ndarray | None:
    """Return the lengths of an error bar below and above a number, None without an interval."""
    if math.isnan(found.low):
        return None
    # The mean may lie outside of a percentile interval of few seeds by a rounding error.
    below = max(found.value - found.low, 0.0)
    above = max(found.high - found.value, 0.0)
    return np.array([[below], [above]])


def pareto_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no other point beats in both numbers, less being better.

    Args:
        points: Two numbers of each method.

    Returns:
        The points in the order of their first number.
    """
    front: list[tuple[float, float]] = []
    for point in sorted(points):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return front


def draw_profiles(rows: Sequence[Row], score: str) -> "Figure":
    """Draw the share of the seeds of each method with a score of at most τ, with 95 % bands.

    Args:
        rows: Rows of a task and level.
        score: ``"ratio"`` for the largest J / d, ``"error"`` for the relative tracking error.
    """
    figure, axes = new_figure()
    by_method = {}
    for row in rows:
        values = row.errors
        if score == "ratio":
            values = [result.worst_ratio for result in row.results]
        by_method[f"{row.method}, n = {row.n}"] = column(values)
    everything = np.concatenate(list(by_method.values()))
    low = 0.95 * min(1.0, everything.min())
    thresholds = np.geomspace(low, 1.05 * max(1.0, everything.max()), THRESHOLDS)
    for i, (label, scores) in enumerate(by_method.items()):
        found = profile(scores, thresholds)
        colour = f"C{i % 10}"
        style = "-" if i < 10 else "--"
        axes.step(thresholds, found.shares, where="post", color=colour, ls=style, label=label)
        if len(scores) > 1:
            axes.fill_between(
                thresholds, found.low, found.high, step="post", color=colour, alpha=0.1, lw=0.0
            )
    axes.axvline(1.0, color="black", linewidth=1.0, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    name = "largest J/d" if score == "ratio" else "relative tracking error"
    axes.set(xlabel=f"τ: {name}", ylabel="share of seeds at most τ", ylim=(-0.02, 1.02))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure
