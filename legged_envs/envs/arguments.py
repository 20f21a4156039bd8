"""Checks of what a caller passes to a vector environment. Each error says what was given and what is expected."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import torch

ARRAYS = ("numpy", "torch")
"""The kinds of arrays that an environment can take and give."""


def check_same_structure(given: Any, own: Any, where: str) -> None:
    """Raise unless two trees of dicts, sequences and tensors have the same keys, lengths, shapes and dtypes.

    Where one of them has None, the other may have anything.

    Raises:
        ValueError: Naming the first place where they differ.
    """
    if given is None or own is None:
        return
    if isinstance(own, torch.Tensor):
        fits = isinstance(given, torch.Tensor) and (given.shape, given.dtype) == (own.shape, own.dtype)
        if not fits:
            got = f"{given.dtype} {tuple(given.shape)}" if isinstance(given, torch.Tensor) else type(given).__name__
            raise ValueError(
                f"{where} is of another environment: it has {got} where this one has {own.dtype} {tuple(own.shape)}"
            )
    elif isinstance(own, dict):
        if not isinstance(given, dict) or set(given) != set(own):
            names = f"{sorted(given)}" if isinstance(given, dict) else type(given).__name__
            raise ValueError(f"{where} is of another environment: it has {names} where this one has {sorted(own)}")
        for key in own:
            check_same_structure(given[key], own[key], f"{where}[{key!r}]")
    elif isinstance(own, (list, tuple)):
        if not isinstance(given, (list, tuple)) or len(given) != len(own):
            raise ValueError(f"{where} is of another environment: it has {given!r} where this one has {own!r}")
        for i, (item, ours) in enumerate(zip(given, own, strict=True)):
            check_same_structure(item, ours, f"{where}[{i}]")


def check_action(actions: Any, shape: tuple[int, ...] | None, array: str) -> torch.Tensor:
    """The actions as a tensor.

    Raises:
        TypeError: If they are of the other kind of array, or not float32.
        ValueError: If they have another shape than ``shape`` or are not finite.
    """
    if isinstance(actions, np.ndarray):
        if array != "numpy":
            raise TypeError(
                "this environment was made with array='torch', so actions must be tensors; got a numpy array"
            )
        action = torch.from_numpy(_with_positive_strides(actions))
    elif isinstance(actions, torch.Tensor):
        if array != "torch":
            raise TypeError("this environment was made with array='numpy', so actions must be arrays; got a tensor")
        action = actions.detach()
    else:
        raise TypeError(f"actions must be a {array} array, got {type(actions).__name__}")
    if action.shape != shape:
        raise ValueError(f"actions must have shape {shape}, got {tuple(action.shape)}")
    if action.dtype != torch.float32:
        raise TypeError(f"actions must be float32, got {actions.dtype}")
    if not math.isfinite(action.sum().item()):
        rows = (~torch.isfinite(action)).any(1).nonzero().squeeze(1).tolist()
        if rows:
            raise ValueError(f"actions are not finite in environments {rows[:8]}")
    return action


def _with_positive_strides(array: np.ndarray) -> np.ndarray:
    """The array, copied if it runs backwards, which torch does not read."""
    return array if min(array.strides, default=0) >= 0 else array.copy()


def check_seed(seed: Any, num_envs: int) -> int | list[int] | None:
    """The seed as an int or a list of them.

    Raises:
        TypeError: If it is neither.
        ValueError: If the list has not one seed for each environment.
    """
    if seed is None:
        return None
    try:
        if not isinstance(seed, (list, tuple, np.ndarray)):
            return operator.index(seed)
        seeds = [operator.index(s) for s in seed]
    except TypeError:
        raise TypeError(f"seed must be an integer or a list of them, got {seed!r}") from None
    if len(seeds) != num_envs:
        raise ValueError(f"a list of seeds needs num_envs={num_envs} entries, got {len(seeds)}")
    return seeds


def check_reset_options(
    options: dict[str, Any] | None, num_envs: int, array: str, device: torch.device
) -> torch.Tensor | None:
    """The mask of a partial reset; None if there is none.

    Raises:
        TypeError: If the mask is of the other kind of array, or not boolean.
        ValueError: If it has the wrong length, or another option is given.
    """
    if not options:
        return None
    unknown = set(options) - {"reset_mask"}
    if unknown:
        raise ValueError(f"unknown reset option {sorted(unknown)[0]!r}; the one option is 'reset_mask'")
    given: Any = options["reset_mask"]
    if not isinstance(given, np.ndarray if array == "numpy" else torch.Tensor):
        raise TypeError(f"reset_mask must be a {array} array, got {type(given).__module__}.{type(given).__name__}")
    if isinstance(given, np.ndarray):
        given = _with_positive_strides(given)
    mask = torch.as_tensor(given, device=device)
    if mask.shape != (num_envs,):
        raise ValueError(f"reset_mask must have shape ({num_envs},), got {tuple(mask.shape)}")
    if mask.dtype != torch.bool:
        raise TypeError(f"reset_mask must be boolean, got {mask.dtype}")
    return mask
