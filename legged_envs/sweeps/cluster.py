"""Ray for a sweep: started on this machine, or a running cluster that is joined."""

import logging
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from legged_envs.system_checks import usable_cores

CLIENT_SCHEME = "ray://"
"""Start of the address of a cluster in another network than this machine."""

CLIENT_PORT = 10001
"""Port of Ray's server for such addresses, if the address has none."""

CONNECTION_TIMEOUT = 10.0
"""Longest time that a cluster may take to accept a connection, s."""

OBJECT_STORE_BYTES = 100_000_000
"""Shared memory of a Ray that is started here. Runs exchange no data but numbers."""


@contextmanager
def running_ray(address: str | None, cpus: int) -> Iterator[None]:
    """Start Ray on this machine, or join a cluster, until the ``with`` block ends.

    Args:
        address: Address of a cluster. None: only this machine.
        cpus: Number of cores of a run. More than this machine has give a warning.

    Raises:
        ConnectionError: If there is no cluster at ``address``.
    """
    # Ray's own reports repeat the table of the sweep. Errors are raised nevertheless.
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    # A run folder already contains everything that Tune would log.
    os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    # Tune's newer reports cannot be switched off.
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    try:
        if address is None:
            _start(cpus)
        else:
            _join(address)
        yield
    finally:
        ray.shutdown()


def _start(cpus: int) -> None:
    """Start Ray on this machine.

    Raises:
        OSError: If it does not start.
    """
    # Without this, Ray reports the use of it to its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A training of a sweep has the priority of a single training. Ray's own are less, by 15.
    os.environ.setdefault("RAY_worker_niceness", "0")
    # Ray would start a process for each core in advance. The runs cannot use them.
    os.environ.setdefault("RAY_prestart_worker_first_driver", "0")
    cores = usable_cores()
    if cpus > cores:
        warnings.warn(
            f"--cpus-per-run {cpus} is more than the {cores} cores of this machine: the runs "
            f"train one after the other, each with {cpus} threads",
            stacklevel=2,
        )
    try:
        ray.init(
            address="local",
            num_cpus=max(cpus, cores),
            object_store_memory=OBJECT_STORE_BYTES,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
        )
    # Of any kind: Ray raises a plain Exception where the machine is too busy.
    except Exception as error:
        raise OSError(
            f"Ray does not start on this machine ({error}); try again when it is less busy, or "
            "read Ray's logs, in session_latest/logs of its temporary folder"
        ) from error


def _join(address: str) -> None:
    _check_answers(address)
    try:
        # The table of a client is printed on the cluster, and comes here as a log.
        ray.init(
            address=address,
            log_to_driver=address.startswith(CLIENT_SCHEME),
            logging_level=logging.CRITICAL,
        )
    # Of any kind: versions that differ, a cluster that ends, a port of another program.
    except Exception as error:
        raise ConnectionError(
            f"--address {address} cannot be joined as a Ray cluster ({type(error).__name__}: "
            f"{error}); it must run Ray {ray.__version__}; if it needs a token, set "
            "RAY_AUTH_MODE=token here too"
        ) from error


def _check_answers(address: str) -> None:
    """Raise a ConnectionError at once if nothing answers, for which Ray would wait a minute."""
    if address == "auto":
        return
    host, _, port = address.removeprefix(CLIENT_SCHEME).partition(":")
    if not port and address.startswith(CLIENT_SCHEME):
        port = str(CLIENT_PORT)
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"--address must be auto, HOST:PORT or ray://HOST:PORT, got {address!r}")
    try:
        socket.create_connection((host, int(port)), CONNECTION_TIMEOUT).close()
    except OSError as error:
        raise ConnectionError(
            f"--address {address}: no Ray cluster answers ({error}); start one there with "
            "'ray start --head'"
        ) from error


def check_resources(cpus: int, gpus: int) -> None:
    """Check that a machine of the cluster can train a run. Else Tune would wait for one forever.

    Args:
        cpus: Number of cores that a run needs.
        gpus: Number of GPUs that a run needs.

    Raises:
        ValueError: If no machine has as many.
    """
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for option, name, needed in (("--cpus-per-run", "CPU", cpus), ("--device", "GPU", gpus)):
        most = int(max((machine.get(name, 0.0) for machine in machines), default=0.0))
        if needed > most:
            raise ValueError(
                f"{option} needs {needed} {name} for a run, but the largest machine has {most}: "
                "give less"
            )
