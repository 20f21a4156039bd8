"""The plain wrappers: each against an oracle, and random stacks of them against what every stack has to keep."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import array_api_strict
import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.wrappers import vector as theirs
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_envs import ARRAYS, ToyVectorEnv, convert, make_toy_env

from legged_envs.wrappers.action_repeat import ActionRepeat
from legged_envs.wrappers.action_scale import ActionScale
from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.constraints_as_terminations import ConstraintsAsTerminations
from legged_envs.wrappers.cost_normalize import CostNormalize
from legged_envs.wrappers.cost_reduce import CostReduce
from legged_envs.wrappers.episode_statistics import EpisodeStatistics
from legged_envs.wrappers.lagrangian_reward import LagrangianReward
from legged_envs.wrappers.obs_normalize import ObsNormalize
from legged_envs.wrappers.plumbing.arrays import as_numpy, map_arrays
from legged_envs.wrappers.plumbing.cmdp import VectorCMDP
from legged_envs.wrappers.plumbing.foreign_env import transition_cost
from legged_envs.wrappers.reward_normalize import RewardNormalize
from legged_envs.wrappers.time_limit import TimeLimit
from legged_envs.wrappers.to_numpy import ToNumpy
from legged_envs.wrappers.to_torch import ToTorch
from legged_envs.wrappers.unsqueeze import Unsqueeze

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
    """Asserts that two trees of NumPy arrays are equal in their keys, types and every number, but for the clock's."""
    if isinstance(one, dict):
        assert set(one) == set(other), where
        for key in set(one) - {"t"}:
            assert_equal(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_equal(a, b, f"{where}[{i}]")
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


# --- TimeLimit and AutoReset against Gymnasium ------------------------------------------------------------------------


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
    """In mode SAME_STEP their mask is the one that their reset clears."""
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


# --- ActionRepeat -----------------------------------------------------------------------------------------------------


class Repeated(gym.Wrapper):
    """What repeating an action means for one environment."""

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
    """The rows of this environment go on after their end."""
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


# --- ActionScale ------------------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize(
    ("low", "high"),
    [(-1.0, 1.0), (0, 1), (-0.25, 12.5), ([-2.0, 0.0], [2.0, 0.5])],
    ids=["same", "0-1", "odd", "each"],
)
def test_actions_are_mapped_to_the_range_of_the_environment_and_clipped_to_it(array, low, high):
    inner = ToyVectorEnv(200, array)
    env = ActionScale(inner, low, high)
    lows, highs = (
        np.broadcast_to(low, 2).astype(np.float64),
        np.broadcast_to(high, 2).astype(np.float64),
    )
    assert env.single_action_space == Box(lows.astype(np.float32), highs.astype(np.float32))
    assert env.action_space.shape == (200, 2) and env.action_space.dtype == np.float32
    assert inner.single_action_space.high.tolist() == [1.0, 3.0]
    env.reset()
    spread = highs - lows
    action = (
        np.random.default_rng(0)
        .uniform(lows - 0.3 * spread, highs + 0.3 * spread, (200, 2))
        .astype(np.float32)
    )
    action[0], action[1] = lows, highs
    env.step(convert(action, array))
    low_inside, high_inside = np.array([-1.0, -1.0]), np.array([1.0, 3.0])
    wanted = np.clip(
        low_inside + (action - lows) * (high_inside - low_inside) / spread, low_inside, high_inside
    )
    got = inner.last_actions
    assert got.dtype == np.float32 and inner.action_space.contains(got)
    np.testing.assert_allclose(got, wanted, atol=2e-6)
    np.testing.assert_array_equal(got[0], low_inside)
    np.testing.assert_array_equal(got[1], high_inside)
    np.testing.assert_array_equal(action[1], highs)  # what was given stays


@KINDS
def test_scaled_actions_of_lower_precision_lie_in_the_range_of_the_environment(array):
    """float32 has no 0.1: the next number to it lies outside of [−0.1, 0.1]."""

    class Precise(VectorWrapper):
        single_action_space = Box(np.array([-0.1, 0.3]), np.array([0.1, 0.7]), dtype=np.float64)

        def step(self, actions: Any) -> Any:
            actions = as_numpy(actions)
            assert actions.dtype == np.float32
            assert all(self.single_action_space.contains(action) for action in actions)
            np.testing.assert_allclose(actions[:2], [[-0.1, 0.3], [0.1, 0.7]], rtol=3e-7)
            return None

    env = ActionScale(Precise(ToyVectorEnv(4, array)), -1.0, 1.0)
    env.step(convert(np.array([[-1, -1], [1, 1], [-3, -3], [3, 3]], np.float32), array))


