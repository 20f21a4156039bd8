"""ConstraintsAsTerminations and LagrangianReward against plain float64 loops, and that constraints hold."""

from __future__ import annotations

import copy
import doctest
import json
import math
import pickle
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import array_api_strict
import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space
from rich.console import Console
from toy_envs import ToyEnv

from legged_envs import cli
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer
from legged_envs.wrappers import (
    ActionRepeat,
    AutoReset,
    CostNormalize,
    CostReduce,
    EpisodeStatistics,
    TimeLimit,
    ToNumpy,
    ToTorch,
    Unsqueeze,
    VectorCMDP,
    constraints_as_terminations,
    lagrangian_reward,
)
from legged_envs.wrappers.constraints_as_terminations import ConstraintsAsTerminations
from legged_envs.wrappers.lagrangian_reward import LagrangianReward

NUM_ENVS = 5
LIMITS = (0.3, 0.05)
STEPS = 60
SAME_STEP, NEXT_STEP, DISABLED = (
    AutoresetMode.SAME_STEP,
    AutoresetMode.NEXT_STEP,
    AutoresetMode.DISABLED,
)
RESETTING = pytest.mark.parametrize("mode", [SAME_STEP, NEXT_STEP], ids=lambda mode: mode.name)
WRAPPERS = pytest.mark.parametrize("wrapper", [ConstraintsAsTerminations, LagrangianReward])
ARRAYS = pytest.mark.parametrize("array", ["numpy", "torch", "strict"])


def reward_of(env: int, episode: int, time: int) -> float:
    return 0.25 * ((env + 2 * episode + time) % 4)


def costs_of(env: int, episode: int, time: int) -> list[float]:
    return [(3 * env + episode + time) % 5 / 4, max(0.0, (env + time * time) % 7 / 6 - 0.5)]


def length_of(env: int, episode: int) -> int:
    return 3 + (2 * env + episode) % 4


class Script(gym.Env):
    """An episode with rewards, costs and an end that are computed from the indices of environment and episode."""

    observation_space = gym.spaces.Box(-100.0, 100.0, (2,))
    action_space = gym.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, index: int):
        self.index, self.episode, self.time = index, -1, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.episode, self.time = self.episode + 1, 0
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        where = (self.index, self.episode, self.time)
        costs = np.array(costs_of(*where), np.float32)
        over = self.time >= length_of(self.index, self.episode)
        falls = bool(self.episode % 2)
        return (
            self.observe(),
            reward_of(*where),
            over and falls,
            over and not falls,
            {"costs": costs},
        )

    def observe(self) -> np.ndarray:
        return np.array([self.episode, self.time], np.float32)


