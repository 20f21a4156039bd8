"""Random stacks of wrappers: what array kinds, conversions, copies and masks must not change.

Each case draws an environment, its mode, a stack with conversions anywhere and a schedule of partial resets from its
number, so a failure names the case to run again.
"""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from toy_envs import ToyVectorEnv, convert, make_toy_env

from legged_envs.wrappers import (
    ActionRepeat,
    ActionScale,
    AutoReset,
    ConstraintsAsTerminations,
    CostNormalize,
    CostReduce,
    EpisodeStatistics,
    LagrangianReward,
    ObsNormalize,
    RewardNormalize,
    TimeLimit,
    ToNumpy,
    ToTorch,
)

DISABLED, SAME_STEP, NEXT_STEP = (
    AutoresetMode.DISABLED,
    AutoresetMode.SAME_STEP,
    AutoresetMode.NEXT_STEP,
)
NUM_ENVS, STEPS, CASES = 3, 20, 40
CONVERSIONS: dict[str, Callable[[VectorEnv], VectorEnv]] = {"numpy": ToNumpy, "torch": ToTorch}
LAYERS: dict[str, Callable[[VectorEnv], VectorEnv]] = {
    "limit": lambda env: TimeLimit(env, 4),
    "repeat": lambda env: ActionRepeat(env, 2),
    "scale": lambda env: ActionScale(env, [-1.0, -2.0], [1.0, 3.0]),
    "statistics": EpisodeStatistics,
    "reduce": lambda env: CostReduce(env, "max"),
    "observations": ObsNormalize,
    "rewards": RewardNormalize,
    "standard rewards": lambda env: RewardNormalize(env, scale="step"),
    "costs": CostNormalize,
    "lagrangian": lambda env: LagrangianReward(env, lr=0.05, interval=2),
    "terminations": lambda env: ConstraintsAsTerminations(env, interval=3),
}


class Stack:
    """The stack of a case: an environment with layers below and above its autoreset, and conversions in between."""

    def __init__(self, case: int, toy: bool):
        rng = np.random.default_rng([case, toy])
        self.mode = list(AutoresetMode)[rng.integers(3)]
        self.grouped = bool(rng.integers(2))
        self.toy = toy
        self.kind = str(rng.choice(["numpy", "torch"])) if toy else "numpy"
        self.resets_itself = not toy and bool(
            rng.integers(2)
        )  # the environment has the mode, without AutoReset
        names = [name for name in LAYERS if name != "repeat"]
        below = list(rng.choice([*names, "repeat"], rng.integers(0, 4), replace=False))
        above = list(rng.choice(names, rng.integers(0, 4), replace=False))
        if self.resets_itself or self.mode is DISABLED:
            below = [name for name in below if name != "repeat"] if self.resets_itself else below
            self.names = [*below, *above]
        else:
            self.names = [*below, "autoreset", *above]
        self.conversions = [
            str(rng.choice(["", "", "numpy", "torch"])) for _ in range(len(self.names) + 1)
        ]
        self.schedule = rng.uniform(size=(STEPS, NUM_ENVS)) < 0.1
        self.actions = rng.uniform(-1, 1, (STEPS, NUM_ENVS, 2)).astype(np.float32)

    def __repr__(self) -> str:
        return f"{self.mode.name}, {'toy' if self.toy else 'sync'} of {self.kind}: {self.names} with {self.conversions}"

    def make(self, converted: bool = True) -> VectorEnv:
        env: VectorEnv
        if self.toy:
            env = ToyVectorEnv(NUM_ENVS, self.kind if converted else "numpy", grouped=self.grouped)
        else:
            make = functools.partial(make_toy_env, 5, self.grouped)
            env = SyncVectorEnv(
                [make] * NUM_ENVS, autoreset_mode=self.mode if self.resets_itself else DISABLED
            )
        for name, conversion in zip([*self.names, ""], self.conversions, strict=True):
            if converted and conversion:
                env = CONVERSIONS[conversion](env)
            if name == "autoreset":
                env = AutoReset(env, self.mode)
            elif name:
                env = LAYERS[name](env)
        return env

    @property
    def outer(self) -> str:
        """The array kind that the stack with its conversions gives and takes."""
        return next((kind for kind in reversed(self.conversions) if kind), self.kind)

    def start(self, converted: bool = True) -> VectorEnv:
        env = self.make(converted)
        env.reset(seed=0)
        return env

    def drive(
        self, env: VectorEnv, steps: range, converted: bool = True, spoil: bool = False
    ) -> list[Any]:
        """The steps, as NumPy arrays, each with the observation of the partial reset after it, if there is one."""
        kind = self.outer if converted else "numpy"
        trace: list[Any] = []
        for step in steps:
            action = convert(self.actions[step], kind)
            result = env.step(action)
            trace.append([as_numpy(result), None])
            ended = trace[-1][0][2] | trace[-1][0][3]
            if spoil:
                overwrite((*result, action))
            mask = self.schedule[step] | (ended if self.mode is DISABLED else False)
            if mask.any():
                given = convert(mask, kind)
                again, info = env.reset(options={"reset_mask": given})
                trace[-1][1] = as_numpy(again)
                if spoil:
                    overwrite((again, info, given))
        return trace


