"""The adapters for Stable-Baselines3, skrl and rl_games: each library gets the right information about an episode's end, and its learner bootstraps exactly the time-outs, from the true last observation. The oracles are Stable-Baselines3's own
``DummyVecEnv`` and a replay of the same actions."""

from __future__ import annotations

import copy
import re
import runpy
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from rl_games.common.player import BasePlayer
from skrl.memories.torch import RandomMemory
from skrl.trainers.torch import SequentialTrainer
from skrl.utils.runner.torch import Runner as SkrlRunner
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from legged_envs.wrappers import (
    AutoReset,
    ConstraintsAsTerminations,
    EpisodeStatistics,
    LagrangianReward,
    TimeLimit,
    ToNumpy,
    ToTorch,
    VectorCMDP,
    rl_games,
    skrl,
)
from legged_envs.wrappers.adapters.rsl_rl import RslRlVecEnv
from legged_envs.wrappers.adapters.sb3 import Sb3VecEnv

GO2 = "Legged/Go2-Flat-v0"
COUNTERS = "Adapters/Counters-v0"
NUM_ENVS = 4
SEED = 5
GAMMA = 0.9


class Counter(gym.Env):
    """Episodes of known length that end by termination, by truncation or by both at once, in turn.

    The observation is (seed, episode, time, last action): it identifies the environment and the step.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012
    observation_space = gym.spaces.Box(-100.0, 100.0, (4,))
    action_space = gym.spaces.Box(-1.0, 1.0, (2,))
    difficulty = 1

    def __init__(self, grouped: bool = False, render_mode: str | None = None):
        self.grouped, self.render_mode = grouped, render_mode
        self.id = self.episode = -1
        if grouped:
            spaces = {
                "policy": self.observation_space,
                "critic": gym.spaces.Box(-100.0, 100.0, (6,)),
            }
            self.observation_space = gym.spaces.Dict(spaces)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.id, self.episode = (self.id, self.episode + 1) if seed is None else (seed, 0)
        self.episode += (options or {}).get("skip", 0)
        self.time, self.action = 0, np.float32(0.0)
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        self.action = np.float32(action[0])
        over = self.time >= 2 + (3 * self.id + self.episode) % 4
        how = (self.id + self.episode) % 3
        info = {"cost": float(self.time % 2), "costs": np.array([self.time % 2, 0.0], np.float32)}
        reward = float(self.id + 0.25 * self.time + 0.125 * round(8 * float(self.action)))
        return self.observe(), reward, over and how != 1, over and how != 0, info

    def observe(self) -> Any:
        row = np.array([self.id, self.episode, self.time, self.action], np.float32)
        return (
            {"critic": np.append(row, [7.0, self.time]).astype(np.float32), "policy": row}
            if self.grouped
            else row
        )

    def render(self) -> np.ndarray:
        return np.full((2, 3, 3), self.id, np.uint8)

    def double(self, number: int) -> int:
        return 2 * number + self.id


class Counters(VectorEnv):
    """A batch of counters that never reset by themselves."""

    cost_limits = (0.25, 0.5)
    difficulty = 1

    def __init__(self, num_envs: int = NUM_ENVS, array: str = "numpy", grouped: bool = False):
        self.num_envs, self.array = num_envs, array
        self.metadata = {"autoreset_mode": AutoresetMode.DISABLED}
        self.counters = [Counter(grouped) for _ in range(num_envs)]
        self.single_observation_space = self.counters[0].observation_space
        self.single_action_space = Counter.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, bool)))
        for i in np.flatnonzero(mask):
            self.counters[i].reset(seed=None if seed is None else seed + int(i), options=options)
        return self.batch([counter.observe() for counter in self.counters]), {
            "log": {"reward": self.batch(1.5)}
        }

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        steps = [
            counter.step(action)
            for counter, action in zip(self.counters, np.asarray(actions), strict=True)
        ]
        observations, rewards, terminated, truncated, infos = zip(*steps, strict=True)
        info = {
            key: self.batch([np.float32(info[key]) for info in infos]) for key in ("cost", "costs")
        }
        self.rewards = self.batch(np.array(rewards, np.float32))
        return (
            self.batch(observations),
            self.rewards,
            self.batch(terminated),
            self.batch(truncated),
            info,
        )

    def batch(self, values: Any) -> Any:
        if isinstance(values, (list, tuple)) and isinstance(values[0], dict):
            return {key: self.batch([value[key] for value in values]) for key in values[0]}
        return np.array(values) if self.array == "numpy" else torch.as_tensor(np.array(values))

    def difficulties(self) -> list[int]:
        return [counter.id for counter in self.counters]

    def mean_time(self) -> float:
        return float(np.mean([counter.time for counter in self.counters]))


def make_counters(num_envs: int = NUM_ENVS, **kwargs: Any) -> VectorEnv:
    return AutoReset(EpisodeStatistics(Counters(num_envs, **kwargs)))


def make_sync(
    num_envs: int = NUM_ENVS, grouped: bool = False, mode: str = "SameStep", **kwargs: Any
) -> VectorEnv:
    return SyncVectorEnv([lambda: Counter(grouped, **kwargs)] * num_envs, autoreset_mode=mode)


def make_pendulum(mode: str = "SameStep", **kwargs: Any) -> VectorEnv:
    """Float32 observations; all episodes end together."""
    return make_gymnasium("Pendulum-v1", mode, **kwargs)


def make_cheetah(mode: str = "SameStep", **kwargs: Any) -> VectorEnv:
    """Float64 observations; all episodes end together."""
    return make_gymnasium("HalfCheetah-v5", mode, **kwargs)


def make_gymnasium(env_id: str, mode: str, num_envs: int = NUM_ENVS) -> VectorEnv:
    arguments = {
        "vectorization_mode": "sync",
        "vector_kwargs": {"autoreset_mode": mode},
        "max_episode_steps": 3,
    }
    env = gym.make_vec(env_id, num_envs, **arguments)
    return ToTorch(AutoReset(env) if mode == "Disabled" else env)


def make_reset_cheetah(**kwargs: Any) -> VectorEnv:
    return make_cheetah("Disabled", **kwargs)


GYMNASIUM = pytest.mark.parametrize("make", [make_pendulum, make_cheetah, make_reset_cheetah])


def make_dummy(num_envs: int = NUM_ENVS, grouped: bool = False) -> DummyVecEnv:
    return DummyVecEnv([lambda: Monitor(Counter(grouped))] * num_envs)


def draw(steps: int, num_envs: int = NUM_ENVS) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (steps, num_envs, 2)).astype(np.float32)


@pytest.fixture(autouse=True)
def leave_torch_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """rl_games and the examples set the number of threads and the precision, and write into the working directory."""
    monkeypatch.chdir(tmp_path)
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    yield
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(precision)


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    gym.register(COUNTERS, entry_point=Counter, vector_entry_point=make_counters)
    yield
    del gym.registry[COUNTERS]


# --- Stable-Baselines3 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True], ids=["array", "dict"])
@pytest.mark.parametrize("make", [make_counters, make_sync])
def test_sb3_is_told_what_its_own_vec_env_tells(make, grouped, assert_same):
    env, oracle = Sb3VecEnv(make(grouped=grouped)), make_dummy(grouped=grouped)
    env.seed(SEED), oracle.seed(SEED)
    assert_same(env.reset(), dict(oracle.reset()) if grouped else oracle.reset())
    ends = []
    for action in draw(30):
        observation, rewards, dones, infos = env.step(action)
        expected, expected_rewards, expected_dones, expected_infos = oracle.step(action)
        assert_same(observation, dict(expected) if grouped else expected)
        assert_same(rewards, expected_rewards)
        assert_same(dones, expected_dones)
        for i, (info, other) in enumerate(zip(infos, expected_infos, strict=True)):
            assert info["cost"] == other["cost"]
            assert_same(info["costs"], other["costs"])
            assert ("terminal_observation" in info) == ("episode" in info) == bool(dones[i])
            assert info["TimeLimit.truncated"] is bool(other["TimeLimit.truncated"])
            if dones[i]:
                assert_same(info["terminal_observation"], other["terminal_observation"])
                assert info["episode"]["r"] == pytest.approx(other["episode"]["r"], abs=1e-5)
                assert info["episode"]["l"] == other["episode"]["l"]
                ends.append(info["TimeLimit.truncated"])
    assert set(ends) == {True, False}


def test_sb3_gets_the_summed_cost_of_an_episode():
    env = Sb3VecEnv(make_counters())
    env.seed(SEED)
    env.reset()
    sums = np.zeros(NUM_ENVS)
    for action in draw(12):
        _, _, dones, infos = env.step(action)
        sums += [info["cost"] for info in infos]
        for i in np.flatnonzero(dones):
            assert infos[i]["episode"]["c"] == sums[i]
        sums[dones] = 0.0


@pytest.mark.parametrize("make", [make_counters, make_sync])
def test_what_sb3_does_to_a_step_reaches_no_later_one(make):
    """SB3's PPO adds to the rewards in place, ``VecNormalize`` and others write into the dicts."""
    env, untouched = Sb3VecEnv(make()), Sb3VecEnv(make())
    for one in (env, untouched):
        one.seed(SEED)
        one.reset()
    for action in draw(12):
        observation, rewards, dones, infos = env.step(action)
        expected = copy.deepcopy(untouched.step(action))
        assert len({id(info) for info in infos}) == NUM_ENVS
        for info, other in zip(infos, expected[3], strict=True):
            for part in (info, other):
                part.get("episode", {}).pop("t", None)
            np.testing.assert_equal(info, other)
        assert np.array_equal(observation, expected[0]) and np.array_equal(rewards, expected[1])
        observation += 1.0
        rewards += 100.0
        assert make is make_sync or env.env.unwrapped.rewards.max() < 50.0, (
            "the environment's own are left alone"
        )
        dones[:] = True
        for info in infos:
            if "terminal_observation" in info:
                info["terminal_observation"] += 1.0
            info["costs"] += 1.0
            info.clear()


