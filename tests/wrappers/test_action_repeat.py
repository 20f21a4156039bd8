"""ActionRepeat against a loop over single environments."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv, VectorEnv
from toy_envs import ToyVectorEnv, convert, make_toy_env
from wrapper_checks import (
    DISABLED,
    GROUPED,
    KINDS,
    MODES,
    NEXT_STEP,
    SEEDS,
    Reusing,
    assert_equal,
    moves,
    sync,
    to_numpy,
)

from legged_envs.wrappers.action_repeat import ActionRepeat
from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.episode_statistics import EpisodeStatistics
from legged_envs.wrappers.plumbing.arrays import as_numpy
from legged_envs.wrappers.plumbing.foreign_env import transition_cost
from legged_envs.wrappers.time_limit import TimeLimit


class Repeated(gym.Wrapper):
    """An oracle of repeated actions for one environment."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        count, total, cost, costs = 0, 0.0, 0.0, np.zeros(2, np.float32)
        for _ in range(3):
            observation, reward, terminated, truncated, info = self.env.step(action)
            count, total, cost, costs = (
                count + 1,
                total + reward,
                cost + info["cost"],
                costs + info["costs"],
            )
            if terminated or truncated:
                break
        return (
            observation,
            total,
            terminated,
            truncated,
            {**info, "cost": cost, "costs": costs, "num_steps": count},
        )


def make_repeated(limit: int) -> gym.Env:
    return Repeated(make_toy_env(limit))


@MODES
def test_actions_repeat_as_a_loop_over_each_environment_repeats_them(mode):
    ours: VectorEnv = ActionRepeat(TimeLimit(sync(DISABLED), 5), 3)
    if mode is not DISABLED:
        ours = AutoReset(ours, mode)
    make = functools.partial(make_repeated, 5)
    reference = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    ours.reset(seed=SEEDS), reference.reset(seed=SEEDS)
    taken = []
    for action in moves(25):
        result, expected = ours.step(action), reference.step(action)
        assert_equal(result[:4], expected[:4])
        for key in ("cost", "costs", "num_steps"):
            wanted = transition_cost(expected[4], key)  # None where all environments only reset
            if wanted is not None:
                np.testing.assert_allclose(transition_cost(result[4], key), wanted, rtol=1e-6)
        ended = expected[2] | expected[3]
        taken += result[4]["num_steps"].tolist()
        if mode is DISABLED and ended.any():
            for env in (ours, reference):
                env.reset(options={"reset_mask": ended.copy()})
    assert {1, 2, 3} <= set(taken) and (0 in taken) == (mode is NEXT_STEP)


@KINDS
@GROUPED
def test_a_row_that_ends_within_a_repeat_keeps_its_terminal_step(array, grouped):
    """Rows of this environment continue after the end of an episode."""
    env = ActionRepeat(EpisodeStatistics(TimeLimit(ToyVectorEnv(4, array, grouped=grouped), 5)), 4)
    env.reset()
    action = moves(1, 4)[0]
    observation, reward, terminated, truncated, info = to_numpy(env.step(convert(action, array)))
    times = np.array([3, 4, 2, 4])  # the lengths are 3, 6, 2 and 5
    critic = observation["critic"] if grouped else observation
    np.testing.assert_array_equal(critic[:, 2], times)
    np.testing.assert_array_equal(info["time"], times)
    np.testing.assert_array_equal(info["num_steps"], times)
    np.testing.assert_array_equal(terminated, [True, False, True, False])
    assert not truncated.any()
    wanted = [sum(i + 0.25 * t + action[i, 0] for t in range(1, times[i] + 1)) for i in range(4)]
    np.testing.assert_allclose(reward, wanted, rtol=1e-6)
    np.testing.assert_allclose(info["costs"], [[2, 0.5], [2, 1.0], [1, 0], [2, 1.0]])
    np.testing.assert_allclose(info["cost"], info["costs"].sum(1))
    np.testing.assert_array_equal(info["_episode"], terminated)
    np.testing.assert_array_equal(info["episode"]["l"], times * terminated)
    np.testing.assert_allclose(info["episode"]["r"], wanted * terminated, rtol=1e-6)
    limit = env.env.env
    np.testing.assert_array_equal(as_numpy(limit.elapsed_steps), times)
    env.reset(options={"reset_mask": convert(terminated, array)})
    result = to_numpy(env.step(convert(action, array)))
    np.testing.assert_array_equal(
        result[3], [False, True, False, True]
    )  # the limit counts the steps of the repeats
    np.testing.assert_array_equal(result[4]["num_steps"], [4, 1, 4, 1])


@GROUPED
def test_repeats_sum_steps_that_come_in_the_same_arrays(grouped):
    env, plain = (
        ActionRepeat(wrap(ToyVectorEnv(4, grouped=grouped)), 4)
        for wrap in (Reusing, lambda env: env)
    )
    env.reset(), plain.reset()
    for action in moves(3, 4):
        result, expected = env.step(action), plain.step(action)
        assert_equal(result, expected)
        env.reset(options={"reset_mask": result[2] | result[3]})
        plain.reset(options={"reset_mask": expected[2] | expected[3]})


class Sparse(gym.Wrapper):
    """Reports costs on every second step only; with ``silent`` False, zeros on the others."""

    def __init__(self, silent: bool, turn: int):
        super().__init__(make_toy_env())
        self.silent, self.turn = silent, turn

    def step(self, action: Any) -> Any:
        *step, info = self.env.step(action)
        if self.env.unwrapped.time % 2 != self.turn:
            if self.silent:
                info = {key: info[key] for key in info.keys() - {"cost", "costs"}}
            else:
                info |= {"cost": 0.0, "costs": np.zeros(2, np.float32)}
        return *step, info


@pytest.mark.parametrize("turn", [0, 1])
def test_a_cost_that_a_repeat_does_not_report_counts_as_zero(turn):
    def make(silent: bool) -> VectorEnv:
        envs = SyncVectorEnv([lambda: Sparse(silent, turn)] * 3, autoreset_mode=DISABLED)
        return AutoReset(EpisodeStatistics(ActionRepeat(envs, 2)))

    env, full = make(True), make(False)
    env.reset(seed=SEEDS), full.reset(seed=SEEDS)
    odd = 0
    for action in moves(20):
        info, expected = env.step(action)[4], full.step(action)[4]
        silent = (expected["num_steps"] == 1) & (
            turn == 0
        )  # an episode whose last repeat is its first step
        np.testing.assert_array_equal(info["_cost"], ~silent)
        np.testing.assert_array_equal(info["_costs"], ~silent)
        for key in ("cost", "costs"):
            np.testing.assert_array_equal(info[key], expected[key])
        if "episode" in info:
            np.testing.assert_array_equal(info["episode"]["c"], expected["episode"]["c"])
        odd += int((expected["num_steps"] == 1).sum())
    assert odd > 3


@pytest.mark.parametrize("times", [0, -1, 2.0, True, None])
def test_a_number_of_repeats_that_is_no_positive_integer_is_refused(times):
    with pytest.raises(ValueError, match=f"times.*{times!r}"):
        ActionRepeat(ToyVectorEnv(), times)
