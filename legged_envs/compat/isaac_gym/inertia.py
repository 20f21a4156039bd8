"""Inertias of bodies: matrices, and principal moments with their axes."""

import numpy as np


def make_matrices(moments: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Return matrices of inertia along the axes of bodies.

    Args:
        moments: Principal moments, kg m². Shape: (n, 3).
        axes: Orientations of the principal axes in the body, quaternions (w, x, y, z).
            Shape: (n, 4).

    Returns:
        The matrices ``R diag(moments) Rᵀ``. Shape: (n, 3, 3).
    """
    rotations = _make_rotations(axes)
    return rotations * moments[:, None, :] @ rotations.transpose(0, 2, 1)


def find_principal_axes(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the principal moments and axes of symmetric matrices.

    Args:
        matrices: The matrices. Shape: (n, 3, 3).

    Returns:
        Moments in ascending order, (n, 3), and quaternions (w, x, y, z), (n, 4).
    """
    moments, rotations = np.linalg.eigh(matrices)
    # An odd permutation or a mirrored axis is not a rotation.
    rotations[..., 0] *= np.sign(np.linalg.det(rotations))[:, None]
    return moments, np.array([_make_quaternion(rotation) for rotation in rotations])


def _make_rotations(quaternions: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternions.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(rows).transpose(2, 0, 1)


def _make_quaternion(rotation: np.ndarray) -> np.ndarray:
    """Return the quaternion (w, x, y, z) of a rotation matrix.

    It is the eigenvector of the largest eigenvalue of Bar-Itzhack's matrix (2000), which has no
    special cases.
    """
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation
    matrix = [
        [xx + yy + zz, zy - yz, xz - zx, yx - xy],
        [zy - yz, xx - yy - zz, xy + yx, xz + zx],
        [xz - zx, xy + yx, yy - xx - zz, yz + zy],
        [yx - xy, xz + zx, yz + zy, zz - xx - yy],
    ]
    _, vectors = np.linalg.eigh(np.array(matrix))
    return vectors[:, -1]
