"""Distinguishes mistakes of the user, which the command line reports in one line, from defects."""

import traceback
from pathlib import Path

_PACKAGE = Path(__file__).parent

MACHINE_ERRORS = (OSError, MemoryError, ModuleNotFoundError)
"""Errors that report a missing file, module or resource, whoever raised them."""


def is_mistake(error: Exception) -> bool:
    """Return True if the user or the machine caused ``error``, and False for a defect of the code.

    This package reports wrong input with ``raise`` statements. So an error is a mistake if the line
    of code that failed is a ``raise`` in a file of this package, or if it is one of
    :data:`MACHINE_ERRORS`. If a call or an operator failed instead, or a line of another package,
    the code has a defect, and the traceback has to be seen.
    """
    if isinstance(error, MACHINE_ERRORS):
        return True
    innermost = traceback.extract_tb(error.__traceback__, limit=-1)
    if not innermost:  # The error was made, but never raised.
        return True
    failed = innermost[0]
    in_package = Path(failed.filename).is_relative_to(_PACKAGE)
    return in_package and (failed.line or "").startswith("raise")
