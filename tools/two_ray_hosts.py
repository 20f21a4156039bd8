"""Run a command on a Ray cluster of two hosts that this machine pretends to be, and cut the cable.

The hosts are those of :mod:`tools.two_hosts`, with one core each. The command runs on host 1, where
RAY_ADDRESS has the address of the cluster. For example::

    python -m tools.two_ray_hosts -- python examples/rllib_ppo.py --runners 2 --steps 20000 \\
        --address auto
    python -m tools.two_ray_hosts --cut-after 60 -- legged-envs sweep Legged/Go2-Flat-v0 \\
        --seeds 1 2 --iterations 400 --address auto --sweep-dir sweeps/cut

Needs root, iproute2 and Ray. At the end all processes of both hosts are ended.
"""

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tools.two_hosts import HOSTS, NETWORK, cable, cut

PORT = 6379
"""Port of the cluster on host 1."""

HEAD = ("--head", "--port", str(PORT), "--include-dashboard", "false")
"""Options of ``ray start`` on host 1."""

NODE = ("--num-cpus", "1", "--object-store-memory", "100000000", "--disable-usage-stats")
"""Options of ``ray start`` on both hosts."""

SETTINGS = {
    # Ray gives its workers a low priority, with which they starve on a busy machine.
    "RAY_worker_niceness": "0",
    # The others are those of docs/scale.md, with which Ray notices sooner that a host is cut off.
    "RAY_health_check_failure_threshold": "3",
    "RAY_grpc_client_keepalive_timeout_ms": "20000",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
}
"""Settings of Ray, as environment variables of all its processes, unless they are set already."""

GRACE = 10.0
"""Time that processes of a host have to end, s, before they are killed."""


def main() -> None:
    """Run the command, and print its exit status and its time, from the cut if there was one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--cut-after", type=float, help="time until the cable is cut, s")
    parser.add_argument("words", nargs="+", help="command on host 1")
    options = parser.parse_args()
    with cable(), cluster() as environment:
        command = subprocess.Popen(on_host(1, *options.words), env=environment)
        begun = time.monotonic()
        try:
            status = command.wait(timeout=options.cut_after)
        except subprocess.TimeoutExpired:
            cut()
            print("the cable is cut", flush=True)
            begun = time.monotonic()
            status = command.wait()
        print(f"exit status {status} after {time.monotonic() - begun:.0f} s")
    sys.exit(status)


def on_host(host: int, *words: str) -> list[str]:
    """Return a command that runs on a host."""
    return ["ip", "netns", "exec", f"host{host}", *words]


@contextmanager
def cluster() -> Iterator[Mapping[str, str]]:
    """Start Ray on both hosts, and end all processes of the hosts at the end.

    Yields:
        Environment variables of a command that uses the cluster.
    """
    address = f"{NETWORK}.1:{PORT}"
    # Ray asks for a token by default.
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    environment = {**SETTINGS, **os.environ, **token}
    ray_start = (sys.executable, "-m", "ray.scripts.scripts", "start")
    # In a folder of its own, so that other programs do not take this cluster for theirs.
    folder = tempfile.mkdtemp(prefix="ray_")
    try:
        for host in HOSTS:
            joining = (*HEAD, "--temp-dir", folder) if host == 1 else ("--address", address)
            own = ("--node-ip-address", f"{NETWORK}.{host}")
            command = on_host(host, *ray_start, *joining, *own, *NODE)
            subprocess.run(command, check=True, env=environment)
        yield {**environment, "RAY_ADDRESS": address}
    finally:
        # Not with `ray stop`, which ends every Ray of this machine.
        signal_processes(signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while processes() and time.monotonic() < deadline:
            time.sleep(0.2)
        signal_processes(signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def processes() -> list[int]:
    """Return the process ids of both hosts."""
    found = []
    for host in HOSTS:
        command = ["ip", "netns", "pids", f"host{host}"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True)
        found += [int(word) for word in listed.stdout.split()]
    return found


def signal_processes(number: int) -> None:
    """Send a signal to all processes of both hosts."""
    for process in processes():
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main()
