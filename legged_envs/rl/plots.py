"""Plots of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

JOINT_ERROR_BAR = 0.12
"""Mean joint error below which a motion counts as imitated, rad."""
LIN_VEL_ERROR_BAR = 0.2
"""Error of the root's velocity below which a motion counts as imitated, m/s."""
_TRACKING = {
    "joint_error": ("joints, rad", "tab:blue", JOINT_ERROR_BAR),
    "lin_vel_error": ("root velocity, m/s", "tab:orange", LIN_VEL_ERROR_BAR),
}
"""Field of ``plot_tracking``'s rows → its name in the legend, its colour and its bar."""
NUM_PARTS = 40
"""Parts of a clip that ``plot_tracking`` averages over."""


def plot_learning_curve(curve: list[dict[str, float]], path: Path, errors: Mapping[str, str]) -> None:
    """Draw reward, tracking errors and action noise over training time.

    Args:
        curve: A row per update.
        path: The picture to write.
        errors: Entries of a row that are errors, and their units.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    minutes = [row["seconds"] / 60 for row in curve]
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 3.6), constrained_layout=True)
    axes[0].plot(minutes, [row["reward"] for row in curve], color="tab:blue")
    axes[0].set_ylabel("reward per second")
    for name, unit in errors.items():
        label = f"{name.removesuffix('_error').replace('_', ' ')}, {unit}"
        axes[1].plot(minutes, [row[name] for row in curve], label=label)
    axes[1].set_ylabel("error while exploring")
    axes[1].set_ylim(bottom=0)
    axes[1].legend(frameon=False)
    axes[2].plot(minutes, [row["action_std"] for row in curve], color="tab:green")
    axes[2].set_ylabel("action noise (standard deviation)")
    axes[2].set_ylim(bottom=0)
    for axis in axes:
        axis.set_xlabel("training time, min")
        axis.grid(alpha=0.3)
    steps = axes[0].secondary_xaxis(
        "top",
        functions=(lambda x: x * _million_steps_per_minute(curve), lambda x: x / _million_steps_per_minute(curve)),
    )
    steps.set_xlabel("million environment steps")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _million_steps_per_minute(curve: list[dict[str, float]]) -> float:
    return curve[-1]["env_steps"] / 1e6 / (curve[-1]["seconds"] / 60)


def plot_tracking(rows: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw how well each clip is imitated in each part of it: a panel per clip, with the bars dashed.

    Lines are means over the environments, bands reach from the 10th to the 90th percentile of them.

    Args:
        rows: Name of a clip → arrays or CPU tensors

            ================= ============== ==========================================
            ``phase``         (T, N) or (T,) place in the clip at each step, in [0, 1]
            ``joint_error``   (T, N)         mean over joints of |q − q_ref|, rad
            ``lin_vel_error`` (T, N)         ‖v − v_ref‖ of the root, m/s
            ================= ============== ==========================================

            for N environments; NaN where an environment is not to be counted, as after a fall.
        path: The picture to write.

    Raises:
        ValueError: If there is no clip, or an array is missing or of the wrong shape.
    """
    if not rows:
        raise ValueError("rows must hold at least one clip, got none")
    curves = {clip: _check_tracking(clip, row) for clip, row in rows.items()}
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    num_columns = min(4, len(curves))
    num_rows = -(-len(curves) // num_columns)
    figure, axes = pyplot.subplots(
        num_rows,
        num_columns,
        figsize=(1.8 + 3.2 * num_columns, 0.8 + 2.4 * num_rows),
        sharey=True,
        squeeze=False,
        constrained_layout=True,
    )
    for axis, (clip, row) in zip(axes.flat, curves.items(), strict=False):
        _draw_tracking(axis, row)
        axis.set_title(clip)
    for axis in axes.flat[len(curves) :]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel("error")
    axes[0, 0].set_ylim(bottom=0.0)
    for axis in axes.flat[max(0, len(curves) - num_columns) : len(curves)]:
        axis.set_xlabel("phase of the clip")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(handles), frameon=False)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _check_tracking(clip: str, row: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """``phase`` and the errors, each (T, N)."""
    missing = {"phase", *_TRACKING} - set(row)
    if missing:
        raise ValueError(f"clip {clip!r} needs {sorted(missing)[0]!r}, got {', '.join(map(repr, row))}")
    curves = {field: np.asarray(row[field]) for field in ("phase", *_TRACKING)}
    shape = curves["joint_error"].shape
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"joint_error of clip {clip!r} must have shape (T, N), got {shape}")
    if curves["phase"].ndim == 1:
        curves["phase"] = curves["phase"][:, None].repeat(shape[1], axis=1)
    for field, values in curves.items():
        if values.shape != shape:
            raise ValueError(f"{field} of clip {clip!r} must have joint_error's shape {shape}, got {row[field].shape}")
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
    means = np.full((NUM_PARTS, values.shape[1]), np.nan)
    for i in range(NUM_PARTS):
        here = ~np.isnan(values + phase) & (part == i)
        visits = here.sum(axis=0)
        np.divide(np.where(here, values, 0.0).sum(axis=0), visits, out=means[i], where=visits > 0)
    return means