class Differentiable(VectorWrapper):
    """The reward has a gradient: it is the sum of the actions."""

    def step(self, actions: Any) -> Any:
        observation, _, *rest = self.env.step(actions.detach())
        return observation, actions.sum(1), *rest


def test_gradients_go_through_scaled_actions_after_a_step_in_inference_mode():
    env = AutoReset(ActionScale(Differentiable(ToyVectorEnv(array="torch")), -2.0, 2.0))
    env.reset()
    with torch.inference_mode():
        env.step(torch.zeros(3, 2))
    ends = 0
    for _ in range(4):
        action = torch.zeros(3, 2, requires_grad=True)
        _, reward, terminated, truncated, _ = env.step(action)
        reward.sum().backward()
        assert torch.equal(action.grad, torch.tensor([[0.5, 1.0]] * 3))
        ends += int((terminated | truncated).sum())
    assert ends > 0


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (1.0, 1.0, "low must be below high"),
        ([-1.0, 2.0], [1.0, 1.0], "low must be below high"),
        (-np.inf, 1.0, "low must be finite"),
        (-1.0, np.nan, "high must be finite"),
        ([-1.0, -1.0, -1.0], 1.0, r"low .*shape \(2,\)"),
    ],
)
def test_ranges_of_actions_that_mean_nothing_are_refused(low, high, message):
    with pytest.raises(ValueError, match=message):
        ActionScale(ToyVectorEnv(), low, high)


def test_action_spaces_and_actions_that_cannot_be_scaled_are_refused():
    infinite = ToyVectorEnv()
    infinite.single_action_space = Box(-np.inf, np.inf, (2,))
    with pytest.raises(ValueError, match="finite action space"):
        ActionScale(infinite, -1, 1)
    with pytest.raises(TypeError, match="Discrete"):
        ActionScale(gym.make_vec("CartPole-v1", 2), -1, 1)
    env = ActionScale(ToyVectorEnv(), -1, 1)
    env.reset()
    with pytest.raises(ValueError, match=r"shape \(3, 2\), got \(3, 1\)"):
        env.step(np.zeros((3, 1), np.float32))
    with pytest.raises(ValueError, match=r"shape \(3, 2\), got \(3, 1\)"):
        env.step([[0.0]] * 3)
    for wrong in (np.zeros((3, 2), bool), np.zeros((3, 2), complex), [["0.0", "0.0"]] * 3):
        with pytest.raises(TypeError, match="floats, got"):
            env.step(wrong)


# --- Unsqueeze --------------------------------------------------------------------------------------------------------


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
    with pytest.raises(RuntimeError, match="without a reset_mask"):
        env.reset(options={"reset_mask": np.array([False])})
    env.reset(seed=[7])
    observation = env.step(moves(1, 1)[0])[0]
    again, info = env.reset(options={"reset_mask": np.array([False])})
    assert_equal(again, observation)
    assert info == {}
    assert env.reset(options={"reset_mask": np.array([True])})[0][0, 1] == 0.0
    with pytest.raises(ValueError, match=r"reset_mask must have shape \(1,\), got \(3,\)"):
        env.reset(options={"reset_mask": np.zeros(3, bool)})
    with pytest.raises(TypeError, match="boolean, got int64"):
        env.reset(options={"reset_mask": np.zeros(1, np.int64)})
    with pytest.raises(ValueError, match="num_envs=1 entries, got 2"):
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


# --- CostReduce -------------------------------------------------------------------------------------------------------