class Scripts(VectorEnv):
    """A batch of them that never resets by itself."""

    cost_names = ("first", "second")
    cost_limits = LIMITS

    def __init__(self, num_envs: int = NUM_ENVS, array: str = "numpy"):
        self.num_envs, self.array = num_envs, array
        self.metadata = {"autoreset_mode": DISABLED}
        self.envs = [Script(i) for i in range(num_envs)]
        self.single_observation_space, self.single_action_space = (
            Script.observation_space,
            Script.action_space,
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        mask = (
            np.ones(self.num_envs, bool) if options is None else np.asarray(options["reset_mask"])
        )
        for env, reset in zip(self.envs, mask, strict=True):
            if reset:
                env.reset()
        return self.given([env.observe() for env in self.envs]), {
            "log": {"episodes": int(mask.sum())}
        }

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, infos = zip(
            *(env.step(None) for env in self.envs), strict=True
        )
        costs = np.array([info["costs"] for info in infos])
        info = {"cost": self.given(costs.sum(1)), "costs": self.given(costs)}
        reward = self.given(np.array(reward, np.float32))
        return self.given(observation), reward, self.given(terminated), self.given(truncated), info

    def given(self, values: Any) -> Any:
        values = np.array(values)
        return {"numpy": np.asarray, "torch": torch.from_numpy, "strict": array_api_strict.asarray}[
            self.array
        ](values)

    def get_state(self) -> Any:
        return copy.deepcopy(self.envs)

    def set_state(self, state: Any) -> None:
        self.envs = copy.deepcopy(state)


class Quiet(Scripts):
    """The same without costs."""

    cost_names, cost_limits = (), ()


def gymnasiums(mode: AutoresetMode) -> SyncVectorEnv:
    return SyncVectorEnv([lambda i=i: Script(i) for i in range(NUM_ENVS)], autoreset_mode=mode)


def to_numpy(value: Any) -> Any:
    return np.asarray(value.__array__() if hasattr(value, "__array__") else value)


def drive(env: VectorEnv, steps: int = STEPS) -> list[tuple[np.ndarray, ...]]:
    """(reward, terminated, truncated) of every step and ``info``, with arrays of NumPy."""
    actions = np.zeros((env.num_envs, 1), np.float32)
    trace = []
    for _ in range(steps):
        _, reward, terminated, truncated, info = env.step(actions)
        trace.append((to_numpy(reward), to_numpy(terminated), to_numpy(truncated), info))
    return trace


def stream(
    mode: AutoresetMode, steps: int = STEPS, num_envs: int = NUM_ENVS
) -> list[tuple[np.ndarray, ...]]:
    """Return reward (N,), costs (N, K) and a mask of transitions (N,) of every step, from the scripts."""
    episode, time, resetting = (
        np.zeros(num_envs, int),
        np.zeros(num_envs, int),
        np.zeros(num_envs, bool),
    )
    out = []
    for _ in range(steps):
        reward, costs, counts = np.zeros(num_envs), np.zeros((num_envs, len(LIMITS))), ~resetting
        for i in range(num_envs):
            if resetting[i]:
                episode[i], time[i], resetting[i] = episode[i] + 1, 0, False
                continue
            time[i] += 1
            reward[i], costs[i] = (
                reward_of(i, episode[i], time[i]),
                costs_of(i, episode[i], time[i]),
            )
            if time[i] >= length_of(i, episode[i]):
                if mode is SAME_STEP:
                    episode[i], time[i] = episode[i] + 1, 0
                else:
                    resetting[i] = True
        out.append((reward, costs, counts))
    return out


class LagrangianLoop:
    """The formulas of :class:`LagrangianReward`, one number at a time."""

    def __init__(
        self,
        interval: int,
        warmup: int,
        pid: tuple[float, float, float],
        top: float,
        unit: float | None,
    ):
        self.interval, self.warmup, self.pid, self.top, self.fixed = (
            interval,
            warmup,
            pid,
            top,
            unit,
        )
        self.unit = unit
        self.integral, self.last, self.multipliers = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
        self.steps, self.sums, self.size, self.count = 0, [0.0, 0.0], 0.0, 0

    def __call__(self, reward, costs, counts):
        used = list(self.multipliers)
        out = []
        for i in range(len(reward)):
            out.append(
                reward[i] - sum(m * c for m, c in zip(used, costs[i], strict=True))
                if counts[i]
                else reward[i]
            )
            if counts[i]:
                self.count += 1
                self.size += abs(reward[i])
                self.sums = [s + c for s, c in zip(self.sums, costs[i], strict=True)]
        self.steps += 1
        if self.steps % self.interval == 0 and self.count:
            self.adapt()
        return np.array(out), used

    def adapt(self):
        if self.fixed is None:
            mean = self.size / self.count
            self.unit = mean if self.unit is None else 0.95 * self.unit + 0.05 * mean
        excess = [min(s / self.count / d - 1, 1.0) for s, d in zip(self.sums, LIMITS, strict=True)]
        if self.steps > self.warmup:
            p, i, d = self.pid
            for k, e in enumerate(excess):
                self.integral[k] = min(max(self.integral[k] + i * e, 0.0), self.top)
                value = p * e + self.integral[k] + d * max(e - self.last[k], 0.0)
                self.multipliers[k] = min(max(value, 0.0), self.top) * self.unit / LIMITS[k]
        self.last, self.sums, self.size, self.count = excess, [0.0, 0.0], 0.0, 0


class TerminationsLoop:
    """The formulas of :class:`ConstraintsAsTerminations`, one number at a time."""

    def __init__(
        self,
        interval: int,
        low: float,
        high: float,
        rate: float,
        gain: float,
        tau: float,
        combine: str = "max",
    ):
        self.interval, self.low, self.high, self.rate, self.gain, self.tau = (
            interval,
            low,
            high,
            rate,
            gain,
            tau,
        )
        self.combine = combine
        self.p = self.base = [low if rate else high] * 2
        self.maxima: list[float] | None = None
        self.steps, self.sums, self.count = 0, [0.0, 0.0], 0

    def __call__(self, reward, costs, counts):
        used = list(self.p)
        rows = [i for i in range(len(reward)) if counts[i]]
        if rows:
            maxima = [max(1e-6, max(costs[i][k] for i in rows)) for k in range(2)]
            old = self.maxima or maxima
            self.maxima = maxima
            if old is not maxima:
                self.maxima = [
                    self.tau * o + (1 - self.tau) * m for o, m in zip(old, maxima, strict=True)
                ]
        delta = [0.0] * len(reward)
        for i in rows:
            terms = [
                min(p * min(c / m, 1.0), 1.0)
                for p, c, m in zip(used, costs[i], self.maxima, strict=True)
            ]
            delta[i] = (
                max(terms)
                if self.combine == "max"
                else 1.0 - math.prod(1.0 - term for term in terms)
            )
            self.count += 1
            self.sums = [s + c for s, c in zip(self.sums, costs[i], strict=True)]
        self.steps += 1
        if self.steps % self.interval == 0 and self.count:
            if self.rate:
                excess = [
                    min(s / self.count / d - 1, 1.0) for s, d in zip(self.sums, LIMITS, strict=True)
                ]
                self.base = [
                    self.bound(b * math.exp(self.rate * e))
                    for b, e in zip(self.base, excess, strict=True)
                ]
                self.p = [
                    self.bound(b * math.exp(self.gain * e))
                    for b, e in zip(self.base, excess, strict=True)
                ]
            self.sums, self.count = [0.0, 0.0], 0
        return (
            np.array([max(r * (1 - d), 0.0) for r, d in zip(reward, delta, strict=True)]),
            delta,
            used,
        )

    def bound(self, p):
        return max(min(p, self.high), self.low)


LAGRANGIAN = [
    ({"lr": 0.05}, LagrangianLoop(4, 0, (0.0, 0.05, 0.0), math.inf, None)),
    (
        {"pid": (0.3, 0.1, 0.2), "max_multiplier": 0.4, "unit": 1.0, "warmup": 9},
        LagrangianLoop(4, 9, (0.3, 0.1, 0.2), 0.4, 1.0),
    ),
]
TERMINATIONS = [
    (
        {"rate": 0.2, "gain": 0.5, "max_probability": 1.5},
        TerminationsLoop(4, 0.05, 1.5, 0.2, 0.5, 0.95),
    ),
    (
        {"rate": 0.0, "max_probability": 0.25, "tau": 0.5},
        TerminationsLoop(4, 0.05, 0.25, 0.0, 1.0, 0.5),
    ),
    (
        {"rate": 0.2, "combine": "product"},
        TerminationsLoop(4, 0.05, 1.0, 0.2, 1.0, 0.95, "product"),
    ),
]


def place(
    wrap: Callable[[VectorEnv], VectorEnv], where: str, mode: AutoresetMode, array: str
) -> VectorEnv:
    """A wrapper around the scripts, on either side of our autoreset or on Gymnasium's own vector environment."""
    if where == "gymnasium":
        return wrap(gymnasiums(mode))
    core = TimeLimit(Scripts(array=array), 1000)
    return AutoReset(wrap(core), mode) if where == "below" else wrap(AutoReset(core, mode))


PLACES = pytest.mark.parametrize(
    ("where", "array"),
    [
        ("below", "numpy"),
        ("above", "numpy"),
        ("above", "torch"),
        ("above", "strict"),
        ("gymnasium", "numpy"),
    ],
)


# --- the formulas -----------------------------------------------------------------------------------------------------


@RESETTING
@PLACES
@pytest.mark.parametrize("case", range(len(LAGRANGIAN)))
def test_the_lagrangian_reward_is_that_of_a_plain_loop(where, array, mode, case):
    kwargs, loop = copy.deepcopy(LAGRANGIAN[case])
    env = place(lambda env: LagrangianReward(env, LIMITS, interval=4, **kwargs), where, mode, array)
    env.reset(seed=0)
    changed = 0
    for (reward, *_, info), step in zip(drive(env), stream(mode), strict=True):
        expected, multipliers = loop(*step)
        np.testing.assert_allclose(
            to_numpy(info["lagrange_multipliers"]), multipliers, rtol=1e-6, atol=1e-9
        )
        np.testing.assert_allclose(reward, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(to_numpy(info["original_reward"])[step[2]], step[0][step[2]])
        changed += int((np.abs(expected - step[0]) > 1e-3).any())
    assert changed > STEPS // 2


@RESETTING
@PLACES
@pytest.mark.parametrize("case", range(len(TERMINATIONS)))
def test_the_discounted_reward_is_that_of_a_plain_loop(where, array, mode, case):
    kwargs, loop = copy.deepcopy(TERMINATIONS[case])
    env = place(
        lambda env: ConstraintsAsTerminations(env, LIMITS, interval=4, **kwargs), where, mode, array
    )
    env.reset(seed=0)
    rose = fell = 0
    before = None
    for (reward, *_, info), step in zip(drive(env), stream(mode), strict=True):
        expected, delta, probabilities = loop(*step)
        np.testing.assert_allclose(to_numpy(info["max_probabilities"]), probabilities, rtol=1e-9)
        np.testing.assert_allclose(
            to_numpy(info["termination_probability"]), delta, rtol=1e-5, atol=1e-7
        )
        np.testing.assert_allclose(reward, expected, rtol=1e-5, atol=1e-6)
        before, last = probabilities, before or probabilities
        rose, fell = rose + (before > last), fell + (before < last)
    assert (rose > 3) == (kwargs["rate"] > 0)


@WRAPPERS
@ARRAYS
def test_without_autoreset_nothing_of_an_ended_episode_counts_until_its_reset(wrapper, array):
    """Resets come two steps late; what counts is the same as with resets at once."""
    prompt, late = (wrapper(Scripts(array=array), interval=10_000) for _ in range(2))
    prompt.reset()
    late.reset()
    wait = np.zeros(NUM_ENVS, int)
    for _ in range(30):
        *_, terminated, truncated, _ = late.step(np.zeros((NUM_ENVS, 1), np.float32))
        wait = np.where(wait > 0, wait + 1, to_numpy(terminated | truncated).astype(int))
        mask = wait > 2
        late.reset(options={"reset_mask": late.unwrapped.given(mask)})
        wait[mask] = 0
    expected, counts = np.zeros(2), 0
    for i, env in enumerate(late.unwrapped.envs):
        for episode in range(env.episode + 1):
            last = length_of(i, episode)
            for time in range(1, 1 + (last if episode < env.episode else min(env.time, last))):
                expected, counts = expected + costs_of(i, episode, time), counts + 1
    state = late.state_dict()
    assert int(state["count"]) == counts < 30 * NUM_ENVS
    np.testing.assert_allclose(to_numpy(state["cost_sums"]), expected, rtol=1e-6)


@WRAPPERS
def test_an_autoreset_in_the_next_step_hides_what_it_ignores_also_where_only_the_layers_above_see_the_end(
    wrapper,
):
    """Below the time limit, the wrapper learns of its ends through ``end_episodes``."""
    env = AutoReset(TimeLimit(wrapper(Scripts(), interval=10_000), 2), NEXT_STEP)
    env.reset()
    drive(env, 12)
    assert int(env.env.env.state_dict()["count"]) == 8 * NUM_ENVS


ABOVE = pytest.mark.parametrize(
    "above",
    [lambda env: AutoReset(env, NEXT_STEP), lambda env: AutoReset(ActionRepeat(env, 2))],
    ids=["AutoReset", "ActionRepeat"],
)


@WRAPPERS
@ABOVE
@pytest.mark.parametrize(
    ("convert", "inside", "outside"), [(ToNumpy, "torch", "numpy"), (ToTorch, "numpy", "torch")]
)
def test_layers_above_that_have_another_kind_of_arrays_end_the_same_episodes(
    wrapper, above, convert, inside, outside, assert_same
):
    """``end_episodes`` and resets get masks of the outer array kind."""
    traces = []
    adapted = []
    for change, array in ((convert, inside), (lambda env: env, outside)):
        core = wrapper(TimeLimit(Scripts(array=array), 4), interval=3)
        env = above(change(core))
        env.reset(seed=0)
        actions = np.zeros((NUM_ENVS, 1), np.float32)
        actions = torch.from_numpy(actions) if outside == "torch" else actions
        trace = []
        for _ in range(30):
            _, reward, terminated, truncated, _ = env.step(actions)
            state = core.state_dict()
            sums = (float(state["count"]), to_numpy(state["cost_sums"]))
            trace.append((to_numpy(reward), to_numpy(terminated), to_numpy(truncated), *sums))
            adapted.append(to_numpy(core.adapted))
        traces.append(trace)
    assert_same(*traces)
    # The exponential functions of NumPy and PyTorch differ in the last bit.
    np.testing.assert_allclose(adapted[:30], adapted[30:], rtol=3e-7)
    assert any(step[3] % NUM_ENVS for step in traces[0]), "some rows of a step did not count"


class SilentReset(ToyEnv):
    """A reset that reports nothing; the reset of ``ToyEnv`` reports a ``cost`` and no ``costs``."""

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        return super().reset(**kwargs)[0], {}


@pytest.mark.parametrize(
    "make",
    [
        lambda single: SyncVectorEnv([single], autoreset_mode=NEXT_STEP),
        lambda single: AutoReset(Unsqueeze(single()), NEXT_STEP),
        lambda single: CostNormalize(SyncVectorEnv([single], autoreset_mode=NEXT_STEP)),
    ],
    ids=["SyncVectorEnv", "AutoReset", "CostNormalize"],
)
@WRAPPERS
def test_a_step_that_only_resets_has_no_costs_whatever_the_reset_reports(
    wrapper, make, assert_same
):
    states = []
    for single in (ToyEnv, SilentReset):
        env = wrapper(make(single))
        env.reset(seed=7)
        rewards, ends = [], 0
        for _ in range(30):
            _, reward, terminated, truncated, _ = env.step(np.zeros((1, 2), np.float32))
            rewards.append(reward)
            ends += int(terminated[0] or truncated[0])
        assert ends > 2
        states.append([env.state_dict(), rewards])
    assert_same(*states)


@WRAPPERS
def test_raw_costs_count_where_normalized_ones_are_reported_beside_them(wrapper):
    class Halved(gym.vector.VectorWrapper):
        def step(self, actions: Any) -> Any:
            *step, info = self.env.step(actions)
            return *step, {**info, "costs": 0.5 * info["costs"], "original_costs": info["costs"]}

    envs = [AutoReset(wrapper(env, interval=3)) for env in (Scripts(), Halved(Scripts()))]
    rewards = []
    for env in envs:
        env.reset()
        rewards.append([step[0] for step in drive(env, 20)])
    np.testing.assert_array_equal(*rewards)


def test_a_scalar_cost_serves_where_there_are_no_others():
    class Scalar(Scripts):
        cost_limits = (0.4,)

        def step(self, actions: Any) -> Any:
            *step, info = super().step(actions)
            return *step, {"cost": info["cost"]}

    env = LagrangianReward(Scalar(), unit=1.0, lr=0.5, interval=1)
    env.reset()
    drive(env, 1)
    reward, _, _, info = drive(env, 1)[0]
    np.testing.assert_allclose(
        reward, info["original_reward"] - info["lagrange_multipliers"][0] * info["cost"], rtol=1e-6
    )
    assert info["lagrange_multipliers"].shape == (1,) and info["lagrange_multipliers"][0] > 0


def test_a_limit_of_zero_only_ever_raises_the_price_and_ignores_a_constraint_that_is_kept():
    env = LagrangianReward(AutoReset(Scripts()), (0.0, 1e9), lr=0.1, interval=5, unit=1.0)
    env.reset()
    prices = np.array([info["lagrange_multipliers"] for *_, info in drive(env, 40)])
    assert (np.diff(prices[:, 0]) >= 0).all() and prices[-1, 0] > 0.1
    assert (prices[:, 1] == 0).all()


@WRAPPERS
@ARRAYS
def test_whole_rewards_leave_costs_and_prices_their_fractions(wrapper, array):
    class Whole(Scripts):
        def step(self, actions: Any) -> Any:
            observation, _, *rest = super().step(actions)
            return observation, self.given(np.full(self.num_envs, 3, self.dtype)), *rest

    traces = []
    for dtype in (np.int64, np.float32):
        core = Whole(array=array)
        core.dtype = dtype
        env = AutoReset(wrapper(core, interval=2))
        env.reset(seed=0)
        traces.append(drive(env, 20))
        assert to_numpy(traces[-1][0][3]["original_reward"]).dtype == dtype
    for (whole, *_), (expected, *_) in zip(*traces, strict=True):
        assert whole.dtype == np.float32
        np.testing.assert_array_equal(whole, expected)
    assert len({float(step[0][0]) for step in traces[0]}) > 4


@pytest.mark.parametrize("module", [constraints_as_terminations, lagrangian_reward])
def test_the_examples_of_the_docstrings_are_right(module):
    results = doctest.testmod(module)
    assert results.attempted > 5 and not results.failed


# --- a learner that follows the reward keeps its limits ---------------------------------------------------------------


class Bandit(VectorEnv):
    """Acting with a ∈ [0, 1] earns a and costs a², (1 − a) / 4 and nothing, forever."""

    cost_names = ("square", "rest", "none")
    cost_limits = (0.25, 0.9, 0.1)
    metadata = {"autoreset_mode": DISABLED}  # noqa: RUF012

    def __init__(self, num_envs: int = 16):
        self.num_envs = num_envs
        self.single_observation_space = self.single_action_space = gym.spaces.Box(0.0, 1.0, (1,))
        self.observation_space = self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros((self.num_envs, 1), np.float32), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        a = actions[:, 0]
        never = np.zeros(self.num_envs, bool)
        return (
            actions,
            a,
            never,
            never.copy(),
            {"costs": np.stack((a * a, (1 - a) / 4, 0 * a), axis=1)},
        )


def learn(env: VectorEnv, steps: int) -> tuple[list[float], dict[str, Any]]:
    """Climb the reward by a small step per interval, from rewards at two points around the mean; returns the means."""
    env.reset(seed=0)
    mean, means = 1.0, []
    spread = np.linspace(-0.02, 0.02, env.num_envs, dtype=np.float32)[:, None]
    for _ in range(steps):
        _, reward, _, _, info = env.step(np.clip(mean + spread, 0, 1).astype(np.float32))
        slope = np.polyfit(spread[:, 0], reward, 1)[0]
        mean = float(np.clip(mean + 0.01 * np.tanh(5 * slope), 0.02, 0.98))
        means.append(mean)
    return means, info


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: LagrangianReward(env, lr=0.02, interval=5),
        lambda env: LagrangianReward(env, pid=(0.1, 0.02, 0.1), interval=5),
        lambda env: ConstraintsAsTerminations(env, interval=5),
    ],
    ids=["dual ascent", "pid", "terminations"],
)
def test_the_costs_of_a_learner_settle_at_the_limit_that_binds(wrap):
    """Without constraints a is 1; the first limit allows 0.5, the others allow anything."""
    means, info = learn(wrap(Bandit()), 3000)
    assert means[0] > 0.97
    settled = np.square(means[-800:]).mean()
    assert settled == pytest.approx(0.25, rel=0.1)
    price = info.get("lagrange_multipliers", info.get("max_probabilities"))
    assert price[0] > 5 * price[1] and price[0] > 5 * price[2]


