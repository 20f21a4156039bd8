"""Interruptions of a command: Ctrl-C and SIGTERM, held back while files are written."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that interrupt a command: SIGINT from Ctrl-C, SIGTERM from batch systems."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM."""


def raise_terminated(number: int, frame: object) -> None:
    """Raise :class:`Terminated`: a handler of SIGTERM."""
    raise Terminated


@contextmanager
def holding_interrupts() -> Iterator[Callable[[], None]]:
    """Hold ``SIGNALS`` back within the ``with`` block, so that no file is left half written.

    The previous handlers are restored at its end. In a thread other than the main one, which gets
    no signals, nothing is changed.

    Yields:
        Function that raises a KeyboardInterrupt if a signal came. It is to be called where nothing
        is half written.
    """
    received: list[int] = []

    def remember(number: int, frame: object) -> None:
        received.append(number)

    def raise_if_interrupted() -> None:
        if received:
            raise Terminated if received[0] == signal.SIGTERM else KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield raise_if_interrupted
        return
    previous = [signal.signal(number, remember) for number in SIGNALS]
    try:
        yield raise_if_interrupted
    finally:
        for number, handler in zip(SIGNALS, previous, strict=True):
            signal.signal(number, handler)
    # A signal that came after the last call is not lost.
    raise_if_interrupted()
