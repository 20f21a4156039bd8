"""Tells mistakes of the user from defects of the code.

The command line reports a mistake in one line, and a defect with its traceback.
"""

import sys
import traceback
from pathlib import Path
from types import TracebackType

_PACKAGE = Path(__file__).parent

MACHINE_ERRORS = (OSError, MemoryError, ModuleNotFoundError)
"""Types of errors that always count as mistakes: a file, a module or memory is missing."""


def is_mistake(error: Exception) -> bool:
    """Return True if the user or the machine caused an error, False if a defect of the code did.

    An error is a mistake if its type is one of :data:`MACHINE_ERRORS`, or if it comes from a
    ``raise`` statement in a file of this package, because this package reports wrong input in this
    way. All other errors are defects: a call or an operator failed, or another package raised them.
    """
    if isinstance(error, MACHINE_ERRORS):
        return True
    innermost = traceback.extract_tb(error.__traceback__, limit=-1)
    if not innermost:  # The error was made, but never raised.
        return True
    failed = innermost[0]
    in_package = Path(failed.filename).is_relative_to(_PACKAGE)
    return in_package and (failed.line or "").startswith("raise")


def print_mistake(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print a mistake of the user as one line, and a defect with its traceback.

    A script takes it as its ``sys.excepthook``.

    Args:
        kind: Type of the error.
        error: Error that ended the script.
        trace: Traceback of the error.
    """
    if isinstance(error, Exception) and is_mistake(error):
        message = " ".join(str(error).split())
        print(f"error: {message or kind.__name__}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