class Change(VectorWrapper):
    """Doubles the costs at the top level of ``info``, and takes ``without`` out of it."""

    def __init__(self, env: VectorEnv, without: str = ""):
        super().__init__(env)
        self.without = without

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        *step, info = self.env.step(actions)
        info = {key: value for key, value in info.items() if key != self.without}
        return *step, {**info, "cost": 2 * info["cost"]}


def test_sb3_gets_what_a_wrapper_above_the_autoreset_makes_of_a_cost():
    env, plain = Sb3VecEnv(Change(make_counters())), make_counters()
    env.seed(SEED)
    env.reset()
    plain.reset(seed=SEED)
    ended = 0
    for action in draw(6):
        _, _, dones, infos = env.step(action)
        assert [info["cost"] for info in infos] == (2 * plain.step(action)[4]["cost"]).tolist()
        ended += dones.sum()
    assert ended > 0


def test_sb3_refuses_an_end_without_a_last_observation():
    env = Sb3VecEnv(Change(make_counters(), without="final_obs"))
    env.reset()
    with pytest.raises(ValueError, match="final_obs"):
        for action in draw(6):
            env.step(action)


@pytest.mark.parametrize(
    ("wrapper", "key"),
    [(LagrangianReward, "lagrange_multipliers"), (ConstraintsAsTerminations, "max_probabilities")],
)
@pytest.mark.parametrize("num_envs", [2, NUM_ENVS], ids=["as many as costs", "more than costs"])
def test_sb3_leaves_whole_what_has_a_number_for_each_cost(wrapper, key, num_envs):
    env, plain = (
        Sb3VecEnv(wrapper(make_counters(num_envs), interval=2)),
        wrapper(make_counters(num_envs), interval=2),
    )
    env.seed(SEED)
    env.reset()
    plain.reset(seed=SEED)
    for action in draw(8, num_envs):
        expected = plain.step(action)[4][key]
        assert expected.shape == (2,)
        for info in env.step(action)[3]:
            assert np.array_equal(info[key], expected)
    assert expected[0] != expected[1]


