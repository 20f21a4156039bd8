"""How a training of one policy scales with the number of processes: measured, and predicted.

    python -m benchmarks.scaling traffic
    python -m benchmarks.scaling measure --processes 1 2 4 --json scaling.json
    python -m benchmarks.scaling predict scaling.json

``traffic`` counts what the processes send in an update. ``measure`` trains with ``torchrun``.
``predict`` fits :class:`Model` to these measurements, and prints what it gives for more cores.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from benchmarks.machine import machine
from legged_envs.runs.run_folder import CURVE
from legged_envs.training import processes
from legged_envs.training.learner_options import OnPolicyCfg
from legged_envs.training.mimic_options import MimicPPOCfg
from legged_envs.training.options import AlgorithmCfg, PPOCfg, TrainCfg
from legged_envs.training.prepare import agreed, prepare
from legged_envs.training.scheme_options import CTSCfg, DreamWaQCfg, EECfg, HIMCfg, LSTMCfg, TSCfg
from legged_envs.training.trainer import Trainer

TASK = "Legged/Go2-Flat-v0"
"""Task whose training is measured."""

NETWORKS: dict[str, tuple[str, AlgorithmCfg]] = {
    "Go2-Flat ppo": (TASK, PPOCfg()),
    "Go2-Rough ppo": ("Legged/Go2-Rough-v0", PPOCfg()),
    "G1-Flat ppo": ("Legged/G1-Flat-v0", PPOCfg()),
    "Go2-Blind ppo": ("Legged/Go2-Blind-v0", PPOCfg()),
    "Go2-Blind ee": ("Legged/Go2-Blind-v0", EECfg()),
    "Go2-Blind dreamwaq": ("Legged/Go2-Blind-v0", DreamWaQCfg()),
    "Go2-Blind him": ("Legged/Go2-Blind-v0", HIMCfg()),
    "Go2-Blind ts": ("Legged/Go2-Blind-v0", TSCfg()),
    "Go2-Blind cts": ("Legged/Go2-Blind-v0", CTSCfg()),
    "Go2-Blind lstm": ("Legged/Go2-Blind-v0", LSTMCfg()),
    "Go2-Mimic mmppo": ("Legged/Go2-Mimic-v0", MimicPPOCfg()),
}
"""Task and algorithm of each row of ``traffic``."""

GIGABIT = 125e6
"""Bytes that a link of 1 Gbit/s carries in a second."""

SUMS = ("total", "average", "average_numbers", "average_gradients")
"""Functions of :mod:`legged_envs.training.processes` that send a message each."""

OF_THE_LOOP = 2
"""Number of messages of the trainer's loop: the time, and whether to stop."""

WARM_UP = 3
"""Number of first updates of a run that are not counted."""

NOISE_ROWS = 100_000
"""Number of robots for which the time of drawing the noise of actions is measured."""

# --- what an update sends -------------------------------------------------------------------------


@dataclass
class Traffic:
    """What each process of a training sends in an update, before the ring multiplies it."""

    parameters: int
    """Number of parameters with a gradient."""
    messages: int
    """Number of sums over all processes."""
    size: int
    """Number of bytes of these sums."""


@contextmanager
def counting_sums() -> Iterator[tuple[list[int], list[int]]]:
    """Count the sums over processes within the ``with`` block, in a training of one process.

    Yields:
        Lists that get the number of bytes of each sum: of gradients, and of everything else.
    """
    gradients: list[int] = []
    others: list[int] = []
    originals = {name: getattr(processes, name) for name in SUMS}

    def average_gradients(optimizer: torch.optim.Optimizer) -> None:
        found = []
        for group in optimizer.param_groups:
            found += [each.grad for each in group["params"] if each.grad is not None]
        gradients.append(sum(gradient.nbytes for gradient in found))

    def counted(name: str) -> Callable[[Any], Any]:
        def call(values: Any) -> Any:
            is_tensor = isinstance(values, torch.Tensor)
            others.append(values.nbytes if is_tensor else torch.float64.itemsize)
            return originals[name](values)

        return call

    for name in SUMS:
        setattr(processes, name, counted(name))
    processes.average_gradients = average_gradients
    try:
        yield gradients, others
    finally:
        for name, original in originals.items():
            setattr(processes, name, original)


def traffic_of(task_id: str, algo: AlgorithmCfg) -> Traffic:
    """Return what an update of a training sends, counted in an update of eight robots."""
    with tempfile.TemporaryDirectory() as folder:
        cfg = TrainCfg(
            task_id,
            num_envs=8,
            iterations=2,
            run_dir=Path(folder, "run"),
            algo=algo,
            video=False,
            threads=1,
        )
        trainer = Trainer(agreed(prepare(cfg)), Console(quiet=True))
        with counting_sums() as (gradients, others):
            trainer.iterate()
        trainer.env.env.close()
    parameters = sum(set(gradients)) // torch.float32.itemsize
    sizes = gradients + others
    return Traffic(parameters, len(sizes) + OF_THE_LOOP, sum(sizes))


