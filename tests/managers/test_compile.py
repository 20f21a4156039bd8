"""``compile=True``: the same environment as without it, only faster."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from legged_envs import make_task_cfg
from legged_envs.envs import LeggedVectorEnv
from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg

TASK, MIMIC = "Legged/Go2-Flat-v0", "Legged/Go2-Mimic-v0"
STEPS = 60
COMPILER = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
needs_compiler = pytest.mark.skipif(
    shutil.which(COMPILER) is None, reason=f"needs the C++ compiler {COMPILER}"
)


def make(num_envs: int, compile: bool, task: str = TASK) -> LeggedVectorEnv:
    """With frequent pushes and commands, and a term that is not the package's own."""
    cfg = make_task_cfg(task)
    cfg.commands["velocity"].resampling_time_s = (0.1, 0.5)
    cfg.only_positive_rewards = False
    cfg.events["push"].interval_s = (0.1, 0.5)
    mine = ObservationTermCfg(lambda env: env.robot.foot_air_time + env.actions.current[:, :4])
    cfg.observations["mine"] = ObservationGroupCfg({"mine": mine})
    return LeggedVectorEnv(cfg, num_envs, array="torch", observations="dict", compile=compile)


@pytest.fixture(scope="module")
def compiled() -> Iterator[LeggedVectorEnv]:
    env = make(8, compile=True)
    yield env
    env.close()


def rollout(env: LeggedVectorEnv, actions: np.ndarray) -> list[dict[str, Any]]:
    """Everything that the first eight environments return, through partial resets."""
    first = slice(0, 8)
    observation, _ = env.reset(seed=5)
    seen = [{name: value[first] for name, value in observation.items()}]
    for step, action in enumerate(torch.from_numpy(actions)):
        if step == 30:
            mask = torch.zeros(env.num_envs, dtype=torch.bool)
            mask[2:4] = True
            observation, _ = env.reset(options={"reset_mask": mask})
            seen.append({name: value[first] for name, value in observation.items()})
        observation, reward, terminated, _, info = env.step(action)
        values = {**observation, "reward": reward, "terminated": terminated, **info}
        seen.append({name: value[first].clone() for name, value in values.items()})
    return seen


@needs_compiler
@pytest.mark.parametrize("task", [TASK, MIMIC])
def test_compiled_values_are_those_of_the_default(task, compiled, random_actions):
    actions = random_actions(STEPS, 8)
    default = make(8, False, task)
    if task == MIMIC:
        compiled = make(8, True, task)
    rewards = []
    for mine, expected in zip(rollout(compiled, actions), rollout(default, actions), strict=True):
        assert list(mine) == list(expected)
        for name, value in expected.items():
            if value.dtype == torch.bool:
                assert torch.equal(mine[name], value), name
            else:
                assert torch.allclose(mine[name], value, rtol=1e-5, atol=1e-5), name
        rewards.append(expected.get("reward", torch.zeros(8)))
    assert len(torch.stack(rewards).unique()) > 100
    for manager in ("rewards", "costs"):
        sums = getattr(default, manager).episode_sums
        assert torch.allclose(getattr(compiled, manager).episode_sums, sums, rtol=1e-4, atol=1e-4)


@needs_compiler
def test_a_compiled_environment_does_the_same_whatever_the_batch_size(
    compiled, random_actions, assert_same
):
    actions = random_actions(STEPS, 64)
    assert_same(rollout(compiled, actions[:, :8]), rollout(make(64, compile=True), actions))


@needs_compiler
def test_a_compiled_environment_goes_on_exactly_from_a_saved_state(
    compiled, random_actions, assert_same
):
    compiled.reset(seed=1)
    first, second = torch.from_numpy(random_actions(2, 8))
    compiled.step(first)
    state = compiled.get_state()
    expected = compiled.step(second)
    compiled.step(first)
    compiled.set_state(state)
    assert_same(compiled.step(second), expected)


@needs_compiler
def test_compiled_code_takes_actions_and_commands_of_any_memory_layout(
    compiled, random_actions, assert_same
):
    action, command = torch.from_numpy(random_actions(1, 8)[0]), torch.rand(8, 3)
    steps = []
    for layout in (torch.Tensor.contiguous, lambda x: x.t().contiguous().t()):
        compiled.reset(seed=2)
        compiled.commands.terms["velocity"].hold(layout(command))
        steps.append([compiled.step(layout(action)) for _ in range(3)])
    assert_same(*steps)


@pytest.mark.parametrize(
    "make_env", [gym.make, lambda task, **kwargs: gym.make_vec(task, num_envs=2, **kwargs)]
)
def test_without_a_compiler_the_error_says_what_is_missing(make_env, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(RuntimeError, match=r"no-such-compiler.*install"):
        make_env(TASK, compile=True)