class CheckBootstrap(BaseCallback):
    """Compares PPO's stored rewards with r + γ V(true last observation) for time-outs and r for all else."""

    def _on_rollout_start(self) -> None:
        self.expected: list[np.ndarray] = []
        self.time_outs = 0

    def _on_step(self) -> bool:
        rewards = self.locals["rewards"].copy()
        for i, info in enumerate(self.locals["infos"]):
            if info.get("TimeLimit.truncated"):
                last = torch.as_tensor(info["terminal_observation"])[None]
                rewards[i] += GAMMA * self.model.policy.predict_values(last).item()
                assert info["terminal_observation"][2] > 0 == self.locals["new_obs"][i][2]
                self.time_outs += 1
        self.expected.append(rewards)
        return True

    def _on_rollout_end(self) -> None:
        assert self.time_outs > 0
        np.testing.assert_allclose(self.model.rollout_buffer.rewards, self.expected, atol=1e-5)


def test_sb3_ppo_bootstraps_time_outs_alone_from_the_true_last_observation():
    env = Sb3VecEnv(make_counters())
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=12,
        batch_size=12,
        n_epochs=1,
        gamma=GAMMA,
        seed=SEED,
        device="cpu",
    )
    model.learn(96, CheckBootstrap())
    assert len(model.ep_info_buffer) > 0


def test_sb3_sac_stores_the_true_next_observation():
    env = Sb3VecEnv(make_counters())
    model = SAC(
        "MlpPolicy", env, learning_starts=20, batch_size=8, buffer_size=400, seed=SEED, device="cpu"
    )
    model.learn(48)
    buffer = model.replay_buffer
    steps = buffer.pos
    assert steps == 12
    now, after = buffer.observations[:steps], buffer.next_observations[:steps]
    assert np.array_equal(after[..., :2], now[..., :2]), (
        "the next observation is of the same episode"
    )
    assert np.array_equal(after[..., 2], now[..., 2] + 1), "and one step later"
    assert buffer.timeouts[:steps].any() and (buffer.dones[:steps] > buffer.timeouts[:steps]).any()


def test_sb3_knows_the_frames_per_second(make_vec):
    envs = Sb3VecEnv(make_vec(2, render_mode="rgb_array"))
    assert envs.metadata["render_fps"] == 50 and envs.render_mode == "rgb_array"


def test_evaluate_policy_measures_whole_episodes(recwarn):
    env = Sb3VecEnv(make_counters())
    model = PPO("MlpPolicy", env, n_steps=4, batch_size=4, device="cpu")
    env.seed(SEED)
    returns, lengths = evaluate_policy(
        model, env, n_eval_episodes=NUM_ENVS, return_episode_rewards=True
    )
    assert sorted(lengths) == sorted(2 + 3 * (SEED + i) % 4 for i in range(NUM_ENVS))
    assert len(returns) == NUM_ENVS
    assert not [warning for warning in recwarn if "Monitor" in str(warning.message)]


def test_vec_monitor_and_vec_normalize_stack_on_it():
    with pytest.warns(UserWarning, match="overwritten"):
        env = VecNormalize(VecMonitor(Sb3VecEnv(make_counters())), gamma=GAMMA)
    env.seed(SEED)
    env.reset()
    episodes = 0
    for action in draw(12):
        _, _, dones, infos = env.step(action)
        for i in np.flatnonzero(dones):
            last = env.unnormalize_obs(infos[i]["terminal_observation"])
            assert round(float(last[2])) == infos[i]["episode"]["l"]
            assert round(float(last[0])) == SEED + i
            episodes += 1
    assert episodes > 5


def test_sb3_seeds_and_options_hold_for_one_reset():
    env = Sb3VecEnv(make_counters())
    assert env.seed(SEED) == [SEED + i for i in range(NUM_ENVS)]
    env.set_options({"skip": 10})
    first = env.reset()
    assert first[:, :2].tolist() == [[SEED + i, 10.0] for i in range(NUM_ENVS)]
    assert env.reset()[:, :2].tolist() == [[SEED + i, 11.0] for i in range(NUM_ENVS)]
    env.set_options([{"skip": i} for i in range(NUM_ENVS)])
    with pytest.raises(ValueError, match="reset options"):
        env.reset()


def test_sb3_reaches_the_attributes_and_methods_of_a_batch():
    env = Sb3VecEnv(make_counters())
    env.seed(SEED)
    env.reset()
    assert env.get_attr("cost_limits", [0, 2]) == [(0.25, 0.5)] * 2
    assert env.env_method("difficulties") == [SEED + i for i in range(NUM_ENVS)]
    assert env.env_method("mean_time") == [0.0] * NUM_ENVS
    env.set_attr("difficulty", 3)
    assert env.env.unwrapped.difficulty == 3
    assert env.has_attr("difficulty") and not env.has_attr("colour")
    with pytest.raises(AttributeError, match=r"Counters.*'colour'"):
        env.get_attr("colour")
    assert env.env_is_wrapped(EpisodeStatistics) == [True] * NUM_ENVS
    assert env.env_is_wrapped(RecordEpisodeStatistics, [1]) == [False]
    with pytest.raises(ValueError, match="indices"):
        env.set_attr("difficulty", 1, indices=[0])
    with pytest.raises(ValueError, match="indices"):
        env.env_method("difficulties", indices=0)


