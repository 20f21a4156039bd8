"""How the maths of a step runs in PyTorch."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import LibController, ThreadpoolController


@contextmanager
def step_mode(inference: bool) -> Iterator[None]:
    """Run PyTorch on one thread and without gradients.

    One thread is fastest here: the tensors of a step are small, and OpenMP threads that wait would
    spin on the cores of the physics. Other threads of Python, such as a learner's, keep theirs.

    Args:
        inference: True for inference mode. False switches it off also where the caller is in it,
            because what is made in inference mode cannot be changed outside of it.
    """
    threads = torch.get_num_threads()
    if threads != 1:
        _set_num_threads(1)
    try:
        with torch.inference_mode(inference), torch.no_grad():
            yield
    finally:
        if threads != 1:
            _set_num_threads(threads)


def _set_num_threads(threads: int) -> None:
    # torch.set_num_threads would also set the threads of a Python thread that starts meanwhile.
    libraries = _openmp_libraries()
    for library in libraries:
        library.set_num_threads(threads)
    if not libraries:
        torch.set_num_threads(threads)


@functools.cache
def _openmp_libraries() -> list[LibController]:
    """Return the OpenMP library that PyTorch runs on; an empty list if there is none."""
    libraries: list[LibController] = ThreadpoolController().lib_controllers
    return [
        library
        for library in libraries
        if library.user_api == "openmp" and "torch" in str(library.filepath)
    ]
