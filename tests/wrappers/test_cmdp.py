"""Costs as a return value, and the ways in which code that only knows Gymnasium makes the environments."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from legged_envs.wrappers.plumbing.cmdp import CMDP, VectorCMDP
from legged_envs.wrappers.plumbing.foreign_env import transition_cost
from legged_envs.wrappers.unsqueeze import Unsqueeze

GO2 = "Legged/Go2-Flat-v0"
MODES = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
LENGTHS = (2, 3, 3)


class Ledger(gym.Env):
    """An episode of fixed length with costs that identify environment i, episode e and step t: 100 i + 10 e + t."""

    observation_space = gym.spaces.Box(-1000.0, 1000.0, (1,))
    action_space = gym.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, index: int = 1, length: int = 2):
        self.index, self.length, self.episode = index, length, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.episode, self.time = self.episode + 1, 0
        return self._observe(), {"options": options}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        cost = 100.0 * self.index + 10.0 * self.episode + self.time
        return self._observe(), -cost, self.time == self.length, False, {"cost": cost}

    def _observe(self) -> np.ndarray:
        return np.array([100 * self.index + 10 * self.episode + self.time], np.float32)


class WithoutCost(gym.ObservationWrapper):
    """An environment that reports no cost."""

    def observation(self, observation: Any) -> Any:
        return observation

    def step(self, action: Any) -> Any:
        *values, _ = super().step(action)
        return (*values, {})


def ledgers(mode: AutoresetMode, lengths: tuple[int, ...] = LENGTHS) -> SyncVectorEnv:
    makers = [lambda i=i, n=n: Ledger(i + 1, n) for i, n in enumerate(lengths)]
    return SyncVectorEnv(makers, autoreset_mode=mode)


# --- six values ------------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("lengths", [LENGTHS, (2, 2, 2)], ids=["some-end", "all-end-together"])
def test_every_transition_has_its_own_cost_wherever_gymnasium_puts_it(mode, lengths) -> None:
    env = VectorCMDP(ledgers(mode, lengths))
    env.reset(seed=0)
    reset_steps = 0
    for _ in range(9):
        _, reward, cost, terminated, _, _ = env.step(np.zeros((3, 1), np.float32))
        assert np.array_equal(
            cost, -reward
        )  # also where the episode ends, and 0 on a step that only resets
        reset_steps += (cost == 0).sum()
        if mode is AutoresetMode.DISABLED and terminated.any():
            env.reset(options={"reset_mask": terminated})
    assert (reset_steps > 0) == (mode is AutoresetMode.NEXT_STEP)


def test_the_last_observation_has_the_name_of_safety_gymnasium() -> None:
    env = VectorCMDP(ledgers(AutoresetMode.SAME_STEP))
    env.reset(seed=0)
    *_, info = env.step(np.zeros((3, 1), np.float32))
    assert not {"final_obs", "final_observation"} & set(info)
    observation, _, _, _, _, info = env.step(np.zeros((3, 1), np.float32))
    assert "final_obs" not in info and info["_final_observation"].tolist() == [True, False, False]
    assert (info["final_observation"][0], observation[0]) == (112, 120)


@pytest.mark.parametrize("array", ["numpy", "torch"])
@MODES
def test_six_values_are_the_five_of_the_environment_and_its_cost(
    make_vec, random_actions, assert_same, mode, array
):
    kwargs = {"array": array, "autoreset_mode": mode, "max_episode_steps": 3}
    six, five = VectorCMDP(make_vec(**kwargs)), make_vec(**kwargs)
    assert_same(six.reset(seed=4), five.reset(seed=4))
    for actions in random_actions(5, 3):
        if array == "torch":
            actions = torch.from_numpy(actions)
        observation, reward, cost, terminated, truncated, info = six.step(actions)
        expected = five.step(actions)
        assert_same(
            (observation, reward, terminated, truncated, cost), (*expected[:4], expected[4]["cost"])
        )
        assert_same(info["costs"], expected[4]["costs"])
        if "final_obs" in expected[4]:
            assert_same(info["final_observation"], expected[4]["final_obs"])
        if mode is AutoresetMode.DISABLED and truncated.any():
            assert_same(*(env.reset(options={"reset_mask": truncated}) for env in (six, five)))


def test_the_state_of_the_stack_goes_through(make_vec, random_actions, assert_same) -> None:
    env = VectorCMDP(make_vec())
    env.reset(seed=0)
    actions = random_actions(4, 3)
    env.step(actions[0])
    state = env.get_state()
    first = [env.step(action)[:5] for action in actions[1:]]
    env.set_state(state)
    assert_same([env.step(action)[:5] for action in actions[1:]], first)


def test_six_values_of_a_single_environment(make_single, random_actions, assert_same) -> None:
    six, five = CMDP(make_single(max_episode_steps=3)), make_single(max_episode_steps=3)
    assert_same(six.reset(seed=4), five.reset(seed=4))
    for action in random_actions(3, 1)[:, 0]:
        observation, reward, cost, terminated, truncated, info = six.step(action)
        expected = five.step(action)
        assert type(cost) is float
        assert_same((observation, reward, terminated, truncated, info), expected)
        assert cost == expected[4]["cost"]
    assert truncated
    assert CMDP(Ledger()).reset(seed=1, options={"to": "the environment"})[1] == {
        "options": {"to": "the environment"}
    }


@pytest.mark.parametrize(
    "env",
    [
        lambda: VectorCMDP(SyncVectorEnv([lambda: WithoutCost(Ledger())])),
        lambda: CMDP(WithoutCost(Ledger())),
    ],
    ids=["vector", "single"],
)
def test_an_environment_without_costs_is_refused(env: Callable[[], Any]) -> None:
    env = env()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"info\['cost'\].*Legged/Go2-Flat-v0"):
        env.step(env.action_space.sample())


def test_each_class_refuses_the_other_kind_of_environment(make_vec, make_single) -> None:
    with pytest.raises(TypeError, match="VectorEnv"):
        VectorCMDP(make_single())
    with pytest.raises((TypeError, AssertionError), match=r"gymnasium\.Env|gym\.Env"):
        CMDP(make_vec())


def test_a_batch_of_one_needs_the_five_values(make_single) -> None:
    with pytest.raises(ValueError, match=r"Unsqueeze.*CMDP"):
        Unsqueeze(CMDP(make_single()))


# --- code that only knows Gymnasium ----------------------------------------------------------------------------------


def cleanrl_loop(envs: Any, steps: int, seed: Any = 1) -> dict[str, np.ndarray]:
    """The rollout of CleanRL's PPO for continuous actions, as it stands there."""
    assert isinstance(envs.single_action_space, gym.spaces.Box), (
        "only continuous action space is supported"
    )
    num_envs = envs.num_envs
    device = torch.device("cpu")
    torch.manual_seed(1)
    agent = torch.nn.Linear(
        np.array(envs.single_observation_space.shape).prod(),
        int(np.prod(envs.single_action_space.shape)),
    )
    obs = torch.zeros((steps, num_envs, *envs.single_observation_space.shape)).to(device)
    rewards = torch.zeros((steps, num_envs)).to(device)
    dones = torch.zeros((steps, num_envs)).to(device)
    costs = torch.zeros((steps, num_envs)).to(device)
    next_obs, _ = envs.reset(seed=seed)
    next_obs = torch.Tensor(next_obs).to(device)
    next_done = torch.zeros(num_envs).to(device)
    for step in range(steps):
        obs[step] = next_obs
        dones[step] = next_done
        with torch.no_grad():
            action = torch.tanh(agent(next_obs))
        next_obs, reward, terminations, truncations, infos = envs.step(action.cpu().numpy())
        next_done = np.logical_or(terminations, truncations)
        rewards[step] = torch.tensor(reward).to(device).view(-1)
        next_obs, next_done = torch.Tensor(next_obs).to(device), torch.Tensor(next_done).to(device)
        costs[step] = torch.as_tensor(transition_cost(infos, "cost"))  # not CleanRL's
    return {
        "observations": obs.numpy(),
        "rewards": rewards.numpy(),
        "dones": dones.numpy(),
        "costs": costs.numpy(),
    }


