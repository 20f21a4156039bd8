"""EpisodeStatistics against sums, and against Gymnasium's own statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.wrappers import vector as theirs
from toy_envs import ToyVectorEnv, convert
from wrapper_checks import (
    DISABLED,
    KINDS,
    MODES,
    SAME_STEP,
    SEEDS,
    Differentiable,
    moves,
    skip_wrong_lengths,
    sync,
)

from legged_envs.wrappers.action_scale import ActionScale
from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.constraints_as_terminations import ConstraintsAsTerminations
from legged_envs.wrappers.cost_reduce import CostReduce
from legged_envs.wrappers.episode_statistics import EpisodeStatistics
from legged_envs.wrappers.plumbing.arrays import as_numpy
from legged_envs.wrappers.time_limit import TimeLimit


@MODES
def test_statistics_over_gymnasiums_environments_agree_with_gymnasiums_and_with_sums_of_the_costs(
    mode,
):
    skip_wrong_lengths(mode)
    env = theirs.RecordEpisodeStatistics(
        EpisodeStatistics(TimeLimit(sync(mode), 5), window=7), stats_key="theirs"
    )
    env.reset(seed=SEEDS)
    costs, over = np.zeros((3, 2)), np.zeros(3, bool)
    everything: list[np.ndarray] = []
    for action in moves(60):
        _, _, terminated, truncated, info = env.step(action)
        ended = terminated | truncated
        here = np.array(info.get("costs", np.zeros((3, 2))), np.float64)
        if mode is SAME_STEP and ended.any():
            here[ended] = info["final_info"]["costs"][ended]
        costs = np.where(over[:, None], 0.0, costs) + here
        if ended.any():
            np.testing.assert_array_equal(info["_episode"], ended)
            for key in ("r", "l"):
                np.testing.assert_allclose(info["episode"][key], info["theirs"][key], rtol=1e-6)
            np.testing.assert_allclose(info["episode"]["costs"], costs * ended[:, None], rtol=1e-6)
            np.testing.assert_allclose(info["episode"]["c"], costs.sum(1) * ended, rtol=1e-6)
            everything += [costs[i].copy() for i in np.flatnonzero(ended)]
        if mode is DISABLED and ended.any():
            env.reset(options={"reset_mask": ended.copy()})
            costs[ended] = 0.0
        elif mode is SAME_STEP:
            costs[ended] = 0.0
        else:
            over = ended
    ours = env.env
    assert ours.episode_count == env.episode_count == len(everything) > 30
    np.testing.assert_allclose(ours.return_window, list(env.return_queue)[-7:], rtol=1e-12)
    np.testing.assert_array_equal(ours.length_window, list(env.length_queue)[-7:])
    np.testing.assert_allclose(ours.costs_window, everything[-7:])
    means = ours.means()
    assert set(means) == {"return", "length", "seconds", "cost", "cost/odd", "cost/late"}
    assert means["cost"] == pytest.approx(np.sum(everything[-7:], axis=1).mean())
    assert means["cost/late"] == pytest.approx(np.mean(everything[-7:], axis=0)[1])


def test_sums_of_long_episodes_are_those_of_float64():
    class Thirds(ToyVectorEnv):
        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            observation, reward, *flags, info = super().step(actions)
            return observation, np.full_like(reward, 1 / 3), *flags, info

    env = EpisodeStatistics(TimeLimit(Thirds(1, lengths=(5000,)), 3000))
    env.reset()
    action = moves(1, 1)[0]
    for _ in range(3000):
        info = env.step(action)[4]
    assert env.return_window[0] == pytest.approx(3000 * float(np.float32(1 / 3)), rel=1e-12)
    assert info["episode"]["r"][0] == np.float32(1000.00003)


def test_an_episode_that_ended_counts_once_though_its_row_goes_on():
    env = EpisodeStatistics(ToyVectorEnv(lengths=(2, 3)))
    env.reset()
    infos = [env.step(action)[4] for action in moves(5)]
    assert [info["_episode"].tolist() if "episode" in info else [] for info in infos] == [
        [],
        [True, False, True],
        [False, True, False],
        [],
        [],
    ]
    assert env.episode_count == 3 and list(env.length_window) == [2, 2, 3]
    assert EpisodeStatistics(ToyVectorEnv()).means() == {}


@KINDS
def test_statistics_of_whole_rewards_and_costs_are_those_of_fractions(array):
    class Cast(VectorWrapper):
        def __init__(self, env: VectorEnv, dtype: type):
            super().__init__(env)
            self.dtype = dtype

        def step(self, actions: Any) -> Any:
            observation, reward, terminated, truncated, info = self.env.step(actions)
            values = {key: 2 * as_numpy(info[key]) for key in ("cost", "costs")} | {
                "reward": as_numpy(reward) // 1
            }
            cast = {key: convert(value.astype(self.dtype), array) for key, value in values.items()}
            return observation, cast.pop("reward"), terminated, truncated, cast

    envs = [
        EpisodeStatistics(Cast(ToyVectorEnv(array=array), dtype))
        for dtype in (np.int64, np.float32)
    ]
    for env in envs:
        env.reset()
        for action in moves(6):
            env.step(convert(action, array))
    whole, expected = envs
    assert whole.episode_count == 3 and sum(whole.cost_window) > 0
    for name in ("return", "length", "cost", "costs"):
        assert getattr(whole, f"{name}_window") == getattr(expected, f"{name}_window")


def test_sums_of_rewards_keep_no_gradients():
    env = EpisodeStatistics(Differentiable(ToyVectorEnv(array="torch")))
    env.reset()
    for _ in range(2):
        reward = env.step(torch.zeros(3, 2, requires_grad=True))[1]
        assert reward.requires_grad and not env.state_dict()["returns"].requires_grad


@pytest.mark.parametrize(
    "wrapper",
    [
        EpisodeStatistics,
        lambda env: TimeLimit(env, 3),
        lambda env: ConstraintsAsTerminations(env, terminate="sample"),
    ],
    ids=["EpisodeStatistics", "TimeLimit", "ConstraintsAsTerminations"],
)
@pytest.mark.parametrize("mode", [DISABLED, SAME_STEP], ids=lambda mode: mode.name)
def test_a_step_before_the_first_reset_is_refused(wrapper, mode):
    below = ToyVectorEnv() if mode is DISABLED else AutoReset(ToyVectorEnv())
    env = wrapper(below)
    with pytest.raises(RuntimeError, match=rf"{type(env).__name__}.*reset\(\)"):
        env.step(moves(1)[0])
    env.reset()
    env.step(moves(1)[0])


@pytest.mark.parametrize("window", [0, 1.5, True, None])
def test_a_window_that_is_no_positive_integer_is_refused(window):
    with pytest.raises(ValueError, match=f"window.*{window!r}"):
        EpisodeStatistics(ToyVectorEnv(), window)


def test_means_of_go2_name_its_cost_terms(make_vec, random_actions):
    env = EpisodeStatistics(
        CostReduce(ActionScale(make_vec(4, max_episode_steps=4), -2.0, 2.0), "weighted")
    )
    plain = make_vec(4, max_episode_steps=4)
    env.reset(seed=0), plain.reset(seed=0)
    for action in random_actions(4, 4):
        one, other = env.step(2.0 * action), plain.step(action)
        np.testing.assert_allclose(one[0], other[0], atol=1e-4)
        limits = np.array(plain.unwrapped.cost_limits)
        np.testing.assert_allclose(one[4]["cost"], (one[4]["costs"] / limits).sum(1), rtol=1e-5)
    means = env.means()
    assert means["length"] == 4.0
    assert [name for name in means if "/" in name] == [
        f"cost/{name}" for name in plain.unwrapped.cost_names
    ]
