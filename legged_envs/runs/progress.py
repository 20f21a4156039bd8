"""Progress display of a command: bars on a terminal, elsewhere lines at intervals."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TimeElapsedColumn, TimeRemainingColumn

TRAINING_INTERVAL = 60.0
"""Time between two progress lines of a training if the output is not a terminal, s."""

LINE_INTERVAL = 10.0
"""Time between two progress lines of an evaluation or a video if the output is not a terminal,
s."""

Show = Callable[..., None]
"""Function ``show(what, done, text="")`` that reports the progress of a command.

``what`` is the name of the current part, such as "training". ``done`` is the finished share of that
part, from 0 to 1. ``text`` holds additional numbers to display.
"""


def show_nothing(what: str, done: float, text: str = "") -> None:
    """Ignore a progress report: the :data:`Show` for commands without a display."""


@contextmanager
def showing(console: Console, interval: float) -> Iterator[Show]:
    """Yield a :data:`Show` that displays progress until the ``with`` block ends.

    On a terminal it draws a bar with the remaining time for each part of the command. Elsewhere it
    prints a line for the current part every ``interval`` seconds, and one at the end of a part that
    reports additional numbers. Any thread may call it, at any rate.

    Args:
        console: Console to display on.
        interval: Time between two lines, s. Without effect on a terminal.
    """
    if not console.is_terminal:
        yield _LinePrinter(console, interval).show
        return
    columns = (
        "{task.description}",
        BarColumn(12),
        "{task.percentage:3.0f}%",
        TimeElapsedColumn(),
        "left",
        TimeRemainingColumn(),
        "{task.fields[text]}",
    )
    with Progress(*columns, console=console) as bars:
        yield _BarDrawer(bars).show


class _LinePrinter:
    """Prints lines about the parts of a command."""

    def __init__(self, console: Console, interval: float):
        self._console = console
        self._interval = interval
        self._begun: dict[str, float] = {}
        self._shown: dict[str, float] = {}

    def show(self, what: str, done: float, text: str = "") -> None:
        now = time.monotonic()
        self._begun.setdefault(what, now)
        last = self._shown.setdefault(what, now)
        is_end = done >= 1.0 and text != ""
        if now - last < self._interval and not is_end:
            return
        self._shown[what] = now
        elapsed = timedelta(seconds=round(now - self._begun[what]))
        line = f"{what} {min(done, 1.0):4.0%} after {elapsed}  {text}"
        # The text has several lines for a terminal. Here a report is one line.
        line = line.replace("\n", "  ").rstrip()
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class _BarDrawer:
    """Draws a bar for each part of a command."""

    def __init__(self, bars: Progress):
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def show(self, what: str, done: float, text: str = "") -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=1.0, text="")
        self._bars.update(self._tasks[what], completed=done, text=text)
