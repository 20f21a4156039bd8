"""Sections of the page over several tasks, limits and multipliers, as HTML."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from legged_envs.evaluation.report import svg
from legged_envs.safe_benchmark.aggregate import (
    Aggregation,
    aggregate,
    aggregate_improvement_table,
    aggregate_table,
)
from legged_envs.safe_benchmark.figures import Line, draw_lines, draw_profiles
from legged_envs.safe_benchmark.results import RunResult
from legged_envs.safe_benchmark.rows import Row, column
from legged_envs.safe_benchmark.statistics import Estimate, estimate
from legged_envs.safe_benchmark.sweep_rows import (
    Sweep,
    limit_sweeps,
    limit_table,
    multiplier_profiles,
    profile_table,
    share_of_unconstrained,
)
from legged_envs.tables import format_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ERROR_PROFILE = "Performance profile of the relative tracking error, with 95 % bands"
"""Caption of a figure."""

RATIO_PROFILE = "Performance profile of the largest J/d, with 95 % bands"
"""Caption of a figure."""

LIMIT_SHARE = "limit d / cost of the unconstrained policy"
"""Label of the horizontal axis of a limit sweep."""

RETURN = "return of an episode (sum of rewards)"
"""Label of an axis."""

ERROR = "tracking error / unconstrained"
"""Label of an axis."""


def summaries(results: Sequence[RunResult], heading: str) -> list[str]:
    """Return the sections that results have runs for, each with a heading.

    Args:
        results: Results of one suite.
        heading: Tag of the headings, such as ``h2``.
    """
    html = []
    found = aggregate(results)
    if found is not None:
        html += aggregate_section(found, heading)
    sweeps = limit_sweeps(results)
    for task in dict.fromkeys(sweep.task for sweep in sweeps):
        chosen = [sweep for sweep in sweeps if sweep.task == task]
        html.append(f"<{heading}>{escape(task)}: limit sweeps</{heading}>")
        html += [f"<div>{format_html(limit_table(sweep))}</div>" for sweep in chosen]
        html.append(f"<div>{''.join(with_captions(limit_figures(chosen)))}</div>")
    for sweep in multiplier_profiles(results):
        title = escape(f"{sweep.task}, {sweep.name}: multiplier profile")
        html.append(f"<{heading}>{title}</{heading}>")
        html.append(f"<div>{format_html(profile_table(sweep))}</div>")
        html.append(f"<div>{''.join(with_captions(profile_figures(sweep)))}</div>")
    return html


def aggregate_section(found: Aggregation, heading: str) -> list[str]:
    """Return the section over all tasks and levels."""
    listed = ", ".join(" ".join(setting) for setting in found.settings)
    html = [f"<{heading}>Over all tasks and levels</{heading}>", f"<p>{escape(listed)}</p>"]
    html += [f"<p class='notice'>{escape(line)}</p>" for line in found.notices]
    if not found.methods:
        return html
    html.append(f"<div>{format_html(aggregate_table(found))}</div>")
    drawn = {}
    errors = {labelled(each.method, each.n): each.errors for each in found.methods}
    has_errors = not any(np.isnan(values).any() for values in errors.values())
    if has_errors:
        drawn[ERROR_PROFILE] = draw_profiles(errors, "relative tracking error")
    ratios = {labelled(each.method, each.n): each.ratios for each in found.methods}
    drawn[RATIO_PROFILE] = draw_profiles(ratios, "largest J/d")
    html.append(f"<div>{''.join(with_captions(drawn))}</div>")
    if len(found.methods) > 1:
        html.append(f"<div>{format_html(aggregate_improvement_table(found, 'ratio'))}</div>")
        if has_errors:
            html.append(f"<div>{format_html(aggregate_improvement_table(found, 'error'))}</div>")
    return html


def limit_figures(sweeps: Sequence[Sweep]) -> "dict[str, Figure]":
    """Return the figures of the limit sweeps of a task by their captions: J, return and error."""
    drawn = {}
    lines = lines_of(sweeps, share_of_unconstrained)
    figure, axes = draw_lines(lines, LIMIT_SHARE, "largest J / unconstrained")
    ends = [min(line.places[0] for line in lines), max(line.places[-1] for line in lines)]
    axes.plot(ends, ends, color="black", linewidth=1.0, linestyle=":")
    drawn["Largest binding cost against its limit; the dotted line is the limit"] = figure
    for caption, label, estimates in (
        ("Return against the limit", RETURN, _returns),
        ("Tracking error against the limit", ERROR, _errors),
    ):
        lines = lines_of(sweeps, estimates)
        if lines:
            drawn[caption] = draw_lines(lines, LIMIT_SHARE, label)[0]
    return drawn


def profile_figures(sweep: Sweep) -> "dict[str, Figure]":
    """Return the figures of a multiplier profile by their captions: return, error and costs."""
    drawn = {}
    label = "constant multiplier of each cost (0: unconstrained)"
    for caption, name, estimates in (
        ("Return over fixed multipliers", RETURN, _returns),
        ("Tracking error over fixed multipliers", ERROR, _errors),
    ):
        lines = lines_of([sweep], estimates)
        if lines:
            drawn[caption], axes = draw_lines(lines, label, name)
            scale_multipliers(axes, sweep)
    lines = []
    for cost in sweep.rows[0].results[0].costs:
        found = [_cost_ratio(row, cost) for row in sweep.rows]
        lines.append(Line(labelled(cost, sweep.n), sweep.values, found))
    figure, axes = draw_lines(lines, label, "J/d of each cost (limit at 1)")
    scale_multipliers(axes, sweep)
    axes.axhline(1.0, color="black", linewidth=1.0, linestyle=":")
    drawn["Costs over fixed multipliers; the dotted line is the limit"] = figure
    return drawn


def scale_multipliers(axes: "Axes", sweep: Sweep) -> None:
    """Make the horizontal axis logarithmic from the smallest multiplier above 0 on."""
    axes.set_xscale("symlog", linthresh=min(value for value in sweep.values if value > 0.0))
    axes.xaxis.set_major_formatter("{x:g}")


def lines_of(sweeps: Sequence[Sweep], measure: Callable[[Row], Estimate]) -> list[Line]:
    """Return a line for each sweep in which every row has the number.

    Args:
        sweeps: The sweeps.
        measure: Function from a row to its number.
    """
    lines = []
    for sweep in sweeps:
        estimates = [measure(row) for row in sweep.rows]
        if not any(isnan(found.value) for found in estimates):
            lines.append(Line(labelled(sweep.name, sweep.n), sweep.values, estimates))
    return lines


def with_captions(drawn: "Mapping[str, Figure]") -> list[str]:
    """Return figures as HTML, each with its caption."""
    html = []
    for caption, figure in drawn.items():
        html.append(f"<figure><figcaption>{caption}</figcaption>{svg(figure)}</figure>")
    return html


def labelled(name: str, n: int | str) -> str:
    """Return the label of a line, with the number of its runs."""
    return f"{name}, n = {n}"


def _returns(row: Row) -> Estimate:
    return row.returns


def _errors(row: Row) -> Estimate:
    return row.error


def _cost_ratio(row: Row, cost: str) -> Estimate:
    """Return the interquartile mean of J / d of a cost, with its interval."""
    return estimate(column([result.costs[cost].ratio for result in row.results]))
