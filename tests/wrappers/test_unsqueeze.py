"""Unsqueeze against Gymnasium's batch of one."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import VectorEnv
from toy_envs import make_toy_env
from wrapper_checks import (
    DISABLED,
    GROUPED,
    MODES,
    RESETTING,
    SEEDS,
    assert_equal,
    assert_same_as_gymnasium,
    moves,
    sync,
)

from legged_envs.wrappers.action_repeat import ActionRepeat
from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.episode_statistics import EpisodeStatistics
from legged_envs.wrappers.time_limit import TimeLimit
from legged_envs.wrappers.unsqueeze import Unsqueeze


@GROUPED
def test_a_plain_environment_becomes_the_batch_of_one_that_gymnasium_makes_of_it(grouped):
    ours, reference = Unsqueeze(make_toy_env(5, grouped)), sync(DISABLED, 5, grouped, num_envs=1)
    assert (ours.observation_space, ours.action_space) == (
        reference.observation_space,
        reference.action_space,
    )
    assert assert_same_as_gymnasium(ours, reference, DISABLED) >= 8


@RESETTING
def test_a_plain_environment_resets_as_gymnasium_resets_a_batch_of_one(mode):
    ours = AutoReset(TimeLimit(Unsqueeze(make_toy_env()), 4), mode)
    assert assert_same_as_gymnasium(ours, sync(mode, 4, num_envs=1), mode) > 8


def test_discrete_actions_costs_and_pictures_of_a_plain_environment():
    cartpole = Unsqueeze(gym.make("CartPole-v1"))
    assert cartpole.reset(seed=0)[0].shape == (1, 4) and cartpole.action_space.shape == (1,)
    assert cartpole.step(cartpole.action_space.sample())[1].shape == (1,)
    assert not hasattr(cartpole, "cost_names")
    toy = Unsqueeze(make_toy_env(5, render_mode="rgb_array"))
    assert toy.cost_names == ("odd", "late") and toy.cost_limits == (0.5, 0.25)
    toy.reset(seed=0)
    info = toy.step(np.zeros((1, 2), np.float32))[4]
    assert (
        info["cost"].shape == (1,)
        and info["costs"].shape == (1, 2)
        and info["parts"]["time"].tolist() == [1]
    )
    assert [picture.shape for picture in toy.render()] == [(16, 16, 3)]


def test_a_mask_decides_whether_a_batch_of_one_resets():
    env = Unsqueeze(make_toy_env())
    with pytest.raises(RuntimeError, match="reset_mask"):
        env.reset(options={"reset_mask": np.array([False])})
    env.reset(seed=[7])
    observation = env.step(moves(1, 1)[0])[0]
    again, info = env.reset(options={"reset_mask": np.array([False])})
    assert_equal(again, observation)
    assert info == {}
    assert env.reset(options={"reset_mask": np.array([True])})[0][0, 1] == 0.0
    with pytest.raises(ValueError, match=r"reset_mask.*\(1,\).*\(3,\)"):
        env.reset(options={"reset_mask": np.zeros(3, bool)})
    with pytest.raises(TypeError, match=r"reset_mask.*int64"):
        env.reset(options={"reset_mask": np.zeros(1, np.int64)})
    with pytest.raises(ValueError, match=r"num_envs=1.*2"):
        env.reset(seed=[1, 2])
    with pytest.raises(ValueError, match=r"shape \(1, 2\), got \(2,\)"):
        env.step(np.zeros(2, np.float32))


@MODES
@GROUPED
def test_a_batch_of_one_and_its_time_limit_go_on_from_their_state_and_from_their_pickle(
    mode, grouped
):
    def make() -> VectorEnv:
        env = EpisodeStatistics(Unsqueeze(make_toy_env(4, grouped)))
        return env if mode is DISABLED else AutoReset(env, mode)

    def go_on(env: VectorEnv) -> list[Any]:
        results = []
        for action in moves(12, 1):
            results.append(env.step(action))
            if mode is DISABLED and (results[-1][2] | results[-1][3])[0]:
                results.append(env.reset(options={"reset_mask": np.array([True])}))
        return results

    for before in (1, 3):
        env, fresh = make(), make()
        env.reset(seed=5)
        for action in moves(before, 1):
            env.step(action)
        state, pickled = env.get_state(), pickle.dumps(env)
        expected = go_on(env)
        fresh.reset(seed=9)
        fresh.set_state(state)
        assert_equal(go_on(fresh), expected)
        assert_equal(go_on(pickle.loads(pickled)), expected)


@RESETTING
def test_a_stack_over_gymnasiums_environments_goes_on_from_its_pickle(mode):
    env = EpisodeStatistics(AutoReset(ActionRepeat(TimeLimit(sync(DISABLED), 5), 2), mode))
    env.reset(seed=SEEDS)
    for _ in range(3):
        env.step(moves(1)[0])
        again = pickle.loads(pickle.dumps(env))
        assert_equal(
            [again.step(action) for action in moves(8)], [env.step(action) for action in moves(8)]
        )


def test_the_robot_of_gymnasium_make_is_row_0_of_the_batch(make_single, make_vec, random_actions):
    single = AutoReset(Unsqueeze(make_single(max_episode_steps=3)))
    batch = make_vec(2, max_episode_steps=3)
    np.testing.assert_array_equal(single.reset(seed=0)[0], batch.reset(seed=0)[0][:1])
    for action in random_actions(5, 2):
        result, expected = single.step(action[:1]), batch.step(action)
        for one, other in zip(result[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(one, other[:1])
        np.testing.assert_array_equal(result[4]["costs"], expected[4]["costs"][:1])