# --- sampled terminations ---------------------------------------------------------------------------------------------


class Chain(Bandit):
    """Rewards of 1; environment i costs more on its i-th step than ever else."""

    cost_names, cost_limits = ("step",), (0.1,)

    def __init__(self, num_envs: int):
        super().__init__(num_envs)
        self.metadata = {"autoreset_mode": SAME_STEP}
        self.time = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.time = 0
        return super().reset()

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.time += 1
        never = np.zeros(self.num_envs, bool)
        cost = np.full(self.num_envs, (1.0, 0.25, 0.5)[self.time % 3], np.float32)
        cost[0] = 1.0  # the maximum of the batch
        observation = np.full((self.num_envs, 1), self.time, np.float32)
        return (
            observation,
            np.ones(self.num_envs, np.float32),
            never,
            never.copy(),
            {"costs": cost[:, None]},
        )


def sampled(num_envs: int, seed: Any, steps: int = 8, p: float = 0.4) -> list[np.ndarray]:
    env = ConstraintsAsTerminations(
        Chain(num_envs), rate=0.0, max_probability=p, terminate="sample"
    )
    env.reset(seed=seed)
    return [terminated for _, terminated, _, _ in drive(env, steps)]


def test_processes_that_share_a_batch_sample_what_one_process_would():
    class Part(Chain):
        random = SimpleNamespace(first_env=5)

    env = ConstraintsAsTerminations(Part(3), rate=0.0, max_probability=0.4, terminate="sample")
    env.reset(seed=3)
    part = [terminated for _, terminated, _, _ in drive(env, 20)]
    # The first environment of each batch has the largest cost, and others terminate as in one.
    np.testing.assert_array_equal(np.array(part)[:, 1:], np.array(sampled(8, 3, steps=20))[:, 6:])


