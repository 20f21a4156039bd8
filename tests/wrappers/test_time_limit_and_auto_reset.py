"""TimeLimit and AutoReset against Gymnasium, and orders of wrappers that cannot work."""

from __future__ import annotations

import functools

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import vector as theirs
from toy_envs import ToyVectorEnv, convert, make_toy_env
from wrapper_checks import (
    DISABLED,
    GROUPED,
    KINDS,
    MODES,
    NEXT_STEP,
    RESETTING,
    SAME_STEP,
    SEEDS,
    Reusing,
    assert_equal,
    assert_same_as_gymnasium,
    moves,
    overwrite,
    sync,
    to_numpy,
)

from legged_envs.wrappers.action_repeat import ActionRepeat
from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.constraints_as_terminations import ConstraintsAsTerminations
from legged_envs.wrappers.cost_normalize import CostNormalize
from legged_envs.wrappers.episode_statistics import EpisodeStatistics
from legged_envs.wrappers.lagrangian_reward import LagrangianReward
from legged_envs.wrappers.obs_normalize import ObsNormalize
from legged_envs.wrappers.plumbing.cmdp import VectorCMDP
from legged_envs.wrappers.plumbing.foreign_env import transition_cost
from legged_envs.wrappers.reward_normalize import RewardNormalize
from legged_envs.wrappers.time_limit import TimeLimit
from legged_envs.wrappers.to_numpy import ToNumpy
from legged_envs.wrappers.to_torch import ToTorch
from legged_envs.wrappers.unsqueeze import Unsqueeze


@RESETTING
@GROUPED
def test_single_environments_reset_as_gymnasiums_vector_environment_resets_them(mode, grouped):
    """The environments draw random numbers in each step: also a step that nobody sees would show."""
    ours = AutoReset(TimeLimit(sync(DISABLED, grouped=grouped), 5), mode)
    assert assert_same_as_gymnasium(ours, sync(mode, 5, grouped), mode) > 20


@MODES
@GROUPED
def test_a_time_limit_over_an_environment_that_resets_by_itself_is_as_one_inside(mode, grouped):
    ours = TimeLimit(sync(mode, grouped=grouped), 5)
    assert assert_same_as_gymnasium(ours, sync(mode, 5, grouped), mode) > 20


@MODES
def test_of_two_time_limits_the_shorter_one_counts_wherever_it_is(mode):
    ours = TimeLimit(TimeLimit(TimeLimit(sync(mode), 6), 4), 9)
    assert assert_same_as_gymnasium(ours, sync(mode, 4), mode) > 20


@RESETTING
@KINDS
def test_a_time_limit_over_autoreset_does_what_one_below_it_does(mode, array):
    above = TimeLimit(AutoReset(ToyVectorEnv(array=array), mode), 4)
    below = AutoReset(TimeLimit(ToyVectorEnv(array=array), 4), mode)
    above.reset(), below.reset()
    ends = 0
    for action in moves(40):
        one, other = (to_numpy(env.step(convert(action, array))) for env in (above, below))
        assert_equal(one[:4], other[:4])
        ended = other[2] | other[3]
        assert_equal(
            [one[4][key] for key in ("cost", "costs", "time")],
            [other[4][key] for key in ("cost", "costs", "time")],
        )
        assert (
            ("final_obs" in one[4])
            == ("final_obs" in other[4])
            == (mode is SAME_STEP and bool(ended.any()))
        )
        if "final_obs" in one[4]:
            assert_equal(
                [one[4][key] for key in ("final_obs", "_final_obs")],
                [other[4][key] for key in ("final_obs", "_final_obs")],
            )
            assert_equal(one[4]["final_info"]["time"][ended], other[4]["final_info"]["time"][ended])
        ends += int(ended.sum())
    assert ends > 20


@KINDS
def test_costs_of_environments_stay_at_the_top_level_when_they_reset_in_the_same_step(array):
    env = ToNumpy(AutoReset(ToyVectorEnv(array=array, lengths=(3,))))
    env.reset()
    costs = [env.step(action)[4]["cost"].tolist() for action in moves(4)]
    assert costs == [[1.0] * 3, [0.0] * 3, [1.5] * 3, [1.0] * 3]
    ours = AutoReset(TimeLimit(sync(DISABLED), 3))
    ours.reset(seed=SEEDS)
    for action in moves(10):
        info = ours.step(action)[4]
        assert_equal(info["cost"], transition_cost(info, "cost"))


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
@RESETTING
def test_real_environments_reset_as_gymnasium_resets_them(env_id, mode):
    envs = [
        AutoReset(
            TimeLimit(gym.make_vec(env_id, 3, "sync", {"autoreset_mode": DISABLED}), 12), mode
        ),
        gym.make_vec(env_id, 3, "sync", {"autoreset_mode": mode}, max_episode_steps=12),
    ]
    for env in envs:
        env.reset(seed=5)
        env.action_space.seed(1)
    for _ in range(40):
        ours, expected = (env.step(env.action_space.sample()) for env in envs)
        assert_equal(ours[:4], expected[:4])
        assert ("final_obs" in ours[4]) == ("final_obs" in expected[4])