@KINDS
@MODES
def test_terms_are_reduced_to_the_cost_that_the_name_says(array, mode):
    formulas = {
        "sum": lambda c: c.sum(1),
        "weighted": lambda c: c[:, 0] / 0.5 + c[:, 1] / 0.25,
        "max": lambda c: c.max(1),
        "any": lambda c: (c > 0.0).any(1).astype(float),
    }
    seen = set()
    for how, formula in formulas.items():
        env = CostReduce(
            ToyVectorEnv(array=array)
            if mode is DISABLED
            else AutoReset(ToyVectorEnv(array=array), mode),
            how,
        )
        env.reset()
        for action in moves(8):
            info = to_numpy(env.step(convert(action, array))[4])
            assert info["cost"].dtype == np.float32
            np.testing.assert_allclose(info["cost"], formula(info["costs"]), rtol=1e-6)
            if "final_info" in info:
                np.testing.assert_array_equal(info["final_info"]["cost"], info["cost"])
            seen |= {(how, value) for value in info["cost"].tolist()}
    assert {value for how, value in seen if how == "weighted"} >= {0.0, 2.0, 4.0}


@KINDS
def test_whole_costs_are_weighted_by_limits_that_are_fractions(array):
    class Counts(ToyVectorEnv):
        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            *step, _ = super().step(actions)
            return *step, {"costs": convert(np.array([[1, 2]] * 3), self.array)}

    core = Counts(array=array)
    core.cost_limits = (0.4, 10.0)
    env = CostReduce(core, "weighted")
    env.reset()
    for action in moves(2):
        cost = to_numpy(env.step(convert(action, array))[4]["cost"])
        assert cost.dtype == np.float32 and cost.tolist() == pytest.approx([2.7] * 3)


@MODES
@pytest.mark.parametrize("scale", ["return", "step"])
def test_limits_and_zeros_are_those_of_raw_costs_also_above_their_normalisation(mode, scale):
    def over(how: str, normalized: bool) -> list[Any]:
        env: VectorEnv = sync(mode, 4)
        env = CostReduce(CostNormalize(env, scale=scale) if normalized else env, how)
        env.reset(seed=SEEDS)
        costs = []
        for action in moves(15):
            _, _, terminated, truncated, info = env.step(action)
            final = info.get("final_info", {}).get("cost", np.zeros(3))
            costs.append((info["cost"], final))
            if mode is DISABLED and (terminated | truncated).any():
                env.reset(options={"reset_mask": terminated | truncated})
        return costs

    for how in ("weighted", "any"):
        for (cost, final), (expected, expected_final) in zip(
            over(how, True), over(how, False), strict=True
        ):
            np.testing.assert_array_equal(cost, expected)
            rows = expected_final != 0.0
            np.testing.assert_array_equal(final[rows], expected_final[rows])
    assert not np.array_equal(over("max", True), over("max", False))


@RESETTING
def test_costs_that_gymnasium_hides_in_final_info_are_reduced_where_they_belong(mode):
    ours = CostReduce(AutoReset(TimeLimit(sync(DISABLED), 4), mode), "weighted")
    hidden = CostReduce(sync(mode, 4), "weighted")
    ours.reset(seed=SEEDS), hidden.reset(seed=SEEDS)
    for action in moves(20):
        one, other = ours.step(action), hidden.step(action)
        np.testing.assert_array_equal(one[4]["cost"], other[4]["cost"])


def test_a_step_in_which_every_environment_resets_costs_nothing():
    env = CostReduce(sync(NEXT_STEP, limit=2), "max")
    env.reset(seed=SEEDS)
    costs = [env.step(action)[4]["cost"] for action in moves(3)]
    assert costs[0].all() and costs[2].tolist() == [0.0, 0.0, 0.0]


def test_reductions_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match=r"sum.*got 'mean'"):
        CostReduce(ToyVectorEnv(), "mean")
    none = CostReduce(ToyVectorEnv(costs=False), "sum")
    none.reset()
    with pytest.raises(ValueError, match=r"reports \['time'\]"):
        none.step(moves(1)[0])
    for limits, message in (
        ((0.5, 0.0), "cost 'late' is 0.0"),
        ((0.5,), "2 cost_names and 1 cost_limits"),
    ):
        env = ToyVectorEnv()
        env.cost_limits = limits
        with pytest.raises(ValueError, match=message):
            CostReduce(env, "weighted")
        CostReduce(env, "max")
    empty = ToyVectorEnv()
    empty.cost_names = ()
    with pytest.raises(ValueError, match="no cost terms"):
        CostReduce(empty, "sum")
    with pytest.raises(ValueError, match="needs cost_limits"):
        CostReduce(ToyVectorEnv(costs=False), "weighted")


# --- EpisodeStatistics ------------------------------------------------------------------------------------------------