def test_sampled_terminations_have_the_returns_of_float_dones_in_expectation():
    """Sum of (1 − δ_t) γ^t Π_{s<t} (1 − δ_s), as CaT's learner would see it."""
    num_envs, gamma = 20_000, 0.9
    env = ConstraintsAsTerminations(
        Chain(num_envs), rate=0.0, max_probability=0.4, terminate="sample"
    )
    env.reset(seed=1)
    returns, alive, expected, survival = np.zeros(num_envs), np.ones(num_envs), 0.0, 1.0
    for t, (reward, terminated, _, info) in enumerate(drive(env, 10)):
        delta = float(info["termination_probability"][1])
        returns += gamma**t * reward * alive
        alive *= ~terminated
        expected += gamma**t * (1 - delta) * survival
        survival *= 1 - delta
    error = returns[1:].std() / math.sqrt(num_envs)
    assert returns[1:].mean() == pytest.approx(expected, abs=4 * error)
    assert alive[1:].mean() == pytest.approx(survival, abs=0.012)


def test_what_is_sampled_follows_from_the_seed_and_the_environment_alone():
    one = sampled(64, 3)
    np.testing.assert_array_equal(one, sampled(64, 3))
    np.testing.assert_array_equal(np.array(one)[:, :8], sampled(8, 3))
    assert not np.array_equal(one, sampled(64, 4))
    listed = np.array(sampled(4, [9, 3, 3, 4], steps=20))
    np.testing.assert_array_equal(listed[:, 1], listed[:, 2])
    assert not np.array_equal(listed[:, 2], listed[:, 3])
    np.testing.assert_array_equal(listed[:, 3], np.array(sampled(4, [4] * 4, steps=20))[:, 3])
    columns = {tuple(column) for column in np.array(sampled(64, 3, steps=20)).T}
    assert len(columns) > 60


