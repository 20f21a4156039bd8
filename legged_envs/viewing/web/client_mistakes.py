"""Tells mistakes of the clients of the page in one line, and once."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

LOGGERS = ("asyncio", "websockets.server")
"""Loggers to which the server of the page writes its errors with the whole call stack."""

LONGEST_ERROR = 200
"""Largest number of characters of an error that is told."""


class ClientMistakes(logging.Filter):
    """Shortens the first error of a logger to one line, and drops later ones.

    A message that the page never sends, such as a text for a slider, is an error in the server. It
    ends at most the connection of its client. A client can send a thousand of them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_told = False
        """True after the first error."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False for errors after the first one, which becomes one line."""
        if not record.exc_info:
            return True
        if self.is_told:
            return False
        self.is_told = True
        error = repr(record.exc_info[1])[:LONGEST_ERROR]
        record.msg = "a client sent something that the page does not send, and it is ignored: %s"
        record.args = (error,)
        record.exc_info = None
        return True


@contextmanager
def client_mistakes_told_once() -> Iterator[None]:
    """Tell errors of the server of the page once, in one line."""
    mistakes = ClientMistakes()
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(mistakes)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(mistakes)
