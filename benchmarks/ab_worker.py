"""The process that measures one checkout for :mod:`benchmarks.ab`.

It answers calls, one line of JSON each. It runs as a script with the checkout first on
``PYTHONPATH``, and uses the public interface, so that it can measure a checkout without
``benchmarks``. Only the raw batch is found through ``envs.unwrapped.sim``.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco.batch
import numpy as np
import torch

import legged_envs
from legged_envs.wrappers import ActionScale, CostNormalize, ObsNormalize, RewardNormalize

MIN_STEPS = 6
"""Fewest control steps in a round."""
MAX_STEPS = 400
"""Most control steps in a round."""
CHUNK = 25
"""Control steps of raw physics from a state of the environment. It has no resets: few may fall."""


class Worker:
    """The calls that a worker answers."""

    def open(self, task_id: str, num_envs: int, wrapped: bool, round_steps: int) -> None:
        """Make environments and mix the ages of their episodes.

        Args:
            task_id: Id of the task.
            num_envs: Number of environments.
            wrapped: True to add four wrappers to the three of ``make_vec``.
            round_steps: Environment steps in a round.
        """
        rng = np.random.default_rng(0)
        envs: Any = gym.make_vec(task_id, num_envs=num_envs)
        if wrapped:
            envs = ActionScale(CostNormalize(RewardNormalize(ObsNormalize(envs))), -1.0, 1.0)
        self.envs = envs
        self.core = envs.unwrapped
        sim = self.core.sim
        self.raw = mujoco.batch.Batch(sim.model, num_envs, sim.batch.nthread)
        self.num_steps = min(max(round_steps // num_envs, MIN_STEPS), MAX_STEPS)
        shape = (num_envs, sim.model.nu)
        self.amplitude = rng.uniform(0.0, 0.25, shape)
        self.omega = rng.uniform(0.04, 0.19, shape)
        self.phase = rng.uniform(0.0, 6.3, shape)
        self.steps = 0
        self.inside = 0.0  # seconds in the core's own functions
        self.sum = 0.0
        envs.reset(seed=0)
        layer = envs
        while layer is not self.core:
            if hasattr(type(layer), "elapsed_steps"):
                layer.elapsed_steps = rng.integers(0, layer.time_limit, num_envs)
            layer = layer.env
        # Wrappers call these two functions of the core: their time is not that of the wrappers.
        self.core.step = self._timed(self.core.step)
        self.core.reset = self._timed(self.core.reset)

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that adds its time to ``inside``."""

        def call(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            result = function(*args, **kwargs)
            self.inside += time.perf_counter() - begun
            return result

        return call

    def round(self) -> dict[str, float]:
        """Return the figures of a round, by quantity.

        Checkouts with the same results have the same sum of all observations so far.
        """
        batch = self.core.sim.batch
        total = 0.0
        raw = 0.0
        done = 0
        self.inside = 0.0
        while done < self.num_steps:
            num_steps = min(CHUNK, self.num_steps - done)
            rows = batch.state.copy()
            seconds, targets = self._step_envs(num_steps)
            total += seconds
            raw += self._step_raw(rows, targets)
            done += num_steps
        return {
            "step, ms": 1e3 * total / done,
            "wrappers alone, ms": 1e3 * (total - self.inside) / done,
            "step / batch engine alone": total / raw,
            "sum of observations": self.sum,
        }

    def _step_envs(self, num_steps: int) -> tuple[float, list[np.ndarray]]:
        """Step the environments. Returns seconds, and the joint targets of each step."""
        ctrl = self.core.sim.batch.bind("ctrl")
        seconds = 0.0
        targets = []
        for _ in range(num_steps):
            wave = np.sin(self.omega * self.steps + self.phase)
            action = (self.amplitude * wave).astype(np.float32)
            begun = time.perf_counter()
            observation = self.envs.step(action)[0]
            seconds += time.perf_counter() - begun
            targets.append(ctrl.copy())
            self.sum += float(observation.sum(dtype=np.float64))
            self.steps += 1
        return seconds, targets

    def _step_raw(self, rows: np.ndarray, targets: list[np.ndarray]) -> float:
        """Step the raw batch from the states ``rows``. Returns seconds."""
        ctrl = self.raw.bind("ctrl")
        decimation = self.core.cfg.sim.decimation
        seconds = 0.0
        self.raw.state[:] = rows
        for target in targets:
            ctrl[:] = target
            begun = time.perf_counter()
            self.raw.step(nstep=decimation)
            seconds += time.perf_counter() - begun
        return seconds

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()
        del self.envs, self.core, self.raw

    def make(self, task_id: str) -> dict[str, float]:
        """Return the milliseconds of ``make_vec`` with 64 robots, after others were made."""
        begun = time.perf_counter()
        envs = gym.make_vec(task_id, num_envs=64)
        seconds = time.perf_counter() - begun
        envs.close()
        return {"make_vec again, ms": 1e3 * seconds}

    def growth(self, ids: list[str], cycles: int, skipped: int) -> float:
        """Return by how much the resident memory grows, MB (Linux).

        Args:
            ids: Ids that take turns.
            cycles: How often environments are made, reset, stepped and closed.
            skipped: Cycles before these that do not count.
        """
        before = 0.0
        for i in range(skipped + cycles):
            if i == skipped:
                before = _memory_mb()
            envs = gym.make_vec(ids[i % len(ids)], num_envs=4)
            envs.reset(seed=i)
            envs.step(np.zeros_like(envs.action_space.low))  # type: ignore[attr-defined]
            envs.close()
        return _memory_mb() - before


def _memory_mb() -> float:
    """Return the resident memory of this process, MB."""
    gc.collect()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no line VmRSS: growth is measured on Linux alone")


def main(tree: str) -> None:
    """Answer calls until the standard input ends.

    Args:
        tree: Folder of the checkout that must be the imported one.
    """
    imported = Path(legged_envs.__file__).parents[1]
    if imported != Path(tree):
        raise RuntimeError(f"the worker of {tree} imports legged_envs from {imported}")
    torch.set_num_threads(1)
    # Answers keep the standard output; what a library prints goes to the standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker()
    calls: dict[str, Callable[..., Any]] = {
        "open": worker.open,
        "round": worker.round,
        "close": worker.close,
        "make": worker.make,
        "growth": worker.growth,
    }
    for line in sys.stdin:
        name, arguments = json.loads(line)
        result = calls[name](*arguments)
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
