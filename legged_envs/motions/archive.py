"""Read NumPy archives of known keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from legged_envs.motions.motion import MotionError


def read_archive(path: str | Path, keys: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an ``.npz`` file that holds exactly ``keys``. No pickled objects are loaded.

    Raises:
        MotionError: It is no such archive, a key is missing or unknown, or an array cannot be read.
    """
    field = ""
    with open(path, "rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise ValueError("it holds a single array without a name, as an .npy file does")
            arrays = {}
            for field in archive.files:
                arrays[field] = archive[field]
                if not isinstance(arrays[field], np.ndarray):
                    raise ValueError("it is no array")
        except Exception as error:  # bytes are damaged in too many ways to name what zipfile, zlib and NumPy raise
            of_field = f": field {field!r}" if field else ""
            raise MotionError(f"{path}: not a NumPy archive of plain arrays{of_field}: {error}") from error
    for word, wrong in (
        ("lacks", [key for key in keys if key not in arrays]),
        ("has the unknown", [key for key in arrays if key not in keys]),
    ):
        if wrong:
            raise MotionError(f"{path}: {word} field {wrong[0]!r}; expected {', '.join(keys)}")
    return arrays


def as_tensor(array: np.ndarray[Any, Any], origin: str, field: str) -> torch.Tensor:
    """``array`` in float64; raises MotionError where it holds no numbers."""
    if array.dtype.kind not in "fiu":
        raise MotionError(f"{origin}: {field} must hold numbers, got {array.dtype}")
    return torch.from_numpy(array.astype(np.float64))


def one_number(array: np.ndarray[Any, Any], origin: str, field: str) -> float:
    """The only entry of ``array``; raises MotionError where there are others or it is no number."""
    return float(_only(array, "fiu", origin, f"{field} must be one number"))


def one_flag(array: np.ndarray[Any, Any], origin: str, field: str) -> bool:
    """The same of a bool."""
    return bool(_only(array, "b", origin, f"{field} must be one bool"))


def one_text(array: np.ndarray[Any, Any], origin: str, field: str) -> str:
    """The same of a text."""
    return str(_only(array, "U", origin, f"{field} must be one text"))


def _only(array: np.ndarray[Any, Any], kinds: str, origin: str, expected: str) -> Any:
    if array.size != 1:
        raise MotionError(f"{origin}: {expected}, got shape {array.shape}")
    if array.dtype.kind not in kinds:
        raise MotionError(f"{origin}: {expected}, got {array.item()!r}")
    return array.item()
