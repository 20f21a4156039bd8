"""ActionScale against its formula in float64."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from gymnasium.vector import VectorWrapper
from toy_envs import ToyVectorEnv, convert
from wrapper_checks import KINDS, Differentiable

from legged_envs.wrappers.action_scale import ActionScale
from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.plumbing.arrays import as_numpy


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
        (1.0, 1.0, "low.*high"),
        ([-1.0, 2.0], [1.0, 1.0], "low.*high"),
        (-np.inf, 1.0, "low.*inf"),
        (-1.0, np.nan, "high.*nan"),
        ([-1.0, -1.0, -1.0], 1.0, r"low .*shape \(2,\)"),
    ],
)
def test_ranges_of_actions_that_mean_nothing_are_refused(low, high, message):
    with pytest.raises(ValueError, match=message):
        ActionScale(ToyVectorEnv(), low, high)


def test_action_spaces_and_actions_that_cannot_be_scaled_are_refused():
    infinite = ToyVectorEnv()
    infinite.single_action_space = Box(-np.inf, np.inf, (2,))
    with pytest.raises(ValueError, match=r"action space.*inf"):
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
        with pytest.raises(TypeError, match="actions"):
            env.step(wrong)
