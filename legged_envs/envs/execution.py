"""How the maths of a step runs in PyTorch."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def step_mode(inference: bool) -> Iterator[None]:
    """Run PyTorch on one thread and without gradients.

    One thread is fastest here: the tensors of a step are small, and OpenMP threads that wait would
    spin on the cores of the physics.

    Args:
        inference: True for inference mode. False switches it off also where the caller is in it,
            because what is made in inference mode cannot be changed outside of it.
    """
    threads = torch.get_num_threads()
    if threads != 1:
        torch.set_num_threads(1)
    try:
        with torch.inference_mode(inference), torch.no_grad():
            yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)
