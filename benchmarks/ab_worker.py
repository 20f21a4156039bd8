"""The process that measures one checkout for :mod:`benchmarks.ab`: it answers calls, one line of JSON each.

It is run as a script with the checkout first on ``PYTHONPATH``, and uses the public interface, so that it can measure a
checkout that has no ``benchmarks``. Only the raw batch is found through ``envs.unwrapped.sim``.
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

ROUND_ENV_STEPS, MIN_STEPS, MAX_STEPS = 12_000, 6, 400
"""Environment steps in a round, and the bounds of the control steps that this makes."""
CHUNK = 25
"""Control steps that raw physics goes on from a state of the environment. It has no resets: few robots may fall."""


class Worker:
    """The calls."""

    def open(self, task_id: str, num_envs: int, wrapped: bool) -> None:
        """Make environments, with four wrappers beside the three of ``make_vec`` if ``wrapped``, and mix their ages."""
        rng = np.random.default_rng(0)
        envs: Any = gym.make_vec(task_id, num_envs=num_envs)
        if wrapped:
            envs = ActionScale(CostNormalize(RewardNormalize(ObsNormalize(envs))), -1.0, 1.0)
        self.envs, self.core = envs, envs.unwrapped
        self.raw = mujoco.batch.Batch(self.core.sim.model, num_envs, self.core.sim.batch.nthread)
        self.num_steps = min(max(ROUND_ENV_STEPS // num_envs, MIN_STEPS), MAX_STEPS)
        shape = num_envs, self.core.sim.model.nu
        self.wave = (
            rng.uniform(0.0, 0.25, shape),
            rng.uniform(0.04, 0.19, shape),
            rng.uniform(0.0, 6.3, shape),
        )
        self.steps, self.inside, self.sum = 0, 0.0, 0.0
        envs.reset(seed=0)
        while envs is not self.core:
            if hasattr(type(envs), "elapsed_steps"):
                envs.elapsed_steps = rng.integers(0, envs.time_limit, num_envs)
            envs = envs.env
        self.core.step, self.core.reset = self._timed(self.core.step), self._timed(self.core.reset)

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            result = function(*args, **kwargs)
            self.inside += time.perf_counter() - begun
            return result

        return call

    def round(self) -> dict[str, float]:
        """Quantity → figure. Two checkouts with the same results have the same sum of all observations so far."""
        batch, clock, done = self.core.sim.batch, time.perf_counter, 0
        ctrl, raw_ctrl = batch.bind("ctrl"), self.raw.bind("ctrl")
        total = raw = self.inside = 0.0
        while done < self.num_steps:
            rows, targets = batch.state.copy(), []
            for _ in range(min(CHUNK, self.num_steps - done)):
                amplitude, omega, phase = self.wave
                action = (amplitude * np.sin(omega * self.steps + phase)).astype(np.float32)
                begun = clock()
                observation = self.envs.step(action)[0]
                total += clock() - begun
                targets.append(ctrl.copy())
                self.sum += float(observation.sum(dtype=np.float64))
                self.steps, done = self.steps + 1, done + 1
            self.raw.state[:] = rows
            for target in targets:
                raw_ctrl[:] = target
                begun = clock()
                self.raw.step(nstep=self.core.cfg.sim.decimation)
                raw += clock() - begun
        return {
            "step, ms": 1e3 * total / done,
            "wrappers alone, ms": 1e3 * (total - self.inside) / done,
            "step / batch engine alone": total / raw,
            "sum of observations": self.sum,
        }

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()
        del self.envs, self.core, self.raw

    def make(self, task_id: str) -> dict[str, float]:
        """Milliseconds of ``make_vec`` with 64 environments, where others were made before."""
        begun = time.perf_counter()
        envs = gym.make_vec(task_id, num_envs=64)
        taken = time.perf_counter() - begun
        envs.close()
        return {"make_vec again, ms": 1e3 * taken}

    def growth(self, ids: list[str], cycles: int, skipped: int) -> float:
        """Growth of the resident memory over ``cycles`` times make, reset, step and close, after some, MB (Linux)."""
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
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def main(tree: str) -> None:
    """Answer until the standard input ends. The checkout that is imported must be the one at ``tree``."""
    found = Path(legged_envs.__file__).parents[1]
    if found != Path(tree):
        raise RuntimeError(f"the worker of {tree} imports legged_envs from {found}")
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    worker = Worker()
    for line in sys.stdin:
        name, arguments = json.loads(line)
        print(json.dumps(getattr(worker, name)(*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