def as_numpy(tree: Any) -> Any:
    """Copies of all arrays as NumPy arrays."""
    if isinstance(tree, dict):
        return {key: as_numpy(value) for key, value in tree.items() if key != "t"}
    if isinstance(tree, (tuple, list)):
        return [as_numpy(value) for value in tree]
    if isinstance(tree, torch.Tensor):
        return tree.detach().numpy().copy()
    return np.array(tree) if isinstance(tree, np.ndarray) else copy.deepcopy(tree)


def overwrite(tree: Any) -> None:
    """Spoil everything that can be written to."""
    if isinstance(tree, dict):
        for value in tree.values():
            overwrite(value)
        tree.clear()
    elif isinstance(tree, (tuple, list)):
        for value in tree:
            overwrite(value)
    elif isinstance(tree, torch.Tensor):
        tree.fill_(True if tree.dtype == torch.bool else 77)
    elif isinstance(tree, np.ndarray) and tree.dtype != object:
        tree[...] = True if tree.dtype == bool else 77


def assert_same(one: Any, other: Any, where: str = "", *, exact: bool = True) -> None:
    if isinstance(one, dict):
        assert set(one) == set(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}/{key}", exact=exact)
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}/{i}", exact=exact)
    elif isinstance(one, np.ndarray) and one.dtype != object:
        assert one.dtype == other.dtype and one.shape == other.shape, where
        if exact:
            np.testing.assert_array_equal(one, other, where)
        else:
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5, err_msg=where)


def assert_finite(tree: Any, where: str = "") -> None:
    for key, value in (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    ):
        assert_finite(value, f"{where}/{key}")
    if isinstance(tree, np.ndarray) and tree.dtype.kind == "f":
        assert np.isfinite(tree).all(), where


def counts(env: Any) -> list[float]:
    """How many samples, transitions and episodes each layer of a stack has counted, conversions left out."""
    counted: list[float] = []
    while env is not env.unwrapped:
        if isinstance(env, (ObsNormalize, RewardNormalize, CostNormalize)):
            normalizers = [env.normalizer]
            while normalizers:
                part = normalizers.pop()
                if isinstance(part, dict):
                    normalizers += [part[key] for key in sorted(part)]
                else:
                    counted += [part.count, float(np.sum(np.asarray(part.mean)))]
        elif isinstance(env, (LagrangianReward, ConstraintsAsTerminations)):
            counted.append(float(env.state_dict()["count"]))
        elif isinstance(env, EpisodeStatistics):
            counted += [env.episode_count, sum(env.return_window), sum(env.cost_window)]
        elif isinstance(env, TimeLimit):
            counted += np.asarray(env.elapsed_steps).tolist()
        env = env.env
    return counted


STACKS = [Stack(case, toy) for toy in (True, False) for case in range(CASES)]
EACH = pytest.mark.parametrize("first", range(0, len(STACKS), 10))
"""Ten stacks a test."""


