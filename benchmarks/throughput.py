"""How fast a task is: against raw physics, against Gymnasium's Ant, over batch sizes; its memory and start-up time.

Everything that is compared runs in one process in alternating rounds; reported are medians of the rounds and medians
of the ratios within a round, so that a machine that is slow for a while slows both sides::

    python -m benchmarks.throughput Legged/Go2-Flat-v0 --quick
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Any, cast

import gymnasium as gym
import numpy as np
import torch
import tyro
from gymnasium.vector import VectorEnv
from rich.console import Console

from benchmarks.loops import BatchLoop, EnvLoop, PlainLoop, RawLoop, SlowActions
from benchmarks.throughput_report import ANT, RATIO_LIMITS, WRAPPER_LIMITS, print_bench
from legged_envs.wrappers import ActionScale, CostNormalize, ObsNormalize, RewardNormalize
from legged_envs.wrappers.plumbing.base import layers

SCALING_SIZES = (256, 1024, 4096, 16384)
PROBE_ENVS = 4096

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
total, peak = (memory("VmRSS"), memory("VmHWM")) if linux else (None, None)
others, warm_s, _ = make()
increase = memory("VmRSS") - total if linux else None
keys = ("make_vec_cold_s", "make_vec_warm_s", "first_reset_s", "process_mb", "peak_mb", "increase_mb")
print(json.dumps(dict(zip(keys, (cold_s, warm_s, reset_s, total, peak, increase)))))
"""
"""Runs in a fresh interpreter: what one batch costs to import, make and hold, then what a second one adds."""


def measure_throughput(
    task_id: str, num_envs: int, rounds: int, compile: bool = False
) -> dict[str, Any]:
    """Time full environment steps against raw physics; the ratio is to the faster of the two raw loops."""
    env = EnvLoop(task_id, num_envs, compile)
    raw: dict[str, RawLoop] = {"batch": BatchLoop(env), "mj_step": PlainLoop(env)}
    seconds = {name: np.zeros((rounds + 1, 2)) for name in ("env", *raw)}
    for i in range(rounds + 1):
        for turn in range(env.turns):
            actions, stretch = env.next_actions(), env.stretch
            for name in _rotated(list(seconds), i + turn):
                seconds[name][i] += env.run(actions) if name == "env" else raw[name].run(*stretch)
    measured = {name: values[1:] for name, values in seconds.items()}  # the first round warms up
    steps = env.chunk * env.turns
    result = {
        "num_envs": num_envs,
        "steps_per_round": steps,
        "episodes_ended_per_1000_steps": 1000.0 * env.ended / (env.steps * num_envs),
        **_summary(measured, steps, num_envs),
        "layers_us": _time_layers(env),
    }
    env.envs.close()
    return result


def _rotated(names: list[str], turn: int) -> list[str]:
    turn %= len(names)
    return names[turn:] + names[:turn]


def _summary(seconds: dict[str, np.ndarray], steps: int, num_envs: int) -> dict[str, Any]:
    """Medians of wall-clock and CPU seconds. Shape of each array: (rounds, 2)."""
    wall = {name: values[:, 0].tolist() for name, values in seconds.items()}
    cpu = {name: values[:, 1].tolist() for name, values in seconds.items()}
    ratios = {name: _paired(wall["env"], wall[name]) for name in ("batch", "mj_step")}
    faster = max(ratios, key=lambda name: ratios[name])
    env_ms = 1e3 * statistics.median(wall["env"]) / steps
    return {
        "env_ms": env_ms,
        "batch_ms": 1e3 * statistics.median(wall["batch"]) / steps,
        "mj_step_ms": 1e3 * statistics.median(wall["mj_step"]) / steps,
        "env_steps_per_s": 1e3 * num_envs / env_ms,
        "ratio_to_batch": ratios["batch"],
        "ratio_to_mj_step": ratios["mj_step"],
        "raw": faster,
        "ratio": ratios[faster],
        "env_cpu_us": 1e6 * statistics.median(cpu["env"]) / (steps * num_envs),
        "raw_cpu_us": 1e6 * statistics.median(cpu[faster]) / (steps * num_envs),
        "cpu_ratio": _paired(cpu["env"], cpu[faster]),
    }


def _paired(numerator: Sequence[float], denominator: Sequence[float]) -> float:
    """Median of the ratios within a round."""
    return statistics.median(a / b for a, b in zip(numerator, denominator, strict=True))


