"""Measures a control step in each form of one task, relative to the form with managers.

All forms take turns within every round of one process, over the same actions. The figures are
medians over the rounds and medians of the ratios within a round::

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
from benchmarks.ratios import median_ratio
from legged_envs.checks import whole_number

EXAMPLES = Path(__file__).parents[1] / "examples" / "workflows"
"""Folder of the examples with the forms."""
MANAGERS = "Legged/Go2-Flat-v0"
"""Id of the form with managers."""
FORMS = {
    "direct": "Example/Go2-Flat-Direct-v0",
    "multi_agent": "Example/Go2-Flat-Multi-Agent-v0",
    "manager_based": "Example/Go2-Flat-ManagerBased-v0",
    "legged_robot": "Example/Go2-Flat-LeggedRobot-v0",
    "rl_task": "Example/Go2-Flat-RLTask-v0",
}
"""Ids of the other forms, by the end of the name of their module in ``examples/workflows``."""


def main(num_envs: int = 1024, rounds: int = 9, steps: int = 10) -> dict[str, float]:
    """Time the forms, and print a table.

    Args:
        num_envs: Robots in each environment.
        rounds: How often every form has a turn.
        steps: Control steps in a turn.

    Returns:
        The ratio of each form to that with managers.
    """
    whole_number("num_envs", num_envs)
    whole_number("rounds", rounds)
    whole_number("steps", steps)
    seconds = measure_seconds(num_envs, rounds, steps)
    title = f"{num_envs} robots, {rounds} rounds of {steps} steps"
    table = Table("form", "step, ms", "ratio", title=title)
    ratios = {}
    for form, times in seconds.items():
        ratio = median_ratio(times, seconds["managers"])
        milliseconds = 1e3 * statistics.median(times)
        table.add_row(form, f"{milliseconds:.2f}", f"{ratio:.3f}")
        ratios[form] = ratio
    Console().print(table)
    return ratios


def measure_seconds(num_envs: int, rounds: int, steps: int) -> dict[str, list[float]]:
    """Return the seconds of a step in each round, by form."""
    sys.path.insert(0, str(EXAMPLES))
    for form in FORMS:
        import_module(f"go2_flat_{form}")
    envs = {"managers": gym.make_vec(MANAGERS, num_envs=num_envs)}
    for form, task_id in FORMS.items():
        envs[form] = gym.make_vec(task_id, num_envs=num_envs)
    for env in envs.values():
        env.reset(seed=0)
    rng = np.random.default_rng(0)
    num_joints = legged_envs.make_task_cfg(MANAGERS).robot.num_joints
    seconds: dict[str, list[float]] = {form: [] for form in envs}
    for i in range(rounds + 1):
        drawn = rng.uniform(-0.3, 0.3, (steps, num_envs, num_joints))
        actions = drawn.astype(np.float32)
        for form, env in envs.items():
            begun = time.perf_counter()
            for action in actions:
                env.step(action)
            taken = time.perf_counter() - begun
            if i > 0:  # the first round warms up
                seconds[form].append(taken / steps)
    for env in envs.values():
        env.close()
    return seconds


if __name__ == "__main__":
    tyro.cli(main)
