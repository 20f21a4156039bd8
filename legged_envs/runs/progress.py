"""Progress of a command: bars on a terminal, elsewhere a line now and then."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TimeElapsedColumn, TimeRemainingColumn

LINE_INTERVAL = 10.0
"""Time between two lines about an evaluation or a film, s."""

Show = Callable[..., None]
"""``show(what, done, text="")`` reports progress: the part of a command, its share from 0 to 1, and
further numbers."""


def show_nothing(what: str, done: float, text: str = "") -> None:
    """Report nothing; a :data:`Show`."""


@contextmanager
def showing(console: Console, interval: float) -> Iterator[Show]:
    """Yield a :data:`Show`, which any thread may call as often as it likes.

    On a terminal it draws a bar for each part, with the time left. Elsewhere it prints a line about
    each part every ``interval`` seconds, and at its end if there are further numbers.

    Args:
        console: Where progress is shown.
        interval: Time between two lines, s.
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
