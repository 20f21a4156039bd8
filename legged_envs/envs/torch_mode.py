"""How environments run their batched maths: without gradients' bookkeeping, on one thread."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch


@contextmanager
def torch_mode() -> Iterator[None]:
    """Inference mode on one thread of PyTorch, for the calling thread alone.

    The maths of a step gain nothing from more threads, and OpenMP's waiting threads would spin on the cores that the
    physics is about to use. Other threads, such as one that learns meanwhile, keep theirs.
    """
    threads, openmp = torch.get_num_threads(), _openmp()
    # torch.set_num_threads would also set what a thread that starts meanwhile takes for itself.
    set_threads = torch.set_num_threads if openmp is None else openmp.omp_set_num_threads
    if threads != 1:
        set_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        if threads != 1:
            set_threads(threads)


@functools.cache
def _openmp() -> Any:
    """The OpenMP library that came with PyTorch and that it is running on; None if there is no such."""
    library = next(Path(torch.__file__).parent.glob("lib/libgomp*.so*"), None)
    return None if library is None else ctypes.CDLL(str(library))