def test_sb3_reaches_each_environment_of_gymnasiums_vector_environment():
    env = Sb3VecEnv(make_sync(render_mode="rgb_array"))
    env.seed(SEED)
    env.reset()
    assert env.env_method("double", 10, indices=[3, 1]) == [20 + SEED + 3, 20 + SEED + 1]
    env.set_attr("difficulty", 3, indices=2)
    assert env.get_attr("difficulty") == [1, 1, 3, 1]
    env.set_attr("difficulty", 4)
    assert env.get_attr("difficulty", [0, 3]) == [4, 4]
    assert env.env_is_wrapped(gym.wrappers.TimeLimit) == [False] * NUM_ENVS
    assert env.render().shape == (4, 6, 3)
    env.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"),
        lambda: gym.make("CartPole-v1"),
        lambda: gym.make_vec(GO2, num_envs=2, autoreset_mode="NextStep"),
        lambda: gym.make_vec(GO2, num_envs=2, autoreset_mode="Disabled"),
        lambda: gym.make_vec(GO2, num_envs=2, array="torch"),
    ],
    ids=["Gymnasium's default", "gym.make", "next step", "disabled", "torch"],
)
def test_what_sb3_cannot_use_is_refused_with_the_call_that_works(make):
    with pytest.raises(ValueError, match="make_vec") as error:
        Sb3VecEnv(make()).reset()
    call = re.search(r"gymnasium\.make_vec\((.*?[']\}?\))", str(error.value)).group(0)
    Sb3VecEnv(eval(call, {"gymnasium": gymnasium, "N": 2})).reset()


def test_sb3_learns_on_environments_of_gymnasium():
    same_step = {"autoreset_mode": AutoresetMode.SAME_STEP}
    env = Sb3VecEnv(
        gym.make_vec("CartPole-v1", num_envs=4, vectorization_mode="sync", vector_kwargs=same_step)
    )
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=64, n_epochs=1, device="cpu").learn(128)
    assert model.ep_info_buffer[0]["l"] > 5
    assert evaluate_policy(model, env, n_eval_episodes=4)[0] > 5
    env = gym.make_vec(
        "HalfCheetah-v5",
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs=same_step,
        max_episode_steps=5,
    )
    env = Sb3VecEnv(env)
    SAC("MlpPolicy", env, learning_starts=16, batch_size=8, buffer_size=100, device="cpu").learn(24)
    assert np.isfinite(env.step(np.zeros((2, 6), np.float32))[3][0]["x_velocity"])


def test_sb3_names_the_environment_in_a_line(make_vec):
    """Printed, it is a table for each manager."""
    with pytest.raises(AttributeError, match=r"CoreVectorEnv.*'nope'") as error:
        Sb3VecEnv(make_vec()).get_attr("nope")
    assert len(str(error.value)) < 120


@pytest.mark.parametrize("observations", ["policy", "dict"])
def test_sb3_trains_on_go2(observations, make_vec):
    env = Sb3VecEnv(make_vec(4, observations=observations, max_episode_steps=6))
    policy = "MlpPolicy" if observations == "policy" else "MultiInputPolicy"
    model = PPO(
        policy, VecNormalize(env), n_steps=8, batch_size=16, n_epochs=1, device="cpu"
    ).learn(64)
    assert model.ep_info_buffer[0]["l"] == 6 and model.ep_info_buffer[0]["c"] >= 0.0
    _, _, _, infos = env.step(np.zeros((4, 12), np.float32))
    limits = env.get_attr("cost_limits")[0]
    assert infos[1]["costs"].shape == (len(limits),)
    assert infos[1]["cost"] == pytest.approx(infos[1]["costs"].sum())


# --- skrl -------------------------------------------------------------------------------------------------------------


def skrl_cfg(grouped: bool, timesteps: int, rollouts: int, **agent: Any) -> dict[str, Any]:
    def network(source: str) -> list[dict[str, Any]]:
        return [{"name": "net", "input": source, "layers": [16], "activations": "elu"}]

    return {
        "seed": SEED,
        "models": {
            "separate": True,
            "policy": {
                "class": "GaussianMixin",
                "network": network("OBSERVATIONS"),
                "output": "ACTIONS",
            },
            "value": {
                "class": "DeterministicMixin",
                "network": network("STATES" if grouped else "OBSERVATIONS"),
                "output": "ONE",
            },
        },
        "memory": {"class": "RandomMemory", "memory_size": -1},
        "agent": {
            "class": "PPO",
            "rollouts": rollouts,
            "learning_epochs": 1,
            "mini_batches": 2,
            "discount_factor": GAMMA,
            "observation_preprocessor": "RunningStandardScaler",
            "value_preprocessor": "RunningStandardScaler",
            "experiment": {"write_interval": 0, "checkpoint_interval": 0},
            **agent,
        },
        "trainer": {
            "class": "SequentialTrainer",
            "timesteps": timesteps,
            "environment_info": "log",
            "disable_progressbar": True,
            "close_environment_at_exit": False,
        },
    }


def replay(
    actions: torch.Tensor, grouped: bool
) -> Iterator[tuple[torch.Tensor, torch.Tensor, Any, Any]]:
    """Rewards, time-outs, true last and next first observations of the counters when they take these actions again."""
    env = make_counters(array="torch", grouped=grouped)
    env.reset(seed=SEED)
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        yield reward, truncated & ~terminated, info.get("final_obs"), observation


