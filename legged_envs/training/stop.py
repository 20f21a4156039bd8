"""Interruption of a training after the present update, so that nothing is lost."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that end a training: Ctrl-C, and what batch systems send."""


class StopRequest:
    """Remembers that a training is to end after the present update.

    Args:
        console: Where a first signal is answered.
    """

    def __init__(self, console: Console):
        self._console = console

        self.is_requested = False
        """True if the training is to end."""
        self.nothing_to_lose = False
        """True once everything is saved. A signal then ends the process at once."""

    def request(self) -> None:
        """Ask for the end of the training."""
        self.is_requested = True

    def raise_if_requested(self, *_: object) -> None:
        """Raise a KeyboardInterrupt if the training is to end.

        The arguments are those of a progress report.
        """
        if self.is_requested:
            raise KeyboardInterrupt

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let signals request a stop within the ``with`` block."""
        previous = [signal.signal(number, self._on_signal) for number in SIGNALS]
        try:
            yield
        finally:
            for number, handler in zip(SIGNALS, previous, strict=True):
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: object) -> None:
        at_once = self.is_requested or self.nothing_to_lose
        self.is_requested = True
        if at_once:
            raise KeyboardInterrupt
        self._console.print("stopping after this update (Ctrl-C again to stop at once)")
