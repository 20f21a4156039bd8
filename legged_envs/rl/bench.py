"""How many environment steps a second a task makes, beside the physics engine alone."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import gymnasium as gym
import mujoco.batch
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from legged_envs.checks import whole_number
from legged_envs.envs import unwrap
from legged_envs.sim.mujoco_cpu import MujocoSimulation

SIZES = (64, 512, 4096)
ROUND_ENV_STEPS = 12_000
"""Environment steps in a round, about 0.4 s on two cores."""
MIN_STEPS, MAX_STEPS = 6, 25
"""Control steps in a round. The engine alone resets nobody: it must not run long enough for many robots to fall."""


def bench(task_id: str, sizes: Sequence[int] = SIZES, rounds: int = 7, compile: bool = False) -> list[dict[str, float]]:
    """Time full environment steps, and the engine alone from the same states with the same joint targets, in turns.

    Robots swing their joints slowly about the standing pose.

    Returns:
        For each size ``num_envs``, ``env_ms`` and ``batch_ms`` of a control step, ``env_steps_per_s``, and ``ratio``,
        the median of the ratios within a round.

    Raises:
        ValueError: If ``rounds`` is not positive.
    """
    whole_number("rounds", rounds)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [_bench_size(task_id, size, rounds, compile) for size in sizes]
    finally:
        torch.set_num_threads(threads)


def _bench_size(task_id: str, num_envs: int, rounds: int, compile: bool) -> dict[str, float]:
    envs = gym.make_vec(task_id, num_envs=num_envs, compile=compile)
    core, rng = unwrap(envs), np.random.default_rng(0)
    sim = cast(MujocoSimulation, core.sim)
    batch, raw = sim.batch, mujoco.batch.Batch(sim.model, num_envs, sim.batch.nthread)
    ctrl, raw_ctrl = batch.bind("ctrl"), raw.bind("ctrl")
    amplitude, omega = rng.uniform(0.0, 0.25, ctrl.shape), 2 * np.pi * rng.uniform(0.3, 1.5, ctrl.shape) * core.step_dt
    num_steps = min(max(ROUND_ENV_STEPS // num_envs, MIN_STEPS), MAX_STEPS)
    seconds = np.zeros((rounds + 1, 2))
    envs.reset(seed=0)
    for i in range(rounds + 1):
        rows, targets = batch.state.copy(), []
        for step in range(i * num_steps, (i + 1) * num_steps):
            action = (amplitude * np.sin(omega * step)).astype(np.float32)
            begun = time.perf_counter()
            envs.step(action)
            seconds[i, 0] += time.perf_counter() - begun
            targets.append(ctrl.copy())
        raw.state[:] = rows
        for target in targets:
            raw_ctrl[:] = target
            begun = time.perf_counter()
            raw.step(nstep=core.cfg.sim.decimation)
            seconds[i, 1] += time.perf_counter() - begun
    envs.close()
    measured = seconds[1:] / num_steps  # the first round warms up
    env_s, batch_s = np.median(measured, axis=0).tolist()
    ratio = float(np.median(measured[:, 0] / measured[:, 1]))
    figures = {"env_ms": 1e3 * env_s, "batch_ms": 1e3 * batch_s, "env_steps_per_s": num_envs / env_s, "ratio": ratio}
    return {"num_envs": num_envs, **figures}


def main(task_id: str, rounds: int, quick: bool, compile: bool, json_path: Path | None) -> None:
    """Measure, print and, if asked, write the figures as JSON; ``quick`` is two rounds without the largest size."""
    rows = bench(task_id, SIZES[:-1] if quick else SIZES, min(rounds, 2) if quick else rounds, compile)
    table = Table("envs", "env-steps/s", "step [ms]", "engine alone [ms]", "ratio", title=task_id)
    for row in rows:
        numbers = (f"{row['env_ms']:.2f}", f"{row['batch_ms']:.2f}", f"{row['ratio']:.2f}")
        table.add_row(str(row["num_envs"]), f"{row['env_steps_per_s']:,.0f}", *numbers)
    Console().print(table)
    if json_path is not None:
        result = {"task_id": task_id, "compile": compile, "sizes": rows}
        json_path.parent.mkdir(parents=True, exist_ok=True)
        json_path.write_text(json.dumps(result, indent=1) + "\n")
