"""Notices that a training prints."""

import io
import shlex
from pathlib import Path

import pytest
import torch
from rich.console import Console

from legged_envs.runs.progress import showing
from legged_envs.training.notices import print_next_step, report_bad_physics
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer

GO2 = "Legged/Go2-Flat-v0"


@pytest.mark.parametrize(
    ("iteration", "bad", "is_told"), [(1, 6.0, True), (1, 5.0, False), (2, 9.0, False)]
)
def test_most_episodes_of_the_first_update(iteration: int, bad: float, is_told: bool) -> None:
    console = Console(file=io.StringIO())
    row = {"iteration": iteration, "episodes": 10.0, "termination/bad_physics": bad}
    report_bad_physics(console, row, "go2")
    told = console.file.getvalue()
    assert ("6 of 10 episodes" in told and "'go2'" in told) == is_told
    assert is_told or not told


@pytest.mark.parametrize("explodes", [True, False])
def test_a_training_of_a_robot_that_explodes_says_so(explodes: bool, tmp_path: Path) -> None:
    ppo = PPOCfg(steps_per_env=4, epochs=1, mini_batches=2, hidden=(16,))
    cfg = TrainCfg(GO2, num_envs=8, run_dir=tmp_path / "run", algo=ppo, iterations=1)
    console = Console(file=io.StringIO())
    trainer = Trainer(prepare(cfg), console)
    trainer.run_dir.mkdir(parents=True)
    if explodes:
        # As if no state were finite, in every step.
        trainer.core.sim.diverged = lambda: torch.ones(8, dtype=torch.bool)
    with showing(Console(quiet=True), 60.0) as show:
        trainer._train(show, lambda numbers, update: None)
    told = console.file.getvalue()
    assert ("bad physics ended" in told and "'go2'" in told) == explodes


def test_a_finished_training_ends_with_the_command_that_plays_its_policy(tmp_path: Path) -> None:
    folder = tmp_path / "my run"
    folder.mkdir()
    (folder / "policy.onnx").touch()
    console = Console(file=io.StringIO(), width=20)
    cfg = TrainCfg(GO2, imports=["my.tasks"])
    print_next_step(console, cfg, folder)
    contents, command = console.file.getvalue().splitlines()
    assert str(folder) in contents and "policy.onnx" in contents and "video" not in contents
    words = shlex.split(command.partition(": ")[2])
    assert words[:5] == ["legged-envs", "play", GO2, "--policy", str(folder)]
    assert words[5:] == ["--import", "my.tasks"]
