"""Plots of a training run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = Sequence[dict[str, float]]
"""A row for each update."""

JOINT_ERROR_BAR = 0.12
LIN_VEL_ERROR_BAR = 0.2
"""Mean error of the joints, rad, and of the root's velocity, m/s, below which a motion counts as imitated."""
_TRACKING = {
    "joint_error": ("joints, rad", "tab:blue", JOINT_ERROR_BAR),
    "lin_vel_error": ("root velocity, m/s", "tab:orange", LIN_VEL_ERROR_BAR),
}
NUM_PARTS = 40
"""Field of ``plot_tracking``'s rows → name in the legend, colour, bar; and parts of a clip that it averages over."""
_NOT_DRAWN = (
    "iteration",
    "env_steps",
    "seconds",
    "rollout_steps_per_second",
    "update_steps_per_second",
    "episodes",
)
_COLUMNS, _POINTS = 4, 300
"""Columns of a curve that :func:`draw_curves` leaves out, beside terms that are no costs; pictures in a row, and the
most points of a mean."""


def plot_learning_curve(curve: Curve, path: Path) -> None:
    """Draw a learning curve, as a PNG."""
    draw_curves({"": [curve]}).savefig(path, dpi=110)


def draw_curves(groups: Mapping[str, Sequence[Curve]]) -> "Figure":
    """Columns of learning curves over million environment steps: for each group of runs the mean, dashed where some of
    them have not come, and a band from the lowest to the highest run."""
    from matplotlib.figure import Figure

    rows = [row for curves in groups.values() for curve in curves for row in (curve[0], curve[-1])]
    names = dict.fromkeys(name for row in rows for name in row if _drawn(name))
    height = -(-len(names) // _COLUMNS)
    figure = Figure((3.4 * _COLUMNS, 0.6 + 2.4 * height), layout="constrained")
    for place, name in enumerate(names, start=1):
        axis = figure.add_subplot(height, _COLUMNS, place, title=name.replace("_", " "))
        axis.grid(alpha=0.3)
        for i, (label, curves) in enumerate(groups.items()):
            if own := [curve for curve in curves if name in curve[0] | curve[-1]]:
                _draw_spread(axis, name, own, label, f"C{i}")
    figure.supxlabel("million environment steps", fontsize="medium")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside upper center", frameon=False
    )
    return figure


def _drawn(name: str) -> bool:
    return name.startswith("cost/") if "/" in name else name not in _NOT_DRAWN


def _draw_spread(axis: Any, name: str, curves: Sequence[Curve], label: str, colour: str) -> None:
    """One run as it is; of several the mean, dashed where not all have come, and the range. What is drawn as one point
    of the range has the least and the largest value of all updates there."""
    rows = [
        [(row["env_steps"] / 1e6, row[name]) for row in curve if name in row] for curve in curves
    ]
    lines = [line[:, np.isfinite(line[1])] for line in (np.array(each).T for each in rows)]
    if not (lines := [line for line in lines if line.size]):
        return
    if len(lines) == 1:
        axis.plot(*lines[0], color=colour, label=_literal(label))
        return
    steps = np.unique(np.concatenate([x for x, _ in lines]))
    steps = steps[steps >= max(x[0] for x, _ in lines)]
    values = np.array([np.interp(steps, x, y, right=np.nan) for x, y in lines])
    starts = np.unique(np.linspace(0, len(steps), _POINTS, endpoint=False).astype(int))
    count = np.diff(starts, append=len(steps))
    steps, mean = (
        np.add.reduceat(each, starts) / count for each in (steps, np.nanmean(values, axis=0))
    )
    low = np.minimum.reduceat(np.nanmin(values, axis=0), starts)
    high = np.maximum.reduceat(np.nanmax(values, axis=0), starts)
    axis.fill_between(steps, low, high, color=colour, alpha=0.25, linewidth=0.0)
    come = int(np.searchsorted(steps, min(x[-1] for x, _ in lines), side="right"))
    axis.plot(steps[:come], mean[:come], color=colour, label=_literal(label))
    axis.plot(
        steps[max(come - 1, 0) :],
        mean[max(come - 1, 0) :],
        color=colour,
        linestyle="--",
        linewidth=1.0,
    )


def _literal(label: str) -> str:
    """A path as a legend shows it: what it begins with or holds is no sign to hide it, and no maths."""
    return ("./" if label.startswith("_") else "") + label.replace("$", r"\$")


