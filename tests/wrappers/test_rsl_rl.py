"""The rsl_rl adapter: what its ``VecEnv`` passes on, and that its PPO bootstraps exactly the time-outs."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from rsl_rl.models import MLPModel, RNNModel
from rsl_rl.runners import OnPolicyRunner
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict
from toy_envs import ToyVectorEnv

from legged_envs import make_task_cfg
from legged_envs.envs import CoreVectorEnv
from legged_envs.managers import TerminationTermCfg
from legged_envs.wrappers import AutoReset, TimeLimit, ToTorch, VectorCMDP
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO, RslRlVecEnv

NUM_ENVS = 4
LIMIT = 5
DONES = {3: [False, False, True, False], 5: [True, True, False, True]}
"""Step → which environments end there: 2 falls at step 3; 0 and 3 time out at step 5, where 1 falls as it times out."""
TIME_OUTS = {5: [True, False, False, True]}


@pytest.fixture
def scripted(make_vec: Callable[..., Any]) -> Callable[..., Any]:
    """Makes environments with episodes that end as in ``DONES``."""

    def make(**kwargs: Any) -> Any:
        def falls(env: CoreVectorEnv) -> torch.Tensor:
            clock["step"] += 1  # terms are evaluated once for their shape, then once per step
            ids = torch.arange(env.num_envs)
            return ((ids == 2) & (clock["step"] == 3)) | ((ids == 1) & (clock["step"] == 5))

        clock = {"step": -1}
        cfg = make_task_cfg("Legged/Go2-Flat-v0")
        cfg.terminations = {"scripted": TerminationTermCfg(falls)}
        arguments = {
            "array": "torch",
            "observations": "dict",
            "max_episode_steps": LIMIT,
            "cfg": cfg,
            **kwargs,
        }
        return make_vec(NUM_ENVS, **arguments)

    return make


@pytest.fixture
def moves(random_actions: Callable[..., np.ndarray]) -> torch.Tensor:
    return torch.from_numpy(random_actions(8, NUM_ENVS))


def make_ppo(env: RslRlVecEnv, num_steps: int, seed: int = 0) -> BootstrapPPO:
    torch.manual_seed(seed)
    obs = env.get_observations()
    groups = {"actor": ["policy"], "critic": ["critic"]}
    noise = {"class_name": "rsl_rl.modules.distribution:GaussianDistribution"}
    actor = MLPModel(
        obs, groups, "actor", env.num_actions, hidden_dims=[16], distribution_cfg=noise
    )
    critic = MLPModel(obs, groups, "critic", 1, hidden_dims=[16])
    storage = RolloutStorage("rl", env.num_envs, num_steps, obs, [env.num_actions])
    return BootstrapPPO(
        actor, critic, storage, num_learning_epochs=1, num_mini_batches=2, gamma=0.9, lam=0.8
    )


# --- VecEnv -----------------------------------------------------------------------------------------------------------


def test_it_describes_the_environment(scripted):
    env = RslRlVecEnv(scripted(), seed=0)
    assert (env.num_envs, env.num_actions, env.max_episode_length) == (NUM_ENVS, 12, LIMIT)
    assert env.device == torch.device("cpu")
    assert env.cfg.robot.name == "go2"
    observation = env.get_observations()
    assert isinstance(observation, TensorDict) and observation.batch_size == (NUM_ENVS,)
    assert set(observation.keys()) == {"policy", "critic"}


def test_it_passes_on_what_the_environment_returns(scripted, moves):
    env, plain = RslRlVecEnv(scripted(), seed=3), scripted()
    expected, _ = plain.reset(seed=3)
    for name, value in expected.items():
        assert torch.equal(env.get_observations()[name], value)
    for action in moves:
        observation, reward, done, extras = env.step(action)
        expected, expected_reward, terminated, truncated, info = plain.step(action)
        assert env.get_observations() is observation
        for name, value in expected.items():
            assert torch.equal(observation[name], value)
        assert torch.equal(reward, expected_reward)
        assert torch.equal(done, terminated | truncated)
        assert torch.equal(extras["cost"], info["cost"]) and torch.equal(
            extras["costs"], info["costs"]
        )
        assert ("final_obs" in extras) == ("log" in extras) == bool(done.any())
        if done.any():
            for name, value in info["final_obs"].items():
                assert torch.equal(extras["final_obs"][name], value)
            assert extras["log"] == {f"/{name}": value for name, value in info["log"].items()}


def test_time_outs_are_those_of_this_step_and_no_falls(scripted, moves):
    env = RslRlVecEnv(scripted(), seed=0)
    for step, action in enumerate(moves[:7], start=1):
        done, extras = env.step(action)[2:]
        assert done.tolist() == DONES.get(step, [False] * NUM_ENVS)
        assert extras["time_outs"].tolist() == TIME_OUTS.get(step, [False] * NUM_ENVS)
        assert extras["time_outs"].dtype == torch.bool


def test_setting_the_episode_lengths_moves_the_time_limits(scripted, moves):
    """rsl_rl starts a run with random lengths, so that not all episodes end together."""
    env = RslRlVecEnv(scripted(), seed=0)
    assert env.episode_length_buf.tolist() == [0] * NUM_ENVS
    env.episode_length_buf = torch.tensor([4, 3, 0, 2])
    time_outs = [
        env.step(action)[3]["time_outs"].nonzero().squeeze(1).tolist() for action in moves[:3]
    ]
    assert time_outs == [[0], [1], [3]]
    assert env.episode_length_buf.tolist() == [2, 1, 0, 0]


def test_it_goes_on_from_a_saved_state(scripted, moves):
    def go_on(env: RslRlVecEnv) -> list[torch.Tensor]:
        return [
            x.clone()
            for action in moves[4:]
            for x in (env.step(action)[0]["critic"], env.step(action)[1])
        ]

    env, fresh = (RslRlVecEnv(scripted(cfg={"terminations": {}}), seed=seed) for seed in (0, 1))
    for action in moves[:4]:
        env.step(action)
    state = copy.deepcopy(env.get_state())
    expected = go_on(env)
    fresh.set_state(state)
    assert torch.equal(fresh.get_observations()["policy"], state["observation"]["policy"])
    for one, other in zip(go_on(fresh), expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("kwargs", "culprit"),
    [
        ({"autoreset_mode": "NextStep"}, r"SAME_STEP.*NEXT_STEP"),
        ({"autoreset_mode": "Disabled"}, r"SAME_STEP.*DISABLED"),
        ({"array": "numpy"}, r"ndarray.*ToTorch"),
    ],
    ids=str,
)
def test_environments_made_otherwise_are_refused(kwargs, culprit, scripted):
    with pytest.raises(ValueError, match=culprit):
        RslRlVecEnv(scripted(**kwargs))


def test_an_environment_without_a_time_limit_is_refused(scripted):
    with pytest.raises(ValueError, match="TimeLimit"):
        RslRlVecEnv(AutoReset(ToyVectorEnv(array="torch")))
    with pytest.raises(ValueError, match="TimeLimit"):
        RslRlVecEnv(
            gym.make_vec("Legged/Go2-Flat-v0", num_envs=1, array="torch", max_episode_steps=-1)
        )


def test_an_environment_whose_step_returns_the_cost_is_refused(scripted):
    with pytest.raises(ValueError, match="VectorCMDP"):
        RslRlVecEnv(VectorCMDP(scripted()))


def test_a_group_with_its_terms_by_name_is_refused():
    cfg = {"observations.critic.concatenate": False}
    envs = gym.make_vec(
        "Legged/Go2-Flat-v0",
        num_envs=2,
        array="torch",
        autoreset_mode="SameStep",
        cfg=cfg,
        observations="dict",
    )
    with pytest.raises(ValueError, match=r"'critic' has its terms by name.*concatenate"):
        RslRlVecEnv(envs)
    envs.close()


# --- environments of others -------------------------------------------------------------------------------------------


def test_any_batch_of_tensors_will_do(random_actions):
    """It has no device and no cfg, and its observation is no dict."""

    def make() -> Any:
        return AutoReset(TimeLimit(ToyVectorEnv(array="torch"), 4))

    env, plain = RslRlVecEnv(make()), make()
    assert (env.device, env.cfg, env.max_episode_length) == (torch.device("cpu"), {}, 4)
    assert torch.equal(env.get_observations()["policy"], plain.reset()[0])
    ended = 0
    for action in torch.from_numpy(random_actions(8, 3, 2)):
        observation, reward, done, extras = env.step(action)
        expected, expected_reward, terminated, truncated, info = plain.step(action)
        assert list(observation.keys()) == ["policy"]
        assert torch.equal(observation["policy"], expected) and torch.equal(reward, expected_reward)
        assert torch.equal(done, terminated | truncated)
        if done.any():
            assert torch.equal(extras["final_obs"]["policy"], info["final_obs"])
            ended += 1
    assert ended > 0


def make_cheetah(mode: str = "SameStep") -> Any:
    arguments = {
        "vectorization_mode": "sync",
        "vector_kwargs": {"autoreset_mode": mode},
        "max_episode_steps": LIMIT,
    }
    return gym.make_vec("HalfCheetah-v5", NUM_ENVS, **arguments)


MAKE = pytest.mark.parametrize(
    "make",
    [
        lambda: ToTorch(make_cheetah()),
        lambda: TimeLimit(ToTorch(make_cheetah()), LIMIT),
        lambda: ToTorch(TimeLimit(make_cheetah(), LIMIT)),
        lambda: ToTorch(AutoReset(make_cheetah("Disabled"))),
    ],
    ids=["same step", "TimeLimit outside", "TimeLimit inside", "AutoReset"],
)


@MAKE
def test_the_runner_trains_on_environments_of_gymnasium(make):
    env = RslRlVecEnv(make(), seed=0)
    assert (env.device, env.cfg, env.max_episode_length) == (torch.device("cpu"), {}, LIMIT)
    network = {
        "class_name": "rsl_rl.models:MLPModel",
        "hidden_dims": [16],
        "obs_normalization": True,
    }
    noise = {"class_name": "rsl_rl.modules.distribution:GaussianDistribution", "init_std": 0.5}
    cfg = {
        "algorithm": {"class_name": BootstrapPPO, "num_learning_epochs": 1, "num_mini_batches": 2},
        "actor": {**network, "distribution_cfg": noise},
        "critic": network,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "num_steps_per_env": 8,
        "save_interval": 100,
    }
    runner = OnPolicyRunner(env, cfg)
    before = copy.deepcopy(runner.alg.save()["critic_state_dict"])
    runner.learn(2, init_at_random_ep_len=True)
    after = runner.alg.save()["critic_state_dict"]
    assert all(torch.isfinite(value).all() for value in after.values())
    assert any(not torch.equal(before[name], after[name]) for name in before)


@MAKE
def test_time_limits_of_environments_of_gymnasium_move(make):
    env = RslRlVecEnv(make(), seed=0)
    env.episode_length_buf = torch.tensor([4, 3, 0, 2])
    for ends in ([0], [1], [3]):
        observation, reward, _, extras = env.step(torch.zeros(NUM_ENVS, 6))
        rows = extras["time_outs"]
        assert rows.nonzero().squeeze(1).tolist() == ends
        final = extras["final_obs"]["policy"]
        assert final.dtype == observation["policy"].dtype == reward.dtype == torch.float32
        assert torch.equal((final != observation["policy"]).any(1), rows), (
            "other environments go on"
        )
    assert env.episode_length_buf.tolist() == [2, 1, 3, 0]


# --- PPO --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "context", [torch.inference_mode, contextlib.nullcontext], ids=["inference", "plain"]
)
def test_ppo_adds_the_discounted_value_of_the_final_observation_to_time_outs_alone(
    context, scripted
):
    env = RslRlVecEnv(scripted(), seed=0)
    ppo = make_ppo(env, num_steps=7)
    observation = env.get_observations()
    collected = []
    with context():
        for step in range(1, 8):
            value_before = ppo.critic(observation).squeeze(1).detach()
            observation, reward, done, extras = env.step(ppo.act(observation))
            passed = reward.clone()
            ppo.process_env_step(observation, passed, done, extras)
            assert torch.equal(passed, reward), "the caller's rewards are left as they are"
            stored = ppo.storage.rewards[step - 1].squeeze(1)
            assert ppo.storage.dones[step - 1].squeeze(1).bool().tolist() == done.tolist()
            time_outs = torch.tensor(TIME_OUTS.get(step, [False] * NUM_ENVS))
            assert torch.equal(stored[~time_outs], reward[~time_outs])
            if time_outs.any():
                final_value = ppo.critic(extras["final_obs"]).squeeze(1).detach()
                next_value = ppo.critic(observation).squeeze(1).detach()
                expected = reward + 0.9 * final_value
                assert torch.allclose(stored[time_outs], expected[time_outs], rtol=1e-6, atol=1e-6)
                for other in (value_before, next_value):
                    assert ((final_value - other)[time_outs].abs() > 1e-3).all()
            collected.append(stored.clone())
        ppo.compute_returns(observation)
    assert not ppo.storage.rewards.requires_grad
    returns = ppo.storage.returns.squeeze(2)
    for step, dones in DONES.items():
        ended = torch.tensor(dones)
        assert torch.allclose(returns[step - 1][ended], collected[step - 1][ended], atol=1e-6)


def test_ppo_learns_from_such_a_rollout(scripted):
    env = RslRlVecEnv(scripted(), seed=0)
    ppo = make_ppo(env, num_steps=6)
    before = copy.deepcopy(ppo.save()["critic_state_dict"])
    observation = env.get_observations()
    with torch.inference_mode():
        for _ in range(6):
            observation, reward, done, extras = env.step(ppo.act(observation))
            ppo.process_env_step(observation, reward, done, extras)
        ppo.compute_returns(observation)
    losses = ppo.update()
    assert all(np.isfinite(loss) for loss in losses.values())
    after = ppo.save()["critic_state_dict"]
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_a_recurrent_critic_bootstraps_and_keeps_its_memory(scripted, moves):
    env = RslRlVecEnv(scripted(), seed=0)
    algorithm = make_ppo(env, num_steps=8)
    groups = {"critic": ["critic"]}
    critic = RNNModel(env.get_observations(), groups, "critic", 1, [16], rnn_hidden_dim=8)
    algorithm.critic = critic
    bootstrapped = 0
    for action in moves[:7]:
        algorithm.act(env.get_observations())
        memory = tuple(part.detach().clone() for part in critic.get_hidden_state())
        _, rewards, dones, extras = env.step(action)
        expected = rewards.clone()
        if extras["time_outs"].any():
            values = critic(extras["final_obs"]).detach().squeeze(1)
            critic.reset(hidden_state=tuple(part.clone() for part in memory))
            expected = torch.where(extras["time_outs"], rewards + 0.9 * values, rewards)
            bootstrapped += 1
        algorithm.process_env_step(env.get_observations(), rewards, dones, extras)
        recorded = algorithm.storage.rewards[algorithm.storage.step - 1].squeeze(1)
        assert torch.allclose(recorded, expected)
        for kept, before in zip(critic.get_hidden_state(), memory, strict=True):
            assert torch.equal(kept[:, ~dones], before[:, ~dones])
    assert bootstrapped > 0