@MODES
def test_statistics_over_gymnasiums_environments_agree_with_gymnasiums_and_with_sums_of_the_costs(
    mode,
):
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
    with pytest.raises(RuntimeError, match=rf"{type(env).__name__} .*call reset\(\) first"):
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


# --- ToNumpy, ToTorch -------------------------------------------------------------------------------------------------


def assert_kind(tree: Any, kind: type, where: str = "") -> int:
    """Asserts that all arrays of numbers are of one kind; returns how many there are."""
    if isinstance(tree, dict):
        return sum(assert_kind(value, kind, f"{where}[{key!r}]") for key, value in tree.items())
    if isinstance(tree, tuple):
        return sum(assert_kind(value, kind, f"{where}[{i}]") for i, value in enumerate(tree))
    if isinstance(tree, (np.ndarray, torch.Tensor, array_api_strict.asarray(0).__class__)):
        if isinstance(tree, np.ndarray) and tree.dtype == object:
            return 0
        assert isinstance(tree, kind), f"{where} is {type(tree)}"
        return 1
    return 0


@pytest.mark.parametrize(
    ("wrapper", "kind"), [(ToNumpy, np.ndarray), (ToTorch, torch.Tensor)], ids=["numpy", "torch"]
)
@KINDS
@MODES
def test_every_array_is_converted_and_nothing_else_changes(wrapper, kind, array, mode):
    def stack(inner: ToyVectorEnv) -> VectorEnv:
        env = EpisodeStatistics(TimeLimit(inner, 4))
        return env if mode is DISABLED else AutoReset(env, mode)

    env, plain = (
        wrapper(stack(ToyVectorEnv(array=array, grouped=True))),
        stack(ToyVectorEnv(grouped=True)),
    )
    target = "numpy" if kind is np.ndarray else "torch"
    assert_kind(env.reset(), kind)
    plain.reset()
    for action in moves(10):
        result, expected = env.step(convert(action, target)), plain.step(action)
        ended = expected[2] | expected[3]
        assert assert_kind(result, kind) == assert_kind(expected, np.ndarray)
        assert_equal(to_numpy(result), expected)
        if mode is DISABLED and ended.any():
            assert_kind(env.reset(options={"reset_mask": convert(ended, target)}), kind)
            plain.reset(options={"reset_mask": ended})


def test_conversions_share_memory_and_leave_objects_alone():
    class Remembering(ToyVectorEnv):
        def step(self, actions: Any) -> Any:
            result = super().step(actions)
            result[4].update(
                note="text",
                number=3,
                objects=np.array([None, {}, "x"], object),
                frozen=np.arange(3),
            )
            result[4]["frozen"].flags.writeable = False
            self.result, self.given = result, actions
            return result

    inner = Remembering()
    env = ToTorch(inner)
    env.reset()
    actions = torch.zeros(3, 2)
    observation, reward, _, _, info = env.step(actions)
    assert observation.data_ptr() == inner.result[0].ctypes.data
    assert reward.data_ptr() == inner.result[1].ctypes.data
    assert inner.given.ctypes.data == actions.data_ptr()
    assert info["objects"] is inner.result[4]["objects"] and (info["note"], info["number"]) == (
        "text",
        3,
    )
    info["frozen"][:] = 0
    assert inner.result[4]["frozen"].tolist() == [0, 1, 2]
    back = ToNumpy(env)
    back.reset()
    assert back.step(np.zeros((3, 2), np.float32))[0].ctypes.data == inner.result[0].ctypes.data
    assert ToTorch(ToyVectorEnv(), "cpu").device == torch.device("cpu")


# --- Gymnasium's own wrappers -----------------------------------------------------------------------------------------


def doubled(array: Any) -> Any:
    return 2.0 * array


