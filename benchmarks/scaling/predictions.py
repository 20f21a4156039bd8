"""Tables of the model: against the measurements, and for more cores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.scaling.measurements import Measurement
from benchmarks.scaling.model import PARTS, Model, fit
from legged_envs.training.learner_options import OnPolicyCfg
from legged_envs.training.options import PPOCfg


def print_predictions(
    file: Path,
    processes: Sequence[int],
    robots_each: Sequence[int],
    latency: float,
    bandwidth: float,
) -> None:
    """Fit the model to a file of ``measure``, and print both tables.

    Args:
        file: File of ``measure``.
        processes: Numbers of processes of the predictions.
        robots_each: Numbers of robots of each process.
        latency: Time of a round of a sum, s.
        bandwidth: Bytes per second between two neighbours in the ring.
    """
    algo = PPOCfg()
    contents = json.loads(file.read_text())
    model = replace(fit(contents, algo), latency=latency, bandwidth=bandwidth)
    print(
        f"step {1e3 * model.step:.2f} ms + {1e6 * model.robot:.1f} us a robot; step of the "
        f"optimizer {1e3 * model.fixed:.2f} ms + {1e6 * model.sample:.2f} us a sample and pass; "
        f"spread {model.spread:.1%}"
    )
    _print_fit(model, contents, algo)
    _print_more_cores(model, algo, processes, robots_each)


def _print_fit(model: Model, contents: dict[str, Any], algo: OnPolicyCfg) -> None:
    """Print the measured speeds and those of the model."""
    print("| processes | robots | measured steps/s | model |")
    print("|---|---|---|---|")
    for entry in contents["measurements"]:
        row = Measurement(**entry)
        speed = model.speed(row.processes, row.robots // row.processes, algo)
        measured = row.steps_per_second(algo.steps_per_env)
        print(f"| {row.processes} | {row.robots} | {measured:,.0f} | {speed:,.0f} |")


def _print_more_cores(
    model: Model, algo: OnPolicyCfg, processes: Sequence[int], robots_each: Sequence[int]
) -> None:
    """Print a Markdown table of predicted speeds, one core for each process, and of the share of an
    update's time that each part takes. Efficiency is speed per core relative to one process."""
    columns = ["processes", "robots each", "steps/s", "per core", "efficiency", *PARTS]
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    for robots in robots_each:
        alone = model.speed(1, robots, algo)
        for count in processes:
            seconds = model.seconds(count, robots, algo)
            total = sum(seconds.values())
            shares = [f"{seconds[part] / total:.0%}" for part in PARTS]
            speed = model.speed(count, robots, algo)
            cells = [str(count), str(robots), f"{speed:,.0f}", f"{speed / count:,.0f}"]
            cells += [f"{speed / count / alone:.0%}", *shares]
            print(f"| {' | '.join(cells)} |")
