"""One run of the benchmark: a task at a level, a method and a seed."""

import re
from dataclasses import dataclass
from pathlib import Path

from legged_envs.envs.cost_suites import SUITE, level_name

BASELINE = "none"
"""Name of the unconstrained method, which all others are compared with."""

NAME = re.compile(r"([A-Za-z0-9-]+)_([a-z]+|[0-9.]+)_([a-z0-9_]+(?:,[A-Za-z0-9_.+=-]+)*)_(\d+)")
"""Form of the name of a run: task, level, method with its options, and seed."""


@dataclass(frozen=True, kw_only=True)
class RunIdentity:
    """What distinguishes a run of the benchmark from the others of a suite."""

    task: str
    """Task without Legged/ and version, such as Go2-Flat."""
    level: str
    """Level of the limits: loose, medium, tight, or a factor such as 2.5."""
    method: str
    """Name of the method, with options that differ from their defaults."""
    seed: int
    """Seed of the training."""

    @property
    def name(self) -> str:
        """Name of the run and of its folder, such as Go2-Flat_medium_p3o_1."""
        return f"{self.task}_{self.level}_{self.method}_{self.seed}"

    @property
    def task_id(self) -> str:
        """Registered id of the task."""
        return f"Legged/{self.task}-v0"


@dataclass(frozen=True, kw_only=True)
class BenchmarkRun(RunIdentity):
    """One run of the benchmark, which a method trains."""

    folder: Path
    """Run folder that the training writes to."""
    suite: str = SUITE
    """Name and version of the suite of costs and limits."""
    iterations: int | None = None
    """Number of updates of the training. None: the task's."""
    num_envs: int = 768
    """Number of robots of the training."""
    threads: int = 0
    """Number of threads of the training. 0: one per core."""

    @property
    def costs(self) -> str:
        """Name of the costs and limits, such as SafeLegged-v1/Go2-Flat/medium."""
        return f"{self.suite}/{self.task}/{self.level}"


def run_in(folder: Path, suite: str = SUITE) -> BenchmarkRun:
    """Return the run that the name of a run folder stands for.

    Args:
        folder: Run folder.
        suite: Name and version of the suite.

    Raises:
        ValueError: If the name has not the form ``Task_level_method_seed``.
    """
    found = NAME.fullmatch(folder.name)
    if found is None:
        raise ValueError(
            f"the name of the run folder {str(folder)!r} must be Task_level_method_seed, such as "
            "Go2-Flat_medium_p3o_1: rename it or move it away"
        )
    task, level, method, seed = found.groups()
    usual = level_name(level, repr(str(folder)))
    if usual != level:
        raise ValueError(
            f"the level {level} of the run folder {str(folder)!r} is {usual}: rename it"
        )
    return BenchmarkRun(
        task=task, level=level, method=method, seed=int(seed), folder=folder, suite=suite
    )
