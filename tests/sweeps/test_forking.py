"""A training that a sweep forks behaves as one in a process that was started for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from legged_envs.runs.checkpoint_file import CHECKPOINT
from legged_envs.sweeps.forking import ADDRESS, ForkedTraining, starter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sweeps fork on Linux only")
PATIENCE = 300.0
GO2 = "Legged/Go2-Flat-v0"
ENDLESS = ["train", GO2, "--num-envs", "4", "--iterations", "1000000", "--no-video"]


@pytest.fixture(scope="module")
def forks():
    with starter():
        yield
    assert ADDRESS not in os.environ


def start(words: list[str], folder: Path) -> ForkedTraining:
    return ForkedTraining(words, folder / "log", str(folder), {"OWN": "1"}, threads=1)


def is_running(process: int) -> bool:
    try:
        status = Path("/proc", str(process), "stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_until_ended(process: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while is_running(process):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_training_ends_with_its_starter(tmp_path):
    with starter():
        training = start(ENDLESS, tmp_path)
    wait_until_ended(training.pid)
    assert training.wait(PATIENCE) == -signal.SIGTERM


def test_output_and_exit_status_are_those_of_the_command(forks, tmp_path):
    assert start(["list", "--json"], tmp_path).wait(PATIENCE) == 0
    assert start(["train", GO2, "--nothing"], tmp_path).wait(PATIENCE) == 2
    printed = (tmp_path / "log").read_text()
    assert printed.startswith("[") and GO2 in printed and "'--nothing'" in printed


def test_a_training_has_its_own_folder_variables_and_threads(forks, tmp_path):
    (tmp_path / "own.py").write_text(
        "import os, sys\n"
        "import threadpoolctl\n"
        "import legged_envs\n"
        "threads = max(pool['num_threads'] for pool in threadpoolctl.threadpool_info())\n"
        "print('own:', os.getcwd(), os.environ['OWN'], threads, sys.stdin.read())\n"
    )
    words = ["list", "--import", "own"]
    assert start(words, tmp_path).wait(PATIENCE) == 0
    assert f"own: {tmp_path} 1 1 \n" in (tmp_path / "log").read_text()


def test_a_training_that_is_killed_has_the_signal_as_its_status(forks, tmp_path):
    training = start(ENDLESS, tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        training.wait(0.0)
    training.kill()
    assert training.wait(PATIENCE) == -signal.SIGKILL
    training.terminate()  # nothing happens to a process that has its number now


def test_a_training_saves_and_ends_when_the_process_that_started_it_ends(forks, tmp_path):
    run = tmp_path / "run"
    training = start([*ENDLESS, "--run-dir", str(run)], tmp_path)
    deadline = time.monotonic() + PATIENCE
    while not (run / "curve.jsonl").exists():
        assert training._status is None and time.monotonic() < deadline, (
            tmp_path / "log"
        ).read_text()
        time.sleep(0.05)
    process = training.pid
    training._connection.close()
    wait_until_ended(process)
    assert (run / CHECKPOINT).exists()
