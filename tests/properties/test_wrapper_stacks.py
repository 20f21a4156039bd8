"""Random stacks of wrappers, and what every one of them has to keep.

Hypothesis draws an environment, an autoreset mode, the layers below and above the autoreset with
conversions anywhere, and a schedule of partial resets. It prints the smallest stack that fails.
"""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_envs import ARRAYS, ToyVectorEnv, convert, make_toy_env
from wrapper_checks import (
    DISABLED,
    NEXT_STEP,
    SAME_STEP,
    assert_equal,
    moves,
    overwrite,
    rows,
    to_numpy,
)

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

NUM_ENVS = 3
CONVERSIONS: dict[str, Callable[[VectorEnv], VectorEnv]] = {"numpy": ToNumpy, "torch": ToTorch}
ROW_LAYERS: dict[str, Callable[[VectorEnv], VectorEnv]] = {
    "limit": lambda env: TimeLimit(env, 4),
    "short": lambda env: TimeLimit(env, 2),
    "repeat": lambda env: ActionRepeat(env, 2),
    "scale": lambda env: ActionScale(env, [-1.0, -2.0], [1.0, 3.0]),
    "statistics": EpisodeStatistics,
    "reduce": lambda env: CostReduce(env, "max"),
}
"""Layers in which an environment does not depend on the other environments."""
BATCH_LAYERS: dict[str, Callable[[VectorEnv], VectorEnv]] = {
    "observations": ObsNormalize,
    "rewards": RewardNormalize,
    "standard rewards": lambda env: RewardNormalize(env, scale="step"),
    "costs": CostNormalize,
    "lagrangian": lambda env: LagrangianReward(env, lr=0.05, interval=2),
    "terminations": lambda env: ConstraintsAsTerminations(env, interval=3),
}
"""Layers with numbers that all environments share."""
LAYERS = {**ROW_LAYERS, **BATCH_LAYERS, **CONVERSIONS}
NEED_COSTS = ("reduce", "costs", "lagrangian", "terminations")
SOURCES = ("toy", "sync", "self-resetting sync")
"""The environment at the bottom: this package's kind, or Gymnasium's without or with autoreset."""


class Stack:
    """A stack of wrappers over a toy environment, which can be made again."""

    def __init__(
        self, source: str, mode: AutoresetMode, below: list[str], above: list[str], **toy: Any
    ):
        self.source, self.mode, self.toy = source, mode, toy
        self.has_autoreset = mode is not DISABLED and source != "self-resetting sync"
        self.below = [name for name in below if self._allows(name)]
        self.above = [name for name in above if self._allows(name)]

    def _allows(self, name: str) -> bool:
        return self.toy["costs"] or name not in NEED_COSTS

    def __repr__(self) -> str:
        return f"Stack({self.source!r}, {self.mode}, {self.below}, {self.above}, **{self.toy})"

    def copy(self, **changes: Any) -> Stack:
        """The same stack with changes, without its conversions if the array kind changes."""
        below, above = self.below, self.above
        if "array" in changes:
            below = [name for name in below if name not in CONVERSIONS]
            above = [name for name in above if name not in CONVERSIONS]
        return Stack(self.source, self.mode, below, above, **{**self.toy, **changes})

    @property
    def array(self) -> str:
        """The array kind that the stack gives and takes."""
        outside_in = [*self.above[::-1], *self.below[::-1]]
        return next((name for name in outside_in if name in CONVERSIONS), self.toy["array"])

    def make(self) -> VectorEnv:
        env = self._make_source()
        for name in self.below:
            env = LAYERS[name](env)
        if self.has_autoreset:
            env = AutoReset(env, self.mode)
        for name in self.above:
            env = LAYERS[name](env)
        return env

    def _make_source(self) -> VectorEnv:
        if self.source == "toy":
            return ToyVectorEnv(**self.toy)
        make = functools.partial(make_toy_env, 5, self.toy["grouped"])
        mode = self.mode if self.source == "self-resetting sync" else DISABLED
        return SyncVectorEnv([make] * self.toy["num_envs"], autoreset_mode=mode)


@st.composite
def stacks(
    draw: Any, source: str, mode: AutoresetMode, layers: tuple[str, ...] = tuple(LAYERS)
) -> Stack:
    is_toy = source == "toy"
    above = [name for name in layers if name != "repeat"]
    resets_itself = source == "self-resetting sync" and mode is not DISABLED
    below = above if resets_itself else list(layers)
    # Gymnasium's environments have at least one layer: alone they are not what is tested here.
    fewest = 0 if is_toy else 1
    # The sizes are drawn first: lists of any size are short, and then few layers meet.
    sizes = draw(st.integers(fewest, 4)), draw(st.integers(0, 4))
    return Stack(
        source,
        mode,
        draw(st.lists(st.sampled_from(below), min_size=sizes[0], max_size=sizes[0])),
        draw(st.lists(st.sampled_from(above), min_size=sizes[1], max_size=sizes[1])),
        num_envs=NUM_ENVS,
        array=draw(st.sampled_from(ARRAYS)) if is_toy else "numpy",
        grouped=draw(st.booleans()),
        costs=draw(st.sampled_from([True, True, False])) if is_toy else True,
        lengths=tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))),
        first=draw(st.integers(0, 3)),
    )


