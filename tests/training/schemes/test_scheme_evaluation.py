"""``eval --scheme``: the error of an estimate that was set by hand, and a teacher next to its student."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from legged_envs import cli
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.policy.lookup import policy_and_task
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.scheme_evaluation import evaluate_scheme
from legged_envs.training.scheme_options import SCHEME_CONFIGS
from legged_envs.training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("short_evaluations")
BLIND = "Legged/Go2-Blind-v0"
EPISODES = 6
SEED = 5
SMALL: dict[str, Any] = {"steps_per_env": 4, "epochs": 1, "mini_batches": 2, "hidden": (16,)}


def make_run(name: str, folder: Path, constant: float) -> Trainer:
    """A run with encoders that return ``constant`` in every entry."""
    algo = SCHEME_CONFIGS[name](**SMALL, history=3, encoder_hidden=(8,))
    cfg = TrainCfg(BLIND, num_envs=4, run_dir=folder, iterations=9, video=False, algo=algo)
    trainer = Trainer(prepare(cfg), Console(quiet=True))
    actor = trainer.algorithm.get_policy()
    encoders = [actor.network.encoder, *([actor.teacher] if hasattr(actor, "teacher") else [])]
    with torch.no_grad():
        for encoder in encoders:
            *_, last = (each for each in encoder.modules() if isinstance(each, torch.nn.Linear))
            last.weight.zero_()
            last.bias.fill_(constant)
    trainer.export()
    trainer.save()
    return trainer


def expected_error(folder: Path, constant: float) -> float:
    """The error of a constant estimate on the episodes of ``SEED``, from the robots' velocities."""
    policy, task, _ = policy_and_task(BLIND, folder)
    evaluator = Evaluator(BLIND, task, EPISODES)
    envs, core = evaluator._envs, evaluator.core
    observation = evaluator.metrics.start(envs, SEED, False)
    stands = torch.ones(EPISODES, dtype=torch.bool)
    errors = []
    for _ in range(round(evaluator.metrics.EPISODE_SECONDS / core.step_dt)):
        errors += (core.robot.lin_vel_b - constant).square().sum(1)[stands].tolist()
        observation, _, terminated, _, _ = envs.step(policy(observation["policy"]))
        stands &= ~terminated
    evaluator.close()
    return (sum(errors) / len(errors)) ** 0.5


@pytest.mark.parametrize("name", ["ee", "dreamwaq", "him"])
def test_a_constant_estimate_has_the_error_of_that_constant(name: str, tmp_path: Path) -> None:
    make_run(name, tmp_path, constant=0.4)
    file = tmp_path / "numbers.json"
    words = ["eval", BLIND, "--policy", str(tmp_path), "--scheme", "--episodes", str(EPISODES)]
    cli.main([*words, "--seed", str(SEED), "--json", str(file)])
    found = json.loads(file.read_text())["scheme"]
    assert found["scheme"] == name and found["teacher"] is None
    assert found["velocity_rms"] == pytest.approx(expected_error(tmp_path, 0.4), rel=1e-4)


def test_a_teacher_with_the_code_of_its_student_walks_as_it_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = make_run("cts", tmp_path, constant=0.4)
    file = tmp_path / "numbers.json"
    words = ["eval", BLIND, "--policy", str(tmp_path), "--scheme", "--episodes", str(EPISODES)]
    cli.main([*words, "--json", str(file)])
    student = json.loads(file.read_text())
    teacher = student.pop("scheme")["teacher"]
    assert teacher["lin_vel_error"] == pytest.approx(student["lin_vel_error"], rel=1e-3)
    assert teacher["crossed"] == student["crossed"]
    assert "student and teacher" in capsys.readouterr().out
    *_, last = trainer.algorithm.get_policy().teacher
    with torch.no_grad():
        last.bias.mul_(-1.0)
    trainer.save()
    _, task, _ = policy_and_task(BLIND, tmp_path)
    other = evaluate_scheme(BLIND, task, tmp_path, EPISODES).teacher
    assert other is not None
    assert other["lin_vel_error"] != pytest.approx(student["lin_vel_error"], rel=1e-3)


def test_what_has_no_estimate_and_no_teacher_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    algo = PPOCfg(**SMALL)
    cfg = TrainCfg(BLIND, num_envs=4, run_dir=tmp_path, iterations=9, video=False, algo=algo)
    trainer = Trainer(prepare(cfg), Console(quiet=True))
    trainer.save()
    trainer.export()
    _, task, _ = policy_and_task(BLIND)
    with pytest.raises(ValueError, match=r"PPOCfg.*--scheme.*ts, cts, ee, dreamwaq, him"):
        evaluate_scheme(BLIND, task, tmp_path, 2)
    # Before the episodes.
    with pytest.raises(SystemExit):
        cli.main(["eval", BLIND, "--scheme", "--policy", str(tmp_path), "--episodes", "2"])
    told = capsys.readouterr()
    assert "PPOCfg" in told.err and not told.out
    for words in ([], ["--policy", str(tmp_path / "policy.safetensors")]):
        with pytest.raises(SystemExit):
            cli.main(["eval", BLIND, "--scheme", *words])
        assert "--scheme reads checkpoint.pt of a run" in capsys.readouterr().err
