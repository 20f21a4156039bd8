"""Plots of a training run: learning curves, imitation of clips, and crossings of rough ground."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legged_envs.evaluation.curve_labels import Bound, Bounds, make_title, plain_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = Sequence[dict[str, float]]
"""Learning curve: numbers of each update by name, in the order of the updates."""

CURVE_COLUMNS = 4
"""Number of plots next to each other in the figure of `draw_curves`."""

PLOT_WIDTH = 3.4
"""Width of a plot of `draw_curves` with the numbers next to it, inches."""

PLOT_HEIGHT = 2.4
"""Height of a plot of `draw_curves` with the title above and the numbers below it, inches."""

NUMBERS_WIDTH = 0.75
"""Width of the numbers left of a plot, inches. −0.0025 has 0.65."""

TITLE_HEIGHT = 0.6
"""Height of a plot's title and of the numbers below the plot above it, inches."""

LABEL_HEIGHT = 0.6
"""Height of the numbers and of the label below the lowest plots, inches."""

LEGEND_LINE_HEIGHT = 0.24
"""Height of a line of the legend above the plots of `draw_curves`, inches."""

TITLE_SIZE = 9.5
"""Size of the letters of a plot's title of `draw_curves`, points. Titles with a unit and a limit
are as wide as a plot."""

FARTHEST_BOUND = 1.5
"""Distance beyond the curve up to which a goal or limit is drawn, in heights of the curve."""

MOST_INTERVALS = 4
"""Largest number of intervals between the numbers of an axis. Numbers take most of the time."""

MOST_PLOTS = 400
"""Largest number of plots in the figure of `draw_curves`. Curves have some dozens of columns."""

MAX_MEAN_POINTS = 300
"""Largest number of points of the mean of several runs in the figure of `draw_curves`."""

UNDRAWN_NAMES = (
    "iteration",
    "env_steps",
    "seconds",
    "rollout_steps_per_second",
    "update_steps_per_second",
    "episodes",
)
"""Names of the numbers of a learning curve that are not plotted. Reward terms are not plotted
either."""

JOINT_ERROR_BAR = 0.12
"""Joint position error below which a clip counts as imitated, mean over joints, rad."""

LIN_VEL_ERROR_BAR = 0.2
"""Root velocity error below which a clip counts as imitated, m/s."""

NUM_CLIP_PARTS = 40
"""Number of equal intervals of a clip. `plot_tracking` averages errors within each of them."""


class TrackingError(NamedTuple):
    """Appearance of one error in the figure of `plot_tracking`."""

    label: str
    """Name of the error in the legend, with its unit."""
    colour: str
    """Matplotlib colour of line and band."""
    bar: float
    """Error below which a clip counts as imitated, in the unit of the error."""


TRACKING_ERRORS = {
    "joint_error": TrackingError("joints, rad", "tab:blue", JOINT_ERROR_BAR),
    "lin_vel_error": TrackingError("root velocity, m/s", "tab:orange", LIN_VEL_ERROR_BAR),
}
"""Errors that `plot_tracking` plots, by their names in its argument `rows`."""


# --- learning curves ------------------------------------------------------------------------------


def plot_learning_curve(curve: Curve, path: Path, bounds: Bounds, title: str) -> None:
    """Draw a learning curve as a PNG, with the goals and limits of its columns and a title."""
    draw_curves({"": [curve]}, bounds, title).savefig(path, dpi=110)