SCHEDULES = st.lists(
    st.lists(st.sampled_from([False, False, False, True]), min_size=NUM_ENVS, max_size=NUM_ENVS),
    min_size=8,
    max_size=16,
)
"""Which environments the user resets after each step."""

Steps = list[tuple[Any, Any]]
"""Of each step what it returned, and the mask and the observation of the reset after it, or None."""


def drive(
    env: VectorEnv,
    stack: Stack,
    schedule: list[list[bool]],
    *,
    start: int = 0,
    spoil: bool = False,
    column: slice = slice(None),
) -> Steps:
    """Steps from ``start`` on. In the mode DISABLED environments that ended are reset as well."""
    if start == 0:
        env.reset(seed=0)
    steps: Steps = []
    for step in range(start, len(schedule)):
        action = convert(moves(len(schedule))[step, column], stack.array)
        result = env.step(action)
        steps.append((to_numpy(result), None))
        ended = steps[-1][0][2] | steps[-1][0][3]
        if spoil:
            overwrite((*result, action))
        mask = np.array(schedule[step])[column] | (ended if stack.mode is DISABLED else False)
        if mask.any():
            given_mask = convert(mask, stack.array)
            again = env.reset(options={"reset_mask": given_mask})
            steps[-1] = (steps[-1][0], (mask, to_numpy(again[0])))
            if spoil:
                overwrite((*again, given_mask))
    return steps


def assert_close(one: Any, other: Any, where: str = "") -> None:
    """Asserts the same keys, types and shapes, finite numbers, and equality up to rounding."""
    if isinstance(one, dict):
        assert set(one) == set(other), where
        for key in set(one) - {"t"}:
            assert_close(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_close(a, b, f"{where}[{i}]")
    elif isinstance(one, np.ndarray) and one.dtype != object:
        assert one.dtype == other.dtype and one.shape == other.shape, where
        assert one.dtype.kind != "f" or np.isfinite(one).all(), where
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5, err_msg=where)


def counts(env: Any) -> list[float]:
    """How many samples, transitions and episodes each layer of a stack has counted."""
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


MODES = pytest.mark.parametrize("mode", AutoresetMode, ids=lambda mode: mode.name)
EACH_SOURCE = pytest.mark.parametrize("source", SOURCES)
"""Parameters and not draws: what Hypothesis draws from a few choices is far from even."""
some = settings(max_examples=8, deadline=None, derandomize=True)
more = settings(some, max_examples=16)


@MODES
@EACH_SOURCE
@some
@given(st.data(), SCHEDULES)
def test_array_kinds_and_conversions_anywhere_change_no_value_and_no_count(
    source, mode, data, schedule
):
    stack = data.draw(stacks(source, mode))
    env, plain_stack = stack.make(), stack.copy(array="numpy")
    plain = plain_stack.make()
    assert_close(drive(env, stack, schedule), drive(plain, plain_stack, schedule))
    np.testing.assert_allclose(counts(env), counts(plain), rtol=1e-3, atol=1e-3)


@MODES
@EACH_SOURCE
@some
@given(st.data(), SCHEDULES)
def test_what_is_done_to_returned_arrays_and_given_ones_changes_nothing_later(
    source, mode, data, schedule
):
    stack = data.draw(stacks(source, mode))
    assert_equal(
        drive(stack.make(), stack, schedule, spoil=True), drive(stack.make(), stack, schedule)
    )


@MODES
@EACH_SOURCE
@some
@given(st.data(), SCHEDULES)
def test_a_stack_goes_on_from_its_copies_and_from_its_state(source, mode, data, schedule):
    stack = data.draw(stacks(source, mode))
    split = data.draw(st.integers(1, len(schedule) - 1))
    whole = drive(stack.make(), stack, schedule)
    env = stack.make()
    drive(env, stack, schedule[:split])
    copies = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    state = env.get_state()
    for _ in range(2):  # the state is a copy: the first continuation leaves it alone
        fresh = stack.make()
        fresh.set_state(state)
        assert_equal(drive(fresh, stack, schedule, start=split), whole[split:])
    for each in (*copies, env):
        assert_equal(drive(each, stack, schedule, start=split), whole[split:])


@MODES
@pytest.mark.parametrize("kinds", [("numpy", "torch"), ("torch", "numpy")], ids=" to ".join)
@more
@given(st.data(), SCHEDULES)
def test_the_state_of_a_stack_of_one_array_kind_goes_on_in_one_of_another(
    mode, kinds, data, schedule
):
    drawn = data.draw(stacks("toy", mode))
    split = data.draw(st.integers(1, len(schedule) - 1))
    stack, other_stack = (drawn.copy(array=kind) for kind in kinds)
    env, fresh, used = stack.make(), other_stack.make(), other_stack.make()
    drive(env, stack, schedule[:split])
    used.reset(seed=0)
    state = env.get_state()
    expected = drive(env, stack, schedule, start=split)
    for other in (fresh, used):
        other.set_state(state)
        assert_close(drive(other, other_stack, schedule, start=split), expected)


