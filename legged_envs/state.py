"""Functions that save and restore the state of objects: nested containers of tensors and arrays.

There are three ways to return to an earlier state:

* :func:`copy_state` and :func:`restore_state` copy a state, which can also be written to a file.
* :func:`preserve_contents` undoes all changes of containers and tensors in a ``with`` block.
* :func:`copy_rows` and :func:`restore_rows` undo changes for some environments only.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch

Tree: TypeAlias = Any
"""A tensor, array, number or object with a ``state_dict``, or nested containers of them."""
RowCopies: TypeAlias = dict[str | int, Tree]
"""Pairs (tensor, copy of its rows) by name or index; the pairs of a container are nested."""
State: TypeAlias = dict[str, Tree]
"""State of an object: copies of its parts by name."""


class Stateful:
    """Base class of objects with a state to save: the attributes that :attr:`STATE` names."""

    STATE: tuple[str, ...] = ()
    """Names of the attributes to save. The keys of a saved state are these without leading "_"."""

    OPTIONAL: tuple[str, ...] = ()
    """Names of those attributes of :attr:`STATE` that are None at some times."""

    def state_dict(self) -> State:
        """Return a copy of the attributes that :attr:`STATE` names, by name."""
        return {name.lstrip("_"): copy_state(getattr(self, name)) for name in self.STATE}

    def load_state_dict(self, state: State) -> None:
        """Set the attributes that :attr:`STATE` names to values from :meth:`state_dict`."""
        for name in self.STATE:
            restored = restore_state(getattr(self, name), state[name.lstrip("_")])
            setattr(self, name, restored)


def copy_state(value: Tree) -> Tree:
    """Copy the state of nested containers of tensors and objects.

    Args:
        value: Tensor, array or object, or nested containers of them.

    Returns:
        Independent copy, in which each object with a ``state_dict`` is replaced by a copy of it,
        and a deque by a list.
    """
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
    if isinstance(value, deque):
        # A checkpoint, which is read without running code, may hold a list and no deque.
        return [copy_state(item) for item in value]
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return copy.deepcopy(value)


def state_template(value: Tree) -> Tree:
    """Return what a saved state must look like, with None instead of what may be anything.

    Args:
        value: Tensor, array or object, or nested containers of them.

    Returns:
        The structure that :func:`copy_state` returns. Tensors in it are not copied.
    """
    if isinstance(value, Stateful):
        # Classes of other packages do not declare which of their attributes are None at some times.
        is_known = type(value).__module__.partition(".")[0] == __name__.partition(".")[0]
        if not is_known:
            return dict.fromkeys(value.state_dict())
        template = {}
        for name in value.STATE:
            is_optional = name in value.OPTIONAL
            part = None if is_optional else state_template(getattr(value, name))
            template[name.lstrip("_")] = part
        return template
    if isinstance(value, dict):
        return {key: state_template(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([state_template(item) for item in value])
    return value.state_dict() if hasattr(value, "state_dict") else value


def restore_state(current: Tree, state: Tree) -> Tree:
    """Restore a state that :func:`copy_state` copied.

    Args:
        current: Present value. Dicts and objects with ``load_state_dict`` are changed in place.
        state: State from :func:`copy_state`.

    Returns:
        The value to use instead of ``current``: the same object if it was changed in place.
    """
    if hasattr(current, "load_state_dict"):
        current.load_state_dict(state)
        return current
    if isinstance(current, dict):
        restored = {key: restore_state(item, state[key]) for key, item in current.items()}
        current.update(restored)
        return current
    if isinstance(current, deque):
        # A saved state has a list in its place.
        return deque(copy_state(state), current.maxlen)
    return copy_state(state)


def check_indices(name: str, indices: torch.Tensor, count: int) -> None:
    """Check that the indices in a state exist.

    Args:
        name: Name of the indexed items for the error.
        indices: The indices, of any shape.
        count: Number of things that they count.

    Raises:
        ValueError: If an index is not in [0, count).
    """
    # PyTorch counts a negative index from the end, and fails a step later at others.
    is_wrong = (indices < 0) | (indices >= count)
    if is_wrong.any():
        raise ValueError(f"{name} must be in [0, {count}), got {indices.tolist()}")


def map_tree(function: Callable[..., Tree], value: Tree, *others: Tree) -> Tree:
    """Apply a function to each leaf, such as a tensor, of nested dicts and tuples.

    Args:
        function: Function of a leaf of ``value`` and the leaves of ``others`` at the same position.
        value: Nested dicts and tuples, which determine the structure of the result.
        others: Further nested dicts and tuples of the same structure.

    Returns:
        The results, in nested dicts and tuples of the same structure.
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
    """Return True if a value can be saved and restored as a state.

    This is possible for tensors, arrays, numbers, objects with a ``load_state_dict``, and
    containers of them. The containers may also hold strings and None.
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
    """Overwrite a value with the contents of another value, in the same memory where possible.

    Other objects that hold containers, arrays or tensors of ``current``, or views of them, see the
    new contents.

    Args:
        current: Value to overwrite.
        value: Value with the new contents.

    Returns:
        The value to use instead of ``current``: the same object if it was changed in place.
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
    elif _is_same_container(current, value):
        return _refill(current, copy_state(value))
    return restore_state(current, value)


def _is_same_container(current: object, value: object) -> bool:
    if isinstance(current, deque):
        # A copied state has a list instead of a deque.
        return isinstance(value, (list, deque))
    return isinstance(current, (list, set)) and type(current) is type(value)


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
    """Undo all changes that a ``with`` block makes to the contents of a container.

    After the block, the container, and all containers, arrays and tensors in it, have their earlier
    contents again. If the block raises, the changes stay.
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
    """Copy all tensors that have one row for each environment, for :func:`restore_rows`.

    Args:
        values: Dict or list, which may hold further dicts, lists and deques.
        num_envs: Number of environments. Only tensors with this number of rows are copied.

    Returns:
        Name or index in ``values`` → pair of the tensor and its copy.
    """
    rows: RowCopies = {}
    for name, value in _named_items(values):
        if isinstance(value, (dict, list, deque)):
            rows[name] = copy_rows(value, num_envs)
        elif isinstance(value, torch.Tensor) and value.shape[:1] == (num_envs,):
            rows[name] = (value, value.clone())
    return rows


def restore_rows(values: Tree, before: RowCopies, rows: torch.Tensor) -> None:
    """Restore the rows of some environments in all tensors that :func:`copy_rows` copied.

    A tensor that no longer exists, or that has another shape now, is skipped.

    Args:
        values: Dict or list to change, which :func:`copy_rows` was called with.
        before: Result of :func:`copy_rows`.
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
