"""Run a training on two hosts that this machine pretends to be, and cut the cable between them.

The hosts are two network namespaces of Linux, joined by a pair of virtual Ethernet devices, so this
needs root and iproute2. Both are removed at the end. For example::

    python -m tools.two_hosts -- train Legged/Go2-Flat-v0 --num-envs 64 --iterations 12 --no-video
    python -m tools.two_hosts --cut-after 24 -- train Legged/Go2-Flat-v0 --iterations 4000
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

HOSTS = (1, 2)
"""Numbers of the hosts. Host 1 has the store in which processes find each other."""

NETWORK = "10.77.0"
"""First three numbers of the addresses of the hosts."""

PORT = 29500
"""Port of the store on host 1."""

AFTER_THE_CUT = 90.0
"""Time after a cut within which all processes must have ended, s."""


def main() -> None:
    """Run the command, and print how and when each host ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cut-after", type=float, help="time until the cable is cut, s")
    parser.add_argument("words", nargs="+", help="words after legged-envs")
    options = parser.parse_args()
    with cable():
        hosts = [start(host, options.words) for host in HOSTS]
        begun = time.monotonic()
        limit = None
        if options.cut_after is not None:
            time.sleep(options.cut_after)
            cut()
            begun = time.monotonic()
            limit = AFTER_THE_CUT
        for number, host in zip(HOSTS, hosts, strict=True):
            print(f"host {number}: {ending(host, limit)} after {time.monotonic() - begun:.0f} s")


def ip(*words: str) -> None:
    """Run a command of iproute2."""
    subprocess.run(["ip", *words], check=True)


def cut() -> None:
    """Cut the cable between the hosts."""
    ip("-n", "host2", "link", "set", "cable2", "down")


@contextmanager
def cable() -> Iterator[None]:
    """Make two hosts with a cable between them, and remove them at the end."""
    made = []
    try:
        for host in HOSTS:
            ip("netns", "add", f"host{host}")
            made.append(host)
        ip("link", "add", "cable1", "type", "veth", "peer", "name", "cable2")
        for host in HOSTS:
            name = f"host{host}"
            ip("link", "set", f"cable{host}", "netns", name)
            ip("-n", name, "address", "add", f"{NETWORK}.{host}/24", "dev", f"cable{host}")
            ip("-n", name, "link", "set", f"cable{host}", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        for host in made:
            ip("netns", "delete", f"host{host}")


def start(host: int, words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start torchrun with one process on a host."""
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nnodes", "2")
    meeting = f"{NETWORK}.1:{PORT}"
    command = [
        *("ip", "netns", "exec", f"host{host}"),
        *torchrun,
        *("--rdzv-backend", "c10d", "--rdzv-id", "two-hosts", "--rdzv-endpoint", meeting),
        # The names of both hosts are the name of this machine, so they cannot tell who is meant.
        *("--rdzv-conf", f"is_host={host == 1}", "--local-addr", f"{NETWORK}.{host}"),
        *("-m", "legged_envs", *words),
    ]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": f"cable{host}"}
    return subprocess.Popen(command, env=environment, start_new_session=True)


def ending(process: subprocess.Popen[bytes], limit: float | None) -> str:
    """Return how a process ended. One that hangs is killed, with all that it started."""
    try:
        return f"exit status {process.wait(limit)}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return "killed"


if __name__ == "__main__":
    main()
