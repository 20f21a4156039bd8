"""What the Isaac Gym API costs: a task in legged_gym's style beside the raw engine, which replays its torques.

The two take turns in one process with one thread; reported are medians of the ratios of CPU time within a control step,
and what the task's own PyTorch code takes on top::

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


class TimedGym:
    """The functions of ``gym``, the CPU seconds inside of them, and the torques that they were given."""

    def __init__(self, gym: Any):
        self._gym, self.seconds, self.torques = gym, 0.0, list[np.ndarray]()

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._gym, name)

        def timed(*args: Any) -> Any:
            if name == "set_dof_actuation_force_tensor":
                self.torques.append(args[1].tensor.numpy().astype(np.float64))
            begun = process_time()
            value = function(*args)
            self.seconds += process_time() - begun
            return value

        return timed


def measure(num_envs: int, steps: int) -> dict[str, float]:
    """CPU seconds of creating the task and, per control step, of the API, the engine and the task's own code; medians.

    RuntimeError if the engine does not end in the states of the task, bit for bit."""
    whole_number("steps", steps, 1)
    install()
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    legacy_task = import_module("legacy_task")
    begun = process_time()
    task = legacy_task.Task(num_envs, episode_length=10**6)
    creation, timed, batch = process_time() - begun, TimedGym(task.gym), task.sim.state.batch
    task.gym = timed
    raw, rows = mujoco.batch.Batch(batch.model, num_envs, 1), []
    for name in mujoco.batch.MODEL_FIELDS:
        if (own := batch.expanded(name)) is not None:
            raw.expand(name)[:] = own
    raw.set_const(np.arange(num_envs, dtype=np.int32))
    ctrl = raw.bind("ctrl")
    for i in range(steps + 1):
        actions, timed.seconds = 0.4 * torch.randn(num_envs, task.num_actions), 0.0
        timed.torques.clear()
        raw.state[:], begun = batch.state, process_time()
        _, _, _, done, _ = task.step(actions)
        total, begun = process_time() - begun, process_time()
        for torques in timed.torques:
            ctrl[:] = torques
            raw.step()
        if i:  # the first step makes room
            rows.append((timed.seconds, process_time() - begun, total - timed.seconds))
        if not np.array_equal(raw.qpos[~done.numpy()], batch.qpos[~done.numpy()]):
            raise RuntimeError(
                "the engine does not do what the task does: their times are not those of the same work"
            )
    api, engine, own = np.array(rows).T
    medians = {"API": api, "engine": engine, "own code": own, "ratio": api / engine}
    return {"creation": creation} | {
        name: float(np.median(values)) for name, values in medians.items()
    }


def main(num_envs: int = 1024, steps: int = 25) -> None:
    """Print the times.

    Args:
        num_envs: Robots.
        steps: Control steps, of 4 physics steps each.
    """
    torch.set_num_threads(1)
    found = measure(num_envs, steps)
    print(
        f"{num_envs} robots: created in {found['creation']:.2f} s; a control step of 4 physics steps, CPU time:"
    )
    print("  ".join(f"{name} {1e3 * found[name]:.2f} ms" for name in ("API", "engine", "own code")))
    print(f"the API takes {found['ratio']:.3f} × the engine's own time")


if __name__ == "__main__":
    tyro.cli(main)
