"""How fast a task is: against raw physics, against Gymnasium's Ant, and over batch sizes.

It also measures memory and start-up time. Everything that is compared runs in one process in
alternating rounds. The figures are medians of the rounds and medians of the ratios within a round,
so that a machine that is slow for a while slows both sides::

    python -m benchmarks.throughput Legged/Go2-Flat-v0 --quick
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Any, cast

import gymnasium as gym
import numpy as np
import torch
import tyro
from rich.console import Console

from benchmarks.layer_times import measure_wrappers, time_layers
from benchmarks.loops import BatchLoop, EnvLoop, PlainLoop, RawLoop, SlowActions
from benchmarks.machine import machine
from benchmarks.ratios import median_ratio, rotated
from benchmarks.throughput_report import ANT, RATIO_LIMITS, WRAPPER_LIMITS, print_bench
from legged_envs.system_checks import check_output

SCALING_SIZES = (256, 1024, 4096, 16384)
"""Numbers of environments over which the time of an environment step is compared."""
QUICK_SCALING_SIZES = (256, 1024)
"""The same with ``--quick``."""
LARGEST_QUICK_SIZE = 4096
"""Number of environments from which on a batch is left out with ``--quick``."""
PROBE_ENVS = 4096
"""Environments that are made in a fresh process to see how much time and memory they take."""
QUICK_PROBE_ENVS = 256
"""Environments in that process with ``--quick``."""

_PROBE = """
import json, sys, time
import gymnasium as gym
import legged_envs

def memory(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(key))

def make():
    begun = time.perf_counter()
    envs = gym.make_vec(sys.argv[1], num_envs=int(sys.argv[2]))
    made = time.perf_counter()
    envs.reset(seed=0)
    reset = time.perf_counter()
    for _ in range(3):
        envs.step(0.0 * envs.action_space.low)
    return envs, made - begun, reset - made

