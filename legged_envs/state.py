"""Saving, restoring and copying of the state of objects: trees of tensors, arrays and containers.

There are three ways to return to an earlier state:

* :func:`copy_state` and :func:`restore_state` save a state that may be written to a file.
* :func:`preserve_contents` undoes what a block changes inside of containers and tensors.
* :func:`copy_rows` and :func:`restore_rows` undo changes of the rows of some environments.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch

Tree: TypeAlias = Any
"""A tensor, array, number or object with a state, or containers of these, nested in any way."""
RowCopies: TypeAlias = dict[str | int, Tree]
"""Pairs (tensor, copy of its rows) by name or index; the pairs of a container are nested."""
State: TypeAlias = dict[str, Tree]
"""State of an object: copies of its parts by name."""


class Stateful:
    """Base of objects that save the attributes named in :attr:`STATE`."""

    STATE: tuple[str, ...] = ()
    """Names of the saved attributes. A state has them without leading underscores."""

    def state_dict(self) -> State:
        """Return a copy of the saved attributes."""
        return {name.lstrip("_"): copy_state(getattr(self, name)) for name in self.STATE}

    def load_state_dict(self, state: State) -> None:
        """Set the saved attributes to those of a state from :meth:`state_dict`."""
        for name in self.STATE:
            restored = restore_state(getattr(self, name), state[name.lstrip("_")])
            setattr(self, name, restored)


def copy_state(value: Tree) -> Tree:
    """Return a copy of a tree, with the ``state_dict()`` of each object that has one."""
    if isinstance(value, Stateful):
        return value.state_dict()
    if hasattr(value, "state_dict"):
        # The state of a torch module shares the memory of its parameters.
        return copy.deepcopy(value.state_dict())
    if isinstance(value, dict):
        return {key: copy_state(item) for key, item in value.items()}
    # Exact types: a subclass, such as a named tuple, may not be made from an iterable.
    if type(value) in (list, tuple):
        return type(value)([copy_state(item) for item in value])
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return copy.deepcopy(value)


def restore_state(current: Tree, state: Tree) -> Tree:
    """Bring a value to a state from :func:`copy_state`.

    Args:
        current: Present value. Objects with a state and dicts are changed in place.
        state: State to return to.

    Returns:
        The value to use in place of ``current``: the same object if it was changed in place.
    """
    if hasattr(current, "load_state_dict"):
        current.load_state_dict(state)
        return current
    if isinstance(current, dict):
        restored = {key: restore_state(item, state[key]) for key, item in current.items()}
        current.update(restored)
        return current
    return copy_state(state)


def map_tree(function: Callable[..., Tree], value: Tree, *others: Tree) -> Tree:
    """Apply a function to each leaf of a tree of dicts and tuples.

    Args:
        function: Called with a leaf of ``value`` and the leaves of ``others`` at the same place.
        value: Tree that decides the structure.
        others: Trees of the same structure.

    Returns:
        A tree of the results.
    """
    if isinstance(value, dict):
        mapped = {}
        for key, item in value.items():
            other_items = [other[key] for other in others]
            mapped[key] = map_tree(function, item, *other_items)
        return mapped
    if isinstance(value, tuple):
        return tuple(map_tree(function, *items) for items in zip(value, *others, strict=True))
    return function(value, *others)


def is_state(value: object) -> bool:
    """Return True if a value can be saved as a state.

    These are tensors, arrays, numbers, objects with a ``load_state_dict``, and containers of them,
    which may also hold strings and None.
    """
    if isinstance(value, (dict, list, tuple, set, deque)):
        return all(
            item is None or isinstance(item, str) or is_state(item) for item in _items(value)
        )
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic, int, float)):
        return True
    return hasattr(type(value), "load_state_dict")


@torch.no_grad()
def replace_in_place(current: Tree, value: Tree) -> Tree:
    """Give a present value the contents of another one, in the same memory where possible.

    Other objects may hold containers, arrays and tensors of ``current``, or views of them. They see
    the new contents.

    Args:
        current: Present value.
        value: Value to take.

    Returns:
        The value to use in place of ``current``: the same object if it was changed in place.
    """
    if _is_array(current) and _is_array(value):
        if _fits_into(value, current):
            current[...] = value
            return current
    elif isinstance(current, dict) and isinstance(value, dict):
        items = {key: replace_in_place(current.get(key), item) for key, item in value.items()}
        return _refill(current, items)
    elif _are_sequences_of_one_length(current, value):
        replaced = [replace_in_place(*pair) for pair in zip(current, value, strict=True)]
        return _refill(current, replaced) if isinstance(current, list) else tuple(replaced)
    elif isinstance(current, (list, set, deque)) and type(current) is type(value):
        return _refill(current, copy_state(value))
    return restore_state(current, value)


def _is_array(value: object) -> bool:
    return isinstance(value, (torch.Tensor, np.ndarray))


def _fits_into(value: Tree, array: Tree) -> bool:
    same_kind = bool(array.shape == value.shape and array.dtype == value.dtype)
    return same_kind and _is_writable(array)


def _are_sequences_of_one_length(first: Tree, second: Tree) -> bool:
    if type(first) not in (list, tuple) or type(first) is not type(second):
        return False
    return len(first) == len(second)


def _is_writable(array: torch.Tensor | np.ndarray) -> bool:
    """Return True if each element can be written, unlike in an expanded tensor."""
    if isinstance(array, np.ndarray):
        return bool(array.flags.writeable)
    return array.layout == torch.strided and 0 not in array.stride()


def _items(container: Tree) -> Iterable[Tree]:
    return container.values() if isinstance(container, dict) else container


def _refill(container: Tree, items: Tree) -> Tree:
    container.clear()
    if isinstance(container, (dict, set)):
        container.update(items)
    else:
        container.extend(items)
    return container


@contextmanager
def preserve_contents(container: Tree) -> Iterator[None]:
    """Undo what a ``with`` block changes inside of a container.

    The container, and the containers, arrays and tensors in it, get their earlier contents after
    the block, unless it raises.
    """
    # Pairs (object, copy of its contents) by id, as containers cannot be keys.
    found: dict[int, tuple[Tree, Tree]] = {}
    _copy_contents(container, found)
    yield
    with torch.no_grad():
        for current, before in found.values():
            if isinstance(current, (dict, list, set, deque)):
                _refill(current, before)
            elif _is_array(current) and _is_writable(current):
                current[...] = before


def _copy_contents(value: Tree, found: dict[int, tuple[Tree, Tree]]) -> None:
    if _is_array(value):
        found[id(value)] = (value, copy_state(value))
    elif isinstance(value, (dict, list, tuple, set, deque)) and id(value) not in found:
        found[id(value)] = (value, copy.copy(value))
        for item in _items(value):
            _copy_contents(item, found)


def copy_rows(values: Tree, num_envs: int) -> RowCopies:
    """Copy the tensors that have one row per environment.

    Args:
        values: Dict or list, which may hold further dicts, lists and deques.
        num_envs: Number of rows of the tensors to copy.

    Returns:
        Pairs (tensor, copy) by the names or indices in ``values``, for :func:`restore_rows`.
    """
    rows: RowCopies = {}
    for name, value in _named_items(values):
        if isinstance(value, (dict, list, deque)):
            rows[name] = copy_rows(value, num_envs)
        elif isinstance(value, torch.Tensor) and value.shape[:1] == (num_envs,):
            rows[name] = (value, value.clone())
    return rows


def restore_rows(values: Tree, before: RowCopies, rows: torch.Tensor) -> None:
    """Restore the rows of some environments.

    A tensor that is gone, or that has another shape now, is left out.

    Args:
        values: Mapping or list to change, with the contents of an earlier ``values``.
        before: Result of :func:`copy_rows` for the earlier ``values``.
        rows: Environments to restore: indices, or a mask of shape (num_envs,).
    """
    present = dict(_named_items(values))
    for name, old in before.items():
        new = present.get(name)
        if isinstance(old, dict):
            if isinstance(new, (dict, list, deque)):
                restore_rows(new, old, rows)
            continue
        old_tensor, old_rows = old
        if not isinstance(new, torch.Tensor) or new.shape != old_rows.shape:
            continue
        if new is not old_tensor:
            # The new tensor may be a view of another one, which must not change.
            new = new.clone()
            values[name] = new
        elif not _is_writable(new):
            continue
        new[rows] = old_rows[rows].to(new.dtype)


def _named_items(values: Tree) -> Iterable[tuple[str | int, Tree]]:
    return values.items() if isinstance(values, Mapping) else enumerate(values)
