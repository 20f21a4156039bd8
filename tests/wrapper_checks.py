"""Comparisons and small wrappers that the tests of the wrappers share."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from toy_envs import ARRAYS, make_toy_env

from legged_envs.wrappers.plumbing.arrays import as_numpy, map_arrays
from legged_envs.wrappers.plumbing.foreign_env import transition_cost

GO2 = "Legged/Go2-Flat-v0"
DISABLED, SAME_STEP, NEXT_STEP = (
    AutoresetMode.DISABLED,
    AutoresetMode.SAME_STEP,
    AutoresetMode.NEXT_STEP,
)
MODES = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
RESETTING = pytest.mark.parametrize("mode", [SAME_STEP, NEXT_STEP], ids=lambda mode: mode.name)
KINDS = pytest.mark.parametrize("array", ARRAYS)
GROUPED = pytest.mark.parametrize("grouped", [False, True], ids=["box", "dict"])
SEEDS = [3, 11, 4]


def moves(num_steps: int, num_envs: int = len(SEEDS), seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (num_steps, num_envs, 2)).astype(np.float32)


def to_numpy(tree: Any) -> Any:
    """A copy in NumPy."""
    return map_arrays(lambda array: np.array(as_numpy(array)), tree)


def rows(tree: Any, index: Any) -> Any:
    """Rows of every array of a tree."""
    return map_arrays(lambda array: array[index], tree)


def assert_equal(one: Any, other: Any, where: str = "") -> None:
    """Asserts that two trees of NumPy arrays have equal keys, types and numbers, except times of the clock."""
    if isinstance(one, dict):
        assert set(one) == set(other), where
        for key in set(one) - {"t"}:
            assert_equal(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_equal(a, b, f"{where}[{i}]")
    elif isinstance(one, np.ndarray) and one.dtype == object:
        assert_equal(one.tolist(), other.tolist(), where)
    elif isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray) and one.dtype == other.dtype, where
        np.testing.assert_array_equal(one, other, where)
    else:
        assert one == other, where


def sync(
    mode: AutoresetMode, limit: int | None = None, grouped: bool = False, num_envs: int = 3
) -> SyncVectorEnv:
    make = functools.partial(make_toy_env, limit, grouped)
    return SyncVectorEnv([make] * num_envs, autoreset_mode=mode)


def skip_wrong_lengths(mode: AutoresetMode) -> None:
    """Skip a comparison with statistics that Gymnasium gets wrong."""
    if mode is SAME_STEP and gym.__version__.startswith("1.2."):
        pytest.skip("Gymnasium 1.2 leaves a step of every episode but the first out")


def assert_step_of_gymnasium(ours: Any, expected: Any, mode: AutoresetMode) -> None:
    """One step's result with ``info``, which in the mode SAME_STEP has its own contract."""
    assert_equal(ours[:4], expected[:4])
    info, reference, ended = ours[4], expected[4], expected[2] | expected[3]
    if mode is not SAME_STEP or not ended.any():
        assert_equal(info, reference)
        return
    np.testing.assert_array_equal(info["_final_obs"], ended)
    np.testing.assert_array_equal(info["_final_info"], ended)
    as_gymnasium = isinstance(info["final_obs"], np.ndarray) and info["final_obs"].dtype == object
    for i, row_ended in enumerate(ended):
        running = None if as_gymnasium else rows(expected[0], i)
        last = info["final_obs"][i] if as_gymnasium else rows(info["final_obs"], i)
        assert_equal(last, reference["final_obs"][i] if row_ended else running)
    assert_equal(
        rows(info["final_info"]["parts"], ended), rows(reference["final_info"]["parts"], ended)
    )
    for key in ("cost", "costs", "phase"):
        assert_equal(info["final_info"][key][ended], reference["final_info"][key][ended])
        assert_equal(transition_cost(info, key), transition_cost(reference, key))
    assert_equal(info["phase"], reference["phase"])  # the reset reports it too


def assert_same_as_gymnasium(
    ours: VectorEnv, reference: VectorEnv, mode: AutoresetMode, num_steps: int = 40
) -> int:
    """Drive both with the same actions and now and then a partial reset; returns the number of episodes."""
    num_envs = reference.num_envs
    assert ours.metadata["autoreset_mode"] is mode
    assert_equal(ours.reset(seed=SEEDS[:num_envs]), reference.reset(seed=SEEDS[:num_envs]))
    episodes = 0
    for step, action in enumerate(moves(num_steps, num_envs)):
        result, expected = ours.step(action.copy()), reference.step(action.copy())
        assert_step_of_gymnasium(result, expected, mode)
        ended = expected[2] | expected[3]
        episodes += int(ended.sum())
        mask = ended.copy() if mode is DISABLED else np.zeros(num_envs, bool)
        mask[step % num_envs] |= step % 9 == 8
        if mask.any():
            assert_equal(
                *(env.reset(options={"reset_mask": mask.copy()}) for env in (ours, reference))
            )
    return episodes


def overwrite(tree: Any) -> None:
    """Spoil everything that can be written to."""
    if isinstance(tree, dict):
        for value in tree.values():
            overwrite(value)
        tree.clear()
    elif isinstance(tree, tuple):
        for value in tree:
            overwrite(value)
    elif isinstance(tree, np.ndarray):
        if tree.flags.writeable:
            tree[...] = None if tree.dtype == object else True if tree.dtype == bool else 77
    elif hasattr(tree, "dtype"):
        tree[...] = True if "bool" in str(tree.dtype) else 77


class Reusing(VectorWrapper):
    """Returns the same arrays from every step, and clears the rows of them that a reset begins."""

    def __init__(self, env: VectorEnv):
        super().__init__(env)
        self.arrays: dict[str, np.ndarray] = {}

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        mask = np.ones(self.num_envs, bool) if options is None else options["reset_mask"].copy()
        observation, info = self.env.reset(seed=seed, options=options)
        for array in self.arrays.values():
            array[mask] = 0
        return self.written(observation, "0"), info

    def step(self, actions: Any) -> Any:
        return tuple(self.written(part, str(i)) for i, part in enumerate(self.env.step(actions)))

    def written(self, tree: Any, name: str) -> Any:
        if isinstance(tree, dict):
            return {key: self.written(value, f"{name}/{key}") for key, value in tree.items()}
        array = self.arrays.setdefault(name, np.empty_like(tree))
        array[...] = tree
        return array


class Differentiable(VectorWrapper):
    """The reward has a gradient: it is the sum of the actions."""

    def step(self, actions: Any) -> Any:
        observation, _, *rest = self.env.step(actions.detach())
        return observation, actions.sum(1), *rest
