"""Checks of what a caller passes to a vector environment."""

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from legged_envs.checks import LARGEST_COUNT, check_choice, whole_number
from legged_envs.envs.task import Action, Space
from legged_envs.state import Tree

MAX_LISTED_ENVS = 8
"""Largest number of environments that an error lists."""
OTHER_ENVIRONMENT = "is of another environment: it has {} where this one has {}"
"""Error about a state that does not fit; the fields are the given and the expected structure."""


def check_same_structure(
    given: Tree, own: Tree, where: str, message: str = OTHER_ENVIRONMENT
) -> None:
    """Check that two trees have the same keys, lengths, shapes and dtypes.

    Args:
        given: Tree of dicts, lists and tuples with tensors; None fits anything.
        own: The expected tree; a None in it fits anything.
        where: Name of the given tree, for errors.
        message: Text of the error after ``where``, with two fields: given and expected structure.

    Raises:
        ValueError: At the first difference.
    """
    expected = _structure(own)
    if given is None or expected is None:
        return
    actual = _structure(given)
    if actual != expected:
        description = message.format(actual or type(given).__name__, expected)
        raise ValueError(f"{where} {description}")
    # Equal texts of two dicts or lists compare only their keys or lengths: their items come next.
    if isinstance(own, torch.Tensor):
        return
    items = own.items() if isinstance(own, dict) else enumerate(own)
    for key, item in items:
        check_same_structure(given[key], item, f"{where}[{key!r}]", message)


