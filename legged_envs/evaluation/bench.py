"""Benchmark of a task: environment steps per second, next to the physics engine without an
environment."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import gymnasium as gym
import mujoco.batch
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from rich.console import Console
from rich.table import Table

from legged_envs.checks import whole_number
from legged_envs.envs import CoreVectorEnv, unwrap
from legged_envs.runs.run_folder import write_json
from legged_envs.sim.engines.mujoco import MujocoSimulation

SIZES = (64, 512, 4096)
"""Numbers of environments that are measured by default."""

ROUND_ENV_STEPS = 12_000
"""Environment steps in a round of the engine `mujoco`, 0.4 s on two cores."""

MIN_STEPS = 6
"""Least number of control steps in a round."""

MAX_STEPS = 25
"""Largest number of control steps in a round: the engine resets no robot that falls."""

COLUMN_HEADS = (
    "envs",
    "env-steps/s",
    "control step, ms",
    "physics only, ms",
    "ratio",
)
"""Titles of the columns of the table."""

LEGEND = (
    "envs: robots in one process. "
    "env-steps/s: robots × control steps in a second. "
    "control step: one envs.step(). "
    "physics only: the engine without the environment, with the same model, states and targets. "
    "ratio: control step divided by physics only. "
    "All are medians of the rounds."
)
"""Explanation of the columns, printed below the table."""


def _mean_seconds(device: torch.device, calls: Sequence[Callable[[], object]]) -> float:
    """Return the mean time of a call, including the work that it started on the device."""
    begun = time.perf_counter()
    for call in calls:
        call()
    # A GPU still works when a call returns.
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - begun) / len(calls)


def _step_engine(core: CoreVectorEnv, targets: torch.Tensor) -> None:
    core.sim.set_joint_targets(targets)
    core.sim.step(core.cfg.sim.decimation)


def _measure_engine(envs: VectorEnv, rounds: int) -> np.ndarray:
    """Measure environment steps and the steps of the engine through `Simulation`.

    Both start from the same state, with the same targets.

    Returns:
        Time of an environment step and of its physics, ms. Shape: (rounds, 2).
    """
    core = unwrap(envs)
    seconds = []
    envs.reset(seed=0)
    # Small actions: robots mostly stay on their feet.
    actions = 0.3 * torch.randn(MAX_STEPS, core.num_envs, core.actions.size, device=core.device)
    env_calls = [partial(envs.step, action) for action in actions]
    for _ in range(rounds + 1):
        state = core.sim.get_state()
        env_seconds = _mean_seconds(core.device, env_calls)
        core.sim.set_state(state)
        targets = core.robot.default_joint_pos + core.actions.scale * actions
        engine_calls = [partial(_step_engine, core, target) for target in targets]
        seconds.append((env_seconds, _mean_seconds(core.device, engine_calls)))
    # The first round warms up.
    return 1e3 * np.array(seconds[1:])


def _measure_mujoco(envs: VectorEnv, rounds: int) -> np.ndarray:
    """Measure environment steps and `mujoco.batch` without an environment, on its default number of
    threads.

    Both start from the same state, with the same targets.

    Returns:
        Time of an environment step and of its physics, ms. Shape: (rounds, 2).
    """
    core = unwrap(envs)
    num_envs = envs.num_envs
    sim = cast(MujocoSimulation, core.sim)
    batch = sim.batch
    raw = mujoco.batch.Batch(sim.model, num_envs, batch.nthread)
    ctrl = batch.bind("ctrl")
    raw_ctrl = raw.bind("ctrl")
    # Every joint swings slowly about the default pose, at its own frequency.
    rng = np.random.default_rng(0)
    amplitude = rng.uniform(0.0, 0.25, ctrl.shape)
    omega = 2 * np.pi * rng.uniform(0.3, 1.5, ctrl.shape) * core.step_dt
    num_steps = min(max(ROUND_ENV_STEPS // num_envs, MIN_STEPS), MAX_STEPS)
    seconds = np.zeros((rounds + 1, 2))
    envs.reset(seed=0)
    for i in range(rounds + 1):
        first_state = batch.state.copy()
        targets = []
        for step in range(i * num_steps, (i + 1) * num_steps):
            action = (amplitude * np.sin(omega * step)).astype(np.float32)
            begun = time.perf_counter()
            envs.step(action)
            seconds[i, 0] += time.perf_counter() - begun
            targets.append(ctrl.copy())
        # The engine repeats the steps of this round, from the same states.
        raw.state[:] = first_state
        for target in targets:
            raw_ctrl[:] = target
            begun = time.perf_counter()
            raw.step(nstep=core.cfg.sim.decimation)
            seconds[i, 1] += time.perf_counter() - begun
    # The first round warms up.
    return 1e3 * seconds[1:] / num_steps


def _bench_size(
    task_id: str, num_envs: int, rounds: int, sim: str, device: str
) -> dict[str, float]:
    """Return the numbers of one row of the table."""
    # Copies to NumPy would be part of the time on a GPU.
    array = "numpy" if sim == "mujoco" else "torch"
    envs = gym.make_vec(task_id, num_envs=num_envs, sim=sim, device=device, array=array)
    if sim == "mujoco":
        milliseconds = _measure_mujoco(envs, rounds)
    else:
        milliseconds = _measure_engine(envs, rounds)
    envs.close()
    env_ms, batch_ms = np.median(milliseconds, axis=0).tolist()
    ratios = milliseconds[:, 0] / milliseconds[:, 1]
    return {
        "num_envs": num_envs,
        "env_steps_per_s": 1e3 * num_envs / env_ms,
        "env_ms": env_ms,
        "batch_ms": batch_ms,
        "ratio": np.median(ratios).item(),
    }


def _sizes(sizes: Sequence[int], quick: bool) -> Sequence[int]:
    if sizes:
        return sizes
    return SIZES[:-1] if quick else SIZES


def main(
    task_id: str,
    rounds: int,
    quick: bool = False,
    json_path: Path | None = None,
    sim: str = "mujoco",
    device: str = "cpu",
    sizes: Sequence[int] = (),
) -> None:
    """Time environment steps and, interleaved with them, steps of only the engine. Print the
    medians.

    Args:
        task_id: Registered id of the task.
        rounds: Number of rounds of each size.
        quick: True for at most two rounds, without the largest size.
        json_path: File to write the numbers to.
        sim: Name of the physics engine.
        device: Device of the engine.
        sizes: Numbers of environments; empty for `SIZES`.
    """
    whole_number("rounds", rounds)
    if quick:
        rounds = min(rounds, 2)
    # PyTorch's threads would compete with the engine's threads.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = []
        for size in _sizes(sizes, quick):
            rows.append(_bench_size(task_id, size, rounds, sim, device))
    finally:
        torch.set_num_threads(threads)
    _print_rows(rows, f"{task_id}, {sim}, {device}")
    if json_path is not None:
        values = {"task_id": task_id, "sim": sim, "device": device, "sizes": rows}
        write_json(json_path, values)


def _print_rows(rows: Sequence[dict[str, float]], title: str) -> None:
    table = Table(*COLUMN_HEADS, title=title)
    for row in rows:
        table.add_row(
            f"{row['num_envs']}",
            f"{row['env_steps_per_s']:,.0f}",
            f"{row['env_ms']:.2f}",
            f"{row['batch_ms']:.2f}",
            f"{row['ratio']:.2f}",
        )
    Console().print(table, LEGEND, sep="\n")
