"""Measures the cost of rough ground: a step relative to a step on a plane, a height scan, the
field, and memory.

Environments with the same number of robots step in alternating order in one process. The figures
are medians of the ratios within a round::

    python -m benchmarks.terrain
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import torch
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.machine import machine
from benchmarks.ratios import median_ratio, rotated
from legged_envs.mdp import observations
from legged_envs.terrains import TerrainCfg, make_terrain

FLAT = "Legged/Go2-Flat-v0"
"""Task on a plane, with which the others are compared."""
ROUGH = "Legged/Go2-Rough-v0"
"""Task on rough ground, with a height scan."""
BLIND = "Legged/Go2-Blind-v0"
"""Task on rough ground, without a scan."""
IDS = [FLAT, ROUGH, BLIND]
"""Ids of the tasks."""
LOOKUPS = ("lowest", "bilinear")
"""Ways to look up heights."""
STEPS = 10
"""Control steps of a round."""
WARM_UP_STEPS = 30
"""Control steps before the first round. Robots walk about: where they start contacts are few."""
MEMORY_ENVS = 4096
"""Robots that are made to see how much memory they take."""
NUM_ACTIONS = 12
"""Size of an action."""


def _mean_seconds(work: Callable[[], object], times: int = STEPS) -> float:
    """Return the mean time of a call, s."""
    begun = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - begun) / times


def _peak_memory() -> float:
    """Return the most memory of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def print_memory() -> None:
    """Make robots on rough ground, and print how much memory that takes."""
    before = _peak_memory()
    env = gym.make_vec(ROUGH, num_envs=MEMORY_ENVS, array="torch")
    env.reset(seed=0)
    env.step(torch.zeros(MEMORY_ENVS, NUM_ACTIONS))
    print(
        f"{MEMORY_ENVS} robots: {_peak_memory():.0f} MB, "
        f"of which {before:.0f} MB before they were made"
    )


def measure_times(num_envs: int, rounds: int) -> dict[str, list[float]]:
    """Time steps of each task, and height scans.

    Args:
        num_envs: Robots of each environment.
        rounds: Rounds.

    Returns:
        Seconds of a step or scan in each round, by name.
    """
    generator = torch.Generator().manual_seed(0)
    envs = {}
    for task_id in IDS:
        env = gym.make_vec(task_id, num_envs=num_envs, array="torch")
        env.reset(seed=0)
        for _ in range(WARM_UP_STEPS):
            env.step(0.5 * torch.randn(num_envs, NUM_ACTIONS, generator=generator))
        envs[task_id] = env
    core: Any = envs[ROUGH].unwrapped
    times: dict[str, list[float]] = {task_id: [] for task_id in IDS}
    for lookup in LOOKUPS:
        times[f"scan, {lookup}"] = []
    actions = 0.5 * torch.randn(rounds, STEPS, num_envs, NUM_ACTIONS, generator=generator)
    for i in range(rounds):
        for task_id in rotated(IDS, i):
            times[task_id].append(_time_steps(envs[task_id], actions[i]))
        for lookup in LOOKUPS:
            times[f"scan, {lookup}"].append(_time_scan(core, lookup))
    return times


def _time_steps(env: gym.vector.VectorEnv, actions: torch.Tensor) -> float:
    """Return the mean time of a step with each of the actions, s."""
    begun = time.perf_counter()
    for action in actions:
        env.step(action)
    return (time.perf_counter() - begun) / len(actions)


def _time_scan(core: Any, lookup: str) -> float:
    """Return the mean time of a height scan, s."""
    return _mean_seconds(lambda: observations.height_scan(core, lookup=lookup))


def main(num_envs: int = 1024, rounds: int = 9, memory: bool = False) -> None:
    """Print the table.

    Args:
        num_envs: Robots of each environment.
        rounds: Rounds; medians are reported.
        memory: Only make 4096 robots on rough ground, and print how much memory that takes.
    """
    torch.set_num_threads(1)
    if memory:
        print_memory()
        return
    field_seconds = []
    for _ in range(3):
        field_seconds.append(_mean_seconds(lambda: make_terrain(TerrainCfg()), times=1))
    times = measure_times(num_envs, rounds)
    title = f"{num_envs} robots, medians of {rounds} rounds"
    table = Table("what", "ms", "of a step on a plane", title=title)
    for name, seconds in times.items():
        milliseconds = 1e3 * statistics.median(seconds)
        ratio = median_ratio(seconds, times[FLAT])
        table.add_row(name, f"{milliseconds:.2f}", f"{ratio:.3f}")
    console = Console()
    console.print(table)
    console.print(f"a field of 10 × 20 tiles of 8 m: {statistics.median(field_seconds):.2f} s")
    facts = [f"{name} {value}" for name, value in machine().items()]
    console.print(", ".join(facts), highlight=False)


if __name__ == "__main__":
    tyro.cli(main)
