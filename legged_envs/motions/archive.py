"""Read NumPy archives of known keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from legged_envs.motions.motion import MotionError, check_keys

_KINDS = {"number": "fiu", "bool": "b", "text": "U"}
"""The kinds of arrays, as in :attr:`numpy.dtype.kind`, that hold entries of each type."""


class Archive:
    """The arrays of an ``.npz`` file by key. No pickled objects are loaded.

    Args:
        path: The file.
        keys: The keys that it must hold, no others; default any.

    Raises:
        MotionError: It is no such file, an array in it cannot be read, or a key is missing or unknown.
        FileNotFoundError: There is no such file.
    """

    def __init__(self, path: str | Path, keys: Sequence[str] | None = None):
        self.path = path
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        key = ""
        with open(path, "rb") as file:
            try:
                archive = np.load(file, allow_pickle=False)
                if isinstance(archive, np.ndarray):
                    raise ValueError("it holds a single array without a name, as an .npy file does")
                for key in archive.files:
                    self.arrays[key] = archive[key]
                    if not isinstance(self.arrays[key], np.ndarray):
                        raise ValueError("it is no array")
            except Exception as error:  # bytes are damaged in too many ways to name what zipfile, zlib and NumPy raise
                of_field = f": field {key!r}" if key else ""
                raise MotionError(f"{path}: not a NumPy archive of plain arrays{of_field}: {error}") from error
        if keys is not None:
            check_keys(self.arrays, keys, str(path))

    def tensor(self, key: str) -> torch.Tensor:
        """The numbers of an array in float64; raises MotionError where it holds none."""
        array = self.arrays[key]
        if array.dtype.kind not in _KINDS["number"]:
            raise MotionError(f"{self.path}: {key} must hold numbers, got {array.dtype}")
        return torch.from_numpy(array.astype(np.float64))

    def only(self, key: str, kind: str) -> Any:
        """The only entry of an array, a ``"number"``, ``"bool"`` or ``"text"``; raises MotionError if it is not."""
        array = self.arrays[key]
        if array.size != 1:
            raise MotionError(f"{self.path}: {key} must be one {kind}, got shape {array.shape}")
        if array.dtype.kind not in _KINDS[kind]:
            raise MotionError(f"{self.path}: {key} must be one {kind}, got {array.item()!r}")
        return array.item()
