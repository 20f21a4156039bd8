"""How far a run is: bars on a terminal, elsewhere a line now and then."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TimeElapsedColumn, TimeRemainingColumn

LINE_INTERVAL = 10.0
"""Time between two lines about an evaluation or a film, s."""
Show = Callable[..., None]
"""``show(what, done, text="")``: which part of a run goes on, how far it is, from 0 to 1, and numbers to it."""


def show_nothing(what: str, done: float, text: str = "") -> None:
    """A :data:`Show` for whoever does not want to know."""


@contextmanager
def showing(console: Console, interval: float) -> Iterator[Show]:
    """Gives a :data:`Show`, which any thread may call as often as it likes: on a terminal it draws a bar for each part,
    elsewhere it prints a line about each every ``interval`` seconds, and at its end if there are numbers to it."""
    begun: dict[str, float] = {}
    shown: dict[str, float] = {}
    tasks: dict[str, TaskID] = {}
    times = "{task.percentage:3.0f}%", TimeElapsedColumn(), "left", TimeRemainingColumn()
    bars = Progress(
        "{task.description}", BarColumn(12), *times, "{task.fields[text]}", console=console
    )

    def print_line(what: str, done: float, text: str = "") -> None:
        now = time.monotonic()
        begun.setdefault(what, now)
        if now - shown.setdefault(what, now) >= interval or (text and done >= 1.0):
            shown[what] = now
            line = f"{what} {min(done, 1.0):4.0%} after {timedelta(seconds=round(now - begun[what]))}  {text}"
            console.print(
                line.replace("\n", "  ").rstrip(), markup=False, highlight=False, soft_wrap=True
            )

    def draw_bar(what: str, done: float, text: str = "") -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=1.0, text="")
        bars.update(tasks[what], completed=done, text=text)

    if not console.is_terminal:
        yield print_line
        return
    with bars:
        yield draw_bar
