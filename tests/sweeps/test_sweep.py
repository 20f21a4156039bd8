"""A sweep refuses impossible options before it writes, continues after interruptions, and names failed runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from legged_envs import cli
from legged_envs.cli import command_line
from legged_envs.cli.command_line import Verb
from legged_envs.runs.run_folder import CHECKPOINT, CURVE, EVALUATION, lock_run_folder
from legged_envs.sweeps.options import SweepCfg
from legged_envs.system_checks import usable_cores
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.trainer import train
from tools import two_ray_hosts

pytestmark = pytest.mark.usefixtures("short_evaluations")
GO2 = "Legged/Go2-Flat-v0"
TORQUES = "rewards.joint_torque.weight"
PATIENCE = 900.0
"""Longest time that a test waits for a process on a busy machine, s."""
NO_RAY = "pip install 'legged-envs[ray]'"


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line of error that ``legged-envs sweep`` prints."""
    with pytest.raises(SystemExit) as stop:
        cli.main(["sweep", GO2, *words])
    printed = capsys.readouterr()
    assert stop.value.code == 2 and not printed.out
    assert printed.err.count("\n") == 1
    return printed.err


# --- before anything is written ---------------------------------------------------------------------------------------


def test_without_ray_the_error_has_the_command_that_installs_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "legged_envs.system_checks.find_spec", lambda name: None if name == "ray" else name
    )
    assert f"no module ray: {NO_RAY}" in refused(["--sweep-dir", str(tmp_path / "new")], capsys)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--grid", "rewards.torque.weight=1"],
            "'rewards.torque.weight'.*did you mean 'joint_torque'",
        ),
        (["--grid", f"{TORQUES}=-1e-4,many"], f"'{TORQUES}' needs float, got 'many'"),
        (["--random", "sim.decimation=2,4"], "'sim.decimation' needs int, got "),
        (["--grid", "sim.decimation=2,0"], "decimation .*got 0"),
        (["--seeds", "1", "-1"], "--seeds .*got -1"),
        (["--cpus-per-run", "0"], "--cpus-per-run .*got 0"),
        (["--num-envs", "0"], "--num-envs .*got 0"),
        (
            [
                *("--changes", "costs.joint_position.params.soft_limit", "0.1"),
                *("--grid", "costs.joint_position.limit=0.9,0.001"),
                *("ppo", "--constraint.method", "p3o"),
            ],
            "costs.joint_position.limit is 0.001, .* stands already has",
        ),
        (["--address", "nowhere"], "--address .*'nowhere'"),
        (["--address", "127.0.0.1:x"], "--address .*'127.0.0.1:x'"),
        (["--seed", "2"], "'--seed'.*'--seeds'"),
        (["--learning-rate", "1"], "--learning-rate is an option of ppo"),
        (["--grid", "a=1", "--grid", "b=2"], "--grid is given twice"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(words, message, tmp_path, capsys):
    pytest.importorskip("ray", reason=NO_RAY)
    folder = tmp_path / "new"
    assert re.search(message, refused([*words, "--sweep-dir", str(folder)], capsys))
    assert not folder.exists()


def test_a_cluster_that_is_not_there_is_named_at_once(tmp_path, capsys):
    pytest.importorskip("ray", reason=NO_RAY)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    for given in (address, f"ray://{address}"):
        words = ["--sweep-dir", str(tmp_path / "new"), "--address", given]
        begun = time.monotonic()
        assert f"--address {given}: no Ray cluster answers" in refused(words, capsys)
        assert time.monotonic() - begun < 15.0
    assert not [*tmp_path.iterdir()]


def test_a_folder_with_a_sweep_or_other_files_is_not_written_to(tmp_path, capsys):
    pytest.importorskip("ray", reason=NO_RAY)
    file = tmp_path / "mine.txt"
    file.write_text("mine")
    assert "--sweep-dir must be empty" in refused(["--sweep-dir", str(tmp_path)], capsys)
    (tmp_path / "sweep.json").write_text("{}")
    assert "--resume" in refused(["--sweep-dir", str(tmp_path)], capsys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.txt", "sweep.json"]


def test_a_sweep_is_resumed_with_its_own_options_and_where_it_was(tmp_path, capsys):
    pytest.importorskip("ray", reason=NO_RAY)
    from legged_envs.sweeps.folder import make_runs, read_runs, write_runs

    folder = tmp_path / "one"
    runs = make_runs(SweepCfg(GO2, seeds=(1, 2), iterations=3, cpus_per_run=2), folder)
    write_runs(folder, GO2, runs)
    assert read_runs(SweepCfg(GO2, resume=folder)) == runs
    assert [run["iterations"] for run in runs] == [3, 3]
    assert all(" --threads 2" in run["command"] for run in runs)
    resume = ["--resume", str(folder)]
    assert "--seeds is fixed by the sweep" in refused([*resume, "--seeds", "4"], capsys)
    assert "--num-envs is fixed by the sweep" in refused([*resume, "--num-envs", "4"], capsys)
    moved = tmp_path / "two"
    folder.rename(moved)
    assert f"'{folder}'" in refused(["--resume", str(moved)], capsys)
    assert "no sweep.json" in refused(resume, capsys)


def test_a_whole_of_a_grid_keeps_what_is_changed_below_it(tmp_path):
    pytest.importorskip("ray", reason=NO_RAY)
    from legged_envs.sweeps.folder import make_runs

    limit = "costs.body_contact.limit"
    grid = ("costs=SafeLegged-v1/Go2-Flat/loose,SafeLegged-v1/Go2-Flat/tight",)
    cfg = SweepCfg(GO2, seeds=(1,), iterations=3, grid=grid, changes={limit: 0.5})
    for run in make_runs(cfg, tmp_path / "new"):
        words = shlex.split(run["command"])
        assert words.index("costs") < words.index(limit)


def test_more_threads_than_cores_give_a_warning_with_the_number(monkeypatch):
    pytest.importorskip("ray", reason=NO_RAY)
    from legged_envs.sweeps import cluster

    begun = []
    monkeypatch.setattr("ray.init", lambda **options: begun.append(options["num_cpus"]))
    cores = usable_cores()
    expected = f"--cpus-per-run {cores + 3} .* {cores} cores"
    with pytest.warns(UserWarning, match=expected), cluster.running_ray(None, cores + 3):
        pass
    assert begun == [cores + 3]  # of which Tune reserves all for one run: it would wait for more


@pytest.mark.parametrize(("cpus", "gpus"), [(9, 0), (1, 1)])
def test_what_no_machine_of_a_cluster_has_is_named(cpus, gpus, monkeypatch):
    pytest.importorskip("ray", reason=NO_RAY)
    from legged_envs.sweeps.cluster import check_resources

    dead = {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}}
    nodes = [{"Alive": True, "Resources": {"CPU": cores}} for cores in (4.0, 8.0)]
    monkeypatch.setattr("ray.nodes", lambda: [dead, *nodes])
    check_resources(8, 0)
    with pytest.raises(ValueError, match="needs 9 CPU .* 8" if cpus == 9 else "needs 1 GPU .* 0"):
        check_resources(cpus, gpus)


# --- one run ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory, short_evaluations):
    """A finished run of two updates."""
    ppo = PPOCfg(steps_per_env=4, epochs=1, mini_batches=2, hidden=(16,))
    folder = tmp_path_factory.mktemp("sweep") / "runs" / "seed=1"
    options = {"num_envs": 8, "iterations": 2, "episodes": 4, "video": False}
    return train(TrainCfg(GO2, run_dir=folder, algo=ppo, threads=1, **options))


def trial_run(folder: Path, **entries):
    return {
        "name": folder.name,
        "folder": str(folder),
        "command": f"legged-envs train {GO2} --nothing",
        "working_directory": str(folder.parent),
        "cpus": 1,
        "gpus": 0,
        "iterations": 2,
        "minutes": None,
        **entries,
    }


def test_a_finished_run_is_told_from_one_that_was_trained_further(run, tmp_path):
    pytest.importorskip("ray", reason=NO_RAY)
    from legged_envs.sweeps.trial import is_finished, last_row

    assert is_finished(run)
    assert last_row(run / CURVE)["iteration"] == 2
    assert not is_finished(tmp_path)
    longer = shutil.copytree(run, tmp_path / "longer")
    row = json.loads((run / CURVE).read_text().splitlines()[-1])
    row |= {"iteration": 3, "env_steps": row["env_steps"] + 32}
    with (longer / CURVE).open("a") as file:
        file.write(json.dumps(row) + "\n" + '{"iteration": 4, "env_st')
    assert last_row(longer / CURVE) == row
    assert not is_finished(longer)


def test_a_training_that_fails_says_so_in_its_log_and_one_with_a_checkpoint_is_resumed(tmp_path):
    pytest.importorskip("ray", reason=NO_RAY)
    from legged_envs.sweeps.trial import LOG, last_line, start_training

    folder = tmp_path / "run"
    new = start_training(trial_run(folder))
    assert new.wait(300) == 2
    assert "'--nothing'" in last_line(folder / LOG)
    (folder / CHECKPOINT).write_text("damaged")
    assert start_training(trial_run(folder)).wait(300) == 2
    assert CHECKPOINT in last_line(folder / LOG)


def test_the_process_of_a_run_imports_the_modules_that_the_sweep_was_given(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason=NO_RAY)
    from legged_envs.sweeps.folder import make_runs
    from legged_envs.sweeps.trial import LOG, last_line, start_training

    (tmp_path / "own_tasks.py").write_text(
        "import legged_envs\n"
        "legged_envs.register('Own/Go2-v0', 'legged_envs.tasks.velocity:go2_flat')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    given = []
    monkeypatch.setattr(command_line, "VERBS", {"sweep": Verb(SweepCfg, given.append)})
    cli.main(["sweep", "Own/Go2-v0", "--import", "own_tasks"])
    (run,) = make_runs(given[0], tmp_path / "sweep")
    assert run["command"].count("--import") == 1
    words, modules = command_line.take_imports(shlex.split(run["command"]))
    assert modules == ["own_tasks"] and words[:3] == ["legged-envs", "train", "Own/Go2-v0"]
    # A resumed run that does not know its task names the task, not the checkpoint.
    folder = Path(run["folder"])
    folder.mkdir(parents=True)
    (folder / CHECKPOINT).write_text("damaged")
    assert start_training(run).wait(PATIENCE) == 2
    assert CHECKPOINT in last_line(folder / LOG)


def test_a_run_waits_for_the_process_that_still_writes_to_its_folder(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason=NO_RAY)
    from legged_envs.sweeps import trial

    monkeypatch.setattr(trial, "PATIENCE", 0.1)
    busy = pytest.raises(FileExistsError, match=re.escape(str(tmp_path)))
    with lock_run_folder(tmp_path), busy:
        trial._wait_until_free(tmp_path)
    trial._wait_until_free(tmp_path)


def test_the_page_has_the_runs_that_finished_and_the_error_names_the_others(run):
    pytest.importorskip("ray", reason=NO_RAY)
    from legged_envs.sweeps.sweep import PAGE, _raise_failures, _write_page

    folder = run.parents[1]
    (run.parent / "seed=2").mkdir()
    _write_page(folder, [trial_run(run), trial_run(run.parent / "seed=2")])
    page = (folder / PAGE).read_text()
    assert str(run) in page and "seed=2" not in page
    with pytest.raises(RuntimeError, match=r"failed .* 1 \(seed=2: no memory\)"):
        _raise_failures(folder, {"seed=2": "no memory"})
    _raise_failures(folder, {})


# --- with Ray ---------------------------------------------------------------------------------------------------------


def skip_if_busy(log: Path) -> None:
    """Skip the test if Ray does not start within 30 s, which is no defect of the sweep."""
    if "Ray does not start on this machine" in log.read_text():
        pytest.skip("this machine is too busy for Ray to start")


def start(words: list[str], log: Path) -> subprocess.Popen[bytes]:
    # Ray starts a process for each core in advance, which takes seconds of each.
    environment = os.environ | {"RAY_prestart_worker_first_driver": "0"}
    with log.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "legged_envs", "sweep", GO2, *words],
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )


def test_an_interrupted_sweep_goes_on_and_a_run_that_fails_is_named_and_left_out(tmp_path):
    pytest.importorskip("ray", reason=NO_RAY)
    folder = tmp_path / "sweep"
    log = tmp_path / "log"
    first = folder / "runs" / "seed=1"
    second = folder / "runs" / "seed=2"
    # On all cores, so that the second run waits for the first.
    words = ["ppo", "--seeds", "1", "2", "--cpus-per-run", str(usable_cores())]
    words += ["--num-envs", "4", "--iterations", "40", "--episodes", "1", "--no-video"]
    sweep = start([*words, "--sweep-dir", str(folder)], log)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (first / CURVE).exists() or not (first / CURVE).read_text():
            skip_if_busy(log)
            assert sweep.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        sweep.send_signal(signal.SIGINT)
        assert sweep.wait(PATIENCE) == 130, log.read_text()
    finally:
        sweep.kill()
    assert f"--resume {folder}" in log.read_text()
    with lock_run_folder(first):  # no training was left behind
        assert (first / CHECKPOINT).exists()
    second.mkdir(exist_ok=True)
    (second / CHECKPOINT).write_text("damaged")
    sweep = start(["--resume", str(folder)], log)
    try:
        assert sweep.wait(PATIENCE) == 2, log.read_text()
        skip_if_busy(log)
    finally:
        sweep.kill()
    iterations = [json.loads(row)["iteration"] for row in (first / CURVE).read_text().splitlines()]
    assert iterations == [*range(1, 41)]
    assert (first / EVALUATION).exists() and not (second / EVALUATION).exists()
    assert re.search(r"failed .* 1 \(seed=2: .*checkpoint", log.read_text())
    page = (folder / "report.html").read_text()
    assert "seed=1" in page and "seed=2" not in page


# --- on a cluster -----------------------------------------------------------------------------------------------------


def test_the_commands_for_a_cluster_have_the_settings_that_were_measured():
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    for name, value in two_ray_hosts.SETTINGS.items():
        assert f"{name}={value}" in page