@pytest.mark.parametrize("array", ["torch", "strict"])
def test_every_kind_of_array_draws_the_same(array):
    traces = []
    for kind in ("numpy", array):
        wrapped = ConstraintsAsTerminations(
            Scripts(array=kind), rate=0.0, max_probability=0.5, terminate="sample"
        )
        env = AutoReset(wrapped)
        env.reset(seed=5)
        traces.append([terminated for _, terminated, _, _ in drive(env, 20)])
    np.testing.assert_array_equal(*traces)
    assert np.any(traces[0])


def test_below_an_autoreset_a_sampled_episode_really_ends():
    core = Scripts()
    env = AutoReset(
        EpisodeStatistics(ConstraintsAsTerminations(core, rate=0.0, terminate="sample"))
    )
    env.reset(seed=0)
    ends = 0
    for _ in range(40):
        due = [each.time + 1 >= length_of(each.index, each.episode) for each in core.envs]
        before = [each.episode for each in core.envs]
        observation, _, terminated, truncated, info = env.step(np.zeros((NUM_ENVS, 1), np.float32))
        by_chance = terminated & ~np.array(due)
        assert not (by_chance & (info["termination_probability"] == 0.0)).any()
        assert (terminated | truncated)[info["termination_probability"] == 1.0].all()
        ends += int(by_chance.sum())
        for i, each in enumerate(core.envs):
            assert each.episode == before[i] + bool(terminated[i] or truncated[i])
            np.testing.assert_array_equal(observation[i], each.observe())
        if by_chance.any():
            assert info["_episode"][by_chance].all()
    assert ends > 20


@pytest.mark.parametrize("where", ["above", "gymnasium"])
def test_above_an_autoreset_a_sampled_episode_ends_for_the_learner_alone(where):
    plain = place(lambda env: env, where, SAME_STEP, "numpy")
    env = place(
        lambda env: ConstraintsAsTerminations(env, LIMITS, rate=0.0, terminate="sample"),
        where,
        SAME_STEP,
        "numpy",
    )
    plain.reset(seed=0)
    env.reset(seed=0)
    ends = 0
    for _ in range(40):
        actions = np.zeros((NUM_ENVS, 1), np.float32)
        expected, _, terminated, truncated, infos = plain.step(actions)
        observation, _, ours, ours_truncated, info = env.step(actions)
        np.testing.assert_array_equal(observation, expected)
        np.testing.assert_array_equal(ours_truncated, truncated)
        assert (ours | ~terminated).all()
        by_chance = ours & ~terminated
        ends += int(by_chance.sum())
        ended = ours | truncated
        assert ("final_obs" in info) == ended.any()
        if ended.any():
            np.testing.assert_array_equal(info["_final_obs"], ended)
            for i in np.flatnonzero(ended):
                true_last = expected[i] if by_chance[i] else infos["final_obs"][i]
                np.testing.assert_array_equal(info["final_obs"][i], true_last)
            for i in np.flatnonzero(by_chance):
                info["final_obs"][i][:] = -1.0
            assert (observation[by_chance] != -1.0).all()
    assert ends > 20


def test_a_sampled_end_above_gymnasiums_environments_has_the_last_observation_of_a_tuple_too():
    class Pair(Script):
        observation_space = gym.spaces.Tuple((Script.observation_space, gym.spaces.Discrete(100)))

        def observe(self) -> Any:
            return super().observe(), self.time

    core = SyncVectorEnv([lambda i=i: Pair(i) for i in range(NUM_ENVS)], autoreset_mode=SAME_STEP)
    env = ConstraintsAsTerminations(core, LIMITS, rate=0.0, terminate="sample")
    env.reset(seed=0)
    kinds = set()
    for _ in range(40):
        observation, _, terminated, truncated, info = env.step(np.zeros((NUM_ENVS, 1), np.float32))
        for i in np.flatnonzero(terminated | truncated):
            vector, time = (part[i] for part in info["final_obs"])
            assert vector.shape == (2,) and time == vector[1]
            has_gone_on = bool(observation[1][i])
            kinds.add(has_gone_on)
            assert not has_gone_on or (
                time == observation[1][i] and np.array_equal(vector, observation[0][i])
            )
            assert has_gone_on or time == length_of(i, int(vector[0]))
    assert kinds == {True, False}


def test_sampling_takes_no_64_bit_integers_of_the_environments_arrays(monkeypatch):
    """JAX has none unless they are enabled, torch none on some devices."""
    asarray = array_api_strict.asarray

    def without_64_bit_integers(values: Any, **kwargs: Any) -> Any:
        array = asarray(values, **kwargs)
        if array.dtype in (array_api_strict.int64, array_api_strict.uint64):
            raise OverflowError("Python int too large")
        return array

    expected = ConstraintsAsTerminations(Scripts(), rate=0.0, terminate="sample")
    env = ConstraintsAsTerminations(Scripts(array="strict"), rate=0.0, terminate="sample")
    expected.reset(seed=5)
    with monkeypatch.context() as patch:
        patch.setattr(array_api_strict, "asarray", without_64_bit_integers)
        env.reset(seed=5)
        ends = [terminated for _, terminated, _, _ in drive(env, 10)]
    np.testing.assert_array_equal(ends, [terminated for _, terminated, _, _ in drive(expected, 10)])
    assert np.any(ends)


def test_a_partial_reset_with_a_seed_begins_only_those_streams_anew():
    env = ConstraintsAsTerminations(Scripts(), terminate="sample")
    env.reset(seed=7)
    start = env.state_dict()["draws"]
    drive(env, 3)
    later = env.state_dict()["draws"]
    mask = np.array([True, False, False, True, False])
    env.reset(seed=7, options={"reset_mask": mask})
    np.testing.assert_array_equal(env.state_dict()["draws"], np.where(mask, start, later))
    env.reset()
    np.testing.assert_array_equal(env.state_dict()["draws"], np.where(mask, start, later))


# --- state, aliasing, log ---------------------------------------------------------------------------------------------

STACKS = pytest.mark.parametrize(
    "wrap",
    [
        lambda env: LagrangianReward(env, pid=(0.2, 0.1, 0.1), interval=4),
        lambda env: ConstraintsAsTerminations(env, rate=0.3, interval=4),
        lambda env: ConstraintsAsTerminations(env, rate=0.3, interval=4, terminate="sample"),
    ],
    ids=["lagrangian", "terminations", "sampled"],
)