def _structure(value: object) -> str | None:
    """Return a text that equal structures share; None for a value without structure."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    if isinstance(value, dict):
        return f"{sorted(value)}"
    if isinstance(value, (list, tuple)):
        return f"{len(value)} entries"
    return None


def check_actions(actions: Action, space: Space, array: str, device: torch.device) -> Action:
    """Check the actions of all environments and copy them to ``device``.

    Args:
        actions: Actions in the structure of ``space``.
        space: Batched action space.
        array: Expected kind of arrays, ``"numpy"`` or ``"torch"``.
        device: Device of the result.

    Returns:
        Tensors in the structure of ``space``: float32 for a box, int64 for discrete spaces.

    Raises:
        TypeError: If the actions are of another type.
        ValueError: If the actions do not have the structure or shape of the space, or are not
            finite.
    """
    if isinstance(space, gym.spaces.Box):
        return check_action(actions, space.shape, array).to(device)
    if isinstance(space, gym.spaces.Dict):
        if not isinstance(actions, dict) or actions.keys() != space.keys():
            raise _other_parts(actions, list(space.keys()), space)
        return {
            key: check_actions(actions[key], part, array, device) for key, part in space.items()
        }
    if isinstance(space, gym.spaces.Tuple):
        if not isinstance(actions, tuple) or len(actions) != len(space):
            raise _other_parts(actions, list(range(len(space))), space)
        return tuple(
            check_actions(given, part, array, device)
            for given, part in zip(actions, space, strict=True)
        )
    # Kinds "i" and "u": a float such as 1.7 must not be rounded to an action that it does not mean.
    numbers = np.asarray(actions)
    if numbers.dtype.kind not in "iu" or not space.contains(numbers.astype(space.dtype)):
        raise ValueError(f"actions must be integers of {space}, got {actions!r}")
    return torch.as_tensor(numbers.astype(np.int64), device=device)


def _other_parts(actions: Action, expected: Sequence[object], space: Space) -> ValueError:
    return ValueError(f"actions must have the parts {expected} of {space}, got {actions!r}")


def check_action(actions: object, shape: tuple[int, ...] | None, array: str) -> torch.Tensor:
    """Return the actions of a box space as a float32 tensor.

    Args:
        actions: An array of the kind ``array``, or lists of numbers.
        shape: Expected shape.
        array: ``"numpy"`` or ``"torch"``.

    Raises:
        TypeError: If the actions are of another type, or not real numbers.
        ValueError: If the actions have another shape, or are not finite.
    """
    action = _action_tensor(actions, shape, array)
    if action.shape != shape:
        raise ValueError(f"actions must have shape {shape}, got {tuple(action.shape)}")
    if action.dtype != torch.float32:
        if action.dtype == torch.bool or action.is_complex():
            raise TypeError(f"actions must be real numbers, got {action.dtype}")
        action = action.to(torch.float32)
    # One sum is faster than a flag per number, and not finite if any number is not.
    if not math.isfinite(action.sum().item()):
        is_bad = ~torch.isfinite(action)
        env_ids = is_bad.any(1).nonzero().squeeze(1).tolist()
        if env_ids:
            raise ValueError(
                f"actions are not finite, as float32, in environments {env_ids[:MAX_LISTED_ENVS]}"
            )
    return action


def _action_tensor(actions: object, shape: tuple[int, ...] | None, array: str) -> torch.Tensor:
    if isinstance(actions, np.ndarray):
        if array != "numpy":
            raise TypeError(
                "this environment takes tensors (array='torch') as actions, got a numpy array"
            )
        # A copy, because the caller may change the array, and torch does not read an array with
        # negative strides.
        is_float32 = actions.dtype == np.float32
        return torch.from_numpy(actions.copy() if is_float32 else action_array(actions, shape))
    if isinstance(actions, torch.Tensor):
        if array != "torch":
            raise TypeError(
                "this environment was made with array='numpy', so actions must be arrays; "
                "got a tensor"
            )
        # Detached: the physics has no gradients, and the graph of a policy would be kept alive.
        return actions.detach()
    if isinstance(actions, (list, tuple)):
        return torch.from_numpy(action_array(actions, shape))
    raise TypeError(
        f"actions must be a {array} array or lists of numbers, got {type(actions).__name__}"
    )


def action_array(actions: object, shape: tuple[int, ...] | None) -> np.ndarray:
    """Return arrays or lists of real numbers as a new float32 array.

    Raises:
        TypeError: If the entries are not real numbers.
        ValueError: If the array has another shape, or rows of different lengths.
    """
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
    with np.errstate(over="ignore"):  # a number beyond float32 is infinite, and refused later
        return array.astype(np.float32)


def check_init(
    num_envs: object,
    first_env: object,
    array: object,
    observations: object,
    info: object,
    render_mode: object,
) -> tuple[int, int]:
    """Check arguments of ``CoreVectorEnv``.

    Returns:
        ``num_envs`` and ``first_env`` as ``int``.

    Raises:
        ValueError: If an argument is not valid. The message names the argument.
    """
    count = whole_number("num_envs", num_envs)
    first = whole_number("first_env", first_env, 0, LARGEST_COUNT - count)
    check_choice("array", array, ("numpy", "torch"))
    check_choice("observations", observations, ("policy", "dict"))
    check_choice("info", info, ("means", "arrays"))
    if render_mode == "human":
        raise ValueError(
            "render_mode='human' shows one robot: gymnasium.make(ID, render_mode='human'); a batch "
            "of environments takes 'rgb_array', and legged-envs play ID --web shows several robots"
        )
    check_choice("render_mode", render_mode, (None, "rgb_array"))
    if info == "arrays" and array != "numpy":
        raise ValueError(
            f"info='arrays' gives NumPy arrays, got array={array!r}: leave one of them out"
        )
    return count, first


def check_seed(seed: object, num_envs: int) -> int | list[int] | None:
    """Return the seed as an int, or as a list with one int per environment.

    Raises:
        TypeError: If the seed is neither an integer nor a list of integers.
        ValueError: If a seed is negative, or the list has another length.
    """
    if seed is None:
        return None
    is_list = isinstance(seed, (list, tuple, np.ndarray))
    given: Iterable[object] = seed if isinstance(seed, (list, tuple, np.ndarray)) else [seed]
    seeds = [_integer_seed(each, seed) for each in given]
    if min(seeds, default=0) < 0:
        raise ValueError(f"seeds must not be negative, got {seed!r}")
    if not is_list:
        return seeds[0]
    if len(seeds) != num_envs:
        raise ValueError(f"a list of seeds needs num_envs={num_envs} entries, got {len(seeds)}")
    return seeds


def _integer_seed(value: Any, seed: object) -> int:
    """Return one seed as an integer.

    Args:
        value: The seed, or one entry if ``seed`` is a list.
        seed: Whole argument ``seed`` of ``reset``, for the error message.

    Raises:
        TypeError: If ``value`` is not an integer.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    # operator.index accepts a bool, and an older NumPy's bool too, but seed=True is a mistake.
    if number is None or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"seed must be an integer or a list of them, got {seed!r}")
    return number


def check_reset_options(
    options: dict[str, object] | None, num_envs: int, array: str, device: torch.device
) -> torch.Tensor | None:
    """Return the mask of a partial reset, shape (num_envs,), bool; None if there is none.

    Raises:
        TypeError: If the mask is not an array of the kind ``array``, or not boolean.
        ValueError: If there is another option, or the mask has another shape.
    """
    if not options:
        return None
    unknown = sorted(set(options) - {"reset_mask"})
    if unknown:
        raise ValueError(f"unknown reset option {unknown[0]!r}; the one option is 'reset_mask'")
    given = options["reset_mask"]
    if not isinstance(given, np.ndarray if array == "numpy" else torch.Tensor):
        kind = f"{type(given).__module__}.{type(given).__name__}"
        raise TypeError(f"reset_mask must be a {array} array, got {kind}")
    # A copy, because on the CPU the mask would share the memory of an array that the caller reuses.
    if isinstance(given, np.ndarray):
        given = given.copy()
    mask = torch.as_tensor(given, device=device)
    if mask.shape != (num_envs,):
        raise ValueError(f"reset_mask must have shape ({num_envs},), got {tuple(mask.shape)}")
    # A mask of integers would be read as indices where it selects rows.
    if mask.dtype != torch.bool:
        raise TypeError(f"reset_mask must be boolean, got {mask.dtype}")
    return mask
