"""Checks of what a caller passes to a vector environment. Each error says what was given and what is expected."""

import math
import operator
from typing import Any

import gymnasium as gym
import numpy as np
import torch

_FLOAT32 = np.dtype(np.float32)  # to compare with a type takes longer


OF_ANOTHER = "is of another environment: it has {} where this one has {}"


def check_same_structure(given: Any, own: Any, where: str, wrong: str = OF_ANOTHER) -> None:
    """Raise ValueError at the first difference in keys, lengths, shapes or dtypes of two trees; None fits anything."""
    ours, theirs = _structure(own), _structure(given)
    if given is None or ours is None:
        return
    if theirs != ours:
        got = theirs or type(given).__name__
        raise ValueError(f"{where} {wrong.format(got, ours)}")
    if not isinstance(own, torch.Tensor):
        for key, item in own.items() if isinstance(own, dict) else enumerate(own):
            check_same_structure(given[key], item, f"{where}[{key!r}]", wrong)


def _structure(value: Any) -> str | None:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    if isinstance(value, dict):
        return f"{sorted(value)}"
    return f"{len(value)} entries" if isinstance(value, (list, tuple)) else None


def check_actions(actions: Any, space: gym.Space[Any], array: str, device: torch.device) -> Any:
    """The actions as tensors on ``device``, float32 for a box and int64 for what is discrete, in the structure of
    ``space``, that of a batch; TypeError or ValueError if they are not of it."""
    if isinstance(space, gym.spaces.Box):
        return check_action(actions, space.shape, array).to(device)
    if isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        spaces: dict[Any, Any] = (
            dict(space) if isinstance(space, gym.spaces.Dict) else dict(enumerate(space))
        )
        given: Any = dict(enumerate(actions)) if isinstance(actions, tuple) else actions
        if not isinstance(given, dict) or given.keys() != spaces.keys():
            raise ValueError(
                f"actions must have the parts {list(spaces)} of {space}, got {actions!r}"
            )
        parts = {
            key: check_actions(given[key], part, array, device) for key, part in spaces.items()
        }
        return parts if isinstance(space, gym.spaces.Dict) else tuple(parts.values())
    numbers = np.asarray(actions)
    if numbers.dtype.kind not in "iu" or not space.contains(numbers.astype(space.dtype)):
        raise ValueError(f"actions must be integers of {space}, got {actions!r}")
    return torch.as_tensor(numbers.astype(np.int64), device=device)


def check_action(actions: Any, shape: tuple[int, ...] | None, array: str) -> torch.Tensor:
    """The actions, an array of the kind ``array`` or lists, as a float32 tensor; TypeError or ValueError if they are of
    another kind, no real numbers, not of ``shape`` or not finite."""
    if isinstance(actions, np.ndarray):
        if array != "numpy":
            raise TypeError(
                "this environment takes tensors (array='torch') as actions, got a numpy array"
            )
        own = actions.copy() if actions.dtype == _FLOAT32 else action_array(actions, shape)
        action = torch.from_numpy(own)  # torch does not read one that runs backwards
    elif isinstance(actions, torch.Tensor):
        if array != "torch":
            raise TypeError(
                "this environment was made with array='numpy', so actions must be arrays; got a tensor"
            )
        action = actions.detach()
    elif isinstance(actions, (list, tuple)):
        action = torch.from_numpy(action_array(actions, shape))
    else:
        raise TypeError(
            f"actions must be a {array} array or lists of numbers, got {type(actions).__name__}"
        )
    if action.shape != shape:
        raise ValueError(f"actions must have shape {shape}, got {tuple(action.shape)}")
    if action.dtype != torch.float32:
        if action.dtype == torch.bool or action.is_complex():
            raise TypeError(f"actions must be real numbers, got {action.dtype}")
        action = action.to(torch.float32)
    if not math.isfinite(action.sum().item()):
        rows = (~torch.isfinite(action)).any(1).nonzero().squeeze(1).tolist()
        if rows:
            raise ValueError(f"actions are not finite, as float32, in environments {rows[:8]}")
    return action


def action_array(actions: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """Arrays or lists of real numbers as a new float32 array; ValueError unless they are of ``shape``."""
    try:
        array = np.asarray(actions)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"actions must be an array or lists of numbers of shape {shape}: {error}"
        ) from error
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"actions must be real numbers, got {type(actions).__name__} of {array.dtype}"
        )
    if array.shape != shape:
        raise ValueError(f"actions must have shape {shape}, got {array.shape}")
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def check_seed(seed: Any, num_envs: int) -> int | list[int] | None:
    """The seed as an int or a list of them; TypeError or ValueError if it is neither, or the list too short or long."""
    if seed is None:
        return None
    try:
        one = not isinstance(seed, (list, tuple, np.ndarray))
        seeds = [operator.index(s) for s in ([seed] if one else seed)]
        if any(isinstance(s, bool) for s in ([seed] if one else seed)):
            raise TypeError
    except TypeError:
        raise TypeError(f"seed must be an integer or a list of them, got {seed!r}") from None
    if min(seeds, default=0) < 0:
        raise ValueError(f"seeds must not be negative, got {seed!r}")
    if one:
        return seeds[0]
    if len(seeds) != num_envs:
        raise ValueError(f"a list of seeds needs num_envs={num_envs} entries, got {len(seeds)}")
    return seeds


def check_reset_options(
    options: dict[str, Any] | None, num_envs: int, array: str, device: torch.device
) -> torch.Tensor | None:
    """The mask of a partial reset, None if there is none; TypeError or ValueError if it or an option is not valid."""
    if not options:
        return None
    if unknown := sorted(set(options) - {"reset_mask"}):
        raise ValueError(f"unknown reset option {unknown[0]!r}; the one option is 'reset_mask'")
    given: Any = options["reset_mask"]
    if not isinstance(given, np.ndarray if array == "numpy" else torch.Tensor):
        raise TypeError(
            f"reset_mask must be a {array} array, got {type(given).__module__}.{type(given).__name__}"
        )
    mask = torch.as_tensor(given.copy() if isinstance(given, np.ndarray) else given, device=device)
    if mask.shape != (num_envs,):
        raise ValueError(f"reset_mask must have shape ({num_envs},), got {tuple(mask.shape)}")
    if mask.dtype != torch.bool:
        raise TypeError(f"reset_mask must be boolean, got {mask.dtype}")
    return mask
