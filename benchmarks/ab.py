"""Compares the speed and the memory of two checkouts of the package in one run.

Each checkout is imported by a process of its own. The processes take turns, one works while the other waits, and what
is reported are medians over the rounds and medians of the ratios within a round: a machine that is slow for a while
slows both. Both see the same seeds and actions, so the table also says whether their observations are the same::

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
IDS = ("Legged/Go2-Flat-v0", "Legged/G1-Flat-v0", "Legged/Go2-Mimic-v0")
"""What is made in turn to see whether memory grows."""
START = """
import time; begun = time.perf_counter()
import legged_envs; imported = time.perf_counter()
import gymnasium; gymnasium.make_vec({!r}, num_envs=64).reset(); print(imported - begun, time.perf_counter() - begun)
"""
"""Runs in a fresh interpreter: seconds until the package is imported, and until 64 environments are reset."""


class Tree:
    """A checkout, and the process that measures it."""

    def __init__(self, path: Path):
        self.path = path.resolve()
        if not (self.path / "legged_envs" / "__init__.py").is_file():
            raise ValueError(f"expected a checkout with the folder legged_envs, got {str(path)!r}")
        self.env = {**os.environ, "PYTHONPATH": str(self.path), "GOMP_SPINCOUNT": "20000"}
        self.start()

    def start(self) -> None:
        """Begin with a fresh process."""
        pipe = subprocess.PIPE
        command = [sys.executable, "-P", str(WORKER), str(self.path)]
        self.process = subprocess.Popen(command, env=self.env, stdin=pipe, stdout=pipe, text=True)

    def stop(self) -> None:
        """End the process."""
        self.process.communicate()

    def call(self, name: str, *arguments: Any) -> Any:
        """What a method of the worker returns."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps([name, arguments]), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(
                f"the worker of {self.path} ended in {name}{arguments}: its error is above"
            )
        return json.loads(answer)

    def start_ms(self, task_id: str) -> dict[str, float]:
        """Milliseconds of the import and of 64 environments with it, in a fresh interpreter."""
        command = [sys.executable, "-P", "-c", START.format(task_id)]
        printed = subprocess.check_output(command, env=self.env, text=True)
        imported, made = map(float, printed.split()[-2:])
        return {
            "import legged_envs, ms": 1e3 * imported,
            "import, make_vec and reset, ms": 1e3 * made,
        }

    def growth_mb(self, cycles: int) -> float:
        """Growth of the memory of a fresh process that makes, resets, steps and closes environments, MB."""
        self.start()
        grown = self.call("growth", IDS, cycles, 20)
        self.stop()
        return grown


def measure(
    before: Path,
    after: Path = Path("."),
    rounds: int = 7,
    task_id: str = IDS[0],
    sizes: tuple[int, ...] = (1, 64, 512, 4096),
    cycles: int = 500,
    json_path: Path | None = None,
) -> None:
    """Measure, print and, if asked, write the figures of every round.

    Args:
        before: The checkout to compare with.
        after: The checkout that is compared.
        rounds: Rounds; one more of each warms up.
        task_id: Whose step is timed.
        sizes: Numbers of environments.
        cycles: Environments that are made and closed to see whether memory grows; 0 leaves that out.
        json_path: Where to write the figures of every round, by quantity and checkout.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be positive, got {rounds}")
    trees = (Tree(before), Tree(after))
    figures: dict[str, tuple[list[float], list[float]]] = {}
    for size, wrapped in [*((size, False) for size in sizes), (64, True)]:
        for tree in trees:
            tree.call("open", task_id, size, wrapped)
        name = f"{size} envs{' in 7 wrappers' if wrapped else ''}: "
        figures |= _take_turns(trees, name, rounds, lambda tree: tree.call("round"))
        for tree in trees:
            tree.call("close")
    figures |= _take_turns(
        trees, "", rounds, lambda tree: tree.start_ms(task_id) | tree.call("make", task_id)
    )
    for tree in trees:
        tree.stop()
    if cycles:
        growth = [tree.growth_mb(cycles) for tree in trees]
        figures[f"growth of memory in {cycles} cycles, MB"] = [growth[0]], [growth[1]]
    _print(f"{task_id}, medians of {rounds} rounds", figures)
    if json_path is not None:
        named = {
            name: {"before": values[0], "after": values[1]} for name, values in figures.items()
        }
        json_path.write_text(json.dumps(named, indent=1) + "\n")


def _take_turns(
    trees: tuple[Tree, Tree], name: str, rounds: int, run: Callable[[Tree], dict[str, float]]
) -> dict[str, tuple[list[float], list[float]]]:
    """What ``run`` measures of the two checkouts in alternating rounds, after one that warms up."""
    figures: dict[str, tuple[list[float], list[float]]] = {}
    for i in track(range(rounds + 1), name or "start", transient=True):
        for side, tree in enumerate(trees):
            for quantity, value in run(tree).items():
                values = figures.setdefault(name + quantity, ([], []))[side]
                values += [value] if i else []
    return figures


def _print(title: str, figures: dict[str, tuple[list[float], list[float]]]) -> None:
    table = Table("", "before", "after", "after / before", title=title)
    for name, (before, after) in figures.items():
        medians = [f"{statistics.median(values):.4g}" for values in (before, after)]
        if name.endswith("sum of observations"):
            verdict = "same" if before == after else "different"
        else:
            verdict = f"{statistics.median(b / a if a else math.nan for a, b in zip(before, after, strict=True)):.3f}"
        table.add_row(name, *medians, verdict)
    Console().print(table)


if __name__ == "__main__":
    tyro.cli(measure)
