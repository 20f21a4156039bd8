"""The way in which a step runs in PyTorch, and copies of its results for the caller."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import LibController, ThreadpoolController

from legged_envs.state import Tree, map_tree


@contextmanager
def step_mode(inference: bool) -> Iterator[None]:
    """Run PyTorch on one thread and without gradients.

    One thread is fastest here: the tensors of a step are small, and OpenMP threads that wait would
    spin on the cores of the physics. Other threads of Python, such as a learner's, keep their
    number of PyTorch threads.

    Args:
        inference: True for inference mode. False switches it off also where the caller is in it,
            because tensors made in inference mode cannot be changed outside of this mode.
    """
    # Only where it differs: setting the number takes longer than a small operation.
    threads = torch.get_num_threads()
    if threads != 1:
        _set_num_threads(1)
    try:
        # no_grad in addition, because inference_mode(False) leaves gradients on.
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


def export(value: Tree, array: str) -> Tree:
    """Return copies of tensors, also in dicts and tuples, for the caller of an environment.

    A tensor made in inference mode could not take part in the caller's autograd, but its clone
    can; and what the caller keeps must not keep the memory of other results alive.

    Args:
        value: A tensor, or a tree of tensors.
        array: Kind of the copies, ``"numpy"`` or ``"torch"``.
    """
    if not isinstance(value, torch.Tensor):
        return map_tree(lambda leaf: export(leaf, array), value)
    return value.cpu().numpy().copy() if array == "numpy" else value.clone()


def replace_rows(value: Tree, env_ids: torch.Tensor, rows: Tree) -> Tree:
    """Return a copy of a tensor, or of a dict of them, with new rows for ``env_ids``."""
    # Not in place: the caller of an earlier step may hold the old tensor.
    return map_tree(lambda old, new: old.index_copy(0, env_ids, new), value, rows)