def test_cleanrl_runs_alike_on_make_vec_and_on_a_sync_vector_env_of_single_environments(
    make_vec, assert_same
) -> None:
    def make_env() -> gym.Env:
        return gym.wrappers.ClipAction(
            gym.wrappers.RecordEpisodeStatistics(gym.make(GO2, max_episode_steps=4))
        )

    mode = {"autoreset_mode": AutoresetMode.SAME_STEP}
    sync = SyncVectorEnv([make_env for _ in range(2)], **mode)
    of_sync = cleanrl_loop(sync, 11)
    sync.close()
    # SyncVectorEnv gives its environments the seeds s, s + 1, …
    of_batch = cleanrl_loop(make_vec(2, max_episode_steps=4, **mode), 11, seed=[1, 2])
    assert of_sync["dones"].sum() == 2 * 2 and of_sync["costs"].any()
    assert_same(of_batch, of_sync)


def test_an_external_project_needs_only_gymnasium(tmp_path: Path) -> None:
    """From another directory, without importing legged_envs: Gymnasium does, because the id names it."""
    script = tmp_path / "project.py"
    script.write_text(
        "import gymnasium as gym\n"
        "envs = gym.make_vec('legged_envs:Legged/Go2-Flat-v0', num_envs=2)\n"
        "envs.reset(seed=0)\n"
        "print(envs.step(envs.action_space.sample())[4]['cost'].shape)\n"
        "env = gym.make('legged_envs:Legged/Go2-Flat-v0')\n"
        "env.reset(seed=0)\n"
        "print(env.step(env.action_space.sample())[4]['costs'].shape)\n"
    )
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["(2,)", "(6,)"]


def test_without_omnisafe_the_error_says_how_to_install_it() -> None:
    program = (
        "import sys; sys.modules['omnisafe'] = None; import legged_envs.wrappers.adapters.omnisafe"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (
        "`make omnisafe`" in done.stderr and "pip install --no-deps omnisafe==0.5.0" in done.stderr
    )


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("external_codebase.py", ["--updates", "2", "--num-envs", "4"]), ("stack_wrappers.py", [])],
    ids=["external_codebase", "stack_wrappers"],
)
def test_the_examples_run_with_a_tiny_budget(name, arguments, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert "cost" in capsys.readouterr().out