def plain(trace: list[Any]) -> list[Any]:
    return [
        [
            *step[:3],
            {
                key: to_numpy(info[key])
                for key in info
                if key.endswith(("reward", "multipliers", "ties", "ity"))
            },
        ]
        for *step, info in trace
    ]


@STACKS
@ARRAYS
@pytest.mark.parametrize("saved_at", [0, 1, 6, 12])
def test_a_run_goes_on_from_its_saved_state(wrap, array, saved_at, assert_same):
    def fresh() -> VectorEnv:
        return wrap(AutoReset(Scripts(array=array), SAME_STEP))

    env = fresh()
    env.reset(seed=0)
    drive(env, saved_at)
    state = env.get_state()
    expected = plain(drive(env, 15))
    for target in (env, fresh()):
        target.set_state(state)
        assert_same(plain(drive(target, 15)), expected)


@STACKS
@pytest.mark.parametrize(
    ("saved", "loaded"), [("numpy", "torch"), ("torch", "numpy"), ("strict", "torch")]
)
@pytest.mark.parametrize("mode", [SAME_STEP, NEXT_STEP], ids=lambda mode: mode.name)
def test_a_run_goes_on_from_a_state_of_another_kind_of_arrays(wrap, saved, loaded, mode):
    env, other = (AutoReset(wrap(Scripts(array=array)), mode) for array in (saved, loaded))
    for each in (env, other):
        each.reset(seed=0)
    drive(env, 7)
    other.set_state(env.get_state())
    for expected, step in zip(plain(drive(env, 15)), plain(drive(other, 15)), strict=True):
        for one, two in zip(
            (*expected[:3], *expected[3].values()), (*step[:3], *step[3].values()), strict=True
        ):
            np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-6)


@STACKS
def test_a_wrapper_can_be_pickled_in_use(wrap, assert_same):
    env = AutoReset(wrap(Scripts()))
    env.reset(seed=0)
    drive(env, 6)
    other = pickle.loads(pickle.dumps(env))
    assert_same(plain(drive(other, 10)), plain(drive(env, 10)))


@STACKS
@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))],
    ids=["copy", "pickle"],
)
def test_a_wrapper_can_be_copied_in_use_where_the_devices_of_arrays_cannot(
    wrap, duplicate, monkeypatch, assert_same
):
    """Read-only arrays, like JAX's."""

    def refuse(self: Any, *_: Any) -> Any:
        raise TypeError("cannot pickle 'Device' object")

    env = AutoReset(wrap(Scripts(array="strict")))
    env.reset(seed=0)
    drive(env, 6)
    array = array_api_strict.asarray(0.0)
    monkeypatch.setattr(type(array.device), "__reduce_ex__", refuse)
    monkeypatch.setattr(
        type(array), "__reduce_ex__", lambda self, _: (array_api_strict.asarray, (self._array,))
    )
    other = duplicate(env)
    assert_same(plain(drive(other, 10)), plain(drive(env, 10)))


@STACKS
@pytest.mark.parametrize("mode", [SAME_STEP, DISABLED], ids=lambda mode: mode.name)
@ARRAYS
def test_changing_what_was_returned_changes_nothing_later(wrap, mode, array, assert_same):
    traces = []
    for spoil in (False, True):
        env = wrap(
            Scripts(array=array) if mode is DISABLED else AutoReset(Scripts(array=array), mode)
        )
        env.reset(seed=0)
        trace = []
        for _ in range(12):
            step = env.step(np.zeros((NUM_ENVS, 1), np.float32))
            trace.append([to_numpy(value).copy() for value in step[:4]])
            if spoil:
                own = (
                    "original_reward",
                    "termination_probability",
                    "lagrange_multipliers",
                    "max_probabilities",
                    "costs",
                )
                for value in (*step[:2], *(step[4][key] for key in own if key in step[4])):
                    value[...] = 7.0
                for flag in step[2:4]:
                    flag[...] = True
        traces.append(trace)
    assert_same(*traces)


@STACKS
@pytest.mark.parametrize("above", [False, True])
def test_the_log_names_what_is_adapted(wrap, above):
    env = wrap(AutoReset(Scripts())) if above else AutoReset(wrap(Scripts()))
    env.reset(seed=0)
    logs = [info["log"] for *_, info in drive(env, 30) if "log" in info]
    assert len(logs) > 5
    names = [
        f"{name}/{cost}"
        for name in ("lagrange_multiplier", "max_probability")
        for cost in ("first", "second")
    ]
    values = np.array([[float(log[name]) for name in names if name in log] for log in logs])
    assert values.shape == (len(logs), 2) and len(np.unique(values[:, 0])) > 2
    assert all(log["episodes"] >= 1 for log in logs)


@WRAPPERS
def test_what_is_adapted_keeps_no_gradients_of_rewards_and_costs(wrapper):
    class Differentiable(Scripts):
        def step(self, actions: Any) -> Any:
            observation, reward, terminated, truncated, info = super().step(actions)
            info["costs"] = info["costs"] + 0.0 * actions
            return observation, reward + actions[:, 0], terminated, truncated, info

    env = wrapper(Differentiable(array="torch"), interval=2)
    env.reset(seed=0)
    for _ in range(5):
        actions = torch.ones(NUM_ENVS, 1, requires_grad=True)
        env.step(actions)[1].sum().backward()
        assert actions.grad is not None and actions.grad.any()
        state = env.state_dict()
        assert not any(
            value.requires_grad for value in state.values() if isinstance(value, torch.Tensor)
        )


@STACKS
@pytest.mark.parametrize("change", ["num_envs", "costs"])
def test_a_state_of_other_environments_or_costs_is_refused_and_changes_nothing(
    wrap, change, assert_same
):
    class Three(Scripts):
        cost_names, cost_limits = ("first", "second", "third"), (0.3, 0.05, 0.1)

        def step(self, actions: Any) -> Any:
            *step, info = super().step(actions)
            return *step, {"costs": np.concatenate((info["costs"], info["costs"][:, :1]), axis=1)}

    env, other = wrap(Scripts()), wrap(Scripts(NUM_ENVS + 1) if change == "num_envs" else Three())
    for each in (env, other):
        each.reset(seed=0)
        drive(each, 8)
    before, scripts = env.state_dict(), pickle.dumps(env.unwrapped.envs)
    name = type(env).__name__
    with pytest.raises(ValueError, match=rf"{name}.*\([52],\).*\([63],\)"):
        env.load_state_dict(other.state_dict())
    with pytest.raises(ValueError, match=name):
        env.set_state(other.get_state())
    with pytest.raises(ValueError, match=rf"{name}.*'over'.*\['ended'\]"):
        env.load_state_dict({"ended": None})
    for lacking in before:
        with pytest.raises(ValueError, match=rf"{name}.*'{lacking}'"):
            env.load_state_dict(
                {key: value for key, value in other.state_dict().items() if key != lacking}
            )
    assert_same(env.state_dict(), before)
    assert pickle.dumps(env.unwrapped.envs) == scripts