def test_skrl_is_told_what_the_environment_tells(assert_same):
    env, plain = (
        skrl.SkrlVecEnv(make_counters(array="torch", grouped=True), seed=SEED),
        make_counters(grouped=True),
    )
    expected, _ = plain.reset(seed=SEED)
    assert (
        env.observation_space.shape == (4,)
        and env.state_space.shape == (6,)
        and env.action_space.shape == (2,)
    )
    assert (env.num_envs, env.device) == (NUM_ENVS, torch.device("cpu"))
    observation, _ = env.reset()
    assert_same(
        [observation.numpy(), env.state().numpy()], [expected["policy"], expected["critic"]]
    )
    both = 0
    for action in draw(12):
        observation, reward, terminated, truncated, infos = env.step(torch.from_numpy(action))
        expected, expected_reward, fell, out_of_time, info = plain.step(action)
        assert_same(
            [observation.numpy(), env.state().numpy()], [expected["policy"], expected["critic"]]
        )
        assert_same(reward.numpy(), expected_reward[:, None])
        assert_same(
            [terminated.numpy(), truncated.numpy()], [fell[:, None], (out_of_time & ~fell)[:, None]]
        )
        both += (fell & out_of_time).sum()
        assert ("final_obs" in infos) == ("final_obs" in info)
        if "final_obs" in info:
            final = info["final_obs"]
            assert_same(
                [infos["final_obs"].numpy(), infos["final_states"].numpy()],
                [final["policy"], final["critic"]],
            )
        reward += 100.0  # as skrl does
        assert env.unwrapped.rewards.max() < 50.0, "the environment's own are left alone"
    assert both > 0
    assert env.render() is None


@pytest.mark.parametrize("grouped", [False, True], ids=["observations", "states"])
def test_skrl_ppo_bootstraps_time_outs_alone_from_the_true_last_observation(grouped):
    steps = 10
    env = skrl.SkrlVecEnv(make_counters(array="torch", grouped=grouped), seed=SEED)
    runner = skrl.BootstrapRunner(
        env, skrl_cfg(grouped, steps, rollouts=steps + 1)
    )  # no update in between
    runner.run("train")
    agent, memory = runner.agent, runner.agent.memory
    assert isinstance(agent, skrl.BootstrapPPO) and agent.cfg.time_limit_bootstrap

    def value(observation: Any) -> torch.Tensor:
        inputs = {"observations": observation, "states": None}
        if grouped:
            inputs = {"observations": observation["policy"], "states": observation["critic"]}
        inputs["observations"] = agent._observation_preprocessor(inputs["observations"])
        return agent._value_preprocessor(
            agent.value.act(inputs, role="value")[0], inverse=True
        ).squeeze(1)

    with torch.no_grad():
        for t, (reward, time_outs, final, following) in enumerate(
            replay(memory.tensors["actions"][:steps], grouped)
        ):
            expected = reward + GAMMA * value(final) * time_outs if time_outs.any() else reward
            assert torch.allclose(memory.tensors["rewards"][t].squeeze(1), expected, atol=1e-5)
            if time_outs.any():
                assert ((value(final) - value(following))[time_outs].abs() > 1e-3).all()


def test_skrl_agents_record_the_true_next_observation():
    class Record:
        def record_transition(self, **transition: Any) -> None:
            self.transition = transition

    class Agent(skrl.FinalObservations, Record):
        pass

    agent = Agent()
    given = {
        "next_observations": torch.ones(2, 3),
        "next_states": None,
        "rewards": torch.zeros(2, 1),
    }
    agent.record_transition(**given, infos={})
    assert agent.transition["next_observations"] is given["next_observations"]
    final = {"final_obs": torch.zeros(2, 3), "final_states": torch.zeros(2, 5)}
    agent.record_transition(**given, infos=final)
    assert agent.transition["next_observations"] is final["final_obs"]
    assert agent.transition["next_states"] is final["final_states"]
    assert agent.transition["rewards"] is given["rewards"]
    with pytest.raises(ValueError, match="1 of 2"):
        agent.record_transition(**{**given, "next_observations": torch.ones(1, 3)}, infos=final)


def test_a_single_environment_of_skrl_is_not_reset_twice():
    """skrl's trainers call ``reset`` after each episode of a single environment, which has reset itself."""
    env = skrl.SkrlVecEnv(make_counters(1, array="torch"), seed=SEED)
    assert env.reset()[0][0, 1] == 0, "the constructor has begun the first episode"
    episode = 0
    for action in draw(12, 1):
        observation, _, terminated, truncated, _ = env.step(torch.from_numpy(action))
        if terminated.any() or truncated.any() or observation[0, 2] == 0:
            episode += 1
            assert env.reset()[0][0].tolist() == [SEED, episode, 0.0, 0.0]
    assert episode > 1
    env.step(torch.zeros(1, 2))
    assert env.reset()[0][0, 1] == episode + 1


def test_skrl_goes_on_from_a_saved_state_with_its_observation(
    make_vec, random_actions, assert_same
):
    def adapter(seed: int) -> Any:
        envs = make_vec(2, array="torch", observations="dict", max_episode_steps=5)
        return skrl.SkrlVecEnv(envs, seed)

    first, other = adapter(1), adapter(9)
    first.reset()
    actions = [torch.from_numpy(action) for action in random_actions(9, 2)]
    for action in actions[:3]:
        first.step(action)
    other.set_state(first.get_state())
    # skrl's trainers begin with a reset.
    assert_same([other.reset()[0], other.state()], [first.reset()[0], first.state()])
    for action in actions[3:]:
        assert_same(other.step(action)[:4], first.step(action)[:4])


@pytest.mark.parametrize("runner", [SkrlRunner, skrl.BootstrapRunner])
def test_skrls_runner_trains_on_go2(runner, make_vec):
    env = skrl.SkrlVecEnv(
        make_vec(4, array="torch", observations="dict", max_episode_steps=5), seed=SEED
    )
    runner = runner(
        env, skrl_cfg(True, timesteps=16, rollouts=8, state_preprocessor="RunningStandardScaler")
    )
    before = copy.deepcopy(runner.agent.policy.state_dict())
    runner.run("train")
    after = runner.agent.policy.state_dict()
    assert all(torch.isfinite(value).all() for value in after.values())
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert "reward/tracking_lin_vel" in runner.agent.tracking_data
    runner.run("eval")


