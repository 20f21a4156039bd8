"""Ctrl-C and SIGTERM let a training of several processes save, however often they are forwarded."""

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console
from torch.distributed.run import get_args_parser

from legged_envs.runs.checkpoint_file import CHECKPOINT
from legged_envs.training import processes, stop

WORKER = Path(__file__).with_name("interrupted_worker.py")


@pytest.fixture
def request_of_two(monkeypatch):
    """A request to stop in one of two processes."""
    monkeypatch.setattr(processes, "count", lambda: 2)
    return stop.StopRequest(Console(quiet=True))


@pytest.mark.parametrize("number", stop.SIGNALS)
def test_a_forwarded_signal_is_no_second_request(request_of_two, number):
    with request_of_two.on_signals():
        for repeated in (number, number, signal.SIGTERM):
            signal.raise_signal(repeated)
        assert request_of_two.is_requested


def test_the_same_signal_later_stops_at_once(request_of_two, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(stop, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with request_of_two.on_signals():
        for second in (0.0, 0.9 * stop.FORWARDING):
            now[0] = second
            signal.raise_signal(signal.SIGINT)
        now[0] = 1.1 * stop.FORWARDING
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_under_torchrun_saves_and_the_training_resumes_to_the_bit(tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    if "--shutdown-timeout" in get_args_parser().format_help():
        # torchrun kills the processes after 30 s, which is little on a busy machine.
        torchrun += ["--shutdown-timeout", "120"]
    words = [*torchrun, str(WORKER), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert "SignalException" in done.stderr  # torchrun got the Ctrl-C too
    run = tmp_path / "run"
    assert (run / CHECKPOINT).exists() and (run / "policy.safetensors").exists(), done.stderr
    for rank in (0, 1):
        result = torch.load(tmp_path / f"{rank}.pt", weights_only=False)
        assert result["is_interrupted"]
        assert result["resumed_at"] == result["interrupted_at"]
        for name, value in result["expected"].items():
            assert torch.equal(result["weights"][name], value), name
