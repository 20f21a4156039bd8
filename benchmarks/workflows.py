"""What a control step costs in each form of one task, against the form of managers, in one process.

All forms take turns within every round, over the same actions, and what is reported are medians over the rounds and
medians of the ratios within a round::

    python -m benchmarks.workflows --num-envs 1024 --rounds 9
"""

from __future__ import annotations

import statistics
import sys
import time
from importlib import import_module
from pathlib import Path

import gymnasium as gym
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

import legged_envs
from legged_envs.checks import whole_number

EXAMPLES = Path(__file__).parents[1] / "examples" / "workflows"
MANAGERS = "Legged/Go2-Flat-v0"
FORMS = {
    "direct": "Example/Go2-Flat-Direct-v0",
    "multi_agent": "Example/Go2-Flat-Multi-Agent-v0",
    "manager_based": "Example/Go2-Flat-ManagerBased-v0",
    "legged_robot": "Example/Go2-Flat-LeggedRobot-v0",
    "rl_task": "Example/Go2-Flat-RLTask-v0",
}
"""Modules of ``examples/workflows`` without their prefix → ids."""


def main(num_envs: int = 1024, rounds: int = 9, steps: int = 10) -> dict[str, float]:
    """Time the forms. Args:
    num_envs: Robots in each environment.
    rounds: How often every form has a turn.
    steps: Control steps in a turn."""
    for name, number in (("num_envs", num_envs), ("rounds", rounds), ("steps", steps)):
        whole_number(name, number)
    sys.path.insert(0, str(EXAMPLES))
    for form in FORMS:
        import_module(f"go2_flat_{form}")
    ids = {"managers": MANAGERS, **FORMS}
    envs = {form: gym.make_vec(task_id, num_envs=num_envs) for form, task_id in ids.items()}
    rng = np.random.default_rng(0)
    seconds: dict[str, list[float]] = {form: [] for form in envs}
    for env in envs.values():
        env.reset(seed=0)
    for _ in range(rounds + 1):  # the first round warms up
        actions = rng.uniform(
            -0.3, 0.3, (steps, num_envs, legged_envs.make_task_cfg(MANAGERS).robot.num_joints)
        )
        actions = actions.astype(np.float32)
        for form, env in envs.items():
            begun = time.perf_counter()
            for action in actions:
                env.step(action)
            seconds[form].append((time.perf_counter() - begun) / steps)
    ratios = {}
    table = Table(
        "form", "step, ms", "ratio", title=f"{num_envs} robots, {rounds} rounds of {steps} steps"
    )
    for form, times in seconds.items():
        pairs = zip(times[1:], seconds["managers"][1:], strict=True)
        ratios[form] = statistics.median(own / managers for own, managers in pairs)
        table.add_row(form, f"{1e3 * statistics.median(times[1:]):.2f}", f"{ratios[form]:.3f}")
    for env in envs.values():
        env.close()
    Console().print(table)
    return ratios


if __name__ == "__main__":
    tyro.cli(main)
