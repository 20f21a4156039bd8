"""Arrays of an engine from which quantities of the simulation are read, with float32 copies."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

ALL = slice(None)
"""Index of all environments, the rows of an array."""
SMALL_BATCH = 128
"""Largest number of environments for which NumPy converts to float32 faster than PyTorch."""
FEW_ROWS = 1 / 64
"""Largest fraction of the environments for which only their rows are converted to float32.

If more environments have changed, it is faster to convert all rows.
"""


class EngineArray:
    """An array of an engine with the values of one or more quantities.

    This class is for float32 arrays, which are read without a copy.

    Args:
        source: The engine's memory. Shape: (num_envs, …).
    """

    def __init__(self, source: Tensor):
        self.source = source
        """The engine's memory. Shape: (num_envs, …)."""
        self.buffer = source
        """float32 tensor that is handed out to readers. Shape: (num_envs, …)."""

    def refresh(self) -> None:
        """Make ``buffer`` equal to ``source``. No copy is needed, because both are the same
        memory."""

    def mark_stale(self, rows: slice | Tensor) -> None:
        """Note that some rows (environments) of ``source`` have changed. Does nothing here."""


class ConvertedArray(EngineArray):
    """A float64 array of an engine, with a float32 copy that is updated when it is read.

    Args:
        source: The engine's memory, float64. Shape: (num_envs, …).
    """

    def __init__(self, source: Tensor):
        self.source = source
        self.buffer = torch.zeros(source.shape, dtype=torch.float32)

        self.stale_rows: slice | Tensor | None = ALL
        """Rows (environments) in which ``buffer`` is out of date. None: it is up to date."""
        # NumPy's copy has a smaller fixed cost than PyTorch's.
        self._is_small = len(source) <= SMALL_BATCH
        # These arrays share the memory of `source` and `buffer`.
        self._numpy_source = source.numpy()
        self._numpy_buffer = self.buffer.numpy()

    def refresh(self) -> None:
        # An array is converted only when it is read, because a task reads few of them in a step.
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
    """Note that some rows (environments) of the engine's memory have changed.

    Args:
        arrays: Arrays that have changed, all with the same number of environments.
        rows: Index of the environments that have changed.
    """
    if isinstance(rows, Tensor):
        # Indexing copies: for many rows it takes longer than to convert all of them in one pass.
        num_envs = len(arrays[0].source)
        if len(rows) > FEW_ROWS * num_envs:
            rows = ALL
    for array in arrays:
        if array.stale_rows is None or array.stale_rows is rows:
            array.stale_rows = rows
        else:
            # To convert all rows is cheaper than to compute the union of two sets of rows.
            array.stale_rows = ALL


class Quantity(NamedTuple):
    """A quantity of a robot or object, such as joint positions: a part of an engine's array."""

    array: EngineArray
    """Array with the values. Call its ``refresh`` before the quantity is read."""
    values: Tensor
    """Values of the quantity, a view of ``array.buffer``. Shape: (num_envs, …)."""
