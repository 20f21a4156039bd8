"""One run of a sweep, as Ray Tune sees it: an ordinary training in a separate process."""

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ray import tune

from legged_envs.runs.run_folder import CHECKPOINT, CURVE, lock_run_folder
from legged_envs.sweeps.finished import is_finished, last_line, last_row
from legged_envs.sweeps.plan import SWEEP, TrialRun
from legged_envs.training.command import import_words

REPORT_INTERVAL = 2.0
"""Time between two reports of a run to Tune, s."""

PATIENCE = 120.0
"""Longest time that a training may take to finish its update when it is asked to stop, s."""

LOG = "train.log"
"""Name of the file in a run folder with what the training printed."""

REPORTED = ("iteration", "env_steps", "reward", "steps_per_second", "seconds")
"""Names of the numbers of an update that a run reports to Tune."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LP_NUM_THREADS")
"""Environment variables with the number of threads of a process. The last is Mesa's, which draws
the video where there is no GPU."""

PR_SET_PDEATHSIG = 1
"""Number of the setting of Linux's ``prctl`` that sends a signal when the parent process ends."""


class TrainingTrial(tune.Trainable):
    """A training in a separate process; its learning curve is reported to Tune.

    The training is not stepped by Tune. It writes an ordinary run folder, and it resumes from its
    own checkpoints, so Tune keeps none.
    """

    @classmethod
    def default_resource_request(cls, config: dict[str, Any]) -> tune.PlacementGroupFactory:
        """Return the cores and GPUs that Tune reserves for a run."""
        run: TrialRun = config["run"]
        return tune.PlacementGroupFactory([{"CPU": run["cpus"], "GPU": run["gpus"]}])

    def setup(self, config: dict[str, Any]) -> None:
        """Start the training, or resume it from a checkpoint in its folder."""
        self._run: TrialRun = config["run"]
        self._folder = Path(self._run["folder"])
        self._process: subprocess.Popen[bytes] | None = None
        _check_shared(self._folder)
        # The process of an earlier session may still be finishing its last update.
        _wait_until_free(self._folder)
        if not is_finished(self._folder):
            self._process = start_training(self._run)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Start the next run in this process of Tune, because a new process takes seconds."""
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """Wait for a moment, and return the numbers of the last update.

        Raises:
            RuntimeError: If the training failed. The message is the last line that it printed.
        """
        status = self._wait(REPORT_INTERVAL)
        if status is not None and status < 0:
            raise RuntimeError(f"killed by signal {-status}, {signal.strsignal(-status)}")
        if status:
            raise RuntimeError(last_line(self._folder / LOG) or f"exit status {status}")
        row = last_row(self._folder / CURVE)
        numbers = {name: row[name] for name in REPORTED if name in row}
        return {**numbers, "share": _share(self._run, row), "done": status == 0}

    def cleanup(self) -> None:
        """Let a training that is interrupted finish its update and save its checkpoint."""
        if self._wait(0.0) is not None or self._process is None:
            return
        self._process.terminate()
        if self._wait(PATIENCE) is None:
            self._process.kill()

    def _wait(self, seconds: float) -> int | None:
        """Return the exit status of the training, None if it still runs after a time."""
        if self._process is None:
            return 0
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


def start_training(run: TrialRun) -> subprocess.Popen[bytes]:
    """Start the training of a run in a separate process, or resume it.

    What it prints is appended to :data:`LOG` in the run folder.
    """
    folder = Path(run["folder"])
    words = shlex.split(run["command"])[1:]
    # Other commands than a training look for a checkpoint themselves.
    if words[0] == "train" and (folder / CHECKPOINT).exists():
        words = [*words[:2], "--resume", run["folder"], "--threads", str(run["cpus"])]
        words += import_words(run.get("imports", []))
    environment = dict(os.environ)
    for name in THREAD_VARIABLES:
        environment[name] = str(run["cpus"])
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "legged_envs", *words],
            cwd=run["working_directory"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=_end_with_parent,
        )


def _end_with_parent() -> None:
    """Let this process get SIGTERM when its parent ends in any way, also by SIGKILL.

    A training that gets it finishes its update and saves its checkpoint.
    """
    # Ray blocks SIGINT in its processes, and a blocked signal stays so in their children.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _check_shared(folder: Path) -> None:
    """Raise a FileNotFoundError if this machine does not see the folder of the sweep."""
    plan = folder.parents[1] / SWEEP
    if not plan.is_file():
        raise FileNotFoundError(
            f"there is no {str(plan)!r} on {os.uname().nodename}: --sweep-dir must be on storage "
            "that all machines of the cluster share"
        )


def _wait_until_free(folder: Path) -> None:
    """Wait until no training writes to a run folder.

    Raises:
        FileExistsError: If one still does after :data:`PATIENCE`.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with lock_run_folder(folder):
                return
        except FileExistsError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.5)


def _share(run: TrialRun, row: dict[str, float]) -> float:
    """Return the share of a training that is done, 0 to 1."""
    if run["iterations"] is not None:
        share = row.get("iteration", 0) / run["iterations"]
    else:
        assert run["minutes"] is not None, "a training without updates has minutes"
        share = row.get("seconds", 0.0) / (60.0 * run["minutes"])
    return min(share, 1.0)