class _Clock:
    """A function that adds up the time it takes."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self.seconds = 0.0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        result = self._function(*args, **kwargs)
        self.seconds += time.perf_counter() - begun
        return result


def _time_layers(env: EnvLoop) -> dict[str, float]:
    """What each layer of the stack adds to a step, without the layers below it, µs."""
    clocks: dict[tuple[str, str], _Clock] = {}
    stack = [*layers(env.envs), env.sim]
    for layer in stack:
        for call in ("step", "reset"):
            clock = clocks[type(layer).__name__, call] = _Clock(getattr(layer, call))
            setattr(layer, call, clock)
    turns = max(3, env.turns)
    for _ in range(turns):
        env.run(env.next_actions())
    for layer in stack:
        for call in ("step", "reset"):
            delattr(layer, call)
    microseconds = {key: 1e6 * clock.seconds / (turns * env.chunk) for key, clock in clocks.items()}
    wrappers = [type(layer).__name__ for layer in stack[:-2]]
    core, sim = type(env.core).__name__, type(env.sim).__name__
    total = {
        name: microseconds[name, "step"] + microseconds[name, "reset"] for name in [*wrappers, core]
    }
    return {
        "physics": microseconds[sim, "step"],
        "environment": microseconds[core, "step"] - microseconds[sim, "step"],
        "partial resets": microseconds[core, "reset"],
        **{
            name: total[name] - total[below]
            for name, below in zip(wrappers, [*wrappers[1:], core], strict=True)
        },
    }


def _normalised(envs: VectorEnv) -> VectorEnv:
    """What a user stacks for a library that does not normalise by itself."""
    return ActionScale(CostNormalize(RewardNormalize(ObsNormalize(envs))), -1.0, 1.0)


def measure_wrappers(task_id: str, num_envs: int, rounds: int, compile: bool) -> dict[str, Any]:
    """Time that a stack of seven wrappers takes beside the environment's own steps and partial resets."""
    env = EnvLoop(task_id, num_envs, compile, _normalised)
    names = [type(layer).__name__ for layer in [*layers(env.envs)][:-1]]
    clocks = [_Clock(env.core.step), _Clock(env.core.reset)]
    env.core.step, env.core.reset = clocks  # type: ignore[method-assign]
    inside, outside = [], []
    for _ in range(rounds):
        before = sum(clock.seconds for clock in clocks)
        wall = sum(env.run(env.next_actions())[0] for _ in range(env.turns))
        inside.append(sum(clock.seconds for clock in clocks) - before)
        outside.append(wall - inside[-1])
    env.envs.close()
    steps = env.turns * env.chunk
    return {
        "num_envs": num_envs,
        "wrappers": names,
        "environment_us": 1e6 * statistics.median(inside) / steps,
        "wrappers_us": 1e6 * statistics.median(outside) / steps,
        "share": _paired(outside, inside),
    }


def measure_scaling(
    task_id: str, sizes: Sequence[int], rounds: int, compile: bool = False
) -> list[dict[str, Any]]:
    """Time per environment step over batch sizes, the sizes taking turns."""
    envs = {size: EnvLoop(task_id, size, compile) for size in sizes}
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for i in range(rounds):
        for size in map(int, _rotated([str(size) for size in sizes], i)):
            env = envs[size]
            wall = sum(env.run(env.next_actions())[0] for _ in range(env.turns))
            seconds[size].append(wall / (env.turns * env.chunk * size))
    for env in envs.values():
        env.envs.close()
    return [
        {
            "num_envs": size,
            "us_per_env_step": 1e6 * statistics.median(seconds[size]),
            "relative": _paired(seconds[size], seconds[sizes[0]]),
        }
        for size in sizes
    ]


def measure_single(task_id: str, rounds: int, steps: int) -> dict[str, Any]:
    """Steps per second of ``gymnasium.make(task_id)``, without and with ``compile=True``, and of Gymnasium's Ant.

    Resets are included. What cannot be made here is left out, and ``missing`` says why.
    """
    rng = np.random.default_rng(0)
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "default": (task_id, {}),
        "compiled": (task_id, {"compile": True}),
        "ant": (ANT, {}),
    }
    envs: dict[str, gym.Env] = {}
    missing: dict[str, str] = {}
    for kind, (name, options) in kinds.items():
        try:
            envs[kind] = gym.make(name, **options)
        except (ImportError, RuntimeError, gym.error.DependencyNotInstalled) as error:
            missing[kind] = str(error)
    shape = cast(gym.spaces.Box, envs["default"].action_space).shape
    slow = SlowActions(shape, cast(Any, envs["default"].unwrapped).cfg.sim.step_dt, rng)
    seconds: dict[str, list[float]] = {kind: [] for kind in envs}
    for _ in range(rounds + 1):
        actions = slow.take(steps)
        for kind, env in envs.items():
            if kind == "ant":
                ant_shape = cast(gym.spaces.Box, env.action_space).shape
                actions = list(rng.uniform(-1.0, 1.0, (steps, *ant_shape)).astype(np.float32))
            seconds[kind].append(_run_single(env, actions) / steps)
    measured = {kind: values[1:] for kind, values in seconds.items()}  # the first round warms up
    ours = [kind for kind in measured if kind != "ant"]
    return {
        "steps_per_s": {kind: 1.0 / statistics.median(values) for kind, values in measured.items()},
        "ratio": {kind: _paired(measured["ant"], measured[kind]) for kind in ours}
        if "ant" in measured
        else {},
        "missing": missing,
    }


