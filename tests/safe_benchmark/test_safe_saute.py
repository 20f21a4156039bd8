"""Sauté in the benchmark: the policy sees its budgets in training and in the evaluation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import pytest
import torch

from legged_envs import cli
from legged_envs.evaluation.conditions import EVALUATION_ENV_OPTIONS
from legged_envs.safe_benchmark.results import read_results
from legged_envs.safe_benchmark.run import BenchmarkRun
from legged_envs.safe_benchmark.saute import UNSAFE_REWARD, SauteWrapper
from legged_envs.training.options import PPOCfg

pytestmark = pytest.mark.usefixtures("short_evaluations")
RUN = BenchmarkRun(
    task="Go2-Flat",
    level="medium",
    method="saute_wrapper",
    seed=1,
    folder=Path("runs/Go2-Flat_medium_saute_wrapper_1"),
)


def test_the_budgets_are_those_of_an_episode_of_the_evaluation():
    envs = gym.make_vec(RUN.task_id, num_envs=2, cfg={"costs": RUN.costs}, **EVALUATION_ENV_OPTIONS)
    wrapped = SauteWrapper().wrap_evaluation(envs, RUN)
    # Evaluations of the tests last 1.2 s, of 60 control steps.
    assert wrapped.budgets.tolist() == pytest.approx((60 * wrapped.limits).tolist())
    observation, _ = wrapped.reset(seed=0)
    assert observation["policy"][:, -6:].tolist() == [[1.0] * 6] * 2
    # A spent budget costs the reward, and the task's own reward is kept for the return.
    wrapped.budgets[:] = 1e-9
    info = {}
    for _ in range(20):
        _, reward, _, _, info = wrapped.step(torch.rand(2, 12) * 2.0 - 1.0)
    assert reward.tolist() == pytest.approx([UNSAFE_REWARD] * 2)
    assert (info["original_reward"] != reward).all()
    envs.close()


def test_a_run_is_trained_and_evaluated_with_its_budgets(tmp_path, monkeypatch, capsys):
    def small(self, run):
        options = super(SauteWrapper, self).options(run)
        algo = PPOCfg(steps_per_env=4, epochs=1, hidden=(16,), symmetry="off")
        return replace(options, changes={"episode_length_s": 1.2}, algo=algo)

    monkeypatch.setattr(SauteWrapper, "options", small)
    words = ["--folder", str(tmp_path), "--iterations", "2", "--num-envs", "4"]
    cli.main(["benchmark", "safe", "--run", RUN.name, *words])
    rows = [json.loads(line) for line in (tmp_path / "runs" / RUN.name / "curve.jsonl").open()]
    assert [row["env_steps"] for row in rows] == [16, 32]
    network = SauteWrapper().policy(replace(RUN, folder=tmp_path / "runs" / RUN.name))
    num_inputs = next(value for value in network.state_dict().values() if value.dim() == 2).shape[1]
    cli.main(["benchmark", "safe", "--evaluate-only", *words, "--episodes", "4"])
    (found,) = read_results(tmp_path / "results", "SafeLegged-v1")
    assert (found.method, found.env_steps, found.episodes) == ("saute_wrapper", 32, 4)
    assert found.command.startswith("legged-envs benchmark safe --run Go2-Flat_medium_saute_")
    # 6 budgets follow the observation of the task.
    envs = gym.make_vec(RUN.task_id, num_envs=1)
    assert num_inputs == envs.single_observation_space.shape[0] + 6
    envs.close()
