"""Arrays of an engine that quantities are parts of, and their float32 copies."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

ALL = slice(None)
"""Index of all rows."""
SMALL_BATCH = 128
"""Number of environments up to which NumPy converts faster than PyTorch."""
FEW_ROWS = 1 / 64
"""Fraction of the environments up to which single rows are converted instead of all of them."""


class EngineArray:
    """A float32 array of an engine, read without a copy.

    Args:
        source: The engine's memory. Shape: (num_envs, …).
    """

    def __init__(self, source: Tensor):
        self.source = source
        """Memory of the engine. Shape: (num_envs, …)."""
        self.buffer = source
        """float32 tensor that readers get. Shape: (num_envs, …)."""

    def refresh(self) -> None:
        """Make ``buffer`` equal to ``source``."""

    def mark_stale(self, rows: slice | Tensor) -> None:
        """Note that the engine or a write has changed ``rows`` of ``source``."""


class ConvertedArray(EngineArray):
    """A float32 copy of a float64 array of an engine, converted when it is read."""

    def __init__(self, source: Tensor):
        self.source = source
        self.buffer = torch.zeros(source.shape, dtype=torch.float32)

        self.stale_rows: slice | Tensor | None = ALL
        """Rows in which ``buffer`` is out of date; None if there are none."""
        # NumPy's copy has the smaller fixed cost.
        self._is_small = len(source) <= SMALL_BATCH
        # They share their memory with `source` and `buffer`.
        self._numpy_source = source.numpy()
        self._numpy_buffer = self.buffer.numpy()

    def refresh(self) -> None:
        # Terms read few of an engine's arrays: only what is read is converted, once per step.
        rows = self.stale_rows
        if rows is None:
            return
        if rows is not ALL:
            self.buffer[rows] = self.source[rows].float()
        elif self._is_small:
            np.copyto(self._numpy_buffer, self._numpy_source, casting="same_kind")
        else:
            self.buffer.copy_(self.source)
        self.stale_rows = None

    def mark_stale(self, rows: slice | Tensor) -> None:
        mark_stale((self,), rows)


def mark_stale(arrays: Sequence[ConvertedArray], rows: slice | Tensor) -> None:
    """Note that ``rows`` of the sources of all ``arrays``, of equal length, have changed."""
    if isinstance(rows, Tensor):
        # Indexing copies: for many rows it takes longer than to convert all of them in one pass.
        num_envs = len(arrays[0].source)
        if len(rows) > FEW_ROWS * num_envs:
            rows = ALL
    for array in arrays:
        if array.stale_rows is None or array.stale_rows is rows:
            array.stale_rows = rows
        else:
            # The union of two sets of rows is not worth its computation.
            array.stale_rows = ALL


class Quantity(NamedTuple):
    """A quantity of a robot or object: a part of an array of the engine."""

    array: EngineArray
    """Array that must be refreshed before the quantity is read."""
    values: Tensor
    """View of ``array.buffer``. Shape: (num_envs, …)."""
