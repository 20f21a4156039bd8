"""Whether a rollout beside the update of the one before it would shorten trainings.

    python -m benchmarks.overlap bound
    python -m benchmarks.overlap lag --seeds 1 2 3

Today all threads collect a rollout, and then all of them learn from it. ``bound`` measures both
with one thread and with two, alternating, and prints how short an update could become if the two
ran at the same time. ``lag`` measures the price: a rollout that is collected beside an update has
the policy from before that update. It trains with and without this lag until the robot walks, and
prints the number of environment steps. Both need two free cores.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.machine import machine
from legged_envs.runs.run_folder import CURVE
from legged_envs.training.options import TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer

TASK = "Legged/Go2-Flat-v0"
"""Task of the trainings."""

WARM_UP = 3
"""Number of first updates that are not counted."""

LONGEST = 200
"""Largest number of updates of a training of ``lag``."""

STEPS_PER_SECOND = 8000.0
"""Steps per second of the clock by which goals are checked, so that steps decide and not the
machine."""


def phase_times(threads: int, updates: int) -> tuple[float, float]:
    """Train, and return the median times of a rollout and of learning from it, s.

    Args:
        threads: Number of threads, each on a core.
        updates: Number of counted updates.
    """
    cores = sorted(os.sched_getaffinity(0))[:threads]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        command = ["taskset", "--cpu-list", ",".join(map(str, cores)), sys.executable]
        command += ["-m", "legged_envs", "train", TASK, "--threads", str(threads)]
        command += ["--iterations", str(updates + WARM_UP), "--coarse", "0", "--episodes", "2"]
        command += ["--no-video", "--run-dir", str(run)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        rows = [json.loads(line) for line in (run / CURVE).read_text().splitlines()]
    samples = rows[0]["env_steps"]
    rollouts = [samples / row["rollout_steps_per_second"] for row in rows[WARM_UP:]]
    learning = [samples / row["update_steps_per_second"] for row in rows[WARM_UP:]]
    return statistics.median(rollouts), statistics.median(learning)


def print_bound(rounds: int, updates: int) -> None:
    """Measure the phases with one thread and with two, and print what an overlap could gain."""
    times: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    for _ in range(rounds):
        for threads, found in times.items():
            found.append(phase_times(threads, updates))
            rollout, learning = found[-1]
            print(
                f"{threads} threads: rollout {rollout:.3f} s, learning {learning:.3f} s", flush=True
            )
    alone_rollout, alone_learning = _medians(times[1])
    present = sum(_medians(times[2]))
    # Each phase on a core: the longer one decides.
    separate = max(alone_rollout, alone_learning)
    # Both cores busy all the time, which no scheduling can beat.
    shared = (alone_rollout + alone_learning) / 2
    print(f"now, two threads for both phases in turn: {present:.3f} s an update")
    print(f"a core for each phase: {separate:.3f} s, {separate / present - 1.0:+.0%}")
    print(f"both cores always busy: at least {shared:.3f} s, {shared / present - 1.0:+.0%}")


def _medians(times: Sequence[tuple[float, float]]) -> tuple[float, float]:
    rollouts, learning = zip(*times, strict=True)
    return statistics.median(rollouts), statistics.median(learning)


class LaggedUpdate:
    """Update of an algorithm after which the rollout has the policy from before the update.

    The update of one rollout and the collection of the next one then need nothing from each other,
    so both could run at the same time. PPO's ratio corrects for the other policy.

    Args:
        trainer: Trainer whose algorithm has actor and critic.
    """

    def __init__(self, trainer: Trainer):
        algorithm: Any = trainer.algorithm
        self._networks = (algorithm.actor, algorithm.critic)
        self._update = algorithm.update
        self.learner = self._states()
        """States of actor and critic after the last update."""

    def __call__(self) -> dict[str, float]:
        """Learn from the rollout. Returns the losses."""
        self._load(self.learner)
        before = self._states()
        losses: dict[str, float] = self._update()
        self.learner = self._states()
        self._load(before)
        return losses

    def _states(self) -> list[dict[str, Any]]:
        return [copy.deepcopy(network.state_dict()) for network in self._networks]

    def _load(self, states: Sequence[dict[str, Any]]) -> None:
        for network, state in zip(self._networks, states, strict=True):
            network.load_state_dict(state)


def steps_to_walk(seed: int, lagged: bool) -> int | None:
    """Train until the robot walks. Return the number of environment steps, None if it does not.

    Args:
        seed: Seed of the training.
        lagged: True: each rollout has the policy from before the last update.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        cfg = TrainCfg(TASK, seed=seed, iterations=LONGEST, run_dir=run, video=False)
        trainer = Trainer(prepare(cfg), Console(quiet=True))
        if lagged:
            algorithm: Any = trainer.algorithm
            algorithm.update = LaggedUpdate(trainer)
        while trainer.time_to_walk is None and trainer.progress < 1.0:
            trainer.set_schedule()
            row = trainer.iterate()
            trainer.seconds = row["env_steps"] / STEPS_PER_SECOND
            trainer.check_goal(row)
        trainer.env.env.close()
    return int(row["env_steps"]) if trainer.time_to_walk else None


def print_lag(seeds: Sequence[int]) -> None:
    """Print the steps to walk with and without the lag, for each seed."""
    print("| seed | steps to walk | with a policy one update old |")
    print("|---|---|---|")
    for seed in seeds:
        cells = []
        for lagged in (False, True):
            steps = steps_to_walk(seed, lagged)
            cells.append("does not walk" if steps is None else f"{steps / 1e6:.2f} M")
        print(f"| {seed} | {cells[0]} | {cells[1]} |", flush=True)


def main(words: Sequence[str] | None = None) -> None:
    """Run a subcommand."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    bound = commands.add_parser("bound", help="how short an update could become")
    bound.add_argument("--rounds", type=int, default=3)
    bound.add_argument("--updates", type=int, default=12)
    lag = commands.add_parser("lag", help="steps to walk with a policy one update old")
    lag.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args(words)
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    if options.command == "bound":
        print_bound(options.rounds, options.updates)
    else:
        print_lag(options.seeds)


if __name__ == "__main__":
    main()