WIDE = Box(-2000.0, 2000.0, (5,))
PAIRS: dict[str, tuple[Callable[..., VectorEnv], Callable[..., gym.Env]]] = {
    "ClipAction": (theirs.ClipAction, gym.wrappers.ClipAction),
    "RescaleAction": (
        lambda env: theirs.RescaleAction(env, -2.0, 2.0),
        lambda env: gym.wrappers.RescaleAction(env, -2.0, 2.0),
    ),
    "TransformAction": (
        lambda env: theirs.TransformAction(env, np.tanh),
        lambda env: gym.wrappers.TransformAction(env, np.tanh, env.action_space),
    ),
    "TransformObservation": (
        lambda env: theirs.TransformObservation(env, doubled, single_observation_space=WIDE),
        lambda env: gym.wrappers.TransformObservation(env, doubled, WIDE),
    ),
    "ReshapeObservation": (
        lambda env: theirs.ReshapeObservation(env, (5, 1)),
        lambda env: gym.wrappers.ReshapeObservation(env, (5, 1)),
    ),
    "RescaleObservation": (
        lambda env: theirs.RescaleObservation(env, np.float32(0.0), np.float32(1.0)),
        lambda env: gym.wrappers.RescaleObservation(env, np.float32(0.0), np.float32(1.0)),
    ),
    "DtypeObservation": (
        lambda env: theirs.DtypeObservation(env, np.float64),
        lambda env: gym.wrappers.DtypeObservation(env, np.float64),
    ),
    "FlattenObservation": (theirs.FlattenObservation, gym.wrappers.FlattenObservation),
    "FilterObservation": (
        lambda env: theirs.FilterObservation(env, ["policy"]),
        lambda env: gym.wrappers.FilterObservation(env, ["policy"]),
    ),
    "ClipReward": (
        lambda env: theirs.ClipReward(env, 1.0, 3.0),
        lambda env: gym.wrappers.ClipReward(env, 1.0, 3.0),
    ),
    "TransformReward": (
        lambda env: theirs.TransformReward(env, doubled),
        lambda env: gym.wrappers.TransformReward(env, doubled),
    ),
}
"""Gymnasium's vector wrappers and the same for one environment."""

ALONE: dict[str, Callable[..., VectorEnv]] = {
    "RecordEpisodeStatistics": theirs.RecordEpisodeStatistics,
    "NormalizeObservation": theirs.NormalizeObservation,
    "NormalizeReward": theirs.NormalizeReward,
    "NumpyToTorch": theirs.NumpyToTorch,
    "DictInfoToList": theirs.DictInfoToList,
}


def make_wrapped(name: str, limit: int, grouped: bool) -> gym.Env:
    return PAIRS[name][1](make_toy_env(limit, grouped))


@MODES
@pytest.mark.parametrize("name", PAIRS)
def test_gymnasiums_wrappers_go_below_ours(name, mode):
    """As if each single environment had that wrapper."""
    grouped = name in ("FlattenObservation", "FilterObservation")
    make = functools.partial(make_wrapped, name, 5, grouped)
    reference = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    ours: VectorEnv = EpisodeStatistics(
        PAIRS[name][0](TimeLimit(sync(DISABLED, grouped=grouped), 5))
    )
    if mode is not DISABLED:
        ours = AutoReset(ours, mode)
    assert_equal(ours.reset(seed=SEEDS), reference.reset(seed=SEEDS))
    for action in moves(12):
        result, expected = ours.step(action.copy()), reference.step(action.copy())
        assert_equal(result[0], expected[0])
        np.testing.assert_allclose(result[1], expected[1], rtol=1e-6)
        assert_equal(result[2:4], expected[2:4])
        ended = expected[2] | expected[3]
        assert ("_episode" in result[4]) == bool(ended.any())
        for i in np.flatnonzero(ended) if mode is SAME_STEP else ():
            assert_equal(rows(result[4]["final_obs"], i), expected[4]["final_obs"][i])
        if mode is DISABLED and ended.any():
            assert_equal(
                *(env.reset(options={"reset_mask": ended.copy()})[0] for env in (ours, reference))
            )