linux = sys.platform == "linux"
envs, cold_s, reset_s = make()
figures = {
    "make_vec_cold_s": cold_s,
    "first_reset_s": reset_s,
    "process_mb": memory("VmRSS") if linux else None,
    "peak_mb": memory("VmHWM") if linux else None,
}
others, warm_s, _ = make()
figures["make_vec_warm_s"] = warm_s
figures["increase_mb"] = memory("VmRSS") - figures["process_mb"] if linux else None
print(json.dumps(figures))
"""
"""Program of a fresh process: measures import, creation and memory of one batch, and of a second
batch.
"""


def measure_throughput(task_id: str, num_envs: int, rounds: int) -> dict[str, Any]:
    """Time full environment steps against raw physics.

    Args:
        task_id: Id of the task.
        num_envs: Number of environments.
        rounds: Rounds that count.

    Returns:
        Figures by name. ``ratio`` is that to the faster of the two raw loops.
    """
    env = EnvLoop(task_id, num_envs)
    raw: dict[str, RawLoop] = {"batch": BatchLoop(env), "mj_step": PlainLoop(env)}
    names = ["env", *raw]
    # Wall-clock and CPU seconds of each round; the first one warms up.
    seconds = {name: np.zeros((rounds + 1, 2)) for name in names}
    for i in range(rounds + 1):
        for turn in range(env.turns):
            actions = env.next_actions()
            rows, targets = env.stretch
            for name in rotated(names, i + turn):
                if name == "env":
                    seconds[name][i] += env.run(actions)
                else:
                    seconds[name][i] += raw[name].run(rows, targets)
    measured = {name: values[1:] for name, values in seconds.items()}
    steps = env.chunk * env.turns
    result: dict[str, Any] = {
        "num_envs": num_envs,
        "steps_per_round": steps,
        "episodes_ended_per_1000_steps": 1000.0 * env.ended / (env.steps * num_envs),
    }
    result.update(_summary(measured, steps, num_envs))
    result["layers_us"] = time_layers(env)
    env.envs.close()
    return result


def _summary(seconds: dict[str, np.ndarray], steps: int, num_envs: int) -> dict[str, Any]:
    """Return medians of wall-clock and CPU seconds. Shape of each array: (rounds, 2)."""
    wall = {name: values[:, 0].tolist() for name, values in seconds.items()}
    cpu = {name: values[:, 1].tolist() for name, values in seconds.items()}
    batch_ratio = median_ratio(wall["env"], wall["batch"])
    mj_step_ratio = median_ratio(wall["env"], wall["mj_step"])
    faster = "batch" if batch_ratio >= mj_step_ratio else "mj_step"
    env_ms = 1e3 * statistics.median(wall["env"]) / steps
    env_steps = steps * num_envs
    return {
        "env_ms": env_ms,
        "batch_ms": 1e3 * statistics.median(wall["batch"]) / steps,
        "mj_step_ms": 1e3 * statistics.median(wall["mj_step"]) / steps,
        "env_steps_per_s": 1e3 * num_envs / env_ms,
        "ratio_to_batch": batch_ratio,
        "ratio_to_mj_step": mj_step_ratio,
        "raw": faster,
        "ratio": max(batch_ratio, mj_step_ratio),
        "env_cpu_us": 1e6 * statistics.median(cpu["env"]) / env_steps,
        "raw_cpu_us": 1e6 * statistics.median(cpu[faster]) / env_steps,
        "cpu_ratio": median_ratio(cpu["env"], cpu[faster]),
    }


def measure_scaling(task_id: str, sizes: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    """Time an environment step over batch sizes, which take turns.

    Args:
        task_id: Id of the task.
        sizes: Numbers of environments.
        rounds: Rounds.

    Returns:
        A row of figures for each size. ``relative`` is the ratio to the first size.
    """
    loops = {size: EnvLoop(task_id, size) for size in sizes}
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for i in range(rounds):
        for size in rotated(list(sizes), i):
            loop = loops[size]
            env_steps = loop.turns * loop.chunk * size
            seconds[size].append(loop.run_round() / env_steps)
    rows = []
    for size, loop in loops.items():
        loop.envs.close()
        row = {
            "num_envs": size,
            "us_per_env_step": 1e6 * statistics.median(seconds[size]),
            "relative": median_ratio(seconds[size], seconds[sizes[0]]),
        }
        rows.append(row)
    return rows


def measure_single(task_id: str, rounds: int, steps: int) -> dict[str, Any]:
    """Count steps per second of one environment, and of Gymnasium's Ant. Resets are included.

    Args:
        task_id: Id of the task.
        rounds: Rounds that count.
        steps: Steps in a round.

    Returns:
        ``steps_per_s`` of each, the ``ratio`` to the Ant, and ``missing``: why the Ant was left
        out.
    """
    rng = np.random.default_rng(0)
    envs: dict[str, gym.Env] = {"default": gym.make(task_id)}
    missing: dict[str, str] = {}
    try:
        envs["ant"] = gym.make(ANT)
    except (ImportError, RuntimeError, gym.error.DependencyNotInstalled) as error:
        missing["ant"] = str(error)
    shape = cast(gym.spaces.Box, envs["default"].action_space).shape
    core = cast(Any, envs["default"].unwrapped)
    slow_actions = SlowActions(shape, core.cfg.sim.step_dt, rng)
    seconds: dict[str, list[float]] = {kind: [] for kind in envs}
    for _ in range(rounds + 1):
        actions = slow_actions.take(steps)
        seconds["default"].append(_run_single(envs["default"], actions) / steps)
        if "ant" in envs:
            ant_shape = cast(gym.spaces.Box, envs["ant"].action_space).shape
            drawn = rng.uniform(-1.0, 1.0, (steps, *ant_shape)).astype(np.float32)
            seconds["ant"].append(_run_single(envs["ant"], list(drawn)) / steps)
    measured = {kind: values[1:] for kind, values in seconds.items()}  # the first round warms up
    steps_per_s = {kind: 1.0 / statistics.median(values) for kind, values in measured.items()}
    ratio = {}
    if "ant" in measured:
        ratio["default"] = median_ratio(measured["ant"], measured["default"])
    return {"steps_per_s": steps_per_s, "ratio": ratio, "missing": missing}


def _run_single(env: gym.Env, actions: Sequence[np.ndarray]) -> float:
    """Step one environment through ``actions``. Returns seconds."""
    env.reset(seed=0)
    begun = time.perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return time.perf_counter() - begun


def measure_startup(task_id: str, num_envs: int) -> dict[str, Any]:
    """Measure time and memory of making environments in a fresh process.

    Memory is measured only on Linux, and is None on other systems.

    Args:
        task_id: Id of the task.
        num_envs: Number of environments.

    Raises:
        RuntimeError: If the process fails.
    """
    command = [sys.executable, "-c", _PROBE, task_id, str(num_envs)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(
            f"making {num_envs} environments of {task_id!r} in a fresh process failed:\n"
            f"{done.stderr}"
        )
    figures = loads(done.stdout.splitlines()[-1])
    return {"num_envs": num_envs, **figures}


def bench(
    task_id: str,
    rounds: int = 7,
    quick: bool = False,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure everything.

    Args:
        task_id: A registered id.
        rounds: Rounds of each comparison.
        quick: At most three rounds, without the largest batches.
        console: Where to print what is being measured.

    Raises:
        ValueError: If ``rounds`` is not positive.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be positive, got {rounds}")
    console = console or Console(quiet=True)
    sizes = list(RATIO_LIMITS)
    scaling_sizes: tuple[int, ...] = SCALING_SIZES
    single_steps = 1000
    probe_envs = PROBE_ENVS
    if quick:
        rounds = min(rounds, 3)
        sizes = [size for size in sizes if size < LARGEST_QUICK_SIZE]
        scaling_sizes = QUICK_SCALING_SIZES
        single_steps = 300
        probe_envs = QUICK_PROBE_ENVS
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        result: dict[str, Any] = {"task_id": task_id, "rounds": rounds, "machine": machine()}
        with console.status("starting") as status:
            status.update(f"memory and start of {probe_envs} environments")
            result["startup"] = measure_startup(task_id, probe_envs)
            status.update("one environment")
            result["single"] = measure_single(task_id, rounds, single_steps)
            result["throughput"] = []
            for size in sizes:
                status.update(f"{size} environments against raw physics")
                result["throughput"].append(measure_throughput(task_id, size, rounds))
            result["wrappers"] = []
            for size in WRAPPER_LIMITS:
                status.update(f"wrappers around {size} environments")
                result["wrappers"].append(measure_wrappers(task_id, size, rounds))
            status.update("scaling")
            result["scaling"] = measure_scaling(task_id, scaling_sizes, rounds)
    finally:
        torch.set_num_threads(threads)
    return result


def main(
    task_id: Annotated[str, tyro.conf.Positional],
    rounds: int = 7,
    quick: bool = False,
    json: Path | None = None,
) -> None:
    """Measure and print a task's speed, memory and start.

    Args:
        task_id: Registered id.
        rounds: Rounds of each comparison; medians are reported.
        quick: At most three rounds, without the largest batches.
        json: Where to write the figures.
    """
    check_output("--json", json)
    console = Console()
    result = bench(task_id, rounds, quick, console)
    print_bench(result, console)
    if json is not None:
        json.parent.mkdir(parents=True, exist_ok=True)
        json.write_text(dumps(result, indent=1) + "\n")
        console.print(f"wrote {json}")


if __name__ == "__main__":
    tyro.cli(main)
