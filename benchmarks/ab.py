"""Compares the speed and the memory of two checkouts of the package in one run.

Each checkout is imported by a separate process. The processes take turns: one works while the other
waits. The figures are medians over the rounds and medians of the ratios within a round, so a
machine that is slow for a while slows both. Both see the same seeds and actions, so the table also
shows whether their observations are the same::

    python -m benchmarks.ab --before ../before --rounds 7
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

WORKER = Path(__file__).with_name("ab_worker.py")
"""Script of the process that measures a checkout."""
IDS = ("Legged/Go2-Flat-v0", "Legged/G1-Flat-v0", "Legged/Go2-Mimic-v0")
"""Ids that are made in turn to see whether memory grows."""
START = """
import time; begun = time.perf_counter()
import legged_envs; imported = time.perf_counter()
import gymnasium
gymnasium.make_vec({!r}, num_envs=64).reset()
print(imported - begun, time.perf_counter() - begun)
"""
"""Program that prints the seconds until the package is imported and until 64 robots are reset."""
ROUND_STEPS = 12_000
"""Environment steps in a round."""
SUM_OF_OBSERVATIONS = "sum of observations"
"""Figure that is equal in checkouts with the same results."""

Figures = dict[str, tuple[list[float], list[float]]]
"""Times of every round, by quantity: of the earlier checkout, and of the later checkout."""


class Tree:
    """A checkout, and the process that measures it.

    Args:
        path: Folder of the checkout.

    Raises:
        ValueError: If there is no package in the folder.
    """

    def __init__(self, path: Path):
        self.path = path.resolve()
        """Folder of the checkout."""
        if not (self.path / "legged_envs" / "__init__.py").is_file():
            raise ValueError(f"expected a checkout with the folder legged_envs, got {str(path)!r}")
        # OpenMP's threads of one process must not spin while the other one works.
        self.env = {**os.environ, "PYTHONPATH": str(self.path), "GOMP_SPINCOUNT": "20000"}
        """Environment variables of its processes."""
        self.start()

    def start(self) -> None:
        """Begin with a fresh process."""
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(WORKER), str(self.path)],
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def stop(self) -> None:
        """End the process."""
        self.process.communicate()

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the worker.

        Args:
            name: Name of the method.
            arguments: Its arguments, as JSON can hold them.

        Returns:
            What the method returned.

        Raises:
            RuntimeError: If the process has ended.
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps([name, arguments]), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(
                f"the worker of {self.path} ended in {name}{arguments}: its error is above"
            )
        return json.loads(answer)

    def start_ms(self, task_id: str) -> dict[str, float]:
        """Return the milliseconds of the import and of 64 robots, in a fresh interpreter."""
        command = [sys.executable, "-P", "-c", START.format(task_id)]
        printed = subprocess.check_output(command, env=self.env, text=True)
        # Anything that a library prints comes before the two numbers.
        imported, made = printed.split()[-2:]
        return {
            "import legged_envs, ms": 1e3 * float(imported),
            "import, make_vec and reset, ms": 1e3 * float(made),
        }

    def growth_mb(self, cycles: int) -> float:
        """Return by how much the memory of a fresh process grows, MB.

        Args:
            cycles: Environments that are made, reset, stepped and closed.
        """
        self.start()
        growth: float = self.call("growth", IDS, cycles, 20)
        self.stop()
        return growth


def measure(
    before: Path,
    after: Path = Path("."),
    rounds: int = 7,
    task_id: str = IDS[0],
    sizes: tuple[int, ...] = (1, 64, 512, 4096),
    cycles: int = 500,
    start: bool = True,
    round_steps: int = ROUND_STEPS,
    json_path: Path | None = None,
) -> None:
    """Measure, print and, if asked, write the figures of every round.

    Args:
        before: The checkout to compare with.
        after: The checkout that is compared.
        rounds: Rounds; one more of each warms up.
        task_id: Id of the task with the steps that are timed.
        sizes: Numbers of environments.
        cycles: Environments that are made and closed to see whether memory grows; 0 for none.
        start: Measure also the import and the making of environments, in fresh interpreters.
        round_steps: Environment steps in a round; fewer are faster and noisier.
        json_path: Where to write the figures of every round, by quantity and checkout.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be positive, got {rounds}")
    if round_steps < 1:
        raise ValueError(f"round_steps must be positive, got {round_steps}")
    trees = (Tree(before), Tree(after))
    figures: Figures = {}
    for size in sizes:
        figures.update(measure_steps(trees, task_id, size, False, rounds, round_steps))
    figures.update(measure_steps(trees, task_id, 64, True, rounds, round_steps))
    if start:
        figures.update(measure_start(trees, task_id, rounds))
    for tree in trees:
        tree.stop()
    if cycles:
        old_growth = trees[0].growth_mb(cycles)
        new_growth = trees[1].growth_mb(cycles)
        figures[f"growth of memory in {cycles} cycles, MB"] = ([old_growth], [new_growth])
    print_figures(f"{task_id}, medians of {rounds} rounds", figures)
    if json_path is not None:
        named = {}
        for name, (old, new) in figures.items():
            named[name] = {"before": old, "after": new}
        json_path.write_text(json.dumps(named, indent=1) + "\n")