def ring_seconds(traffic: Traffic, count: int, latency: float, bandwidth: float) -> float:
    """Return the time that the sums of an update take.

    Gloo sums in a ring: in 2 (k − 1) rounds, each process sends 2 (k − 1) / k of the bytes.

    Args:
        traffic: What an update sends.
        count: Number of processes.
        latency: Time of a round without bytes, s.
        bandwidth: Bytes per second between two neighbours.
    """
    rounds = 2 * (count - 1)
    return traffic.messages * rounds * latency + traffic.size * rounds / count / bandwidth


def print_traffic() -> None:
    """Print a table of the networks: parameters, messages, bytes, and time on two links."""
    print("| training | parameters | sums per update | MB per update | 1 Gbit/s | 10 Gbit/s |")
    print("|---|---|---|---|---|---|")
    for name, (task_id, algo) in NETWORKS.items():
        found = traffic_of(task_id, algo)
        slow = 1e3 * ring_seconds(found, 2, 0.0, GIGABIT)
        megabytes = f"{found.size / 1e6:.1f}"
        cells = [name, f"{found.parameters:,}", str(found.messages), megabytes]
        cells += [f"{slow:.0f} ms", f"{0.1 * slow:.0f} ms"]
        print(f"| {' | '.join(cells)} |", flush=True)


# --- measurements ---------------------------------------------------------------------------------


@dataclass
class Measurement:
    """Times of the updates of a training."""

    processes: int
    """Number of processes, each with one thread."""
    robots: int
    """Number of robots of all processes."""
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
        robots: Number of robots of all processes.
        updates: Number of counted updates.
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


def measure_all(options: argparse.Namespace) -> None:
    """Measure all numbers of processes and robots, print a table and write a file."""
    steps = PPOCfg().steps_per_env
    # Without processes, robots are varied as well: that separates fixed times from those of robots.
    cases = [(1, robots) for robots in sorted({96, 384, options.num_envs})]
    cases += [(count, options.num_envs) for count in options.processes if count > 1]
    print(machine())
    print("| processes | robots | rollout, s | learning, s | steps/s |")
    print("|---|---|---|---|---|")
    found = []
    for count, robots in cases:
        row = measure(count, robots, options.updates)
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
    options.json.write_text(json.dumps(contents, indent=1))


# --- the model ------------------------------------------------------------------------------------


@dataclass
class Model:
    """Time of an update of k processes with n robots each, on a core each.

    rollout   T · (step + robot · n + noise · n · (k − 1))
    waiting   spread · √(2 ln k) · rollout, for the slowest of k processes
    learning  S · fixed + E · sample · n · T, and the sums of :func:`ring_seconds`

    with T control steps, E passes over a rollout and S steps of the optimiser.
    """

    step: float
    """Time of a control step without robots, s."""
    robot: float
    """Time that each robot adds to a control step, s."""
    fixed: float
    """Time of a step of the optimiser without samples, s."""
    sample: float
    """Time that each sample adds to a pass over the rollout, s."""
    noise: float
    """Time of drawing the noise of a robot of another process, s."""
    spread: float
    """Standard deviation of the time of a rollout, as a fraction of it."""
    traffic: Traffic
    """What an update sends."""
    latency: float = 50e-6
    """Time of a round of a sum, s."""
    bandwidth: float = GIGABIT
    """Bytes per second between two neighbours in the ring."""

    def seconds(self, count: int, robots: int, algo: OnPolicyCfg) -> dict[str, float]:
        """Return the time of each part of an update.

        Args:
            count: Number of processes.
            robots: Number of robots of each process.
            algo: Options of the algorithm.
        """
        steps = algo.steps_per_env
        rollout = steps * (self.step + self.robot * robots)
        noise = steps * self.noise * robots * (count - 1)
        waiting = self.spread * math.sqrt(2.0 * math.log(count)) * rollout
        optimiser_steps = algo.epochs * algo.mini_batches
        learning = optimiser_steps * self.fixed + algo.epochs * self.sample * robots * steps
        sums = ring_seconds(self.traffic, count, self.latency, self.bandwidth)
        return {
            "rollout": rollout,
            "noise": noise,
            "waiting": waiting,
            "learning": learning,
            "sums": sums,
        }

    def speed(self, count: int, robots: int, algo: OnPolicyCfg) -> float:
        """Return the environment steps per second of all processes."""
        seconds = sum(self.seconds(count, robots, algo).values())
        return count * robots * algo.steps_per_env / seconds