def draw_curves(
    groups: Mapping[str, Sequence[Curve]], bounds: Bounds | None = None, title: str = ""
) -> "Figure":
    """Draw the columns of learning curves over million environment steps.

    A group of several runs is drawn as its mean, and a band from the lowest to the highest run. The
    mean is dashed where some of the runs have not arrived.

    Args:
        groups: Name of a group → learning curves of its runs.
        bounds: Goals and limits of columns, which are drawn as dashed lines. None: there are none.
        title: Title of the figure. Empty: there is none.

    Raises:
        ValueError: If the curves have too many columns.
    """
    from matplotlib.figure import Figure

    names = _drawn_names(groups)
    if len(names) > MOST_PLOTS:
        raise ValueError(
            f"the learning curves have {len(names):,} columns, and at most {MOST_PLOTS} are drawn: "
            "leave out the run that has so many"
        )
    # Number of rows, rounded up.
    num_rows = -(-len(names) // CURVE_COLUMNS)
    # A figure without pyplot needs no display and leaves no state behind.
    legend_height = LEGEND_LINE_HEIGHT * (len(groups) + bool(title))
    height = PLOT_HEIGHT * num_rows + LABEL_HEIGHT + legend_height
    figure = Figure((PLOT_WIDTH * CURVE_COLUMNS, height))
    _place_plots(figure, num_rows, CURVE_COLUMNS, legend_height, gap=NUMBERS_WIDTH)
    for position, name in enumerate(names, start=1):
        bound = None if bounds is None else bounds.get(name)
        axis = figure.add_subplot(num_rows, CURVE_COLUMNS, position)
        # With a height given, Matplotlib does not measure all numbers to find one.
        axis.set_title(plain_label(make_title(name, bound)), y=1.0, fontsize=TITLE_SIZE)
        axis.locator_params(nbins=MOST_INTERVALS)
        axis.grid(alpha=0.3)
        for i, (label, curves) in enumerate(groups.items()):
            # Runs of different tasks have different columns.
            with_column = [curve for curve in curves if any(name in row for row in curve)]
            if with_column:
                _draw_spread(axis, name, with_column, label, f"C{i}")
        if bound is not None:
            _draw_bound(axis, bound)
    figure.supxlabel("million environment steps (costs: mean per step)", fontsize="medium")
    figure.suptitle(plain_label(title), y=1.0 - 0.05 / height, fontsize="large")
    # All plots have the same groups: one legend serves all of them.
    handles, labels = figure.axes[0].get_legend_handles_labels()
    top = 1.0 - (LEGEND_LINE_HEIGHT / height if title else 0.0)
    figure.legend(
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, top),
        frameon=False,
        borderaxespad=0.2,
    )
    return figure


def _draw_bound(axis: "Axes", bound: Bound) -> None:
    """Draw a bound as a dashed line, out of view if the curve would become flat with it."""
    low, high = axis.get_ylim()
    axis.axhline(bound.value, color="tab:red", linestyle="--", linewidth=1.0)
    reach = FARTHEST_BOUND * (high - low)
    if not low - reach < bound.value < high + reach:
        axis.set_ylim(low, high)


def _place_plots(
    figure: "Figure", num_rows: int, num_columns: int, legend_height: float, gap: float
) -> None:
    """Give the plots of a figure the room that titles, numbers and legend leave.

    Matplotlib can find the room itself, but has to draw the figure once more for that.

    Args:
        figure: A figure of its final size.
        num_rows: Rows of plots.
        num_columns: Columns of plots.
        legend_height: Height of the legend above the plots, inches.
        gap: Width between two columns of plots, inches.
    """
    width, height = figure.get_size_inches()
    # Half of a number stands beyond the right end of its axis.
    beyond = 0.15
    above = legend_height + 0.5 * TITLE_HEIGHT
    plots_width = width - NUMBERS_WIDTH - beyond - gap * (num_columns - 1)
    plots_height = height - LABEL_HEIGHT - above - TITLE_HEIGHT * (num_rows - 1)
    figure.subplots_adjust(
        left=NUMBERS_WIDTH / width,
        right=1.0 - beyond / width,
        bottom=LABEL_HEIGHT / height,
        top=1.0 - above / height,
        wspace=gap * num_columns / plots_width,
        hspace=TITLE_HEIGHT * num_rows / plots_height,
    )


def _drawn_names(groups: Mapping[str, Sequence[Curve]]) -> list[str]:
    """Return the columns to draw, in the order in which the curves have them."""
    names: dict[str, None] = {}
    for curves in groups.values():
        for curve in curves:
            # Of costs, an update in which no episode ended has no column.
            for row in curve:
                names.update(dict.fromkeys(filter(_is_drawn, row)))
    return list(names)


def _is_drawn(name: str) -> bool:
    # Rewards have dozens of terms, and a curve of each would hide the few that matter.
    if "/" in name:
        return name.startswith("cost/")
    return name not in UNDRAWN_NAMES


class Line(NamedTuple):
    """A column of a learning curve, where it is finite."""

    steps: np.ndarray
    """Million environment steps, rising."""
    values: np.ndarray
    """Values of the column."""


