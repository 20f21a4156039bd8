"""RLlib's env runners with the robots of this package, and the parts of ``examples/rllib_ppo.py``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

runners = pytest.importorskip(
    "ray.rllib.env.single_agent_env_runner",
    reason="pip install 'legged-envs[rllib]'",
    exc_type=ImportError,
)
LIMIT = 12
"""Time limit of episodes, control steps."""


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "rllib_ppo.py"
    spec = importlib.util.spec_from_file_location("rllib_ppo", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def config(example: ModuleType) -> Any:
    def make_short(context: dict[str, Any]) -> gym.vector.VectorEnv:
        options = {"info": "arrays", "autoreset_mode": "NextStep", "max_episode_steps": LIMIT}
        return gym.make_vec(example.TASK, num_envs=context["num_envs"], **options)

    from ray.tune.registry import register_env

    register_env("short", make_short)
    return example.make_config(runners=0, num_envs=4, constrained=True).environment("short")


def test_episodes_and_costs_in_rllibs_metrics_are_those_of_the_environment(config):
    runner = runners.SingleAgentEnvRunner(config=config, worker_index=0)
    names = runner.env.unwrapped.cost_names
    episodes = [e for e in runner.sample(num_timesteps=4 * 3 * LIMIT) if e.is_done]
    metrics = runner.get_metrics()
    runner.stop()
    assert len(episodes) >= 8 and any(episode.is_truncated for episode in episodes)
    returns = []
    costs = []
    for episode in episodes:
        report = episode.get_infos(-1)["episode"]
        assert len(episode) == report["l"] <= LIMIT
        assert episode.get_return() == pytest.approx(report["r"], rel=1e-5)
        parts = np.stack([info["costs"] for info in episode.get_infos()[1:]])
        np.testing.assert_allclose(parts.sum(0), report["costs"], rtol=1e-5)
        returns.append(report["r"])
        costs.append(parts.mean(0))
        # The observation after the last action differs from the first one of the next episode.
        last, before = episode.get_observations(-1), episode.get_observations(-2)
        action = np.clip(episode.get_actions(-1), -1.0, 1.0)
        np.testing.assert_allclose(last[-12:], action, atol=1e-6)
        assert not np.array_equal(last, before)
    assert metrics["episode_return_mean"].peek() == pytest.approx(np.mean(returns), rel=1e-5)
    for name, cost in zip(names, np.mean(costs, 0), strict=True):
        assert metrics["costs"][name].peek() == pytest.approx(cost, rel=1e-5)


def test_the_price_of_a_cost_rises_above_its_limit_and_lessens_the_rewards(example, config):
    runner = runners.SingleAgentEnvRunner(config=config, worker_index=0)
    episodes = runner.sample(num_timesteps=4 * LIMIT)
    runner.stop()
    from ray.rllib.utils.postprocessing.episodes import add_one_ts_to_episodes_and_truncate

    rewards = [episode.get_rewards() for episode in episodes]
    costs = [np.stack([info["costs"] for info in e.get_infos()[1:]]) for e in episodes]
    mean = np.concatenate(costs).mean(0)
    add_one_ts_to_episodes_and_truncate(episodes)
    limits = np.where(np.arange(len(mean)) % 2 == 0, mean / 2.0, mean * 2.0) + 1e-3
    penalty = example.CostPenalty(limits=limits)
    penalty(batch={}, episodes=episodes)
    expected = np.maximum(example.RATE * (mean / limits - 1.0), 0.0)
    np.testing.assert_allclose(penalty.multipliers, expected, rtol=1e-5)
    assert (expected > 0.0).any() and (expected == 0.0).any()
    for episode, reward, cost in zip(episodes, rewards, costs, strict=True):
        lessened = reward - cost @ (expected / limits)
        np.testing.assert_allclose(episode.get_rewards()[:-1], lessened, rtol=1e-5, atol=1e-6)


def test_ppo_updates_on_the_robots_of_this_process(config):
    algorithm = config.build_algo()
    before = {key: np.array(value) for key, value in algorithm.get_module().get_state().items()}
    result = algorithm.train()
    after = algorithm.get_module().get_state()
    algorithm.stop()
    assert result["env_runners"]["num_env_steps_sampled_lifetime"] >= 4 * 24
    assert any(not np.array_equal(before[key], after[key]) for key in before)