PARTS = ("rollout", "noise", "waiting", "learning", "sums")
"""Parts of an update, as :meth:`Model.seconds` names them."""


def fit(contents: dict[str, Any], algo: OnPolicyCfg) -> Model:
    """Fit the model to measurements, by least squares of relative errors.

    What processes send to each other is left out of the fit: on one machine it takes milliseconds.
    So are measurements of more processes than cores, which take turns.

    Args:
        contents: What ``measure`` wrote.
        algo: Options of the algorithm that was measured.

    Raises:
        ValueError: If all measurements have as many robots in a process.
    """
    rows = [Measurement(**row) for row in contents["measurements"]]
    rows = [row for row in rows if row.processes <= contents["machine"]["cores"]]
    robots = [row.robots // row.processes for row in rows]
    if len(set(robots)) < 2:
        raise ValueError(
            "the model needs measurements with two numbers of robots in a process, "
            f"got {robots}: run measure with other --num-envs"
        )
    steps = algo.steps_per_env
    step, robot = _line(robots, [row.rollout / steps for row in rows])
    optimiser_steps = algo.epochs * algo.mini_batches
    fixed, batch = _line(robots, [row.update / optimiser_steps for row in rows])
    return Model(
        step=step,
        robot=robot,
        fixed=fixed,
        sample=batch * algo.mini_batches / steps,
        noise=contents["noise"],
        spread=contents["spread"],
        traffic=Traffic(**contents["traffic"]),
    )


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Return offset and slope of a line, both at least 0, fitted with relative errors."""
    values = np.asarray(y)
    columns = np.stack((np.ones(len(x)), np.asarray(x, float)), axis=1)
    offset, slope = np.linalg.lstsq(columns / values[:, None], np.ones(len(x)), rcond=None)[0]
    return max(float(offset), 0.0), max(float(slope), 0.0)


def print_predictions(options: argparse.Namespace) -> None:
    """Print the model against what was measured, and its predictions for more cores."""
    algo = PPOCfg()
    contents = json.loads(options.file.read_text())
    model = replace(fit(contents, algo), latency=options.latency, bandwidth=options.bandwidth)
    print(
        f"step {1e3 * model.step:.2f} ms + {1e6 * model.robot:.1f} us a robot; step of the "
        f"optimiser {1e3 * model.fixed:.2f} ms + {1e6 * model.sample:.2f} us a sample and pass; "
        f"spread {model.spread:.1%}"
    )
    print("| processes | robots | measured steps/s | model |")
    print("|---|---|---|---|")
    for entry in contents["measurements"]:
        row = Measurement(**entry)
        speed = model.speed(row.processes, row.robots // row.processes, algo)
        measured = row.steps_per_second(algo.steps_per_env)
        print(f"| {row.processes} | {row.robots} | {measured:,.0f} | {speed:,.0f} |")
    columns = ["processes", "robots each", "steps/s", "per core", "efficiency", *PARTS]
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    for robots in options.robots_each:
        alone = model.speed(1, robots, algo)
        for count in options.processes:
            seconds = model.seconds(count, robots, algo)
            speed = model.speed(count, robots, algo)
            whole = sum(seconds.values())
            shares = [f"{seconds[part] / whole:.0%}" for part in PARTS]
            cells = [str(count), str(robots), f"{speed:,.0f}", f"{speed / count:,.0f}"]
            cells += [f"{speed / count / alone:.0%}", *shares]
            print(f"| {' | '.join(cells)} |")


def main(words: Sequence[str] | None = None) -> None:
    """Run a subcommand."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("traffic", help="what an update sends, by training")
    measuring = commands.add_parser("measure", help="train with several processes")
    measuring.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    measuring.add_argument("--num-envs", type=int, default=768)
    measuring.add_argument("--updates", type=int, default=12)
    measuring.add_argument("--json", type=Path, required=True)
    predicting = commands.add_parser("predict", help="fit the model, and predict")
    predicting.add_argument("file", type=Path)
    predicting.add_argument("--processes", type=int, nargs="+", default=[1, 8, 64, 512])
    predicting.add_argument("--robots-each", type=int, nargs="+", default=[96, 384])
    predicting.add_argument("--latency", type=float, default=50e-6, help="of a round, s")
    predicting.add_argument("--bandwidth", type=float, default=GIGABIT, help="bytes/s")
    options = parser.parse_args(words)
    if options.command == "measure":
        measure_all(options)
    elif options.command == "predict":
        print_predictions(options)
    else:
        print_traffic()


if __name__ == "__main__":
    main()