def plot_tracking(rows: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw how well each clip is imitated in each part of it: means over the N environments, bands from the 10th to the
    90th percentile, bars dashed. ``rows`` holds arrays or CPU tensors (T, N) of each clip, NaN where a step does not
    count: ``phase``, place in the clip in [0, 1], also (T,); ``joint_error``, mean |q − q_ref|, rad; ``lin_vel_error``,
    ‖v − v_ref‖ of the root, m/s. ValueError if there is no clip, or an array is missing or of the wrong shape."""
    if not rows:
        raise ValueError("rows must hold at least one clip, got none")
    from matplotlib.figure import Figure

    curves = {clip: _check_tracking(clip, row) for clip, row in rows.items()}
    columns = min(4, len(curves))
    num_rows = -(-len(curves) // columns)
    figure = Figure((1.8 + 3.2 * columns, 0.8 + 2.4 * num_rows), layout="constrained")
    axes = figure.subplots(num_rows, columns, sharey=True, squeeze=False)
    for axis in axes.flat[len(curves) :]:
        axis.set_axis_off()
    for i, (axis, (clip, row)) in enumerate(zip(axes.flat, curves.items(), strict=False)):
        _draw_tracking(axis, row)
        axis.set_title(clip)
        axis.set(
            ylabel="" if i % columns else "error",
            xlabel="" if i + columns < len(curves) else "phase of the clip",
        )
    axes[0, 0].set_ylim(bottom=0.0)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(handles), frameon=False)
    figure.savefig(path, dpi=110)


def _check_tracking(clip: str, row: Mapping[str, Any]) -> dict[str, np.ndarray]:
    if missing := {"phase", *_TRACKING} - set(row):
        raise ValueError(
            f"clip {clip!r} needs {sorted(missing)[0]!r}, got {', '.join(map(repr, row))}"
        )
    curves = {field: np.asarray(row[field]) for field in ("phase", *_TRACKING)}
    shape = curves["joint_error"].shape
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"joint_error of clip {clip!r} must have shape (T, N), got {shape}")
    if curves["phase"].ndim == 1:
        curves["phase"] = curves["phase"][:, None].repeat(shape[1], axis=1)
    for field, values in curves.items():
        if values.shape != shape:
            raise ValueError(
                f"{field} of clip {clip!r} must have joint_error's shape {shape}, got {row[field].shape}"
            )
    return curves


def _draw_tracking(axis: Any, row: Mapping[str, np.ndarray]) -> None:
    for field, (name, colour, bar) in _TRACKING.items():
        errors = _by_part(row["phase"], row[field])
        counted = ~np.isnan(errors).all(axis=1)
        middle, errors = ((np.arange(NUM_PARTS) + 0.5) / NUM_PARTS)[counted], errors[counted]
        axis.plot(middle, np.nanmean(errors, axis=1), color=colour, label=f"{name} (bar {bar:g})")
        low, high = (np.nanquantile(errors, share, axis=1) for share in (0.1, 0.9))
        axis.fill_between(middle, low, high, color=colour, alpha=0.25, linewidth=0.0)
        axis.axhline(bar, color=colour, linestyle="--", linewidth=1.0)
    axis.set_xlim(0.0, 1.0)
    axis.grid(alpha=0.3)


def _by_part(phase: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Mean of each environment over its visits of each part of the clip, NaN if none. Shape: (NUM_PARTS, N)."""
    part = np.minimum(np.nan_to_num(phase) * NUM_PARTS, NUM_PARTS - 1).astype(int)
    here = ~np.isnan(values + phase) & (part == np.arange(NUM_PARTS)[:, None, None])
    sums, visits = np.broadcast_to(values, here.shape).sum(axis=1, where=here), here.sum(axis=1)
    return np.divide(sums, visits, out=np.full(sums.shape, np.nan), where=visits > 0)


def plot_crossings(crossings: Mapping[str, Sequence[float]], path: Path) -> None:
    """Draw which part of the episodes crossed the tiles of each kind, at each level, as a PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draw_crossings(crossings).savefig(path, dpi=120)


def draw_crossings(crossings: Mapping[str, Sequence[float]]) -> "Figure":
    """Which part of the episodes crossed the tiles of each kind (row) at each level (column)."""
    from matplotlib.figure import Figure

    values = 100.0 * np.array([*crossings.values()])
    figure = Figure(
        figsize=(1.5 + 0.6 * values.shape[1], 1.2 + 0.45 * len(values)), layout="constrained"
    )
    axis = figure.add_subplot()
    image = axis.imshow(values, vmin=0.0, vmax=100.0, cmap="RdYlGn", aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        axis.text(column, row, "–" if np.isnan(value) else f"{value:.0f}", ha="center", va="center")
    axis.set(
        xlabel="level",
        xticks=range(values.shape[1]),
        yticks=range(len(values)),
        yticklabels=[*crossings],
    )
    figure.colorbar(image, label="episodes that cross their tile, %")
    return figure
