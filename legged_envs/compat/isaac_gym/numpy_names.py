"""Names that NumPy no longer has, for code that was written when it had them."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

REMOVED_NAMES: dict[str, Any] = {
    # Removed in NumPy 1.24.
    "bool": bool,
    "bool8": np.bool_,
    "complex": complex,
    "float": float,
    "int": int,
    "object": object,
    "str": str,
    "long": int,
    "unicode": str,
    # Removed in NumPy 2.0.
    "Inf": np.inf,
    "Infinity": np.inf,
    "NAN": np.nan,
    "NINF": -np.inf,
    "NZERO": -0.0,
    "NaN": np.nan,
    "PINF": np.inf,
    "PZERO": 0.0,
    "alltrue": np.all,
    "cfloat": np.complex128,
    "complex_": np.complex128,
    "cumproduct": np.cumprod,
    "float_": np.float64,
    "infty": np.inf,
    "product": np.prod,
    "round_": np.round,
    "sometrue": np.any,
    "string_": np.bytes_,
    "unicode_": np.str_,
    # Removed in NumPy 2.4.
    "in1d": np.isin,
    "row_stack": np.vstack,
    "trapz": getattr(np, "trapezoid", None) or getattr(np, "trapz", None),
}
"""What each name stands for."""


def restore_removed_names() -> None:
    """Give NumPy the names back that it no longer has, for this process.

    The first name that a script uses is reported in one line. Names that the installed NumPy has
    stay as they are.
    """
    find_present_name: Callable[[str], Any] = vars(np)["__getattr__"]
    told: list[str] = []

    def find_name(name: str) -> Any:
        # Python asks here for names that the module itself does not have.
        if name not in REMOVED_NAMES:
            return find_present_name(name)
        if not told:
            told.append(name)
            print(
                f"legged_envs.compat.isaac_gym: NumPy {np.__version__} has no np.{name}: "
                "this run has it and NumPy's other removed names again",
                file=sys.stderr,
            )
        return REMOVED_NAMES[name]

    vars(np)["__getattr__"] = find_name
