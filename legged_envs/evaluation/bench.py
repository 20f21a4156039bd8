"""How many environment steps a second a task makes, beside the physics engine alone."""

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
from legged_envs.envs import LeggedVectorEnv, unwrap
from legged_envs.runs.run_folder import write_json
from legged_envs.sim.engines.mujoco import MujocoSimulation

SIZES = (64, 512, 4096)
ROUND_ENV_STEPS = 12_000
MIN_STEPS, MAX_STEPS = 6, 25
"""Environment and control steps in a round, 0.4 s on two cores: few, as the engine alone resets nobody who falls."""
HEADS = ("envs", "env-steps/s", "control step, ms", "its physics alone, ms", "ratio")
LEGEND = """envs: robots in one process. env-steps/s: robots × control steps in a second. control step: one envs.step().
its physics alone: the engine with the same model, states and targets. ratio: control step by its physics alone.
All are medians of the rounds."""
STYLES = ("d", ",.0f", ".2f", ".2f", ".2f")


def _seconds(device: torch.device, calls: Sequence[Callable[[], object]]) -> float:
    """Mean time of a call, with all that it started on the device."""
    begun = time.perf_counter()
    for call in calls:
        call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - begun) / len(calls)


def _step_engine(core: LeggedVectorEnv, targets: torch.Tensor) -> None:
    core.sim.set_joint_targets(targets)
    core.sim.step(core.cfg.sim.decimation)


def _measure_engine(envs: VectorEnv, rounds: int) -> np.ndarray:
    """Of each round but the first, ms of an environment step, and of the engine's steps by ``Simulation`` from the same
    state with the same targets. Shape: (rounds, 2)."""
    core, times = unwrap(envs), []
    envs.reset(seed=0)
    actions = 0.3 * torch.randn(MAX_STEPS, core.num_envs, core.actions.size, device=core.device)
    for _ in range(rounds + 1):
        state = core.sim.get_state()
        full = _seconds(core.device, [partial(envs.step, action) for action in actions])
        core.sim.set_state(state)
        targets = core.robot.default_joint_pos + core.actions.scale * actions
        times.append(
            (
                full,
                _seconds(core.device, [partial(_step_engine, core, target) for target in targets]),
            )
        )
    return 1e3 * np.array(times[1:])


def _measure_mujoco(envs: VectorEnv, rounds: int) -> np.ndarray:
    """The same of the engine without ``Simulation``, on its default number of threads."""
    core, rng, num_envs = unwrap(envs), np.random.default_rng(0), envs.num_envs
    sim = cast(MujocoSimulation, core.sim)
    batch, raw = sim.batch, mujoco.batch.Batch(sim.model, num_envs, sim.batch.nthread)
    ctrl, raw_ctrl = batch.bind("ctrl"), raw.bind("ctrl")
    amplitude, omega = (
        rng.uniform(0.0, 0.25, ctrl.shape),
        2 * np.pi * rng.uniform(0.3, 1.5, ctrl.shape) * core.step_dt,
    )
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
    return 1e3 * seconds[1:] / num_steps  # the first round warms up


def _bench_size(
    task_id: str,
    num_envs: int,
    rounds: int,
    sim: str = "mujoco",
    device: str = "cpu",
) -> dict[str, float]:
    array = "numpy" if sim == "mujoco" else "torch"
    envs = gym.make_vec(task_id, num_envs=num_envs, sim=sim, device=device, array=array)
    milliseconds = (_measure_mujoco if sim == "mujoco" else _measure_engine)(envs, rounds)
    envs.close()
    env_ms, batch_ms = np.median(milliseconds, axis=0).tolist()
    ratio = np.median(milliseconds[:, 0] / milliseconds[:, 1]).item()
    figures = {
        "env_steps_per_s": 1e3 * num_envs / env_ms,
        "env_ms": env_ms,
        "batch_ms": batch_ms,
        "ratio": ratio,
    }
    return {"num_envs": num_envs, **figures}


def main(
    task_id: str,
    rounds: int,
    quick: bool = False,
    json_path: Path | None = None,
    sim: str = "mujoco",
    device: str = "cpu",
    sizes: Sequence[int] = (),
) -> None:
    """Time environment steps and, in turns, the engine alone from the same states with the same joint targets, swung
    slowly about standing: medians of ``env_steps_per_s``, ``env_ms`` and ``batch_ms`` a control step, ``ratio``."""
    whole_number("rounds", rounds)
    rounds, sizes = min(rounds, 2) if quick else rounds, sizes or (SIZES[:-1] if quick else SIZES)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = [_bench_size(task_id, size, rounds, sim, device) for size in sizes]
    finally:
        torch.set_num_threads(threads)
    table = Table(*HEADS, title=f"{task_id}, {sim}, {device}")
    for row in rows:
        table.add_row(
            *(format(value, style) for value, style in zip(row.values(), STYLES, strict=True))
        )
    Console().print(table, LEGEND.replace("\n", " "), sep="\n")
    if json_path is not None:
        about = {"task_id": task_id, "sim": sim, "device": device}
        write_json(json_path, about | {"sizes": rows})
