"""Checks of what a caller passes to a vector environment. Each error says what was given and what is expected."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import torch

ARRAYS = ("numpy", "torch")
"""The kinds of arrays that an environment can take and give."""


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
        action = torch.from_numpy(actions)
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
    given = options["reset_mask"]
    if not isinstance(given, np.ndarray if array == "numpy" else torch.Tensor):
        raise TypeError(f"reset_mask must be a {array} array, got {type(given).__module__}.{type(given).__name__}")
    mask = torch.as_tensor(given, device=device)
    if mask.shape != (num_envs,):
        raise ValueError(f"reset_mask must have shape ({num_envs},), got {tuple(mask.shape)}")
    if mask.dtype != torch.bool:
        raise TypeError(f"reset_mask must be boolean, got {mask.dtype}")
    return mask
