"""How much of a machine's cores a sweep uses.

    python -m benchmarks.sweep

Trains some runs one after the other on one core, then as many of them at once as there are cores,
each on a core, and then the same runs as a sweep on all cores. A sweep that wasted nothing would
take the sum of the single times divided by the number of cores. Runs at once say how much of the
rest is the machine's: cores share memory and clock.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import machine


def main() -> None:
    """Measure, and print the ratio of both times."""
    parser = argparse.ArgumentParser(description="Time of a sweep against that of its runs.")
    parser.add_argument("--task", default="Legged/Go2-Flat-v0")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--num-envs", type=int, default=768)
    options = parser.parse_args()
    shared = [
        options.task,
        f"--iterations={options.updates}",
        f"--num-envs={options.num_envs}",
        "--no-video",
    ]
    seeds = range(1, options.runs + 1)
    cores = sorted(os.sched_getaffinity(0))
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        single = []
        for seed in seeds:
            begun = time.perf_counter()
            wait_for([start_run(shared, seed, folder / f"alone_{seed}", cores[0])])
            single.append(time.perf_counter() - begun)
            print(f"seed {seed} on one core: {single[-1]:.1f} s", flush=True)
        begun = time.perf_counter()
        at_once = []
        for seed, core in zip(seeds, cores, strict=False):
            at_once.append(start_run(shared, seed, folder / f"beside_{seed}", core))
        wait_for(at_once)
        beside = time.perf_counter() - begun
        alone = max(single[: len(cores)])
        print(f"{len(cores)} runs at once, a core each: {beside:.1f} s", flush=True)
        begun = time.perf_counter()
        words = ["sweep", *shared, "--sweep-dir", str(folder / "sweep")]
        wait_for([start([*words, "--seeds", *map(str, seeds)], cores)])
        swept = time.perf_counter() - begun
    ideal = sum(single) / len(cores)
    print(f"sweep on {len(cores)} cores: {swept:.1f} s")
    print(f"sum of the single times / cores: {ideal:.1f} s")
    print(f"ratio: {swept / ideal:.3f}; of runs at once to runs alone: {beside / alone:.3f}")


def start_run(shared: Sequence[str], seed: int, folder: Path, core: int) -> subprocess.Popen[bytes]:
    """Start a training with one thread on a core."""
    words = ["train", *shared, "--seed", str(seed), "--threads=1", "--run-dir", str(folder)]
    return start(words, [core])


def start(words: Sequence[str], cores: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start a command of this package on some cores."""
    pinned = ["taskset", "--cpu-list", ",".join(map(str, cores)), sys.executable]
    command = [*pinned, "-m", "legged_envs", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def wait_for(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait until processes have ended.

    Raises:
        subprocess.CalledProcessError: If one of them failed.
    """
    for process in processes:
        status = process.wait()
        if status:
            raise subprocess.CalledProcessError(status, process.args)


if __name__ == "__main__":
    main()
