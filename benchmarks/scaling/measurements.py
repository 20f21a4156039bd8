"""Times of the updates of trainings with several processes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import machine
from benchmarks.scaling.traffic import traffic_of
from legged_envs.runs.run_folder import CURVE
from legged_envs.training.options import PPOCfg

TASK = "Legged/Go2-Flat-v0"
"""Task whose training is measured."""

WARM_UP = 3
"""Number of first updates of a run that are not counted."""

NOISE_ROWS = 100_000
"""Number of robots for which the time of drawing the noise of actions is measured."""


@dataclass
class Measurement:
    """Times of the updates of a training."""

    processes: int
    """Number of processes, each with one thread."""
    robots: int
    """Number of robots in total."""
    rollout: float
    """Median time of a rollout, s."""
    update: float
    """Median time of learning from a rollout, s."""
    spread: float
    """Standard deviation of the times of rollouts, as a fraction of their mean."""

    def steps_per_second(self, steps: int) -> float:
        """Return the environment steps per second, with ``steps`` of each robot in a rollout."""
        return self.robots * steps / (self.rollout + self.update)


def measure(count: int, robots: int, updates: int) -> Measurement:
    """Train with a number of processes, and return the times of the updates.

    The training has no coarse physics, so that all updates are alike.

    Args:
        count: Number of processes, each with one thread.
        robots: Number of robots in total.
        updates: Number of timed updates.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(count), "-m", "legged_envs", "train", TASK]
        command += ["--num-envs", str(robots), "--iterations", str(updates + WARM_UP)]
        command += ["--threads", "1", "--episodes", "2", "--no-video", "--run-dir", str(run)]
        command += ["--coarse", "0"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        rows = [json.loads(line) for line in (run / CURVE).read_text().splitlines()]
    samples = rows[0]["env_steps"]
    counted = rows[WARM_UP:]
    rollouts = [samples / row["rollout_steps_per_second"] for row in counted]
    learning = [samples / row["update_steps_per_second"] for row in counted]
    return Measurement(
        processes=count,
        robots=robots,
        rollout=statistics.median(rollouts),
        update=statistics.median(learning),
        spread=statistics.pstdev(rollouts) / statistics.fmean(rollouts),
    )


def noise_seconds() -> float:
    """Return the time that drawing the noise of a robot's actions takes, s."""
    torch.set_num_threads(1)
    times = []
    for _ in range(9):
        begun = time.perf_counter()
        torch.empty(NOISE_ROWS, 12).normal_()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) / NOISE_ROWS


def measure_all(processes: Sequence[int], num_envs: int, updates: int, json_file: Path) -> None:
    """Measure several processes with one number of robots, and one process with several numbers;
    print a table and write a file.

    Args:
        processes: Numbers of processes.
        num_envs: Number of robots in total.
        updates: Number of timed updates of each training.
        json_file: File to write.
    """
    steps = PPOCfg().steps_per_env
    # One process trains several numbers of robots: the model tells fixed
    # times from times per robot by that.
    cases = [(1, robots) for robots in sorted({96, 384, num_envs})]
    cases += [(count, num_envs) for count in processes if count > 1]
    print(machine())
    print("| processes | robots | rollout, s | learning, s | steps/s |")
    print("|---|---|---|---|---|")
    found = []
    for count, robots in cases:
        row = measure(count, robots, updates)
        speed = row.steps_per_second(steps)
        print(f"| {count} | {robots} | {row.rollout:.3f} | {row.update:.3f} | {speed:,.0f} |")
        found.append(row)
    contents: dict[str, Any] = {
        "machine": machine(),
        "noise": noise_seconds(),
        "spread": statistics.median(row.spread for row in found),
        "traffic": asdict(traffic_of(TASK, PPOCfg())),
        "measurements": [asdict(row) for row in found],
    }
    json_file.write_text(json.dumps(contents, indent=1))