def test_gymnasiums_parallel_environments_take_a_time_limit_autoreset_and_statistics():
    make = functools.partial(make_toy_env, None)
    env = EpisodeStatistics(
        TimeLimit(AsyncVectorEnv([make] * 2, context="fork", autoreset_mode=SAME_STEP), 4)
    )
    reference = sync(SAME_STEP, 4, num_envs=2)
    try:
        np.testing.assert_array_equal(
            env.reset(seed=SEEDS[:2])[0], reference.reset(seed=SEEDS[:2])[0]
        )
        costs, ends = np.zeros(2), 0
        for action in moves(12, 2):
            observation, reward, terminated, truncated, info = env.step(action)
            expected = reference.step(action)
            np.testing.assert_array_equal(observation, expected[0])
            np.testing.assert_array_equal(reward, expected[1])
            ended = terminated | truncated
            np.testing.assert_array_equal(ended, expected[2] | expected[3])
            cost = np.array(expected[4].get("cost", np.zeros(2)))
            if ended.any():
                cost[ended] = expected[4]["final_info"]["cost"][ended]
            costs += cost
            if ended.any():
                np.testing.assert_allclose(info["episode"]["c"][ended], costs[ended])
                costs[ended], ends = 0.0, ends + 1
        assert ends > 2
    finally:
        env.close()


@RESETTING
def test_a_key_that_the_reset_reports_too_changes_in_the_rows_that_reset_alone(mode):
    env = AutoReset(ToyVectorEnv(lengths=(2, 5)), mode)
    env.reset(seed=0)
    env.step(moves(1)[0])
    infos = [env.step(action)[4] for action in moves(2)]
    info = infos[0] if mode is SAME_STEP else infos[1]
    np.testing.assert_array_equal(info["begun"], [True, False, True])
    np.testing.assert_array_equal(info["count"], [2, 0, 2])
    np.testing.assert_array_equal(info["time"], [2, 2, 2] if mode is SAME_STEP else [0, 3, 0])


def test_last_observations_and_infos_share_no_memory_with_those_at_the_top_or_in_the_environment():
    make = functools.partial(make_toy_env, None)
    reusing = AutoReset(
        TimeLimit(SyncVectorEnv([make] * 3, copy=False, autoreset_mode=DISABLED), 4)
    )
    plain = AutoReset(TimeLimit(sync(DISABLED), 4))
    reusing.reset(seed=SEEDS), plain.reset(seed=SEEDS)
    ends = 0
    for action in moves(12):
        result, expected = reusing.step(action), plain.step(action)
        assert_equal(result, expected)
        if "final_obs" in result[4]:
            ends += 1
            final = {key: result[4].pop(key) for key in ("final_obs", "final_info", "_final_obs")}
            kept = to_numpy(final)
            overwrite(dict(result[4]))
            assert_equal(final, kept)
    assert ends > 3


@pytest.mark.parametrize(
    "wrap",
    [
        lambda reusing: AutoReset(reusing(ToyVectorEnv(grouped=True))),
        lambda reusing: AutoReset(TimeLimit(reusing(ToyVectorEnv()), 4)),
        lambda reusing: AutoReset(reusing(ToyVectorEnv()), NEXT_STEP),
        lambda reusing: TimeLimit(reusing(AutoReset(ToyVectorEnv())), 2),
        lambda reusing: TimeLimit(reusing(AutoReset(ToyVectorEnv(), NEXT_STEP)), 2),
    ],
    ids=["same step", "below a limit", "next step", "limit above", "limit above next step"],
)
def test_what_a_step_returned_is_not_what_the_reset_after_it_has_left_in_the_same_arrays(wrap):
    env, plain = wrap(Reusing), wrap(lambda env: env)
    env.reset(), plain.reset()
    ends = 0
    for action in moves(20):
        result, expected = env.step(action), plain.step(action)
        assert_equal(result, expected)
        ends += int((result[2] | result[3]).sum())
    assert ends > 5


@RESETTING
def test_gymnasiums_statistics_below_an_autoreset_mark_who_ended(mode):
    """In mode SAME_STEP, the mask of these environments is the array that their reset clears."""
    env = AutoReset(theirs.RecordEpisodeStatistics(TimeLimit(sync(DISABLED), 4)), mode)
    env.reset(seed=SEEDS)
    ends = 0
    for action in moves(12):
        _, _, terminated, truncated, info = env.step(action)
        ended = terminated | truncated
        if ended.any():
            ends += int(ended.sum())
            np.testing.assert_array_equal(info["_episode"], ended)
            np.testing.assert_array_equal(info["episode"]["l"] > 0, ended)
    assert ends > 3


