"""Two processes train as one does: same robots, same gradients, same policy in both."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from training import processes_worker

from legged_envs.cli.command_line import main as command_line
from legged_envs.runs.checkpoint_file import CHECKPOINT
from legged_envs.tasks import make_task_cfg, make_training_defaults
from legged_envs.tasks.kind import kind_of
from legged_envs.training import processes
from legged_envs.training.checkpoint import read_checkpoint, resuming_after_failure
from legged_envs.training.options import TrainCfg
from legged_envs.training.prepare import with_defaults
from legged_envs.training.processes import check_agreement, count, share_of

WORKER = Path(processes_worker.__file__)
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
COMMAND = ("-m", "legged_envs", "train", "Legged/Go2-Flat-v0", "--no-video", "--episodes", "2")


def torchrun(*words):
    return subprocess.run([*TORCHRUN, *words], capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder that two processes have written to."""
    folder = tmp_path_factory.mktemp("processes")
    done = torchrun("--max-restarts", "1", str(WORKER), str(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def results(folder):
    """Return the results of each of the two processes."""
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in (0, 1)]


def difference(values, expected):
    return ((values - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("name", processes_worker.CASES)
def test_two_processes_learn_what_one_learns(results, name, tmp_path):
    one = processes_worker.learn(name, tmp_path)
    first, second = (result[name] for result in results)
    for which, value in first["state"].items():
        if which != "memory":
            assert torch.equal(value, second["state"][which]), which
    assert torch.equal(first["parameters"], second["parameters"])
    assert first["rewards"] == second["rewards"]
    for gradient, expected in zip(first["gradients"], one["gradients"], strict=True):
        assert difference(gradient, expected) < 1e-5
    assert first["rewards"][0] == pytest.approx(one["rewards"][0], rel=1e-5)
    # A step of Adam is 1e-3 for a gradient of any size. Those of 1e-8 differ by rounding.
    assert difference(first["parameters"], one["parameters"]) < 1e-3
    for which, value in one["state"].items():
        if which.endswith(("_mean", "_std")):
            torch.testing.assert_close(first["state"][which], value, rtol=1e-3, atol=1e-3)
    for ranges, others, expected in zip(
        first["ranges"], second["ranges"], one["ranges"], strict=True
    ):
        assert torch.equal(ranges, others)
        torch.testing.assert_close(ranges, expected)


def test_moments_are_those_of_the_rows_of_all_processes(results):
    values = torch.arange(40.0).view(10, 4).square()
    for result in results:
        rows, mean, variance = result["moments"]
        assert rows == 10
        torch.testing.assert_close(mean.squeeze(0), values.mean(0))
        torch.testing.assert_close(variance.squeeze(0), values.var(0, correction=0))


def test_a_resumed_training_of_two_processes_equals_one_that_was_not_stopped(folder):
    straight, resumed = (read_checkpoint(folder / name) for name in ("straight", "resumed"))
    for name, value in straight["algorithm"]["actor"].items():
        assert torch.equal(value, resumed["algorithm"]["actor"][name]), name
    ((one,), (other,)) = (checkpoint["other_processes"] for checkpoint in (straight, resumed))
    assert torch.equal(one["memory"], other["memory"]) and one["memory"].any()
    assert torch.equal(one["rng"], other["rng"])


def test_another_number_of_processes_is_refused(folder, tmp_path, capsys):
    run = folder / "straight"
    words = ["train", "Legged/Go2-Flat-v0", "--resume", str(run), "--iterations", "4"]
    with pytest.raises(SystemExit):
        command_line([*words, "--run-dir", str(tmp_path)])
    assert "2 processes" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_each_process_says_in_one_line_what_is_wrong(tmp_path):
    run = tmp_path / "run"
    done = torchrun(*COMMAND, "--num-envs", "7", "--run-dir", str(run))
    lines = [line for line in done.stderr.splitlines() if "legged-envs: error" in line]
    # torchrun may end the second process before it has said so.
    assert lines and all("multiple" in line and "got 7" in line for line in lines)
    assert not (run / CHECKPOINT).exists()


def test_a_restart_needs_a_folder_to_go_on_from(results, monkeypatch, capsys):
    assert all(result["can_restart"] for result in results), "torchrun says so in the environment"
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "1")
    with pytest.raises(SystemExit):
        command_line([*COMMAND[2:]])
    assert "--run-dir" in capsys.readouterr().err


def test_a_numbered_checkpoint_needs_a_folder_for_what_continues_after_a_failure(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "1")
    numbered = tmp_path / "checkpoint_000003.pt"
    for file in (numbered, tmp_path / CHECKPOINT):
        file.touch()
    cfg = TrainCfg("Legged/Go2-Flat-v0", resume=numbered)
    with pytest.raises(ValueError, match="--run-dir"):
        resuming_after_failure(cfg)
    for allowed in (replace(cfg, run_dir=tmp_path), replace(cfg, resume=tmp_path / CHECKPOINT)):
        assert resuming_after_failure(allowed) == allowed


def test_rsl_rl_is_refused_in_several_processes(monkeypatch):
    cfg = TrainCfg("Legged/Go2-Flat-v0", learner="rsl_rl")
    assert with_defaults_of(cfg)
    monkeypatch.setattr(processes, "count", lambda: 2)
    with pytest.raises(ValueError, match="rsl_rl"):
        with_defaults_of(cfg)


def with_defaults_of(cfg):
    task = make_task_cfg(cfg.task_id)
    return with_defaults(cfg, kind_of(task), make_training_defaults(cfg.task_id))


def test_one_process_is_alone():
    assert count() == 1 and share_of(7) == 7
    check_agreement({"task": "Legged/Go2-Flat-v0"})
