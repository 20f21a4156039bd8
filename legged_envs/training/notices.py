"""Notices that a training prints about itself."""

from collections.abc import Mapping

from rich.console import Console

MOST_BAD_PHYSICS = 0.5
"""Part of the episodes of the first update above which bad physics as their end is reported."""


def print_notice(console: Console, text: str) -> None:
    """Print a sentence in yellow, in one line."""
    console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


def report_bad_physics(console: Console, row: Mapping[str, float], robot: str) -> None:
    """Say so if bad physics ended most episodes of the first update: nothing is learnt from them.

    Args:
        console: Console that the sentence is printed to.
        row: Numbers of an update, from :meth:`~legged_envs.training.trainer.Trainer.iterate`.
        robot: Name of the robot.
    """
    episodes = row.get("episodes", 0.0)
    bad = row.get("termination/bad_physics", 0.0)
    if row["iteration"] == 1 and bad > MOST_BAD_PHYSICS * episodes:
        print_notice(
            console,
            f"bad physics ended {bad:.0f} of {episodes:.0f} episodes, because robot {robot!r} "
            "explodes: legged-envs check names the gains, torque_limits and armatures to change",
        )