@GYMNASIUM
def test_skrl_trains_on_environments_of_gymnasium(make):
    env = skrl.SkrlVecEnv(make(), seed=SEED)
    runner = skrl.BootstrapRunner(env, skrl_cfg(False, timesteps=16, rollouts=8))
    before = copy.deepcopy(runner.agent.policy.state_dict())
    runner.run("train")
    after = runner.agent.policy.state_dict()
    assert all(torch.isfinite(value).all() for value in after.values())
    assert any(not torch.equal(before[name], after[name]) for name in before)
    env.reset()
    for _ in range(3):
        observation, _, _, truncated, infos = env.step(
            torch.zeros(env.num_envs, *env.action_space.shape)
        )
    assert truncated.all()
    final = infos["final_obs"]
    assert final.shape == observation.shape and final.dtype == observation.dtype == torch.float32
    assert (final != observation).any(1).all()


def test_skrls_trainer_takes_the_ppo_without_a_runner():
    env = skrl.SkrlVecEnv(make_counters(array="torch"), seed=SEED)
    models = SkrlRunner(env, skrl_cfg(False, 1, 8)).agent.models
    spaces = {
        "observation_space": env.observation_space,
        "action_space": env.action_space,
        "device": "cpu",
    }
    cfg = {"rollouts": 4, "experiment": {"write_interval": 0, "checkpoint_interval": 0}}
    agent = skrl.BootstrapPPO(
        models=models, memory=RandomMemory(memory_size=4, num_envs=NUM_ENVS), cfg=cfg, **spaces
    )
    trainer = {"timesteps": 8, "disable_progressbar": True, "close_environment_at_exit": False}
    SequentialTrainer(env=env, agents=agent, cfg=trainer).train()
    assert torch.isfinite(agent.memory.tensors["advantages"]).all()


def test_skrl_says_how_many_environments_its_mini_batches_need():
    def run(num_envs: int) -> Any:
        env = skrl.SkrlVecEnv(make_counters(num_envs, array="torch"))
        runner = skrl.BootstrapRunner(env, skrl_cfg(False, timesteps=4, rollouts=4, mini_batches=6))
        runner.run("train")
        return runner.agent.policy

    with pytest.raises(ValueError, match=r"3.*2"):
        run(2)
    assert all(torch.isfinite(value).all() for value in run(3).state_dict().values())


# --- rl_games ---------------------------------------------------------------------------------------------------------


def rl_games_cfg(
    env_name: str, num_actors: int, horizon: int, central_value: bool, **config: Any
) -> dict[str, Any]:
    mlp = {"units": [16], "activation": "elu", "initializer": {"name": "default"}}
    noise = {
        "mu_activation": "None",
        "sigma_activation": "None",
        "mu_init": {"name": "default"},
        "sigma_init": {"name": "const_initializer", "val": -1.0},
        "fixed_sigma": True,
    }
    training = {
        "mini_epochs": 1,
        "learning_rate": 1e-3,
        "clip_value": False,
        "normalize_input": True,
    }
    if central_value:
        config["central_value_config"] = {
            **training,
            "minibatch_size": horizon * num_actors // 2,
            "network": {"name": "actor_critic", "central_value": True, "mlp": mlp},
        }
    return {
        "params": {
            "seed": SEED,
            "algo": {"name": "a2c_continuous"},
            "model": {"name": "continuous_a2c_logstd"},
            "network": {
                "name": "actor_critic",
                "separate": True,
                "space": {"continuous": noise},
                "mlp": mlp,
            },
            "config": {
                **training,
                "name": "test",
                "env_name": env_name,
                "env_config": {},
                "num_actors": num_actors,
                "device": "cpu",
                "device_name": "cpu",
                "torch_compile": False,
                "max_epochs": 2,
                "horizon_length": horizon,
                "minibatch_size": horizon * num_actors // 2,
                "lr_schedule": "linear",
                "gamma": GAMMA,
                "tau": 0.95,
                "e_clip": 0.2,
                "critic_coef": 2.0,
                "entropy_coef": 0.0,
                "bounds_loss_coef": 0.0,
                "truncate_grads": True,
                "grad_norm": 1.0,
                "normalize_value": True,
                "normalize_advantage": True,
                "reward_shaper": {"scale_value": 0.5},
                **config,
            },
        }
    }


def rl_games_runner(cfg: dict[str, Any]) -> rl_games.BootstrapRunner:
    runner = rl_games.BootstrapRunner()
    runner.load(cfg)
    return runner


def test_rl_games_is_told_what_the_environment_tells(assert_same):
    env = rl_games.RlGamesVecEnv(make_counters(array="torch", grouped=True), seed=SEED)
    plain = make_counters(grouped=True)
    spaces = env.get_env_info()
    assert (spaces["observation_space"].shape, spaces["state_space"].shape) == ((4,), (6,))

    def check(given: dict[str, torch.Tensor], expected: dict[str, np.ndarray]) -> None:
        assert_same(
            [given["obs"].numpy(), given["states"].numpy()],
            [expected["policy"], expected["critic"]],
        )

    check(env.reset(), plain.reset(seed=SEED)[0])
    both = 0
    for action in draw(12):
        observation, reward, dones, infos = env.step(torch.from_numpy(action))
        expected, expected_reward, fell, out_of_time, info = plain.step(action)
        check(observation, expected)
        assert_same(reward.numpy(), expected_reward)
        assert_same(
            [dones.numpy(), infos["time_outs"].numpy()], [fell | out_of_time, out_of_time & ~fell]
        )
        assert_same([infos["cost"].numpy(), infos["costs"].numpy()], [info["cost"], info["costs"]])
        both += (fell & out_of_time).sum()
        assert ("final_obs" in infos) == ("episode" in infos) == bool(dones.any())
        if dones.any():
            check(infos["final_obs"], info["final_obs"])
            assert infos["episode"] == {"reward": 1.5}
    assert both > 0
    assert (env.reset()["obs"][:, 1] > 0).all(), "only the first reset has the seed"