@MODES
@pytest.mark.parametrize("name", [*PAIRS, *ALONE])
def test_gymnasiums_wrappers_go_above_ours_in_the_modes_that_they_allow(name, mode):
    """They do what they do above Gymnasium's own vector environment, or refuse both."""
    grouped = name in ("FlattenObservation", "FilterObservation")
    wrap = PAIRS[name][0] if name in PAIRS else ALONE[name]
    ours: VectorEnv = TimeLimit(sync(DISABLED, grouped=grouped), 5)
    if mode is not DISABLED:
        ours = AutoReset(ours, mode)
    ours = CostReduce(ActionScale(ours, [-1.0, -1.0], [1.0, 3.0]), "sum")
    try:
        # A wrapper of ours in between, because SyncVectorEnv takes the mask out of the options before
        # RecordEpisodeStatistics reads it.
        reference: VectorEnv = TimeLimit(sync(mode, 5, grouped), 1000)
        if name != "NumpyToTorch":  # which does not take the arrays of objects of that environment
            reference = wrap(reference)
    except ValueError:
        with pytest.raises(ValueError, match="autoreset_mode"):
            wrap(ours)
        return
    env = wrap(ours)
    assert_equal(to_numpy(env.reset(seed=SEEDS)), to_numpy(reference.reset(seed=SEEDS)))
    take = torch.from_numpy if name == "NumpyToTorch" else np.copy
    for action in moves(12):
        result, expected = to_numpy(env.step(take(action))), to_numpy(reference.step(action.copy()))
        assert_equal(result[:4], expected[:4])
        ended = expected[2] | expected[3]
        if name == "RecordEpisodeStatistics" and ended.any():
            assert_equal(result[4]["episode"], expected[4]["episode"])
        if name == "DictInfoToList":
            for one, other in zip(result[4], expected[4], strict=True):
                assert one.get("phase") == other.get("phase")
                if "final_obs" in other:
                    assert_equal(one["final_obs"], other["final_obs"])
        if mode is DISABLED and ended.any():
            env.reset(options={"reset_mask": take(ended)})
            reference.reset(options={"reset_mask": ended.copy()})


@MODES
def test_gymnasiums_statistics_and_pictures_go_between_ours(mode, tmp_path):
    pytest.importorskip("moviepy")
    core = ToyVectorEnv(2, lengths=(3,), render_mode="rgb_array")
    env: VectorEnv = theirs.RecordEpisodeStatistics(TimeLimit(core, 4))
    if mode is not DISABLED:
        env = AutoReset(env, mode)
    video = theirs.RecordVideo(
        EpisodeStatistics(env), str(tmp_path), step_trigger=lambda step: step == 0, video_length=4
    )
    top = TimeLimit(video, 50)
    top.reset()
    lengths = []
    for action in moves(9, 2):
        _, _, terminated, truncated, info = top.step(action)
        if "_episode" in info:
            lengths += info["episode"]["l"][info["_episode"]].tolist()
            if mode is DISABLED:
                top.reset(options={"reset_mask": terminated | truncated})
    assert lengths == [3] * (4 if mode is NEXT_STEP else 6)
    assert [path.suffix for path in tmp_path.iterdir()] == [".mp4"]


# --- random stacks ----------------------------------------------------------------------------------------------------


class Stack:
    """A stack of wrappers over the toy environment, which can be made again."""

    LAYERS: dict[str, Callable[[VectorEnv], VectorEnv]] = {  # noqa: RUF012
        "limit": lambda env: TimeLimit(env, 4),
        "short": lambda env: TimeLimit(env, 2),
        "repeat": lambda env: ActionRepeat(env, 2),
        "scale": lambda env: ActionScale(env, [-1.0, -2.0], [1.0, 3.0]),
        "statistics": EpisodeStatistics,
        "reduce": lambda env: CostReduce(env, "max"),
        "numpy": ToNumpy,
        "torch": ToTorch,
    }

    def __init__(self, mode: AutoresetMode, below: list[str], above: list[str], **toy: Any):
        self.mode, self.toy = mode, toy
        self.below, self.above = (
            [name for name in names if toy["costs"] or name != "reduce"] for names in (below, above)
        )
        self.array = next(
            (name for name in (*above[::-1], *below[::-1]) if name in ARRAYS), toy["array"]
        )

    def __repr__(self) -> str:
        return f"Stack({self.mode}, {self.below}, {self.above}, **{self.toy})"

    def make(self, **changes: Any) -> VectorEnv:
        env: VectorEnv = ToyVectorEnv(**{**self.toy, **changes})
        for name in self.below:
            env = self.LAYERS[name](env)
        if self.mode is not DISABLED:
            env = AutoReset(env, self.mode)
        for name in self.above:
            env = self.LAYERS[name](env)
        return env


