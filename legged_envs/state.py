"""What an object's future depends on, saved and taken back by the names of its attributes."""

import copy
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch


class Stateful:
    """Saves the attributes that ``STATE`` names, under the names without underscores in front, and takes them back."""

    STATE: tuple[str, ...] = ()

    def state_dict(self) -> dict[str, Any]:
        return {name.lstrip("_"): copied(getattr(self, name)) for name in self.STATE}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in self.STATE:
            setattr(self, name, restored(getattr(self, name), state[name.lstrip("_")]))


def copied(value: Any) -> Any:
    """A copy of a value; of an object with a ``state_dict``, also in dicts, that in its place."""
    if hasattr(value, "state_dict"):
        return value.state_dict()
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value.clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)


def restored(own: Any, state: Any) -> Any:
    """What takes the place of ``own`` to return to a ``state`` from :func:`copied`: objects and dicts stay the same."""
    if hasattr(own, "load_state_dict"):
        own.load_state_dict(state)
    elif isinstance(own, dict):
        own.update({key: restored(item, state[key]) for key, item in own.items()})
    else:
        return copied(state)
    return own


def mapped(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """``function`` of each leaf of a tree of dicts and tuples, or of such trees of the same structure."""
    if isinstance(value, dict):
        return {key: mapped(function, item, *(other[key] for other in others)) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(mapped(function, *items) for items in zip(value, *others, strict=True))
    return function(value, *others)


def is_state(value: Any) -> bool:
    """Whether it is a tensor, an array, a number, an object with a state, or a dict, list or tuple of such, in which
    there may be strings and None too."""
    if isinstance(value, (dict, list, tuple, set, deque)):
        items = [item for item in (value.values() if isinstance(value, dict) else value) if item is not None]
        return all(isinstance(item, str) or is_state(item) for item in items)
    return isinstance(value, (torch.Tensor, np.ndarray, int, float)) or hasattr(type(value), "load_state_dict")


def replaced_in_place(own: Any, value: Any) -> Any:
    """What takes the place of ``own``: itself, where it is a tensor of which others may be views."""
    if isinstance(own, torch.Tensor) and own.shape == value.shape and own.dtype == value.dtype:
        return own.copy_(value)
    if isinstance(own, dict):
        return {name: replaced_in_place(own.get(name), item) for name, item in value.items()}
    if isinstance(own, list) and len(own) == len(value):
        return [replaced_in_place(*items) for items in zip(own, value, strict=True)]
    return restored(own, value)


def rows_of(values: Any, num_envs: int) -> dict[Any, Any]:
    """The tensors with a row per environment, each with a copy, by name or index."""
    kept: dict[Any, Any] = {}
    for name, value in values.items() if isinstance(values, dict) else enumerate(values):
        if isinstance(value, (dict, list, deque)):
            kept[name] = rows_of(value, num_envs)
        elif isinstance(value, torch.Tensor) and value.shape[:1] == (num_envs,):
            kept[name] = value, value.clone()
    return kept


def put_back_rows(values: Any, before: dict[Any, Any], rows: torch.Tensor) -> None:
    for name, old in before.items():
        if isinstance(old, dict):
            put_back_rows(values[name], old, rows)
        elif values[name].shape == old[1].shape:
            if values[name] is not old[0]:
                values[name] = values[name].clone()  # what took its place may be a view of another's
            values[name][rows] = old[1][rows]
