"""Plots of a training run."""

from __future__ import annotations

from pathlib import Path


def plot_learning_curve(curve: list[dict[str, float]], path: Path) -> None:
    """Draw reward, tracking errors and action noise over training time."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    minutes = [row["seconds"] / 60 for row in curve]
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 3.6), constrained_layout=True)
    axes[0].plot(minutes, [row["reward"] for row in curve], color="tab:blue")
    axes[0].set_ylabel("reward per second")
    axes[1].plot(minutes, [row["lin_vel_error"] for row in curve], label="linear, m/s", color="tab:blue")
    axes[1].plot(minutes, [row["ang_vel_error"] for row in curve], label="yaw, rad/s", color="tab:orange")
    axes[1].set_ylabel("velocity error while exploring")
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
