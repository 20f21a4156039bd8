"""Trainings of a sweep that are forked from a process with the modules of a training.

The imports of a training take seconds, which a sweep of short runs would spend again for each run.
On Linux and without GPUs, a sweep forks a starter before it starts Ray. The starter waits at a
socket. For each connection it forks a supervisor, which forks the training:

    sweep → starter → supervisor → training

Each of them gets SIGTERM when its parent ends, and a supervisor ends when its connection is closed.
So no training is left behind, and each can save its checkpoint.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Client, Connection, wait
from pathlib import Path
from typing import Any, NoReturn

from threadpoolctl import threadpool_limits

ADDRESS = "LEGGED_ENVS_STARTER"
"""Environment variable with the path of the starter's socket. Ray's processes inherit it."""

PR_SET_PDEATHSIG = 1
"""Number of the setting of Linux's ``prctl`` that sends a signal when the parent process ends."""


def end_with_parent() -> None:
    """Let this process get SIGTERM when its parent ends in any way, also by SIGKILL.

    A training that gets it finishes its update and saves its checkpoint.
    """
    # Ray blocks SIGINT in its processes, and a blocked signal stays so in their children.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@contextmanager
def starter() -> Iterator[None]:
    """Fork a starter of this process, which runs until the ``with`` block ends.

    The modules that are imported before need not be imported by the trainings.
    """
    with tempfile.TemporaryDirectory(prefix="legged_envs_") as folder:
        address = str(Path(folder, "starter"))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen()
            process = os.fork()
            if process == 0:
                _never_return(_serve, listener)
        os.environ[ADDRESS] = address
        try:
            yield
        finally:
            del os.environ[ADDRESS]
            os.kill(process, signal.SIGTERM)
            os.waitpid(process, 0)


class ForkedTraining:
    """A training that the starter forks, with the methods of ``subprocess.Popen`` for trials.

    Args:
        words: Words of its command line, after ``legged-envs``.
        log: File to which its output is appended.
        directory: Working directory of the training.
        variables: Environment variables that are set for the training.
        threads: Number of threads of libraries that read their number when they are imported.
    """

    def __init__(
        self,
        words: Sequence[str],
        log: Path,
        directory: str,
        variables: Mapping[str, str],
        threads: int,
    ):
        self._connection = Client(os.environ[ADDRESS], "AF_UNIX")
        order = {
            "words": list(words),
            "log": str(log.resolve()),
            "directory": directory,
            "variables": dict(variables),
            "threads": threads,
        }
        self._connection.send_bytes(json.dumps(order).encode())
        self.pid = self._receive()
        """Process id of the training."""
        self._status: int | None = None

    def wait(self, timeout: float) -> int:
        """Return the exit status, −n after signal n.

        Raises:
            subprocess.TimeoutExpired: If the training still runs after ``timeout`` seconds.
        """
        if self._status is None:
            if not self._connection.poll(timeout):
                raise subprocess.TimeoutExpired(f"training {self.pid}", timeout)
            self._status = self._receive()
        return self._status

    def terminate(self) -> None:
        """Ask the training to finish its update, to save its checkpoint and to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the training at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        # Once its end is known, another process may have its number.
        if self._status is None and not self._connection.poll(0.0):
            os.kill(self.pid, number)

    def _receive(self) -> int:
        """Return a number that the supervisor sends."""
        try:
            return int(self._connection.recv_bytes())
        except EOFError:
            # The supervisor has ended, and the training with it.
            return -signal.SIGTERM


def _never_return(work: Any, *arguments: Any) -> NoReturn:
    """Call a function in a forked process, and end the process after it.

    The process must not return into the functions that forked it: they would clean up twice.
    """
    status = 1
    try:
        status = work(*arguments) or 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _serve(listener: socket.socket) -> None:
    """Fork a supervisor for each connection, until SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Ctrl-C on the terminal reaches the sweep only, which stops the trainings one after the other.
    os.setsid()
    end_with_parent()
    # The system takes note of supervisors that end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        accepted, _ = listener.accept()
        connection = Connection(accepted.detach())
        if os.fork() == 0:
            listener.close()
            _never_return(_supervise, connection)
        connection.close()


def _supervise(connection: Connection) -> None:
    """Fork a training, and send its process id and, when it has ended, its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    end_with_parent()
    order = json.loads(connection.recv_bytes())
    training = os.fork()
    if training == 0:
        connection.close()
        _never_return(_train, order)
    connection.send_bytes(str(training).encode())
    ended = os.pidfd_open(training)
    # Nothing more is sent to a supervisor: its connection is ready when the other side has ended.
    if ended not in wait([connection, ended]):
        return
    _, status = os.waitpid(training, 0)
    connection.send_bytes(str(os.waitstatus_to_exitcode(status)).encode())


def _train(order: dict[str, Any]) -> None:
    """Run a command of this package as in a process that was started for it.

    Args:
        order: Arguments of the :class:`ForkedTraining`.
    """
    end_with_parent()
    os.chdir(order["directory"])
    # As `python -m legged_envs` does.
    sys.path.insert(0, order["directory"])
    os.environ.update(order["variables"])
    nothing = open(os.devnull)  # noqa: SIM115
    output = open(order["log"], "a", buffering=1)  # noqa: SIM115
    for number, file in enumerate((nothing, output, output)):
        os.dup2(file.fileno(), number)
    sys.stdin = nothing
    sys.stdout = output
    sys.stderr = output
    sys.argv = ["legged-envs", *order["words"]]
    # NumPy's library of linear algebra has read its number of threads when the sweep imported it.
    threadpool_limits(order["threads"])
    from legged_envs.cli.command_line import main

    main(order["words"])