def _run_single(env: gym.Env, actions: Sequence[np.ndarray]) -> float:
    env.reset(seed=0)
    begun = time.perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return time.perf_counter() - begun


def measure_startup(task_id: str, num_envs: int) -> dict[str, Any]:
    """Time and memory of making ``num_envs`` environments in a fresh process (memory on Linux only)."""
    command = [sys.executable, "-c", _PROBE, task_id, str(num_envs)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(
            f"making {num_envs} environments of {task_id!r} in a fresh process failed:\n{done.stderr}"
        )
    return {"num_envs": num_envs, **loads(done.stdout.splitlines()[-1])}


def machine() -> dict[str, Any]:
    """What the figures depend on: processor, cores, versions, and how busy the machine is."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "system": platform.system(),
        "load_average": round(os.getloadavg()[0], 2),
        "torch_threads": torch.get_num_threads(),
        "python": platform.python_version(),
        **{package: version(package) for package in ("mujoco", "torch", "numpy", "gymnasium")},
    }


def check_output(option: str, path: Path) -> None:
    """Raise unless a file can be written at ``path``; missing folders do not matter.

    Raises:
        ValueError: Naming the option that the path comes from.
    """
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if (
        path.is_dir()
        or not folder.is_dir()
        or not os.access(path if path.exists() else folder, os.W_OK)
    ):
        raise ValueError(f"{option} must name a file that can be written, got {str(path)!r}")


def bench(
    task_id: str,
    rounds: int = 7,
    quick: bool = False,
    compile: bool = False,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure everything.

    Args:
        task_id: A registered id.
        rounds: Rounds of each comparison.
        quick: At most three rounds, without the largest batches.
        compile: Whether the batches are made with ``compile=True``. One environment is measured both ways.
        console: Where to say what is being measured.

    Raises:
        ValueError: If ``rounds`` is not positive.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be positive, got {rounds}")
    console = console or Console(quiet=True)
    rounds = min(rounds, 3) if quick else rounds
    sizes = [size for size in RATIO_LIMITS if not quick or size < 4096]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        result: dict[str, Any] = {
            "task_id": task_id,
            "rounds": rounds,
            "compile": compile,
            "machine": machine(),
        }
        with console.status("starting") as status:
            status.update(f"memory and start of {PROBE_ENVS} environments")
            result["startup"] = measure_startup(task_id, PROBE_ENVS)
            status.update("one environment")
            result["single"] = measure_single(task_id, rounds, steps=300 if quick else 1000)
            result["throughput"] = []
            for size in sizes:
                status.update(f"{size} environments against raw physics")
                result["throughput"].append(measure_throughput(task_id, size, rounds, compile))
            result["wrappers"] = []
            for size in WRAPPER_LIMITS:
                status.update(f"wrappers around {size} environments")
                result["wrappers"].append(measure_wrappers(task_id, size, rounds, compile))
            status.update("scaling")
            result["scaling"] = measure_scaling(
                task_id, SCALING_SIZES[: -2 if quick else None], rounds, compile
            )
    finally:
        torch.set_num_threads(threads)
    return result


def main(
    task_id: Annotated[str, tyro.conf.Positional],
    rounds: int = 7,
    quick: bool = False,
    compile: bool = False,
    json: Path | None = None,
) -> None:
    """Measure and print a task's speed, memory and start.

    Args:
        task_id: Registered id.
        rounds: Rounds of each comparison; medians are reported.
        quick: At most three rounds, without the largest batches.
        compile: Measure the batches with compile=True; one environment is always measured both ways.
        json: Where to write the figures.
    """
    if json is not None:
        check_output("--json", json)
    console = Console()
    result = bench(task_id, rounds, quick, compile, console)
    print_bench(result, console)
    if json is not None:
        json.parent.mkdir(parents=True, exist_ok=True)
        json.write_text(dumps(result, indent=1) + "\n")
        console.print(f"wrote {json}")


if __name__ == "__main__":
    tyro.cli(main)
