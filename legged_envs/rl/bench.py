"""How many environment steps a second a task makes, beside the physics engine alone."""

import json
import time
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
MIN_STEPS, MAX_STEPS = 6, 25
"""Environment and control steps in a round, 0.4 s on two cores: few, as the engine alone resets nobody who falls."""
HEADS = ("envs", "env-steps/s", "control step, ms", "its physics alone, ms", "ratio")
LEGEND = """envs: robots in one process. env-steps/s: robots × control steps in a second. control step: one envs.step().
its physics alone: the engine with the same model, states and targets. ratio: control step by its physics alone.
All are medians of the rounds."""
STYLES = ("d", ",.0f", ".2f", ".2f", ".2f")


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
    milliseconds = 1e3 * seconds[1:] / num_steps  # the first round warms up
    env_ms, batch_ms = np.median(milliseconds, axis=0).tolist()
    ratio = np.median(milliseconds[:, 0] / milliseconds[:, 1]).item()
    figures = {"env_steps_per_s": 1e3 * num_envs / env_ms, "env_ms": env_ms, "batch_ms": batch_ms, "ratio": ratio}
    return {"num_envs": num_envs, **figures}


def main(task_id: str, rounds: int, quick: bool, compile: bool, json_path: Path | None) -> None:
    """Time environment steps and, in turns, the engine alone from the same states with the same joint targets, swung
    slowly about standing: medians of ``env_steps_per_s``, ``env_ms`` and ``batch_ms`` a control step, ``ratio``."""
    whole_number("rounds", rounds)
    sizes, rounds = (SIZES[:-1], min(rounds, 2)) if quick else (SIZES, rounds)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = [_bench_size(task_id, size, rounds, compile) for size in sizes]
    finally:
        torch.set_num_threads(threads)
    table = Table(*HEADS, title=task_id)
    for row in rows:
        table.add_row(*(format(value, style) for value, style in zip(row.values(), STYLES, strict=True)))
    Console().print(table, LEGEND.replace("\n", " "), sep="\n")
    if json_path is not None:
        json_path.parent.mkdir(parents=True, exist_ok=True)
        json_path.write_text(json.dumps({"task_id": task_id, "compile": compile, "sizes": rows}, indent=1) + "\n")