def _draw_spread(axis: "Axes", name: str, curves: Sequence[Curve], label: str, colour: str) -> None:
    """Draw a column of one run as it is, of several runs as mean and range."""
    lines = list(_finite_lines(name, curves))
    if not lines:
        return
    if len(lines) == 1:
        axis.plot(lines[0].steps, lines[0].values, color=colour, label=plain_label(label))
        return
    # Runs have their rows at different steps: all are interpolated at the steps of any of them.
    all_steps = np.unique(np.concatenate([line.steps for line in lines]))
    # The mean starts where the last of the runs starts.
    last_start = max(line.steps[0] for line in lines)
    all_steps = all_steps[all_steps >= last_start]
    values = np.array([np.interp(all_steps, *line, right=np.nan) for line in lines])
    points = np.linspace(0, len(all_steps), MAX_MEAN_POINTS, endpoint=False)
    starts = np.unique(points.astype(int))
    # A drawn point stands for several updates: their mean, and their least and largest value.
    count = np.diff(starts, append=len(all_steps))
    steps = np.add.reduceat(all_steps, starts) / count
    mean = np.add.reduceat(np.nanmean(values, axis=0), starts) / count
    low = np.minimum.reduceat(np.nanmin(values, axis=0), starts)
    high = np.maximum.reduceat(np.nanmax(values, axis=0), starts)
    axis.fill_between(steps, low, high, color=colour, alpha=0.25, linewidth=0.0)
    # Number of points that all runs have reached.
    first_end = min(line.steps[-1] for line in lines)
    reached = int(np.searchsorted(steps, first_end, side="right"))
    axis.plot(steps[:reached], mean[:reached], color=colour, label=plain_label(label))
    # The dashed part starts at the last point of the solid part.
    rest = slice(max(reached - 1, 0), None)
    axis.plot(steps[rest], mean[rest], color=colour, linestyle="--", linewidth=1.0)


def _finite_lines(name: str, curves: Sequence[Curve]) -> Iterator[Line]:
    """Yield the finite part of a column of each curve that has one."""
    for curve in curves:
        points = []
        for row in curve:
            if row.get(name) is not None:
                points.append((row["env_steps"] / 1e6, row[name]))
        steps, values = np.array(points).reshape(-1, 2).T
        # An update in which no episode ended has NaN in columns of episodes.
        finite = np.isfinite(values)
        if finite.any():
            yield Line(steps[finite], values[finite])


# --- imitation of clips ---------------------------------------------------------------------------


def plot_tracking(rows: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw how well each clip is imitated in each part of it, as a PNG.

    Lines are means over the N environments, bands reach from the 10th to the 90th percentile.
    Dashed lines are the bars below which a motion counts as imitated.

    Args:
        rows: Arrays or CPU tensors (T, N) of each clip, NaN where a step does not count. `phase` is
            the place in the clip in [0, 1], also (T,); `joint_error` is the mean |q − q_ref|, rad;
            `lin_vel_error` is ‖v − v_ref‖ of the root, m/s.
        path: File to write.

    Raises:
        ValueError: If there is no clip, or an array is missing or has a wrong shape.
    """
    if not rows:
        raise ValueError("rows must hold at least one clip, got none")
    from matplotlib.figure import Figure

    curves = {clip: _checked_tracking(clip, row) for clip, row in rows.items()}
    columns = min(4, len(curves))
    num_rows = -(-len(curves) // columns)
    size = (1.8 + 3.2 * columns, 0.8 + 2.4 * num_rows)
    figure = Figure(size)
    axes = figure.subplots(num_rows, columns, sharey=True, squeeze=False)
    _place_plots(figure, num_rows, columns, legend_height=0.35, gap=0.4)
    # The last row may have empty places.
    for axis in axes.flat[len(curves) :]:
        axis.set_axis_off()
    for i, (clip, row) in enumerate(curves.items()):
        axis = axes.flat[i]
        _draw_tracking(axis, row)
        is_first_column = i % columns == 0
        has_none_below = i + columns >= len(curves)
        axis.set_title(plain_label(clip), y=1.0)
        axis.set(
            ylabel="error" if is_first_column else "",
            xlabel="phase of the clip" if has_none_below else "",
        )
    # The plots share their y-axis.
    axes[0, 0].set_ylim(bottom=0.0)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(handles), frameon=False)
    figure.savefig(path, dpi=110)


def _checked_tracking(clip: str, row: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of a clip, all of shape (T, N)."""
    needed = ("phase", *TRACKING_ERRORS)
    missing = set(needed) - set(row)
    if missing:
        first = sorted(missing)[0]
        given = ", ".join(map(repr, row))
        raise ValueError(f"clip {clip!r} needs {first!r}, got {given}")
    curves = {field: np.asarray(row[field]) for field in needed}
    shape = curves["joint_error"].shape
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"joint_error of clip {clip!r} must have shape (T, N), got {shape}")
    # One phase for all environments: they are in step.
    if curves["phase"].ndim == 1:
        curves["phase"] = curves["phase"][:, None].repeat(shape[1], axis=1)
    for field, values in curves.items():
        if values.shape != shape:
            raise ValueError(
                f"{field} of clip {clip!r} must have joint_error's shape {shape}, "
                f"got {row[field].shape}"
            )
    return curves


