"""Read NumPy archives of known keys."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from legged_envs.motions.motion import MotionError


def read_archive(path: str | Path, keys: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an ``.npz`` file that holds exactly ``keys``. No pickled objects are loaded.

    Raises:
        MotionError: It is no such archive, or a key is missing or unknown.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (ValueError, zipfile.BadZipFile, EOFError, AttributeError) as error:
        raise MotionError(f"{path}: not a NumPy archive of plain arrays: {error}") from error
    for word, wrong in (
        ("lacks", [key for key in keys if key not in arrays]),
        ("has the unknown", [key for key in arrays if key not in keys]),
    ):
        if wrong:
            raise MotionError(f"{path}: {word} field {wrong[0]!r}; expected {', '.join(keys)}")
    return arrays


def as_tensor(array: np.ndarray[Any, Any], origin: str, field: str) -> torch.Tensor:
    """``array`` as a tensor; raises MotionError where it holds no numbers."""
    if array.dtype.kind not in "bfiu":
        raise MotionError(f"{origin}: {field} must hold numbers, got {array.dtype}")
    return torch.from_numpy(array)
