"""Interruption of a training after the current update, so that nothing learnt is lost."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from legged_envs.training import processes

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that end a training: SIGINT from Ctrl-C, SIGTERM from batch systems."""

FORWARDING = 2.0
"""Time within which ``torchrun`` forwards a signal, s.

Terminals and batch systems may have sent that signal to all processes of a training already.
"""


class StopRequest:
    """Request to end a training after the current update.

    The first signal only sets :attr:`is_requested`. A second one raises a KeyboardInterrupt at
    once. In a training of several processes, the second one must be the same signal again, more
    than :data:`FORWARDING` later.

    Args:
        console: Console that acknowledges the first signal.
    """

    def __init__(self, console: Console):
        self._console = console
        self._first_times: dict[int, float] = {}

        self.is_requested = False
        """True if the training must end after the current update."""
        self.nothing_to_lose = False
        """True once policy and checkpoint are saved. A signal then raises a KeyboardInterrupt at
        once."""

    def request(self) -> None:
        """Request the end of the training, as a first signal does."""
        self.is_requested = True

    def raise_if_requested(self, *_: object) -> None:
        """Raise a KeyboardInterrupt if the end of the training is requested.

        It accepts and ignores the arguments of a progress report, so it can be passed as one.
        """
        if self.is_requested:
            raise KeyboardInterrupt

    def raise_once_saved(self) -> None:
        """Raise a KeyboardInterrupt if the end of the training is requested and all is saved.

        All processes of a training must call it. They wait for process 0, which saves, because
        ``torchrun`` ends the others as soon as one has ended.
        """
        processes.of_first(0.0)
        self.nothing_to_lose = True
        self.raise_if_requested()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Handle ``SIGNALS`` as requests to stop within the ``with`` block.

        The previous handlers are restored at its end.
        """
        previous = [signal.signal(number, self._on_signal) for number in SIGNALS]
        try:
            yield
        finally:
            for number, handler in zip(SIGNALS, previous, strict=True):
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: object) -> None:
        is_first = not self.is_requested
        is_second = self.is_requested
        if processes.count() > 1:
            # torchrun forwards a Ctrl-C as SIGINT. It sends a SIGTERM when a process has ended.
            now = time.monotonic()
            first_time = self._first_times.setdefault(number, now)
            is_second = now - first_time > FORWARDING
        self.is_requested = True
        if is_second or self.nothing_to_lose:
            raise KeyboardInterrupt
        if is_first:
            self._console.print("stopping after this update (Ctrl-C again to stop at once)")
