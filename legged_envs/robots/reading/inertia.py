"""Mends inertias of robot files that no body can have."""

import mujoco
import numpy as np

LEAST_INERTIA = 1e-9
"""Smallest principal moment of inertia of a link, kg m². Smaller ones in the file are raised."""

FULL_ORDER = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Rows and columns of the six numbers of MuJoCo's ``fullinertia``."""


def possible_moments(moments: np.ndarray) -> np.ndarray:
    """Make ascending principal moments positive, and the largest at most the sum of the others."""
    mended = np.maximum(moments, LEAST_INERTIA)
    excess = max(mended[2] - mended[0] - mended[1], 0)
    # Slightly more than half of the excess, so that rounding does not leave a rest of it.
    mended[:2] += excess / 2 * 1.0001
    return mended


def mend_inertias(spec: mujoco.MjSpec, notes: list[str]) -> None:
    """Replace inertias that no body can have by the nearest possible inertias.

    The principal moments of a body are positive, and none is larger than the sum of the others.

    Args:
        spec: Model, changed in place.
        notes: Notes. One is added that lists the bodies.
    """
    mended = []
    for body in spec.bodies:
        if body.explicitinertial and _mend_body(body):
            mended.append(repr(body.name))
    if mended:
        notes.append(
            f"no body can have the inertias of {', '.join(mended)}: the nearest possible inertias "
            "are used; write the values of the CAD model"
        )


def _mend_body(body: mujoco.MjsBody) -> bool:
    """Mend the inertia of a body, and return True if it was impossible."""
    full = np.array(body.fullinertia)
    # MuJoCo marks missing numbers by NaN.
    is_full = not np.isnan(full).any()
    matrix = np.diag(np.array(body.inertia, dtype=float))
    if is_full:
        for value, (row, column) in zip(full, FULL_ORDER, strict=True):
            matrix[row, column] = value
            matrix[column, row] = value
    moments, axes = np.linalg.eigh(matrix)
    mended = possible_moments(moments)
    # Equal up to the digits that a file has: MuJoCo itself allows for as much.
    if not (mended > moments * (1 + 1e-6) + 1e-15).any():
        return False
    matrix = axes * mended @ axes.T
    if is_full:
        body.fullinertia = [matrix[place] for place in FULL_ORDER]
    else:
        body.inertia = np.diag(matrix)
    return True
