"""From run folders to a table: finished runs are evaluated once and never trained again."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from results_by_hand import seeds_of

from legged_envs import cli
from legged_envs.safe_benchmark import benchmark, methods, results
from legged_envs.training.learner_options import ConstraintCfg
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.trainer import train

pytestmark = pytest.mark.usefixtures("short_evaluations")
GO2 = "Legged/Go2-Flat-v0"
FEW = ["--episodes", "4"]
METHOD = "p3o,steps-per-env=4,epochs=1,constraint.kappa=0.5,hidden=16"
NAME = f"Go2-Flat_medium_{METHOD}_1"
OWN = """
import torch
from legged_envs.safe_benchmark.methods import Method

class Still(Method):
    name = "still"

    def train(self, run):
        run.folder.mkdir(parents=True, exist_ok=True)

    def policy(self, run):
        return lambda observation: torch.zeros(len(observation), 12)

    def curve(self, run):
        return [{"env_steps": 64, "steps_per_second": 10.0}]
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory, short_evaluations) -> Path:
    """A folder with a finished run that a plain training wrote."""
    folder = tmp_path_factory.mktemp("benchmark")
    constraint = ConstraintCfg(method="p3o", kappa=0.5)
    ppo = PPOCfg(steps_per_env=4, epochs=1, hidden=(16,), constraint=constraint)
    cfg = TrainCfg(
        GO2,
        num_envs=8,
        iterations=2,
        episodes=4,
        video=False,
        threads=1,
        constraints="medium",
        run_dir=folder / "runs" / NAME,
        algo=ppo,
    )
    train(cfg)
    return folder


@pytest.fixture
def folder(trained, tmp_path) -> Path:
    """A copy of this folder."""
    return shutil.copytree(trained, tmp_path / "copy")


def run_command(*words: object) -> None:
    cli.main(["benchmark", "safe", *map(str, words)])


def refused(capsys, *words: object) -> str:
    with pytest.raises(SystemExit) as stop:
        run_command(*words)
    printed = capsys.readouterr().err
    assert stop.value.code == 2 and printed.count("\n") == 1
    return printed


def test_plain_trainings_are_evaluated_once_and_summarized(folder, tmp_path, capsys):
    second = f"Go2-Flat_medium_{METHOD}_2"
    unfinished = shutil.copytree(folder / "runs" / NAME, folder / "runs" / second)
    (unfinished / "eval.json").unlink()
    config = json.loads((unfinished / "config.json").read_text())
    config["training"]["seed"] = 2
    (unfinished / "config.json").write_text(json.dumps(config))
    page = tmp_path / "board.html"
    run_command("--evaluate-only", "--folder", folder, "--page", page, *FEW)
    printed = capsys.readouterr().out
    assert f"{second}: not finished" in printed
    assert "Go2-Flat, medium: 0.00 M steps, 1 runs" in printed
    (file,) = (folder / "results").iterdir()
    assert file.name == f"{NAME}.json"
    found = results.read_result(file)
    assert (found.env_steps, found.episodes, found.seed) == (64, 4, 1)
    assert found.steps_per_second > 0.0
    assert found.command == (
        f"legged-envs train {GO2} --num-envs 8 --iterations 2 --run-dir "
        f"benchmarks_safe/runs/{NAME} --constraints medium --no-video ppo --steps-per-env 4 "
        "--epochs 1 --constraint.method p3o --constraint.kappa 0.5 --hidden 16"
    )
    # The command of the row trains the same options.
    (rows,) = benchmark.make_rows([found]).values()
    assert f"--methods none {METHOD} --seeds 1" in rows[0].command
    # No path of this machine goes into a file that is published.
    assert str(folder) not in file.read_text() and str(folder) not in page.read_text()
    # A second time nothing is evaluated again.
    written = file.stat().st_mtime_ns
    run_command("--evaluate-only", "--folder", folder, *FEW)
    assert file.stat().st_mtime_ns == written
    assert "worst J/d" not in capsys.readouterr().out.split("results in")[0]


