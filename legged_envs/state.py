"""What an object's future depends on, saved and taken back by the names of its attributes."""

import copy
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


class Stateful:
    """Saves the attributes that ``STATE`` names, under the names without underscores in front, and takes them back."""

    STATE: tuple[str, ...] = ()

    def state_dict(self) -> dict[str, Any]:
        return {name.lstrip("_"): copy_state(getattr(self, name)) for name in self.STATE}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in self.STATE:
            setattr(self, name, restore_state(getattr(self, name), state[name.lstrip("_")]))


def copy_state(value: Any) -> Any:
    """A copy of a value; of an object with a ``state_dict``, also in dicts, lists and tuples, that in its place."""
    if isinstance(value, Stateful):
        return value.state_dict()
    if hasattr(value, "state_dict"):
        return copy.deepcopy(value.state_dict())  # that of a module shares its memory
    if isinstance(value, dict):
        return {key: copy_state(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(copy_state, value))
    return value.detach().clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)


def restore_state(own: Any, state: Any) -> Any:
    """What takes the place of ``own`` to return to a ``state`` from :func:`copy_state`: objects and dicts stay the same."""
    if hasattr(own, "load_state_dict"):
        own.load_state_dict(state)
    elif isinstance(own, dict):
        own.update({key: restore_state(item, state[key]) for key, item in own.items()})
    else:
        return copy_state(state)
    return own


def map_tree(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """``function`` of each leaf of a tree of dicts and tuples, or of such trees of the same structure."""
    if isinstance(value, dict):
        return {
            key: map_tree(function, item, *(other[key] for other in others))
            for key, item in value.items()
        }
    if isinstance(value, tuple):
        return tuple(map_tree(function, *items) for items in zip(value, *others, strict=True))
    return function(value, *others)


def is_state(value: Any) -> bool:
    """Whether it is a tensor, an array, a number, an object with a state, or a dict, list or tuple of such, in which
    there may be strings and None too."""
    if isinstance(value, (dict, list, tuple, set, deque)):
        items = [
            item
            for item in (value.values() if isinstance(value, dict) else value)
            if item is not None
        ]
        return all(isinstance(item, str) or is_state(item) for item in items)
    known = torch.Tensor, np.ndarray, np.generic, int, float
    return isinstance(value, known) or hasattr(type(value), "load_state_dict")


@torch.no_grad()
def replace_in_place(own: Any, value: Any) -> Any:
    """What takes the place of ``own``: itself, where it is a container, or an array or tensor of the same kind: others
    may hold it, or views of it."""
    if isinstance(own, (torch.Tensor, np.ndarray)) and isinstance(
        value, (torch.Tensor, np.ndarray)
    ):
        if own.shape == value.shape and own.dtype == value.dtype and _is_writable(own):
            own[...] = value  # type: ignore[assignment]
            return own
    elif isinstance(own, dict) and isinstance(value, dict):
        return _refill(
            own, {name: replace_in_place(own.get(name), item) for name, item in value.items()}
        )
    elif type(own) is type(value) in (list, tuple) and len(own) == len(value):
        items = [replace_in_place(*pair) for pair in zip(own, value, strict=True)]
        return _refill(own, items) if isinstance(own, list) else tuple(items)
    elif isinstance(own, (list, set, deque)) and type(own) is type(value):
        return _refill(own, copy_state(value))
    return restore_state(own, value)


def _is_writable(value: Any) -> bool:
    """Whether each element of an array or tensor can be written to, as those of an expanded one can not."""
    if isinstance(value, np.ndarray):
        return bool(value.flags.writeable)
    return value.layout == torch.strided and 0 not in value.stride()


def _refill(own: Any, items: Any) -> Any:
    """``own``, a container, with other ``items``."""
    own.clear()
    (own.update if isinstance(own, (dict, set)) else own.extend)(items)
    return own


def _contents(value: Any, found: dict[int, Any]) -> dict[int, Any]:
    """Containers, arrays and tensors in ``value``, each with a copy, by their ids."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        found[id(value)] = value, copy_state(value)
    elif isinstance(value, (dict, list, tuple, set, deque)) and id(value) not in found:
        found[id(value)] = value, copy.copy(value)
        for item in value.values() if isinstance(value, dict) else value:
            _contents(item, found)
    return found


@contextmanager
def preserve_contents(value: Any) -> Iterator[None]:
    """Put back what is in ``value``, a container, and in the containers, arrays and tensors in it."""
    found = _contents(value, {})
    yield
    with torch.no_grad():
        for each, before in found.values():
            if isinstance(each, (dict, list, set, deque)):
                _refill(each, before)
            elif not isinstance(each, tuple) and _is_writable(each):
                each[...] = before


def copy_rows(values: Any, num_envs: int) -> dict[Any, Any]:
    """The tensors with a row per environment, each with a copy, by name or index."""
    kept: dict[Any, Any] = {}
    for name, value in values.items() if isinstance(values, dict) else enumerate(values):
        if isinstance(value, (dict, list, deque)):
            kept[name] = copy_rows(value, num_envs)
        elif isinstance(value, torch.Tensor) and value.shape[:1] == (num_envs,):
            kept[name] = value, value.clone()
    return kept


def restore_rows(values: Any, before: dict[Any, Any], rows: torch.Tensor) -> None:
    """Give ``rows`` of the tensors in ``values`` what they were ``before``, as far as these are still there."""
    present = values if isinstance(values, Mapping) else dict(enumerate(values))
    for name, old in before.items():
        new = present.get(name)
        if isinstance(old, dict) and isinstance(new, (dict, list, deque)):
            restore_rows(new, old, rows)
        elif isinstance(new, torch.Tensor) and isinstance(old, tuple) and new.shape == old[1].shape:
            if new is old[0] and not _is_writable(new):
                continue
            if new is not old[0]:
                new = values[name] = new.clone()  # what took its place may be a view of another's
            new[rows] = old[1][rows].to(new.dtype)