@pytest.mark.parametrize("central_value", [False, True], ids=["observations", "states"])
def test_rl_games_ppo_bootstraps_time_outs_alone_from_the_true_last_observation(central_value):
    rl_games.register(COUNTERS, grouped=central_value)
    runner = rl_games_runner(rl_games_cfg(COUNTERS, NUM_ENVS, 10, central_value))
    agent = runner.algo_factory.create(runner.algo_name, base_name="run", params=runner.params)
    agent.init_tensors()
    agent.obs = agent.env_reset()
    agent.set_eval()
    with torch.no_grad():
        agent.play_steps()
        stored = agent.experience_buffer.tensor_dict
        actions = stored["actions"].clamp(-1.0, 1.0)
        for t, (reward, time_outs, final, following) in enumerate(replay(actions, central_value)):
            expected = 0.5 * reward
            if time_outs.any():
                values = []
                for observation in (final, following):
                    groups = (
                        observation
                        if central_value
                        else {"policy": observation, "critic": observation}
                    )
                    values.append(
                        agent.get_values(
                            {"obs": groups["policy"], "states": groups["critic"]}
                        ).squeeze(1)
                    )
                expected = expected + GAMMA * values[0] * time_outs
                assert ((values[0] - values[1])[time_outs].abs() > 1e-3).all()
            assert torch.allclose(stored["rewards"][t].squeeze(1), expected, atol=1e-5)


@pytest.mark.filterwarnings(
    "ignore:numpy.core is deprecated:DeprecationWarning"
)  # rl_games loads a checkpoint
@pytest.mark.parametrize(
    "arguments", [{}, {"observations": "dict"}], ids=["observations", "states"]
)
def test_rl_games_runner_trains_and_plays_go2(arguments, capsys):
    rl_games.register(GO2, max_episode_steps=5, **arguments)
    player = {"games_num": 3, "print_stats": False}
    cfg = rl_games_cfg(
        GO2, 4, 8, central_value=bool(arguments), player=player, full_experiment_name="go2"
    )
    rl_games_runner(cfg).run({"train": True})
    checkpoint = next(Path("runs/go2/nn").glob("last_*.pth"))
    weights = torch.load(checkpoint, weights_only=False)
    assert weights["epoch"] == 2 and weights["frame"] == 2 * 4 * 8
    assert all(torch.isfinite(value).all() for value in weights["model"].values())
    cfg["params"]["config"]["env_config"] = {"num_envs": 3}
    rl_games_runner(cfg).run({"train": False, "play": True, "checkpoint": str(checkpoint)})
    assert "av steps: 5.0" in capsys.readouterr().out


@GYMNASIUM
def test_rl_games_trains_on_environments_of_gymnasium(make):
    rl_games.register("Gymnasium", make)
    cfg = rl_games_cfg(
        "Gymnasium", NUM_ENVS, 8, central_value=False, full_experiment_name="gymnasium"
    )
    rl_games_runner(cfg).run({"train": True})
    weights = torch.load(next(Path("runs/gymnasium/nn").glob("last_*.pth")), weights_only=False)
    assert weights["epoch"] == 2
    assert all(torch.isfinite(value).all() for value in weights["model"].values())
    env = rl_games.RlGamesVecEnv(make(), seed=SEED)
    env.reset()
    for _ in range(3):
        observation, reward, dones, infos = env.step(torch.zeros(NUM_ENVS, *env.action_space.shape))
    assert infos["time_outs"].all() and dones.all() and reward.dtype == torch.float32
    for group, final in infos["final_obs"].items():
        assert (
            final.shape == observation[group].shape
            and final.dtype == observation[group].dtype == torch.float32
        )
        assert (final != observation[group]).any(1).all()


def test_rl_games_leaves_images_as_they_are():
    """Its networks divide what is uint8 by 255."""

    class Images(VectorWrapper):
        def reset(self, **kwargs: Any) -> Any:
            observation, info = self.env.reset(**kwargs)
            return observation.to(torch.uint8), info

    env = rl_games.RlGamesVecEnv(Images(make_counters(array="torch")), seed=SEED)
    assert env.reset()["obs"].dtype == torch.uint8


def test_rl_games_trains_a_recurrent_policy():
    rl_games.register(COUNTERS)
    cfg = rl_games_cfg(
        COUNTERS, NUM_ENVS, 8, central_value=False, seq_length=4, full_experiment_name="lstm"
    )
    cfg["params"]["network"]["rnn"] = {"name": "lstm", "units": 8, "layers": 1}
    rl_games_runner(cfg).run({"train": True})
    weights = torch.load(next(Path("runs/lstm/nn").glob("last_*.pth")), weights_only=False)
    assert all(torch.isfinite(value).all() for value in weights["model"].values())


def test_rl_games_says_which_num_actors_work():
    rl_games.register(COUNTERS)
    cfg = rl_games_cfg(COUNTERS, 10, 6, central_value=False, minibatch_size=32)
    with pytest.raises(ValueError, match=r"num_actors 10 .* horizon_length 6") as error:
        rl_games_runner(cfg).run({"train": True})
    numbers = re.search(r": ([^:]*)$", str(error.value)).group(1)
    assert numbers == "16"
    cfg["params"]["config"]["num_actors"] = int(numbers)
    rl_games_runner(cfg).run({"train": True})


def test_rl_games_player_is_the_librarys_own():
    rl_games.register(COUNTERS)
    player = rl_games_runner(
        rl_games_cfg(COUNTERS, NUM_ENVS, 8, central_value=False)
    ).create_player()
    assert isinstance(player, BasePlayer) and isinstance(player.env, rl_games.RlGamesVecEnv)