def test_finished_runs_are_not_trained_again(folder, monkeypatch, capsys):
    """All planned runs are finished: not even Ray is needed."""
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    before = {file: file.stat().st_mtime_ns for file in (folder / "runs").rglob("*")}
    words = ["--tasks", "Go2-Flat", "--methods", METHOD, "--seeds", "1"]
    run_command(*words, "--folder", folder, *FEW)
    assert "1 runs, 1 of them finished" in capsys.readouterr().out
    assert {file: file.stat().st_mtime_ns for file in (folder / "runs").rglob("*")} == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (f"Go2-Flat_medium_{METHOD}_2", "'seed': 1.*'seed': 2"),
        ("Go2-Flat_medium_ipo_1", "'method': 'p3o'.*'method': 'ipo'"),
        (f"Go2-Flat_tight_{METHOD}_1", "Go2-Flat/medium.*Go2-Flat/tight"),
        (f"G1-Flat_medium_{METHOD}_1", "Go2-Flat-v0.*G1-Flat-v0"),
        ("Go2-Flat_medium_own_1", "'own'.*FILE.py:Class"),
        ("Go2-Flat_medium_p3o_1", f"constraint.kappa=0.5.*rename it to '{NAME}'"),
        (
            f"Go2-Flat_medium_{METHOD.replace('0.5', '0.1')}_1",
            f"with constraint.kappa=0.5, .*rename it to '{NAME}'",
        ),
        (f"Go2-Flat_medium_{METHOD.replace('0.5', '0.50')}_1", f"is the run '{NAME}'"),
        (f"Go2-Flat_medium_{METHOD.replace('kappa', 'kapa')}_1", "'constraint.kapa'; did you mean"),
        ("p3o-1", "'.*p3o-1' must be Task_level_method_seed"),
    ],
)
def test_a_run_that_is_not_what_its_name_says_is_refused(name, message, folder, capsys):
    (folder / "runs" / NAME).rename(folder / "runs" / name)
    assert re.search(message, refused(capsys, "--evaluate-only", "--folder", folder, *FEW))
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("changes",), {"rewards.trot.weight": 1.0}, "changes = .*trot.*and the benchmark has"),
        (("first_trot",), 1.0, "first_trot = 1.0"),
        (("algo", "memory"), 8, "not those of ppo: memory"),
    ],
)
def test_a_training_that_changed_more_than_its_method_is_refused(
    path, value, message, folder, capsys
):
    file = folder / "runs" / NAME / "config.json"
    config = json.loads(file.read_text())
    place = config["training"]
    for entry in path[:-1]:
        place = place[entry]
    added = {**place[path[-1]], **value} if isinstance(value, dict) else value
    place[path[-1]] = added
    file.write_text(json.dumps(config))
    assert re.search(message, refused(capsys, "--evaluate-only", "--folder", folder, *FEW))


def test_a_training_with_the_option_lagrange_is_the_method_lagrange(folder, capsys):
    """It acts from the first update, and aims at the limit itself."""
    file = folder / "runs" / NAME / "config.json"
    config = json.loads(file.read_text())
    algo = config["training"]["algo"]
    algo["constraint"] |= {"method": "none", "kappa": 0.03}
    algo["lagrange"] |= {"enabled": True, "integral": 0.1}
    file.write_text(json.dumps(config))
    (folder / "runs" / NAME).rename(folder / "runs" / "Go2-Flat_medium_lagrange_1")
    printed = refused(capsys, "--evaluate-only", "--folder", folder, *FEW)
    assert "lagrange.integral=0.1,constraint.aim=1.0,constraint.start=0.0" in printed


def test_a_method_of_another_file_trains_with_its_own_code(tmp_path, capsys):
    file = tmp_path / "own_method.py"
    file.write_text(OWN)
    folder = tmp_path / "benchmark"
    words = ["--methods", f"{file}:Still", "--folder", folder]
    run_command("--run", "Go2-Flat_medium_still_3", *words)
    run_command("--evaluate-only", *words, *FEW)
    (result,) = results.read_results(folder / "results", "SafeLegged-v1")
    assert (result.method, result.seed, result.env_steps) == ("still", 3, 64)
    assert result.source == f"{file}:Still"
    assert f"--methods none {file}:Still" in " ".join(
        row.command for rows in benchmark.make_rows([result]).values() for row in rows
    )


def test_the_published_results_are_the_default_of_a_summary(tmp_path, monkeypatch, capsys):
    for one in seeds_of("none", [3.0, 4.0], [0.06, 0.10]):
        results.write_result(tmp_path / "published", one)
    monkeypatch.setattr(benchmark, "PUBLISHED", tmp_path / "published")
    monkeypatch.chdir(tmp_path)
    run_command("--page", tmp_path / "board.html")
    assert "2 results in" in capsys.readouterr().out
    assert not (tmp_path / "benchmarks_safe").exists()


def test_wrappers_begin_to_adapt_when_robots_can_walk():
    cfg = TrainCfg(GO2, iterations=100, constraints="medium", algo=PPOCfg(steps_per_env=24))
    assert methods.warmup_steps(cfg) == 960


@pytest.mark.slow
def test_missing_runs_are_trained_by_ray_and_finished_ones_are_kept(folder, tmp_path, capsys):
    pytest.importorskip("ray", reason="pip install 'legged-envs[ray]'")
    file = tmp_path / "own_method.py"
    file.write_text(OWN)
    kept = folder / "runs" / NAME / "policy.safetensors"
    before = kept.stat().st_mtime_ns
    words = ["--tasks", "Go2-Flat", "--methods", METHOD, "none", f"{file}:Still", "--seeds", "1"]
    run_command(*words, "--folder", folder, "--iterations", "2", "--num-envs", "8", *FEW)
    assert "3 runs, 1 of them finished" in capsys.readouterr().out
    assert kept.stat().st_mtime_ns == before
    found = results.read_results(folder / "results", "SafeLegged-v1")
    assert [result.method for result in found] == ["none", METHOD, "still"]
