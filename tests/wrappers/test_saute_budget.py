"""SauteBudget against a plain float64 loop, and that the best sequence of actions is the constrained optimum."""

from __future__ import annotations

import copy
import doctest
import itertools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from legged_envs.wrappers import SauteBudget, saute_budget

LIMITS = (0.3, 0.1)
STEPS = 6
GAMMA = 0.9


class Levers(gym.Env):
    """Episodes of six steps. An action a in 0 to 1 earns 1 + a, and costs a and a² / 4."""

    observation_space = gym.spaces.Box(-9.0, 9.0, (2,))
    action_space = gym.spaces.Box(0.0, 1.0, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        return np.array([0.0, 0.0], np.float32), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        pulled = float(action[0])
        observation = np.array([self.time, pulled], np.float32)
        costs = np.array([pulled, pulled**2 / 4], np.float32)
        return observation, 1.0 + pulled, False, self.time >= STEPS, {"costs": costs}


def levers(num_envs: int, mode: AutoresetMode = AutoresetMode.SAME_STEP) -> SyncVectorEnv:
    return SyncVectorEnv([Levers] * num_envs, autoreset_mode=mode)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_budgets_and_rewards_are_those_of_a_float64_loop(mode: AutoresetMode) -> None:
    env = SauteBudget(levers(3, mode), STEPS, LIMITS, gamma=GAMMA, unsafe_reward=-2.0)
    budgets = [limit * sum(GAMMA**step for step in range(STEPS)) for limit in LIMITS]
    np.testing.assert_allclose(env.budgets, budgets, rtol=1e-12)
    observation, _ = env.reset(seed=0)
    assert observation.shape == env.observation_space.shape == (3, 4)
    assert (observation[:, 2:] == 1.0).all()
    rng = np.random.default_rng(1)
    left = np.ones((3, 2))
    ended = np.zeros(3, bool)
    seen = set()
    for _ in range(20):
        pulled = rng.random(3) ** 2
        observation, reward, _, truncated, info = env.step(pulled[:, None].astype(np.float32))
        expected = np.empty(3)
        for i in range(3):
            if ended[i]:
                left[i] = 1.0
                expected[i] = 0.0
                continue
            for k, cost in enumerate((pulled[i], pulled[i] ** 2 / 4)):
                left[i, k] = (left[i, k] - cost / budgets[k]) / GAMMA
            is_safe = bool((left[i] >= 0.0).all())
            seen.add(is_safe)
            expected[i] = 1.0 + pulled[i] if is_safe else -2.0
        np.testing.assert_allclose(reward, expected, rtol=1e-6)
        np.testing.assert_allclose(info["remaining_budget"], left, rtol=1e-5, atol=1e-6)
        if mode is AutoresetMode.SAME_STEP:
            if truncated.any():
                np.testing.assert_allclose(info["final_obs"][:, 2:], left, rtol=1e-5, atol=1e-6)
            left[truncated] = 1.0
        else:
            ended = truncated
        np.testing.assert_allclose(observation[:, 2:], left, rtol=1e-5, atol=1e-6)
    assert seen == {True, False}


def test_the_best_sequence_of_actions_spends_the_budget_and_not_more() -> None:
    """A pull costs 1 and at most 0.5 per step are allowed: of all sequences of six actions, three pulls are best."""
    sequences = np.array(list(itertools.product((0.0, 1.0), repeat=STEPS)), np.float32)
    env = SauteBudget(levers(len(sequences)), STEPS, (0.5, 1.0))
    env.reset(seed=0)
    returns = np.zeros(len(sequences))
    unconstrained = np.zeros(len(sequences))
    for step in range(STEPS):
        _, reward, _, _, info = env.step(sequences[:, step : step + 1])
        returns += reward
        unconstrained += info["original_reward"]
    pulls = sequences.sum(1)
    best = returns == returns.max()
    assert set(pulls[best]) == {3.0}
    # The optimum of the constrained problem is kept as it is.
    assert returns.max() == unconstrained[pulls <= 3.0].max() == STEPS + 3.0


def test_robots_have_budgets_in_every_kind_of_array_and_observation() -> None:
    traces = []
    for options in ({"array": "numpy"}, {"array": "torch", "observations": "dict"}):
        envs = gym.make_vec("Legged/Go2-Flat-v0", num_envs=2, max_episode_steps=3, **options)
        env = SauteBudget(envs, 3)
        env.reset(seed=0)
        action = np.full((2, 12), 0.9, np.float32)
        if options["array"] == "torch":
            action = torch.tensor(action)
        rows = []
        for _ in range(5):
            observation, _, _, _, info = env.step(action)
            rows.append(np.asarray(info["remaining_budget"]))
            of_policy = observation["policy"] if isinstance(observation, dict) else observation
            assert of_policy.shape[1] == 45 + 6
        assert env.observation_space.contains(
            observation
            if options["array"] == "numpy"
            else {k: v.numpy() for k, v in observation.items()}
        )
        traces.append(np.array(rows))
        env.close()
    assert (traces[0] < 1.0).any()
    np.testing.assert_allclose(traces[0], traces[1], atol=1e-6)


def test_a_saved_budget_continues() -> None:
    env = SauteBudget(levers(2), STEPS, LIMITS)
    env.reset(seed=0)
    action = np.full((2, 1), 0.3, np.float32)
    env.step(action)
    saved = copy.deepcopy(env.state_dict())
    remaining = env.remaining.copy()
    env.step(action)
    env.load_state_dict(saved)
    np.testing.assert_array_equal(env.remaining, remaining)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"limits": (0.3, 0.0)}, ValueError, "limit of.*0"),
        ({"limits": LIMITS, "gamma": 0.0}, ValueError, "gamma.*0"),
        ({"limits": LIMITS, "horizon": 0}, ValueError, "horizon.*0"),
        ({}, ValueError, "limits="),
    ],
)
def test_wrong_arguments_are_named(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        SauteBudget(levers(1), **{"horizon": STEPS, **options})


def test_the_example_of_the_docstring_runs() -> None:
    assert doctest.testmod(saute_budget).failed == 0


def test_observations_of_whole_numbers_are_refused() -> None:
    class Counter(Levers):
        observation_space = gym.spaces.Box(0, 9, (1,), np.uint8)

    envs = SyncVectorEnv([Counter])
    with pytest.raises(TypeError, match="Box of floats in one row"):
        SauteBudget(envs, STEPS, LIMITS)