@WRAPPERS
@pytest.mark.parametrize(
    "wrap", [lambda env: AutoReset(env, NEXT_STEP), lambda env: AutoReset(ActionRepeat(env, 3))]
)
def test_what_is_adapted_stays_whole_where_there_are_as_many_environments_as_costs(wrapper, wrap):
    core = wrapper(Scripts(num_envs=2), (0.01, 0.01), interval=1)
    key = "lagrange_multipliers" if wrapper is LagrangianReward else "max_probabilities"
    env = wrap(core)
    taken: list[np.ndarray] = []
    below = core.step

    def step(actions: Any) -> Any:
        result = below(actions)
        taken.append(result[4][key].copy())
        return result

    core.step = step
    env.reset(seed=0)
    for _ in range(20):
        info = drive(env, 1)[0][-1]
        np.testing.assert_array_equal(info[key], taken[-1])
        np.testing.assert_array_equal(info.get("final_info", info)[key], taken[-1])
    assert (np.max(taken, axis=0) > 0.0).all()


# --- bad input --------------------------------------------------------------------------------------------------------


@WRAPPERS
@pytest.mark.parametrize(
    ("make", "kwargs", "message"),
    [
        (Quiet, {}, "no cost terms"),
        (lambda: SyncVectorEnv([lambda: Script(0)]), {}, r"no cost_limits.*limits="),
        (Scripts, {"limits": (0.1,)}, r"2 numbers \(first, second\).*\(0.1,\)"),
        (Scripts, {"limits": (0.1, -0.2)}, r"at least 0.*-0.2"),
        (Scripts, {"limits": (0.1, math.inf)}, r"finite.*inf"),
        (Scripts, {"limits": 0.3}, "2 numbers"),
        (Scripts, {"interval": 0}, "interval.*0"),
        (Scripts, {"warmup": -1}, "warmup.*-1"),
    ],
)
def test_bad_arguments_are_refused(wrapper, make, kwargs, message):
    with pytest.raises(ValueError, match=message):
        wrapper(make(), **kwargs)


@pytest.mark.parametrize(
    ("wrapper", "kwargs", "message"),
    [
        (LagrangianReward, {"lr": -1.0}, "lr=-1.0"),
        (LagrangianReward, {"pid": (1.0, 2.0)}, r"pid=\(1.0, 2.0\)"),
        (LagrangianReward, {"max_multiplier": 0.0}, "max_multiplier.*0.0"),
        (LagrangianReward, {"unit": -1.0}, "unit.*-1.0"),
        (ConstraintsAsTerminations, {"max_probability": 0.01}, "min_probability.*0.05 and 0.01"),
        (ConstraintsAsTerminations, {"max_probability": (0.5, 0.5, 0.5)}, "one for each cost"),
        (ConstraintsAsTerminations, {"rate": -0.1}, "rate.*-0.1"),
        (ConstraintsAsTerminations, {"gain": -0.1}, "gain.*-0.1"),
        (ConstraintsAsTerminations, {"tau": 1.0}, "tau.*1.0"),
        (ConstraintsAsTerminations, {"combine": "min"}, "'max', 'product'.*min"),
        (ConstraintsAsTerminations, {"terminate": "maybe"}, "'none', 'sample'.*maybe"),
    ],
)
def test_bad_arguments_of_each_are_refused(wrapper, kwargs, message):
    with pytest.raises(ValueError, match=message):
        wrapper(Scripts(), **kwargs)


def test_sampling_above_an_autoreset_in_the_next_step_names_the_order_that_works():
    for env in (AutoReset(Scripts(), NEXT_STEP), gymnasiums(NEXT_STEP)):
        with pytest.raises(ValueError, match=r"AutoReset\(ConstraintsAsTerminations"):
            ConstraintsAsTerminations(env, LIMITS, terminate="sample")


@WRAPPERS
def test_an_environment_that_reports_no_costs_or_others_is_refused_on_its_first_step(wrapper):
    class Silent(Scripts):
        def step(self, actions: Any) -> Any:
            return *super().step(actions)[:4], {"speed": 1.0}

    for env, message in (
        (Silent(), "neither 'costs' nor 'cost', got .'speed'"),
        (gymnasiums(SAME_STEP), r"\(5, 3\).*\(5, 2\)"),
    ):
        wrapped = wrapper(env, None if env.__class__ is Silent else (0.1, 0.2, 0.3))
        wrapped.reset(seed=0)
        with pytest.raises(ValueError, match=message):
            drive(wrapped, 1)


def test_limits_and_names_are_found_within_gymnasiums_environments(make_vec):
    env = SyncVectorEnv([lambda: gym.make("Legged/Go2-Flat-v0")])
    try:
        wrapped = LagrangianReward(env)
        bare = make_vec(1).unwrapped
        assert tuple(wrapped.limits) == bare.cost_limits and wrapped.cost_names == bare.cost_names
    finally:
        env.close()


def test_errors_name_the_environment_in_a_line(make_vec):
    class Without(gym.vector.VectorWrapper):
        def step(self, actions: Any) -> Any:
            return *super().step(actions)[:4], {}

    env = make_vec(1, cfg={"costs": {}})
    assert len(str(env.unwrapped)) > 1000
    below = Without(env)
    stepped = (VectorCMDP(below), CostNormalize(below))
    below.reset(seed=0)
    calls: list[Callable[[], Any]] = [lambda: LagrangianReward(env), lambda: CostReduce(env, "sum")]
    calls += [
        lambda wrapped=wrapped: wrapped.step(np.zeros((1, 12), np.float32)) for wrapped in stepped
    ]
    for call in calls:
        with pytest.raises(ValueError, match="CoreVectorEnv 'Legged/Go2-Flat-v0'") as error:
            call()
        assert len(str(error.value)) < 450


# --- the robots -------------------------------------------------------------------------------------------------------