@st.composite
def stacks(draw: Any) -> Stack:
    names = list(Stack.LAYERS)
    return Stack(
        draw(st.sampled_from(list(AutoresetMode))),
        draw(st.lists(st.sampled_from(names), max_size=4)),
        draw(st.lists(st.sampled_from([name for name in names if name != "repeat"]), max_size=3)),
        num_envs=3,
        array=draw(st.sampled_from(ARRAYS)),
        grouped=draw(st.booleans()),
        costs=draw(st.booleans()),
        lengths=tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))),
        first=draw(st.integers(0, 3)),
    )


SCHEDULES = st.lists(
    st.lists(st.sampled_from([False, False, False, True]), min_size=3, max_size=3),
    min_size=8,
    max_size=14,
)
"""Which environments the user resets after each step."""

Steps = list[tuple[Any, Any]]
"""Of each step what it returned, and the mask and the observation of the reset after it, or None."""


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


few = settings(max_examples=40, deadline=None, derandomize=True)


@few
@given(stacks(), SCHEDULES)
def test_what_is_done_to_returned_arrays_and_given_ones_changes_nothing_later(stack, schedule):
    assert_equal(
        drive(stack.make(), stack, schedule, spoil=True), drive(stack.make(), stack, schedule)
    )


@few
@given(stacks(), SCHEDULES, st.data())
def test_a_stack_goes_on_from_its_state_and_from_its_pickle(stack, schedule, data):
    split = data.draw(st.integers(1, len(schedule) - 1))
    whole = drive(stack.make(), stack, schedule)
    env = stack.make()
    drive(env, stack, schedule[:split])
    state, pickled = env.get_state(), pickle.dumps(env)
    for _ in range(2):  # the state is a copy: the first continuation leaves it alone
        fresh = stack.make()
        fresh.set_state(state)
        assert_equal(drive(fresh, stack, schedule, start=split), whole[split:])
    assert_equal(drive(pickle.loads(pickled), stack, schedule, start=split), whole[split:])
    assert_equal(drive(env, stack, schedule, start=split), whole[split:])


@few
@given(stacks(), SCHEDULES)
def test_each_row_does_what_its_environment_does_alone(stack, schedule):
    batch = drive(stack.make(), stack, schedule)
    for i in range(3):
        row = slice(i, i + 1)
        alone = drive(
            stack.make(num_envs=1, first=stack.toy["first"] + i), stack, schedule, column=row
        )
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


@few
@given(stacks(), SCHEDULES)
def test_masks_values_and_counters_agree(stack, schedule):
    """Statistics and a counter on top of the stack against sums, in float64, of what it returns."""
    limit = TimeLimit(EpisodeStatistics(stack.make()), 1000)
    returns, costs, lengths, over = np.zeros(3), np.zeros(3), np.zeros(3, int), np.zeros(3, bool)
    for step in range(len(schedule)):
        steps = drive(limit, stack, schedule[: step + 1], start=step)
        (observation, reward, terminated, truncated, info), reset = steps[0]
        ended = terminated | truncated
        if stack.mode is NEXT_STEP:  # what a step that only resets returns
            assert not (
                ended[over].any() or reward[over].any() or info.get("cost", reward)[over].any()
            )
        lengths += ~over
        returns += reward
        costs += info.get("cost", 0.0)
        age = (observation["critic"] if stack.toy["grouped"] else observation)[:, 2]
        assert (age[over] == 0.0).all()
        assert ("episode" in info) == bool(ended.any())
        if ended.any():
            np.testing.assert_array_equal(info["_episode"], ended)
            np.testing.assert_array_equal(info["episode"]["l"], lengths * ended)
            np.testing.assert_allclose(info["episode"]["r"], returns * ended, rtol=1e-6)
            np.testing.assert_allclose(info["episode"]["c"], costs * ended, rtol=1e-6)
        assert ("final_obs" in info) == (stack.mode is SAME_STEP and bool(ended.any()))
        if "final_obs" in info:
            np.testing.assert_array_equal(info["_final_obs"], ended)
            assert_equal(rows(info["final_obs"], ~ended), rows(observation, ~ended))
            assert (age[ended] == 0.0).all()
        again = ended.copy() if stack.mode is not NEXT_STEP else np.zeros(3, bool)
        if reset is not None:
            again |= reset[0]
        lengths[again | ended], returns[again | ended], costs[again | ended] = 0, 0.0, 0.0
        over = ended & ~again
        if stack.mode is not DISABLED or reset is not None:
            np.testing.assert_array_equal(as_numpy(limit.elapsed_steps), lengths)