@MODES
def test_the_options_of_a_reset_stay_as_the_caller_made_them(mode):
    """Gymnasium's vector environments take the mask out."""
    normalizing = [ObsNormalize, RewardNormalize, CostNormalize]
    wrappers = [
        lambda env: TimeLimit(env, 3),
        EpisodeStatistics,
        ToTorch,
        *normalizing,
        LagrangianReward,
    ]
    if mode is DISABLED:
        wrappers += [AutoReset, lambda env: ConstraintsAsTerminations(env, terminate="sample")]
    for wrapper in wrappers:
        env = wrapper(sync(mode))
        options = {"reset_mask": np.ones(3, bool)}
        env.reset(options=options)
        assert list(options) == ["reset_mask"]
        env.reset(seed=SEEDS)
        options = {"reset_mask": np.array([False, True, False])}
        env.reset(options=options)
        assert list(options) == ["reset_mask"]


@pytest.mark.parametrize("split", range(1, 8))
@MODES
def test_a_time_limit_over_autoreset_goes_on_from_its_state(mode, split):
    def make() -> VectorEnv:
        env: VectorEnv = ToyVectorEnv(lengths=(3, 4))
        return TimeLimit(TimeLimit(env if mode is DISABLED else AutoReset(env, mode), 3), 2)

    env, fresh = make(), make()
    env.reset()
    for action in moves(split):
        env.step(action)
    fresh.set_state(env.get_state())
    assert_equal(
        [fresh.step(action) for action in moves(5)], [env.step(action) for action in moves(5)]
    )


def test_statistics_below_a_time_limit_do_not_count_the_step_that_only_resets():
    """In which the environment, that knows nothing of the limit, ends its episode."""
    statistics = EpisodeStatistics(AutoReset(ToyVectorEnv(lengths=(3,)), NEXT_STEP))
    env = TimeLimit(statistics, 2)
    env.reset()
    ends = [env.step(action)[3].tolist() for action in moves(9)]
    assert ends == [[False] * 3, [True] * 3, [False] * 3] * 3
    assert statistics.episode_count == 0


def test_wrong_orders_say_which_order_works():
    resets = AutoReset(ToyVectorEnv())
    with pytest.raises(ValueError, match=r"AutoReset\(ActionRepeat\(env, times\), mode\)"):
        ActionRepeat(resets, 2)
    with pytest.raises(
        ValueError, match=r"got AutoresetMode.NEXT_STEP.*autoreset_mode=AutoresetMode.DISABLED"
    ):
        AutoReset(sync(NEXT_STEP))
    with pytest.raises(ValueError, match=r"num_envs=3.*Unsqueeze"):
        Unsqueeze(ToyVectorEnv())
    with pytest.raises(TypeError, match=r"gymnasium.Env, got int"):
        Unsqueeze(3)
    six = VectorCMDP(ToyVectorEnv())
    for wrapper in (
        lambda env: TimeLimit(env, 5),
        AutoReset,
        EpisodeStatistics,
        ToTorch,
        VectorCMDP,
    ):
        for env in (six, gym.vector.VectorWrapper(six)):
            with pytest.raises(ValueError, match="VectorCMDP"):
                wrapper(env)


@MODES
@pytest.mark.parametrize("shared_memory", [True, False])
def test_a_time_limit_over_parallel_environments_loses_no_step_or_is_refused(mode, shared_memory):
    """Gymnasium's workers forget the end of an unseen step at a reset only where they share memory."""
    make = functools.partial(make_toy_env, None)
    env = AsyncVectorEnv(
        [make] * 3, context="fork", autoreset_mode=mode, shared_memory=shared_memory
    )
    try:
        if mode is NEXT_STEP and not shared_memory:
            with pytest.raises(
                ValueError, match=r"shared_memory=True.*AutoReset\(TimeLimit\(env, time_limit\)"
            ):
                TimeLimit(env, 2)
            return
        limited: VectorEnv = TimeLimit(env, 2)
        ages = []
        observation, _ = limited.reset(seed=SEEDS)
        for action in moves(30):
            observation, _, terminated, truncated, _ = limited.step(action)
            ages.append(observation[:, 1].copy())
            if mode is DISABLED and (terminated | truncated).any():
                limited.reset(options={"reset_mask": terminated | truncated})
        cycle = {DISABLED: [1, 2], SAME_STEP: [1, 0], NEXT_STEP: [1, 2, 0]}[mode]
        np.testing.assert_array_equal(ages, np.tile(cycle, 30)[:30, None] * np.ones(3))
    finally:
        env.close()
