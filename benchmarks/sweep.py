"""How much of a machine's cores a sweep uses.

    python -m benchmarks.sweep

Trains some runs one after the other, each pinned to one core, and the same runs as a sweep on all
cores. A sweep that wasted nothing would take the sum of the single times divided by the number of
cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
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
    seeds = [str(seed) for seed in range(1, options.runs + 1)]
    cores = sorted(os.sched_getaffinity(0))
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    with tempfile.TemporaryDirectory() as folder:
        single = 0.0
        for seed in seeds:
            run_dir = str(Path(folder, f"seed_{seed}"))
            words = ["train", *shared, "--seed", seed, "--threads=1", "--run-dir", run_dir]
            seconds = measure(words, cores[:1])
            print(f"seed {seed} on one core: {seconds:.1f} s", flush=True)
            single += seconds
        words = ["sweep", *shared, "--sweep-dir", str(Path(folder, "sweep")), "--seeds", *seeds]
        seconds = measure(words, cores)
    ideal = single / len(cores)
    print(f"sweep on {len(cores)} cores: {seconds:.1f} s")
    print(f"sum of the single times / cores: {ideal:.1f} s")
    print(f"ratio: {seconds / ideal:.3f}")


def measure(words: list[str], cores: list[int]) -> float:
    """Return the wall-clock time of a command of this package on some cores, s."""
    command = ["taskset", "--cpu-list", ",".join(map(str, cores)), sys.executable]
    begun = time.perf_counter()
    subprocess.run([*command, "-m", "legged_envs", *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
