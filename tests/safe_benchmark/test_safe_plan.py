"""The plan of the benchmark has every combination once, and bad input is one line before anything is written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from legged_envs import cli
from legged_envs.cli.command_line import parse_options
from legged_envs.safe_benchmark.method import command_of
from legged_envs.safe_benchmark.method_options import method_name, read_method, read_trained
from legged_envs.safe_benchmark.methods import find_methods, shipped_methods
from legged_envs.safe_benchmark.options import BenchmarkCfg
from legged_envs.safe_benchmark.plan import plan_runs, trial_runs
from legged_envs.safe_benchmark.run import BenchmarkRun, run_in
from legged_envs.training.learner_options import AmpCfg, ConstraintCfg
from legged_envs.training.options import PPOCfg

OWN = """
from legged_envs.safe_benchmark.methods import Method
class Own(Method):
    name = "own"
class Taken(Method):
    name = "p3o"
class Bad(Method):
    name = "Own Method"
class Other:
    name = "other"
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A file with methods that are not in the package."""
    file = tmp_path / "own_methods.py"
    file.write_text(OWN)
    return file


def plan(folder: Path, methods=("none", "p3o"), **options) -> list[BenchmarkRun]:
    cfg = BenchmarkCfg("safe", folder=folder, **options)
    return plan_runs(cfg, find_methods(methods))


def test_every_combination_is_planned_once_and_a_seed_of_all_methods_before_the_next(tmp_path):
    runs = plan(tmp_path, tasks=("Go2-Flat", "G1-Flat"), levels=("loose", "tight"), seeds=3)
    assert len(runs) == len({run.name for run in runs}) == 2 * 2 * 2 * 3
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    assert runs[0].name == "Go2-Flat_loose_none_1"
    assert runs[0].folder == tmp_path / "runs" / "Go2-Flat_loose_none_1"
    assert runs[-1].name == "G1-Flat_tight_p3o_3"


def test_a_run_is_an_ordinary_training(tmp_path):
    runs = plan(tmp_path, tasks=("Legged/Go2-Flat-v0",), seeds=2, cpus_per_run=1)
    trials = list(trial_runs(runs, shipped_methods()))
    words = shlex.split(trials[3]["command"])
    assert trials[3]["name"] == "Go2-Flat_medium_p3o_2"
    options = parse_options("train", words[2:])
    assert (options.task_id, options.seed, options.constraints) == (
        "Legged/Go2-Flat-v0",
        2,
        "medium",
    )
    assert options.algo.constraint.method == "p3o"
    assert options.run_dir == tmp_path / "runs" / "Go2-Flat_medium_p3o_2"
    # The task's own number of updates, which the table of a sweep needs.
    assert trials[3]["iterations"] == 270
    baseline = parse_options("train", shlex.split(trials[0]["command"])[2:])
    assert baseline.constraints == "medium"
    assert baseline.algo.constraint.method == "none"


def test_a_method_of_another_file_is_trained_by_a_command_that_names_it(own, tmp_path):
    word = f"{own}:Own"
    methods = find_methods(["none", word])
    assert list(methods) == ["none", "own"]
    runs = plan(tmp_path, ("none", word), tasks=("Go2-Flat",), seeds=1, iterations=3)
    (_, trial) = trial_runs(runs, methods)
    options = parse_options("benchmark", shlex.split(trial["command"])[2:])
    assert options.run == "Go2-Flat_medium_own_1"
    assert options.methods == (word,)
    assert (options.folder, options.iterations) == (tmp_path, 3)


def test_two_sets_of_options_are_two_methods_with_separate_commands(tmp_path):
    words = (
        "lagrange,lagrange.integral=0.10,constraint.start=0",
        "fixed,constraint.penalty=0.2",
        "fixed,constraint.costs=energy+stumble,constraint.penalty=1",
    )
    methods = find_methods(words)
    names = [
        "lagrange,lagrange.integral=0.1,constraint.start=0.0",
        "fixed,constraint.penalty=0.2",
        "fixed,constraint.costs=energy+stumble,constraint.penalty=1.0",
    ]
    assert list(methods) == names
    # The name of a method is its own word.
    assert list(find_methods(names)) == names
    runs = plan(tmp_path, words, tasks=("Go2-Rough",), seeds=1)
    assert len({run.folder for run in runs}) == 3
    found = []
    for run in runs:
        read = run_in(run.folder)
        assert (read.name, read.method) == (run.name, run.method)
        command = shlex.split(command_of(methods[run.method], run))
        found.append(parse_options("train", command[2:]).algo)
    lagrange, weak, strong = found
    assert (lagrange.lagrange.integral, lagrange.constraint.start) == (0.1, 0.0)
    assert lagrange.constraint.method == "lagrange"
    assert (weak.constraint.method, weak.constraint.penalty) == ("fixed", 0.2)
    assert strong.constraint.costs == ("energy", "stumble")


def test_every_option_of_ppo_is_read_back_from_a_name():
    changed = PPOCfg(
        gamma=0.9,
        hidden=(32, 16),
        symmetry="off",
        schedule="adaptive",
        amp=AmpCfg(amp_reward_weight=0.5),
        constraint=ConstraintCfg(method="cat", initial_probability=1e-5),
    )
    name = method_name(changed)
    assert read_method(name) == changed
    assert name == (
        "cat,schedule=adaptive,amp.weight=0.5,constraint.initial-probability=1e-05,gamma=0.9,"
        "hidden=32+16,symmetry=off"
    )


@pytest.mark.parametrize(("mirror", "symmetry"), [(True, "batches"), (False, "off")])
def test_options_of_an_earlier_version_are_read(mirror, symmetry):
    trained = {"mirror": mirror, "gamma": 0.9}
    assert read_trained(trained) == PPOCfg(symmetry=symmetry, gamma=0.9)


def test_all_methods_are_those_of_the_command_line_and_the_wrappers():
    names = list(find_methods(["all"]))
    assert names[0] == "none"
    assert {"p3o", "lagrange", "terminations_wrapper", "lagrangian_wrapper"} <= set(names)


def test_the_name_of_a_folder_is_read_back(tmp_path):
    for method in ("p3o", "terminations_wrapper"):
        folder = tmp_path / f"Tron1-PF-Flat_tight_{method}_12"
        run = run_in(folder)
        assert (run.task, run.level, run.method, run.seed) == ("Tron1-PF-Flat", "tight", method, 12)
        assert run.name == folder.name
    for wrong in ("Go2-Flat_medium_p3o", "none-1", "Go2-Flat_hard_p3o_1"):
        with pytest.raises(ValueError, match=wrong):
            run_in(tmp_path / wrong)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tasks", "Go2-Flt"], "--tasks.*'Go2-Flt'; did you mean 'Go2-Flat'"),
        (["--tasks", "Go2-Flat", "Go2-Flat"], "--tasks has 'Go2-Flat' twice"),
        (["--tasks", "Go2-Flat", "--levels", "hard"], "--levels.*'hard'.*loose, medium, tight"),
        (["--tasks", "Go2-Flat", "--levels", "tight", "tight"], "--levels has 'tight' twice"),
        (
            ["--tasks", "Go2-Flat", "--methods", "lagrang"],
            "--methods.*'lagrang'; did you mean 'lagrange'",
        ),
        (["--tasks", "Go2-Flat", "--methods", "p3o", "p3o"], "--methods has 'p3o' twice"),
        (["--tasks", "Go2-Flat", "--methods", "all", "p3o"], "--methods has 'p3o' twice"),
        (["--tasks", "Go2-Flat", "--methods", "none.py:A"], "--methods.*'none.py'"),
        (
            ["--tasks", "Go2-Flat", "--methods", "p3o,constraint.kapa=1"],
            "'constraint.kapa'; did you mean 'constraint.kappa'",
        ),
        (["--tasks", "Go2-Flat", "--methods", "p3o,constraint.kappa"], "'constraint.kappa' must"),
        (
            ["--tasks", "Go2-Flat", "--methods", "p3o,constraint.kappa=high"],
            "constraint.kappa must be float, got 'high'",
        ),
        (["--tasks", "Go2-Flat", "--methods", "p3o,constraint.start=2"], "constraint.start .*2"),
        (["--tasks", "Go2-Flat", "--methods", "p3o,clip=1,clip=2"], "'clip' twice"),
        (
            ["--tasks", "Go2-Flat", "--methods", "p3o,constraint.method=ipo"],
            "no option 'constraint.method'",
        ),
        (
            ["--tasks", "Go2-Flat", "--methods", "p3o", "p3o,constraint.kappa=0.03"],
            "--methods has 'p3o' twice",
        ),
        (
            ["--tasks", "Go2-Flat", "--methods", "lagrangian_wrapper,clip=0.1"],
            "not 'lagrangian_wrapper'",
        ),
        (["--tasks", "Go2-Flat", "--seeds", "0"], "--seeds .*got 0"),
        (["--tasks", "Go2-Flat", "--suite", "SafeLegged-v9"], "'SafeLegged-v9'.*SafeLegged-v1"),
        (["--tasks", "Go2-Flat", "--tasks", "G1-Flat"], "--tasks is given twice"),
        (["--run", "Go2-Flat_medium_lagrang_1"], "--run.*'lagrang'; did you mean 'lagrange'"),
        (["--run", "Go2_medium_p3o_1"], "'Legged/Go2-v0'"),
        (["--evaluate-only"], "no run folders"),
        ([], "no results"),
        (["--page", "page.txt"], "--page.*'.txt'"),
    ],
)
def test_bad_input_is_one_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("legged_envs.safe_benchmark.benchmark.PUBLISHED", tmp_path / "none")
    folder = tmp_path / "benchmark"
    with pytest.raises(SystemExit) as stop:
        cli.main(["benchmark", "safe", *words, "--folder", str(folder)])
    printed = capsys.readouterr()
    assert stop.value.code == 2
    assert printed.err.count("\n") == 1
    assert re.search(message, printed.err), printed.err
    assert not folder.exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Taken", "'p3o' is a method of the package"),
        ("Bad", "'Own Method'"),
        ("Other", "'Other' must be a class derived from"),
        ("Missing", "'Missing' must be a class derived from"),
    ],
)
def test_a_class_that_is_no_method_is_named(name, message, own):
    with pytest.raises(ValueError, match=message):
        find_methods([f"{own}:{name}"])