def measure_steps(
    trees: tuple[Tree, Tree],
    task_id: str,
    num_envs: int,
    wrapped: bool,
    rounds: int,
    round_steps: int,
) -> Figures:
    """Measure steps of one number of environments, with four more wrappers if ``wrapped``."""
    for tree in trees:
        tree.call("open", task_id, num_envs, wrapped, round_steps)
    label = f"{num_envs} envs: "
    if wrapped:
        label = f"{num_envs} envs in 7 wrappers: "
    figures = take_turns(trees, label, rounds, lambda tree: tree.call("round"))
    for tree in trees:
        tree.call("close")
    return figures


def measure_start(trees: tuple[Tree, Tree], task_id: str, rounds: int) -> Figures:
    """Measure the import and the making of environments."""

    def run(tree: Tree) -> dict[str, float]:
        figures = tree.start_ms(task_id)
        figures.update(tree.call("make", task_id))
        return figures

    return take_turns(trees, "", rounds, run)


def take_turns(
    trees: tuple[Tree, Tree], label: str, rounds: int, run: Callable[[Tree], dict[str, float]]
) -> Figures:
    """Measure two checkouts in alternating rounds, after a round for warming up.

    Args:
        trees: The checkouts.
        label: First part of the names of the quantities.
        rounds: Rounds that count.
        run: Measures a checkout.
    """
    figures: Figures = {}
    for i in track(range(rounds + 1), label or "start", transient=True):
        for side, tree in enumerate(trees):
            for quantity, value in run(tree).items():
                values = figures.setdefault(label + quantity, ([], []))
                if i > 0:
                    values[side].append(value)
    return figures


def print_figures(title: str, figures: Figures) -> None:
    """Print the medians of all figures and of their ratios."""
    table = Table("", "before", "after", "after / before", title=title)
    for name, (before, after) in figures.items():
        old = f"{statistics.median(before):.4g}"
        new = f"{statistics.median(after):.4g}"
        if name.endswith(SUM_OF_OBSERVATIONS):
            verdict = "same" if before == after else "different"
        else:
            verdict = f"{_median_ratio(before, after):.3f}"
        table.add_row(name, old, new, verdict)
    Console().print(table)


def _median_ratio(before: list[float], after: list[float]) -> float:
    """Return the median of after / before within a round; NaN where before is 0."""
    ratios = []
    for old, new in zip(before, after, strict=True):
        ratios.append(new / old if old else math.nan)
    return statistics.median(ratios)


if __name__ == "__main__":
    tyro.cli(measure)
