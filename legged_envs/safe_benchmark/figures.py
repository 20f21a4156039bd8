"""Figures of the benchmark: errors against limits, performance profiles and costs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from legged_envs.safe_benchmark.rows import Row
from legged_envs.safe_benchmark.statistics import Estimate, profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.8
"""Width of a figure, inches."""

PLOT_HEIGHT = 3.3
"""Height of a figure without its legend, inches."""

LEGEND_LINE = 0.17
"""Height of a line of the legend, inches."""

WIDE_RANGE = 6.0
"""Quotient of the ends of an axis of ratios from which it is logarithmic."""

THRESHOLDS = 101
"""Number of τ of a profile."""

WIDEST_LABEL = 28
"""Largest number of characters of a label in a legend of two columns."""

MARKERS = "oDsv^<>PX*hpd"
"""Markers of the methods in turn, so that they differ without colours too."""


def new_figure() -> tuple["Figure", "Axes"]:
    """Return a figure with one plot. Without pyplot it needs no display and leaves no state."""
    from matplotlib.figure import Figure

    figure = Figure((WIDTH, PLOT_HEIGHT), layout="constrained")
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
    scale_ratios(axes, np.array([result.worst_ratio for row in rows for result in row.results]))
    axes.set(xlabel="largest J/d (limit at 1)", ylabel="tracking error / unconstrained")
    add_legend(figure)
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


def draw_profiles(scores: Mapping[str, np.ndarray], name: str) -> "Figure":
    """Draw the share of the runs of each method with a score of at most τ, with 95 % bands.

    Args:
        scores: Scores of each method, by the label of its line. Shapes: (seeds, tasks).
        name: Name of the score, for the axis.
    """
    figure, axes = new_figure()
    everything = np.concatenate([values.ravel() for values in scores.values()])
    low = 0.95 * min(1.0, everything.min())
    thresholds = np.geomspace(low, 1.05 * max(1.0, everything.max()), THRESHOLDS)
    for i, (label, values) in enumerate(scores.items()):
        found = profile(values, thresholds)
        colour = f"C{i % 10}"
        style = "-" if i < 10 else "--"
        axes.step(thresholds, found.shares, where="post", color=colour, ls=style, label=label)
        if len(values) > 1:
            axes.fill_between(
                thresholds, found.low, found.high, step="post", color=colour, alpha=0.1, lw=0.0
            )
    axes.axvline(1.0, color="black", linewidth=1.0, linestyle=":")
    scale_ratios(axes, thresholds)
    axes.set(xlabel=f"τ: {name}", ylabel="share of runs at most τ", ylim=(-0.02, 1.02))
    add_legend(figure)
    return figure


@dataclass(frozen=True)
class Line:
    """A line of a figure: estimates over the values of a setting."""

    label: str
    """Text of the legend, with the number of seeds."""
    places: Sequence[float]
    """Values of the setting, rising."""
    estimates: Sequence[Estimate]
    """Number at each of them."""


def draw_lines(lines: Sequence[Line], x_label: str, y_label: str) -> tuple["Figure", "Axes"]:
    """Draw lines over a setting, with the 95 % interval of each point.

    Args:
        lines: The lines.
        x_label: Label of the horizontal axis, with the unit.
        y_label: Label of the vertical axis, with the unit.
    """
    figure, axes = new_figure()
    for i, line in enumerate(lines):
        colour = f"C{i % 10}"
        values = [found.value for found in line.estimates]
        marker = MARKERS[i % len(MARKERS)]
        axes.plot(line.places, values, color=colour, marker=marker, label=line.label)
        for place, found in zip(line.places, line.estimates, strict=True):
            bar = _error_bar(found)
            if bar is not None:
                axes.errorbar(place, found.value, yerr=bar, color=colour, elinewidth=1.0)
    axes.set(xlabel=x_label, ylabel=y_label)
    add_legend(figure)
    return figure, axes


def add_legend(figure: "Figure") -> None:
    """Add the legend below a figure, which grows by it, in two columns if the labels are short."""
    labels = figure.axes[0].get_legend_handles_labels()[1]
    columns = 1 if any(len(label) > WIDEST_LABEL for label in labels) else 2
    figure.set_figheight(PLOT_HEIGHT + LEGEND_LINE * math.ceil(len(labels) / columns))
    figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize="small")


def scale_ratios(axes: "Axes", values: np.ndarray) -> None:
    """Make the horizontal axis logarithmic if the ratios on it span a wide range.

    Args:
        axes: The plot.
        values: Ratios above 0.
    """
    if values.max() / values.min() < WIDE_RANGE:
        return
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