@EACH
def test_conversions_anywhere_in_a_stack_change_no_value_and_no_count(first):
    for stack in STACKS[first : first + 10]:
        env, plain = stack.start(), stack.start(converted=False)
        trace = stack.drive(env, range(STEPS))
        assert_finite(trace, f"{stack}: ")
        assert_same(
            trace, stack.drive(plain, range(STEPS), converted=False), f"{stack}: ", exact=False
        )
        np.testing.assert_allclose(
            counts(env), counts(plain), rtol=1e-3, atol=1e-3, err_msg=f"{stack}"
        )


@EACH
def test_copies_go_on_as_the_original_does(first):
    for number, stack in enumerate(STACKS[first : first + 10]):
        env, split = stack.start(), 1 + number % 4
        stack.drive(env, range(split))
        copies = {"deepcopy": copy.deepcopy(env), "pickle": pickle.loads(pickle.dumps(env))}
        if hasattr(env, "get_state"):  # Gymnasium's own environments have none
            copies["state"] = stack.make()
            copies["state"].set_state(env.get_state())
        expected = stack.drive(env, range(split, STEPS))
        for name, other in copies.items():
            assert_same(stack.drive(other, range(split, STEPS)), expected, f"{name} of {stack}: ")


@pytest.mark.parametrize("kinds", [("numpy", "torch"), ("torch", "numpy")], ids=" to ".join)
def test_the_state_of_a_stack_of_one_array_kind_goes_on_in_one_of_another(kinds):
    for stack in [Stack(case, toy=True) for case in range(CASES)]:
        traces = []
        stack.conversions = [""] * len(stack.conversions)
        stack.kind = kinds[0]
        env = stack.start()
        stack.drive(env, range(5))
        state = env.get_state()
        traces.append(stack.drive(env, range(5, STEPS)))
        stack.kind = kinds[1]
        for other in (stack.make(), stack.start()):
            other.set_state(state)
            traces.append(stack.drive(other, range(5, STEPS)))
            assert_same(traces[0], traces[-1], f"{stack}: ", exact=False)


@EACH
def test_what_is_done_to_returned_and_given_arrays_has_no_effect(first):
    for stack in STACKS[first : first + 10]:
        expected = stack.drive(stack.start(), range(STEPS))
        assert_same(stack.drive(stack.start(), range(STEPS), spoil=True), expected, f"{stack}: ")


@EACH
def test_episodes_hold_the_sums_of_what_the_steps_returned(first):
    for stack in STACKS[first : first + 10]:
        env = EpisodeStatistics(stack.start())
        env.reset(seed=0)
        returns, over = np.zeros(NUM_ENVS), np.zeros(NUM_ENVS, bool)
        for step in range(STEPS):
            ((_, reward, terminated, truncated, info), again) = stack.drive(
                env, range(step, step + 1)
            )[0]
            ended = terminated | truncated
            assert not (stack.mode is NEXT_STEP and reward[over].any()), stack
            returns += reward
            assert ("episode" in info) == bool(ended.any()), stack
            if ended.any():
                np.testing.assert_array_equal(info["_episode"], ended, f"{stack}")
                np.testing.assert_allclose(
                    info["episode"]["r"][ended], returns[ended], rtol=1e-5, err_msg=f"{stack}"
                )
            begun = ended | (stack.schedule[step] if again is not None else False)
            returns[begun] = 0.0
            over = ended & ~stack.schedule[step]


def test_the_cases_cover_what_they_are_for():
    for toy in (True, False):
        stacks = [stack for stack in STACKS if stack.toy is toy]
        assert {stack.mode for stack in stacks} == set(AutoresetMode)
        assert {name for stack in stacks for name in stack.names} == {*LAYERS, "autoreset"}
        assert {kind for stack in stacks for kind in stack.conversions} == {"", "numpy", "torch"}
    assert any(isinstance(stack.make().unwrapped, gym.vector.SyncVectorEnv) for stack in STACKS)
