"""Measures the cost of the Isaac Gym API: a task in legged_gym's style against the raw engine.

The raw engine replays the torques of the task. The two take turns in one process with one thread.
The figures are medians of the ratios of CPU time within a control step, and the time of the task's
own PyTorch code::

    python -m benchmarks.isaacgym
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

import mujoco.batch
import numpy as np
import torch
import tyro

from legged_envs.checks import whole_number
from legged_envs.compat.isaac_gym import install

SEED = 0
"""Seed of the actions and of the states to which the task resets."""

ACTION_SCALE = 0.4
"""Standard deviation of the actions."""

STEP = "simulate"
"""Function of ``gym`` that steps the physics."""


class TimedGym:
    """The functions of ``gym``, with the CPU seconds inside of them and the torques of each step.

    Args:
        gym: The object with Isaac Gym's functions.
        batch: The engine.
    """

    def __init__(self, gym: Any, batch: mujoco.batch.Batch):
        self._gym = gym
        self._ctrl = batch.bind("ctrl")

        self.seconds = 0.0
        """CPU seconds inside of the functions."""
        self.torques: list[np.ndarray] = []
        """Torques that the task asked for before each physics step, in order."""

    def __getattr__(self, name: str) -> Any:
        """Return one of the many functions of ``gym``, with a clock around it."""
        function = getattr(self._gym, name)

        def timed(*args: Any) -> Any:
            # Before the step, which clears them: they count for one step.
            if name == STEP:
                self.torques.append(self._ctrl.copy())
            begun = process_time()
            value = function(*args)
            self.seconds += process_time() - begun
            return value

        return timed


def measure(num_envs: int, steps: int) -> dict[str, float]:
    """Measure the task and the engine.

    Args:
        num_envs: Robots.
        steps: Control steps.

    Returns:
        CPU seconds of creating the task and, per control step, of the API, the engine and the
        task's own code; medians.

    Raises:
        RuntimeError: If the engine does not end in the states of the task, bit for bit.
    """
    whole_number("steps", steps, 1)
    install()
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    legacy_task = import_module("legacy_task")
    torch.manual_seed(SEED)
    begun = process_time()
    # The engine alone has no limits of speeds.
    task = legacy_task.Task(num_envs, episode_length=10**6, fastest=1e3)
    creation = process_time() - begun
    batch = task.sim.state.batch
    timed = TimedGym(task.gym, batch)
    task.gym = timed
    raw = _copy_batch(batch, num_envs)
    api = []
    engine = []
    own_code = []
    for i in range(steps + 1):
        actions = ACTION_SCALE * torch.randn(num_envs, task.num_actions)
        timed.seconds = 0.0
        timed.torques.clear()
        raw.state[:] = batch.state
        begun = process_time()
        _, _, _, done, _ = task.step(actions)
        total = process_time() - begun
        raw_seconds = _replay(raw, timed.torques)
        if i > 0:  # the first step allocates memory
            api.append(timed.seconds)
            engine.append(raw_seconds)
            own_code.append(total - timed.seconds)
        running = ~done.numpy()
        if not np.array_equal(raw.qpos[running], batch.qpos[running]):
            raise RuntimeError(
                "the engine does not do what the task does: "
                "their times are not those of the same work"
            )
    ratios = np.array(api) / np.array(engine)
    return {
        "creation": creation,
        "API": float(np.median(api)),
        "engine": float(np.median(engine)),
        "own code": float(np.median(own_code)),
        "ratio": float(np.median(ratios)),
    }


def _copy_batch(batch: Any, num_envs: int) -> mujoco.batch.Batch:
    """Return a batch of the same model, with the same parameters of each environment."""
    raw = mujoco.batch.Batch(batch.model, num_envs, 1)
    for name in mujoco.batch.MODEL_FIELDS:
        values = batch.expanded(name)
        if values is not None:
            raw.expand(name)[:] = values
    raw.set_const(np.arange(num_envs, dtype=np.int32))
    return raw


def _replay(raw: mujoco.batch.Batch, torques: list[np.ndarray]) -> float:
    """Step the raw engine once for each of the torques. Returns CPU seconds."""
    ctrl = raw.bind("ctrl")
    begun = process_time()
    for values in torques:
        ctrl[:] = values
        raw.step()
    return process_time() - begun


def main(num_envs: int = 1024, steps: int = 25) -> None:
    """Print the times.

    Args:
        num_envs: Robots.
        steps: Control steps, of 4 physics steps each.
    """
    torch.set_num_threads(1)
    figures = measure(num_envs, steps)
    print(
        f"{num_envs} robots: created in {figures['creation']:.2f} s; "
        "a control step of 4 physics steps, CPU time:"
    )
    parts = []
    for name in ("API", "engine", "own code"):
        milliseconds = 1e3 * figures[name]
        parts.append(f"{name} {milliseconds:.2f} ms")
    print("  ".join(parts))
    print(f"the API takes {figures['ratio']:.3f} × the engine's own time")


if __name__ == "__main__":
    tyro.cli(main)