# --- several ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wrapper", "array"), [(ToNumpy, "numpy"), (ToTorch, "torch")])
@pytest.mark.parametrize("grouped", [False, True], ids=["array", "dict"])
@pytest.mark.parametrize(
    "vector", [SyncVectorEnv, partial(AsyncVectorEnv, context="fork")], ids=["sync", "async"]
)
def test_last_observations_of_gymnasiums_environments_become_a_batch(
    vector, grouped, wrapper, array, assert_same
):
    """Some episodes end while others continue."""
    env = wrapper(vector([partial(Counter, grouped)] * NUM_ENVS, autoreset_mode="SameStep"))
    plain = make_counters(array=array, grouped=grouped)
    assert_same(env.reset(seed=SEED)[0], plain.reset(seed=SEED)[0])
    ends = []
    for action in draw(8) if array == "numpy" else torch.from_numpy(draw(8)):
        observation, _, _, _, info = env.step(action)
        expected, _, _, _, expected_info = plain.step(action)
        assert_same(observation, expected)
        assert ("final_obs" in info) == ("final_obs" in expected_info)
        if "final_obs" in info:
            assert_same(info["final_obs"], expected_info["final_obs"])
            ends.append(int(info["_final_obs"].sum()))
    assert 0 < min(ends) < NUM_ENVS
    env.close()


@pytest.mark.parametrize(
    ("adapter", "array"),
    [(Sb3VecEnv, "numpy"), (skrl.SkrlVecEnv, "torch"), (rl_games.RlGamesVecEnv, "torch")],
)
def test_an_environment_whose_step_returns_the_cost_is_refused(adapter, array):
    with pytest.raises(ValueError, match="VectorCMDP"):
        adapter(VectorCMDP(make_counters(array=array)))


@pytest.mark.parametrize("adapter", [skrl.SkrlVecEnv, rl_games.RlGamesVecEnv])
@pytest.mark.parametrize(
    ("make", "culprit"),
    [
        (lambda: make_sync(mode="NextStep"), "NEXT_STEP"),
        (lambda: Counters(array="torch"), "DISABLED"),
        (make_counters, "torch"),
    ],
    ids=["next step", "disabled", "numpy"],
)
def test_environments_made_otherwise_are_refused(adapter, make, culprit):
    with pytest.raises(ValueError, match=culprit):
        adapter(make()).reset()


# --- the examples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["sb3", "skrl", "rl_games", "rsl_rl"])
def test_examples_run_as_they_stand(library, monkeypatch, capsys):
    path = Path(__file__).parents[2] / "examples" / f"{library}_ppo.py"
    arguments = "--steps 192 --num-envs 8 --episodes 2"
    monkeypatch.setattr(sys, "argv", [str(path), *arguments.split()])
    make_vec = gym.make_vec
    short = {"max_episode_steps": 100}  # a robot that stands would be watched for a thousand
    monkeypatch.setattr(gym, "make_vec", lambda *args, **more: make_vec(*args, **short | more))
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.search(
        r"192 steps in \d+ s; mean return of 2 unseen episodes:\nuntrained [\d.]+, trained [\d.]+",
        printed,
    )
    assert len(path.read_text().splitlines()) < 120


# --- all that take tensors --------------------------------------------------------------------------------------------


def begun_rl_games(env: VectorEnv) -> Any:
    adapted = rl_games.RlGamesVecEnv(env, seed=SEED)
    adapted.reset()
    return adapted


ADAPTERS = {
    "rl_games": begun_rl_games,
    "rsl_rl": lambda env: RslRlVecEnv(TimeLimit(env, 100), seed=SEED),
    "skrl": lambda env: skrl.SkrlVecEnv(env, seed=SEED),
}


@pytest.mark.parametrize("num_envs", [1, NUM_ENVS])
@pytest.mark.parametrize(
    "vector", [SyncVectorEnv, partial(AsyncVectorEnv, context="fork")], ids=["sync", "async"]
)
@pytest.mark.parametrize("adapt", ADAPTERS.values(), ids=ADAPTERS)
def test_costs_that_gymnasiums_environments_hide_in_final_info_are_passed_on(
    adapt, vector, num_envs
):
    counters = vector([Counter] * num_envs, autoreset_mode="SameStep")
    env = adapt(ToTorch(counters))
    plain = make_counters(num_envs)
    plain.reset(seed=SEED)
    ends = 0
    for action in draw(12, num_envs):
        infos = env.step(torch.from_numpy(action))[-1]
        _, _, terminated, truncated, info = plain.step(action)
        for key in ("cost", "costs"):
            np.testing.assert_array_equal(infos[key].numpy(), info[key])
        ends += int((terminated | truncated).sum())
    assert ends > 2
    counters.close()


# --- actions ----------------------------------------------------------------------------------------------------------


def test_adapters_take_lists_and_float64(make_vec, random_actions):
    actions = random_actions(1, 2)[0]
    env = make_vec(2)
    env.reset(seed=0)
    expected = env.step(actions)[1]
    for adapter in (RslRlVecEnv, skrl.SkrlVecEnv, rl_games.RlGamesVecEnv):
        for given in (actions.tolist(), torch.from_numpy(actions).double()):
            env = adapter(make_vec(2, array="torch"), seed=0)
            if adapter is rl_games.RlGamesVecEnv:
                env.reset()
            assert np.array_equal(np.asarray(env.step(given)[1]).ravel(), expected), adapter
    for given in (actions.tolist(), actions.astype(np.float64)):
        env = Sb3VecEnv(make_vec(2))
        env.seed(0)
        env.reset()
        assert np.array_equal(env.step(given)[1], expected)
        assert repr(env).startswith(
            "Sb3VecEnv(<AutoReset, <EpisodeStatistics"
        ) and "\nrobot " in str(env)