@MODES
@more
@given(st.data(), SCHEDULES)
def test_each_row_does_what_its_environment_does_alone(mode, data, schedule):
    stack = data.draw(stacks("toy", mode, (*ROW_LAYERS, *CONVERSIONS)))
    batch = drive(stack.make(), stack, schedule)
    for i in range(NUM_ENVS):
        row = slice(i, i + 1)
        single = stack.copy(num_envs=1, first=stack.toy["first"] + i)
        alone = drive(single.make(), single, schedule, column=row)
        for (of_batch, reset), (of_one, own_reset) in zip(batch, alone, strict=True):
            assert_equal(rows(of_batch[:4], row), of_one[:4])
            info, own_info = of_batch[4], of_one[4]
            for key in {"time", "cost", "costs", "num_steps"} & set(own_info):
                assert_equal(info[key][row], own_info[key])
            for key in ("final_obs", "final_info", "episode"):
                marked = key in info and bool(info[f"_{key}"][i])
                assert marked == (key in own_info)
                if marked and key != "final_info":
                    assert_equal(rows(info[key], row), own_info[key])
            if own_reset is not None:
                assert_equal(rows(reset[1], row), own_reset[1])


@MODES
@EACH_SOURCE
@some
@given(st.data(), SCHEDULES)
def test_masks_values_and_counters_agree(source, mode, data, schedule):
    """Statistics and a counter on top of the stack against sums, in float64, of what it returns."""
    stack = data.draw(stacks(source, mode))
    limit = TimeLimit(EpisodeStatistics(stack.make()), 1000)
    returns, costs = np.zeros(NUM_ENVS), np.zeros(NUM_ENVS)
    lengths, over = np.zeros(NUM_ENVS, int), np.zeros(NUM_ENVS, bool)
    shows_age = stack.source == "toy" and "observations" not in (*stack.below, *stack.above)
    for step in range(len(schedule)):
        steps = drive(limit, stack, schedule[: step + 1], start=step)
        (observation, reward, terminated, truncated, info), reset = steps[0]
        cost = info.get("cost", np.zeros(NUM_ENVS))
        ended = terminated | truncated
        if stack.mode is NEXT_STEP:  # what a step that only resets returns
            assert not (ended[over].any() or reward[over].any() or cost[over].any())
        lengths += ~over
        returns += reward
        costs += cost
        if shows_age:
            age = (observation["critic"] if stack.toy["grouped"] else observation)[:, 2]
            assert (age[over] == 0.0).all()
            assert stack.mode is not SAME_STEP or (age[ended] == 0.0).all()
        assert ("episode" in info) == bool(ended.any())
        if ended.any():
            np.testing.assert_array_equal(info["_episode"], ended)
            np.testing.assert_array_equal(info["episode"]["l"], lengths * ended)
            sums = {"r": returns * ended, "c": costs * ended}
            for key, expected in sums.items():
                np.testing.assert_allclose(info["episode"][key], expected, rtol=1e-6, atol=1e-6)
        assert ("final_obs" in info) == (stack.mode is SAME_STEP and bool(ended.any()))
        if "final_obs" in info:
            np.testing.assert_array_equal(info["_final_obs"], ended)
            assert_equal(rows(info["final_obs"], ~ended), rows(observation, ~ended))
        again = ended.copy() if stack.mode is not NEXT_STEP else np.zeros(NUM_ENVS, bool)
        if reset is not None:
            again |= reset[0]
        lengths[again | ended], returns[again | ended], costs[again | ended] = 0, 0.0, 0.0
        over = ended & ~again
        if stack.mode is not DISABLED or reset is not None:
            np.testing.assert_array_equal(np.asarray(limit.elapsed_steps), lengths)


def test_the_stacks_cover_what_they_are_for():
    drawn: list[Stack] = []

    @some
    @given(st.data())
    def draw(data: Any) -> None:
        drawn.extend(
            data.draw(stacks(source, mode)) for source in SOURCES for mode in AutoresetMode
        )

    draw()
    assert {name for stack in drawn for name in stack.below} == {*LAYERS}
    assert {name for stack in drawn for name in stack.above} == {*LAYERS} - {"repeat"}
    for source in SOURCES:
        of_source = [stack for stack in drawn if stack.source == source]
        used = {name for stack in of_source for name in (*stack.below, *stack.above)}
        assert used >= {*LAYERS} - {"repeat"}
    assert {stack.toy["array"] for stack in drawn} == set(ARRAYS)
    assert {stack.toy["costs"] for stack in drawn} == {False, True}
