"""What rough ground costs: a step on it beside one on a plane, a scan of heights, making the field, and memory.

Environments with the same number of robots step in alternating order in one process; reported are medians of the ratios
within a round::

    python -m benchmarks.terrain
"""

from __future__ import annotations

import resource
import statistics
import time
from typing import Any

import gymnasium as gym
import torch
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.throughput import machine
from legged_envs.mdp import observations
from legged_envs.terrains import TerrainCfg, make_terrain

FLAT, ROUGH, BLIND = "Legged/Go2-Flat-v0", "Legged/Go2-Rough-v0", "Legged/Go2-Blind-v0"
STEPS = 10
"""Control steps of a round."""


def _seconds(work: Any, times: int = STEPS) -> float:
    begun = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - begun) / times


def _memory() -> float:
    """Most memory of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def main(num_envs: int = 1024, rounds: int = 9, memory: bool = False) -> None:
    """Print the table.

    Args:
        num_envs: Robots of each environment.
        rounds: Rounds; medians are reported.
        memory: Only make 4096 robots on rough ground, and say how much memory that takes.
    """
    torch.set_num_threads(1)
    if memory:
        before, env = _memory(), gym.make_vec(ROUGH, num_envs=4096, array="torch")
        env.reset(seed=0)
        env.step(torch.zeros(4096, 12))
        print(f"4096 robots: {_memory():.0f} MB, of which {before:.0f} MB before they were made")
        return
    field = statistics.median(_seconds(lambda: make_terrain(TerrainCfg()), 1) for _ in range(3))
    envs = {
        name: gym.make_vec(name, num_envs=num_envs, array="torch") for name in (FLAT, ROUGH, BLIND)
    }
    generator = torch.Generator().manual_seed(0)
    for env in envs.values():
        env.reset(seed=0)
        for _ in range(30):  # robots walk about: where they stand contacts are few
            env.step(0.5 * torch.randn(num_envs, 12, generator=generator))
    core: Any = envs[ROUGH].unwrapped
    looks = {
        f"scan, {name}": lambda name=name: observations.height_scan(core, lookup=name)
        for name in ("lowest", "bilinear")
    }
    times: dict[str, list[float]] = {name: [] for name in (*envs, *looks)}
    actions = 0.5 * torch.randn(rounds, STEPS, num_envs, 12, generator=generator)
    for i in range(rounds):
        for name in [*envs][i % 3 :] + [*envs][: i % 3]:
            step = iter(actions[i])
            times[name].append(_seconds(lambda step=step, name=name: envs[name].step(next(step))))
        for name, look in looks.items():
            times[name].append(_seconds(look))
    table = Table(
        "what", "ms", "of a step on a plane", title=f"{num_envs} robots, medians of {rounds} rounds"
    )
    for name, seconds in times.items():
        ratio = statistics.median(
            own / flat for own, flat in zip(seconds, times[FLAT], strict=True)
        )
        table.add_row(name, f"{1e3 * statistics.median(seconds):.2f}", f"{ratio:.3f}")
    console = Console()
    console.print(table)
    console.print(f"a field of 10 × 20 tiles of 8 m: {field:.2f} s")
    console.print(
        ", ".join(f"{name} {value}" for name, value in machine().items()), highlight=False
    )


if __name__ == "__main__":
    tyro.cli(main)