def _draw_tracking(axis: "Axes", row: Mapping[str, np.ndarray]) -> None:
    centres = (np.arange(NUM_CLIP_PARTS) + 0.5) / NUM_CLIP_PARTS
    for field, (name, colour, bar) in TRACKING_ERRORS.items():
        errors = _means_of_parts(row["phase"], row[field])
        # A mean over nothing would warn, and draw nothing.
        visited = ~np.isnan(errors).all(axis=1)
        phase = centres[visited]
        errors = errors[visited]
        mean = np.nanmean(errors, axis=1)
        low = np.nanquantile(errors, 0.1, axis=1)
        high = np.nanquantile(errors, 0.9, axis=1)
        axis.plot(phase, mean, color=colour, label=f"{name} (bar {bar:g})")
        axis.fill_between(phase, low, high, color=colour, alpha=0.25, linewidth=0.0)
        axis.axhline(bar, color=colour, linestyle="--", linewidth=1.0)
    axis.set_xlim(0.0, 1.0)
    axis.locator_params(nbins=MOST_INTERVALS)
    axis.grid(alpha=0.3)


def _means_of_parts(phase: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the mean of each environment over its visits of each part of a clip.

    Args:
        phase: Place in the clip in [0, 1], NaN where a step does not count. Shape: (T, N).
        values: Shape: (T, N), NaN where a step does not count.

    Returns:
        Shape: (NUM_CLIP_PARTS, N), NaN without a visit.
    """
    # Phase 1 belongs to the last part.
    position = np.nan_to_num(phase) * NUM_CLIP_PARTS
    part = np.minimum(position, NUM_CLIP_PARTS - 1).astype(int)
    counted = ~np.isnan(values + phase)
    in_part = part == np.arange(NUM_CLIP_PARTS)[:, None, None]
    visited = counted & in_part
    sums = np.broadcast_to(values, visited.shape).sum(axis=1, where=visited)
    visits = visited.sum(axis=1)
    return np.divide(sums, visits, out=np.full(sums.shape, np.nan), where=visits > 0)


# --- crossings ------------------------------------------------------------------------------------


def plot_crossings(crossings: Mapping[str, Sequence[float | None]], path: Path) -> None:
    """Draw `draw_crossings` as a PNG, in a folder that is made if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draw_crossings(crossings).savefig(path, dpi=120)


def draw_crossings(crossings: Mapping[str, Sequence[float | None]]) -> "Figure":
    """Draw the percentage of episodes that crossed their tile, by kind (row) and level (column).

    Args:
        crossings: Kind of terrain → fraction of the episodes at each level, NaN or None without
            one.
    """
    from matplotlib.figure import Figure

    # None, of a level without an episode, becomes NaN.
    percentages = 100.0 * np.array(list(crossings.values()), dtype=float)
    num_kinds, num_levels = percentages.shape
    size = (1.5 + 0.6 * num_levels, 1.2 + 0.45 * num_kinds)
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.add_subplot()
    # The colours mean the same in every picture.
    image = axis.imshow(percentages, vmin=0.0, vmax=100.0, cmap="RdYlGn", aspect="auto")
    for (row, column), value in np.ndenumerate(percentages):
        text = "–" if np.isnan(value) else f"{value:.0f}"
        axis.text(column, row, text, ha="center", va="center")
    axis.set(
        xlabel="level",
        xticks=range(num_levels),
        yticks=range(num_kinds),
        yticklabels=[plain_label(kind) for kind in crossings],
    )
    figure.colorbar(image, label="episodes that cross their tile, %")
    return figure
