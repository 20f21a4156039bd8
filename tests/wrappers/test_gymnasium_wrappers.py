"""Gymnasium's own vector wrappers below, above and between the wrappers of this package."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from gymnasium.vector import SyncVectorEnv, VectorEnv
from gymnasium.wrappers import vector as theirs
from toy_envs import ToyVectorEnv, make_toy_env
from wrapper_checks import (
    DISABLED,
    MODES,
    NEXT_STEP,
    SAME_STEP,
    SEEDS,
    assert_equal,
    moves,
    rows,
    sync,
    to_numpy,
)

from legged_envs.wrappers.action_scale import ActionScale
from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.cost_reduce import CostReduce
from legged_envs.wrappers.episode_statistics import EpisodeStatistics
from legged_envs.wrappers.plumbing.layers import autoreset_mode
from legged_envs.wrappers.time_limit import TimeLimit


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
    "DictInfoToList": theirs.DictInfoToList,
    "NumpyToTorch": theirs.NumpyToTorch,
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
    except (AssertionError, ValueError):  # Gymnasium 1.2 asserts it, without a word
        with pytest.raises((AssertionError, ValueError)):
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
    if not hasattr(theirs, "RecordVideo"):
        pytest.skip("Gymnasium 1.2 films no vector environments")
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


def test_the_autoreset_mode_of_an_environment_is_not_that_of_a_later_one_of_its_class():
    """Gymnasium 1.2 writes the mode to the metadata that all environments of a class share."""
    first = sync(DISABLED)
    later = sync(NEXT_STEP)
    assert autoreset_mode(first) is DISABLED
    assert autoreset_mode(later) is NEXT_STEP
    ours = AutoReset(first, SAME_STEP)
    sync(NEXT_STEP)
    assert autoreset_mode(ours) is SAME_STEP
    assert autoreset_mode(ours.env) is DISABLED
