"""What an environment step costs on an engine and device, beside the engine alone: the same states and targets, in
alternating rounds of one process; medians::

    python -m benchmarks.engines --sim mujoco_warp --device cuda:0 --sizes 4096 16384
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import gymnasium as gym
import torch
import tyro
from gymnasium.vector import VectorEnv
from rich.console import Console
from rich.table import Table

from benchmarks.throughput import machine
from legged_envs.checks import whole_number
from legged_envs.envs import LeggedVectorEnv, unwrap

STEPS = 10
"""Control steps of a round."""


def _seconds(device: torch.device, calls: Sequence[Callable[[], object]]) -> float:
    """Mean time of a call, with all that it started on the device."""
    begun = time.perf_counter()
    for call in calls:
        call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - begun) / len(calls)


def _rounds(envs: VectorEnv, rounds: int) -> list[tuple[float, float]]:
    """Seconds of an environment step, and of the engine's own steps, in each round but the first."""
    core, times = unwrap(envs), []
    envs.reset(seed=0)
    actions = 0.3 * torch.randn(STEPS, core.num_envs, core.actions.size, device=core.device)
    for _ in range(rounds + 1):
        state = core.sim.get_state()
        full = _seconds(core.device, [partial(envs.step, action) for action in actions])
        core.sim.set_state(state)
        targets = core.robot.default_joint_pos + core.actions.scale * actions
        alone = [partial(_step_engine, core, target) for target in targets]
        times.append((full, _seconds(core.device, alone)))
    return times[1:]


def _step_engine(core: LeggedVectorEnv, targets: torch.Tensor) -> None:
    core.sim.set_joint_targets(targets)
    core.sim.step(core.cfg.sim.decimation)


def main(
    task_id: str = "Legged/Go2-Flat-v0",
    sim: str = "mujoco_warp",
    device: str = "cpu",
    sizes: tuple[int, ...] = (512,),
    rounds: int = 5,
) -> None:
    """Time robots that walk about under small random actions."""
    whole_number("rounds", rounds)
    table = Table("envs", "control step, ms", "env-steps/s", "engine alone, ms", "ratio", title=f"{task_id}, {sim}")
    for num_envs in sizes:
        envs = gym.make_vec(task_id, num_envs=num_envs, sim=sim, device=device, array="torch")
        times = _rounds(envs, rounds)
        full, alone = (statistics.median(part) for part in zip(*times, strict=True))
        ratio = statistics.median(one / other for one, other in times)
        table.add_row(
            f"{num_envs}", f"{1e3 * full:.2f}", f"{num_envs / full:,.0f}", f"{1e3 * alone:.2f}", f"{ratio:.2f}"
        )
        envs.close()
    console = Console()
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in machine().items()), highlight=False)


if __name__ == "__main__":
    tyro.cli(main)
