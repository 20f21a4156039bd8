"""Live table of a sweep: drawn on a terminal, elsewhere lines when something changes."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ray import tune
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

DRAW_INTERVAL = 0.5
"""Time between two drawings on a terminal, s."""

LINE_INTERVAL = 60.0
"""Time between two lines about all runs if the output is not a terminal, s."""

STATES = {
    "PENDING": "waiting",
    "RUNNING": "training",
    "PAUSED": "waiting",
    "TERMINATED": "finished",
    "ERROR": "failed",
}
"""Text of the table for a state of Tune."""

EVALUATING = "evaluating"
"""State of a run with all updates, evaluation and video."""

STOPPED = "stopped"
"""State of a run that was interrupted."""


class SweepTable(tune.Callback):
    """Shows the runs of a sweep while Tune trains them."""

    def setup(self, *arguments: Any, **info: Any) -> None:
        """Prepare the display. Tune saves this object before, and a console cannot be saved."""
        self._console = Console()
        self._live: Live | None = None
        self._shown_at = time.monotonic()
        self._states: dict[str, str] = {}
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()

    def on_step_end(self, iteration: int, trials: "list[Trial]", **info: Any) -> None:
        """Show the present states of all runs, if something is due."""
        now = time.monotonic()
        if self._live is None:
            self._print_changes(trials)
            if now - self._shown_at > LINE_INTERVAL:
                self._shown_at = now
                self._print(summary(trials))
        elif now - self._shown_at > DRAW_INTERVAL:
            self._shown_at = now
            self._live.update(make_table(trials), refresh=True)

    def on_experiment_end(self, trials: "list[Trial]", **info: Any) -> None:
        """Leave the last table on the terminal."""
        if self._live is not None:
            self._live.update(make_table(trials), refresh=True)
            self._live.stop()

    def _print_changes(self, trials: "Sequence[Trial]") -> None:
        for trial in trials:
            state = state_of(trial)
            before = self._states.get(trial.trial_id, STATES["PENDING"])
            self._states[trial.trial_id] = state
            if state != before:
                self._print(f"{name_of(trial)}: {state}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def name_of(trial: "Trial") -> str:
    """Return the name of the run of a trial."""
    name: str = trial.config["run"]["name"]
    return name


def state_of(trial: "Trial") -> str:
    """Return the state of a run in one word."""
    result = trial.last_result or {}
    if trial.status == "RUNNING" and result.get("share") == 1.0:
        return EVALUATING
    # Tune also calls a trial terminated that it stopped because the sweep was interrupted.
    if trial.status == "TERMINATED" and not result.get("done"):
        return STOPPED
    return STATES.get(trial.status, trial.status.lower())


def summary(trials: "Sequence[Trial]") -> str:
    """Return one line: how many runs are finished, and how far the present ones are."""
    states = [state_of(trial) for trial in trials]
    parts = [f"{states.count('finished')} of {len(trials)} runs finished"]
    if "failed" in states:
        parts.append(f"{states.count('failed')} failed")
    for trial in trials:
        if trial.status == "RUNNING":
            parts.append(f"{name_of(trial)} {trial.last_result.get('share', 0.0):.0%}")
    return ", ".join(parts)


def make_table(trials: "Sequence[Trial]") -> Table:
    """Return the table of all runs."""
    table = Table("run", "state", "done", "update", "M steps", "reward/s", "steps/s")
    for trial in trials:
        result = trial.last_result or {}
        cells: list[Text | str] = [Text(name_of(trial)), state_of(trial)]
        if "iteration" in result:
            cells += [
                f"{result['share']:.0%}",
                f"{result['iteration']}",
                f"{result['env_steps'] / 1e6:.2f}",
                f"{result['reward']:.2f}",
                f"{result['steps_per_second']:.0f}",
            ]
        table.add_row(*cells)
    return table
