"""Results of runs that were not trained, for the tests of files, statistics and pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from legged_envs.envs.cost_suites import SUITE, level_limit, read_suite
from legged_envs.safe_benchmark.results import CostResult, RunResult


def result(
    method: str = "p3o",
    seed: int = 1,
    ratio: float = 0.9,
    error: float = 0.08,
    task: str = "Go2-Flat",
    level: str = "medium",
    **entries: Any,
) -> RunResult:
    """A result whose energy has J/d = ``ratio``, and all other costs half of that."""
    costs = {}
    for name, cost in read_suite(SUITE)["tasks"][f"Legged/{task}-v0"]["costs"].items():
        limit = level_limit(cost, level)
        share = ratio if name == "energy" else 0.5 * ratio
        costs[name] = CostResult(
            mean=share * limit,
            limit=limit,
            ratio=share,
            exceeded=0.1 * share,
            cvar=2 * share * limit,
        )
    values: dict[str, Any] = {
        "suite": SUITE,
        "task": task,
        "level": level,
        "method": method,
        "seed": seed,
        "source": method,
        "command": f"legged-envs train Legged/{task}-v0",
        "package_version": "0.1.0",
        "hardware": "CPU, 2 cores, 8 GiB",
        "env_steps": 4_976_640,
        "steps_per_second": 10_000.0,
        "violating_updates": 0.5,
        "episodes": 1024,
        "episode_seconds": 10.0,
        "evaluation_seed": 91_001,
        "lin_vel_error": error,
        "ang_vel_error": 2.0 * error,
        "distance": 5.5,
        "commanded_distance": 6.0,
        "falls": 0.01,
        "crossed": None,
        "costs": costs,
        "episode_return": 100.0 * error,
    }
    return RunResult(**{**values, **entries})


def seeds_of(method: str, ratios: Sequence[float], errors: Sequence[float]) -> list[RunResult]:
    """Results of the seeds 1, 2, … of a method."""
    pairs = enumerate(zip(ratios, errors, strict=True), start=1)
    return [result(method, seed, ratio, error) for seed, (ratio, error) in pairs]