@WRAPPERS
@RESETTING
@pytest.mark.parametrize("array", ["numpy", "torch"])
def test_go2_pays_for_its_costs(wrapper, mode, array, make_vec, random_actions):
    changes = {
        "costs.joint_velocity.params.soft_limit": 0.1,
        "costs.joint_torque.params.soft_limit": 0.2,
    }
    kwargs = {"max_episode_steps": 7, "autoreset_mode": mode, "array": array, "cfg": changes}
    bare, env = make_vec(4, **kwargs), make_vec(4, **kwargs)
    settings = {"lr": 0.5} if wrapper is LagrangianReward else {"min_probability": 0.5}
    env = wrapper(env, interval=3, **settings)
    assert tuple(env.limits) == bare.unwrapped.cost_limits
    for each in (bare, env):
        each.reset(seed=0)
    paid = 0
    for action in random_actions(20, 4):
        action = action if array == "numpy" else torch.from_numpy(action)
        expected, reward, terminated, truncated, _ = bare.step(action)
        observation, ours, *flags, info = env.step(action)
        assert type(ours) is type(reward) and ours.dtype == reward.dtype
        np.testing.assert_array_equal(observation, expected)
        np.testing.assert_array_equal(info["original_reward"], reward)
        for flag, other in zip(flags, (terminated, truncated), strict=True):
            np.testing.assert_array_equal(flag, other)
        assert (to_numpy(ours) <= to_numpy(reward)).all()
        paid += int((to_numpy(ours) < to_numpy(reward)).sum())
    assert paid > 10


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: LagrangianReward(env, lr=0.5, interval=2),
        lambda env: ConstraintsAsTerminations(env, interval=2, terminate="sample"),
    ],
    ids=["lagrangian", "sampled"],
)
def test_training_with_constraints_resumes_bit_for_bit(wrap, tmp_path):
    def trained(iterations: int, resume: Path | None = None) -> Trainer:
        ppo = PPOCfg(steps_per_env=4, epochs=1, mini_batches=2, hidden=(16,))
        cfg = TrainCfg(
            "Legged/Go2-Flat-v0",
            num_envs=8,
            iterations=4,
            run_dir=tmp_path,
            resume=resume,
            algo=ppo,
        )
        trainer = Trainer(prepare(cfg), Console(quiet=True), wrap)
        for _ in range(iterations):
            trainer.iterate()
        return trainer

    whole = trained(4)
    trained(2).save()
    resumed = trained(2, resume=tmp_path)
    expected, got = (each.algorithm.save()["actor"] for each in (whole, resumed))
    assert all(torch.equal(expected[name], got[name]) for name in expected)
    assert (whole.env.env.adapted > 0).any() and torch.equal(
        whole.env.env.adapted, resumed.env.env.adapted
    )


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, short_evaluations: None) -> Callable[..., None]:
    """``example(name, *words)`` runs an example as ``python name.py words`` does."""

    def run(name: str, *words: object) -> None:
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        runpy.run_path(str(Path(__file__).parents[2] / "examples" / f"{name}.py"))

    return run


@pytest.mark.slow
def test_the_example_trains_three_ways_and_writes_its_figure_and_table(example, tmp_path, capsys):
    example("constrained_go2", "--updates", 3, "--num-envs", 8, "--episodes", 4, "--out", tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    assert list(results) == ["no constraints", "terminations", "lagrangian"]
    table, told = (tmp_path / "results.md").read_text(), capsys.readouterr().out
    assert all(cost in table and cost in told for cost in results["lagrangian"]["costs"])
    assert (tmp_path / "constrained_go2.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_example_on_rough_ground_goes_on_from_a_run_and_writes_its_table(
    example, tmp_path, capsys
):
    few = ["--num-envs", "8", "--episodes", "4"]
    train = [
        "train",
        "Legged/Go2-Rough-v0",
        "--no-video",
        "--run-dir",
        str(tmp_path / "run"),
        "--iterations",
        "1",
    ]
    cli.main([*train, *few])
    example("constrained_rough", tmp_path / "run", "--updates", 2, *few, "--out", tmp_path)
    table = (tmp_path / "results.md").read_text()
    assert (
        table.strip() in capsys.readouterr().out
        and "| cost stumble |" in table
        and "| cross their tile |" in table
    )


class Given(VectorEnv):
    """Two environments with the rewards and costs that it was given."""

    metadata = {"autoreset_mode": DISABLED}  # noqa: RUF012
    num_envs = 2
    cost_names = ("one", "other")
    cost_limits = (1.0, 1.0)
    single_action_space = gym.spaces.Box(-1.0, 1.0, (1,))
    single_observation_space = gym.spaces.Box(-1.0, 1.0, (1,))
    action_space = batch_space(single_action_space, 2)
    observation_space = batch_space(single_observation_space, 2)

    def __init__(self, rewards: np.ndarray, costs: np.ndarray):
        self.rewards = iter(rewards)
        self.costs = iter(costs)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros((2, 1), np.float32), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        none = np.zeros(2, bool)
        info = {"costs": next(self.costs)}
        return np.zeros((2, 1), np.float32), next(self.rewards), none, none.copy(), info


@pytest.mark.parametrize("combine", ["max", "product"])
@pytest.mark.parametrize("reward_size", [1.0, 1e6, 1e30])
@pytest.mark.parametrize("cost_size", [1e-3, 1.0, 1e6, 1e30])
def test_rewards_and_costs_of_any_size_are_those_of_float64(
    cost_size: float, reward_size: float, combine: str
) -> None:
    random = np.random.default_rng(0)
    rewards = (reward_size * random.uniform(0.0, 1.0, (30, 2))).astype(np.float32)
    costs = (cost_size * random.uniform(0.0, 1.0, (30, 2, 2))).astype(np.float32)
    # Constraints that are broken as far as they can be: δ is close to 1.
    costs[::3] = np.float32(cost_size) * np.float32(1.0 - 1e-6)
    env = ConstraintsAsTerminations(
        Given(rewards, costs), rate=0.0, max_probability=1.0, combine=combine
    )
    env.reset(seed=0)
    maxima = None
    for reward, cost in zip(rewards.astype(np.float64), costs.astype(np.float64), strict=True):
        largest = np.maximum(cost.max(0), 1e-6)
        maxima = largest if maxima is None else 0.95 * maxima + 0.05 * largest
        each = np.clip(cost / maxima, 0.0, 1.0)
        delta = each.max(1) if combine == "max" else 1.0 - np.prod(1.0 - each, axis=1)
        step = env.step(np.zeros((2, 1), np.float32))
        # 1 − δ of float64 is exact to the last digit of 1, and no further.
        rounding = 1e-15 * reward_size
        np.testing.assert_allclose(step[1], reward * (1.0 - delta), rtol=1e-6, atol=rounding)
        np.testing.assert_allclose(step[4]["termination_probability"], delta, rtol=1e-6)


@pytest.mark.parametrize("wrapper", [LagrangianReward, ConstraintsAsTerminations])
def test_costs_without_a_number_after_the_end_of_an_episode_do_not_count(wrapper):
    class Broken(Scripts):
        def step(self, actions: Any) -> Any:
            observation, reward, terminated, truncated, info = super().step(actions)
            costs = np.array(info["costs"])
            costs[self.ended] = np.nan
            self.ended |= terminated | truncated
            return observation, reward, terminated, truncated, {**info, "costs": costs}

    env = Broken()
    env.ended = np.zeros(env.num_envs, bool)
    env = wrapper(env, limits=LIMITS)
    env.reset(seed=0)
    for _ in range(2 * STEPS):
        _, reward, *_ = env.step(np.zeros((env.num_envs, 1)))
    assert env.env.unwrapped.ended.any()
    assert np.isfinite(reward).all() and np.isfinite(env.adapted).all()
