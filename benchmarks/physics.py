"""Measures the time of each physics setting, and its effect on a walking robot.

Time: batches with one variant each go through the same recorded walk in alternating order. The
figures are medians over rounds and medians of the ratios to the default within a round. Walk: the
policy walks in an environment with the variant. A policy is trained in the default physics, so a
worse walk shows how far a variant is from the default, not that it is worse physics::

    python -m benchmarks.physics Legged/Go2-Flat-v0
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import gymnasium as gym
import mujoco
import mujoco.batch
import numpy as np
import tyro
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.loops import Stretch
from benchmarks.machine import machine
from benchmarks.physics_variants import DEFAULT, Variant, variants
from benchmarks.physics_walk import Walk, measure_walk
from benchmarks.ratios import rotated
from legged_envs.checks import whole_number
from legged_envs.envs import unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import evaluation_cfg
from legged_envs.evaluation.metrics.velocity import VelocityMetrics
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.policy import Policy
from legged_envs.sim.engines.mujoco import MujocoSimulation
from legged_envs.system_checks import check_output
from legged_envs.tasks import make_task_cfg
from legged_envs.tasks.kind import kind_of

CHUNK_STEPS = 10
"""Control steps of a variant from a recorded state: too few to leave the walk."""
CHUNKS = 4
"""Stretches of the walk that a round goes through."""
SETTLING_STEPS = 100
"""Control steps before the first recorded stretch."""
CHUNK_SPACING = 37
"""Control steps between two recorded stretches."""
WALK_COLUMNS = (
    "lin vel error, m/s",
    "ang vel error, rad/s",
    "falls",
    "foot slip cost, m/s",
    "foot depth, mm",
    "force noise, %",
)
"""Columns of the table that describe a walk."""
COLUMNS = ("variant", "CPU time", "wall time", *WALK_COLUMNS)
"""Columns of the table."""


@contextmanager
def warnings_counted() -> Iterator[Counter[str]]:
    """Count MuJoCo's warnings inside the ``with`` block, by kind.

    By default MuJoCo appends each to MUJOCO_LOG.TXT.
    """
    counts: Counter[str] = Counter()

    def count(message: str) -> None:
        kind = message.split(" at ")[0].split(".")[0]
        counts[kind] += 1

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(count)
    try:
        yield counts
    finally:
        mujoco.set_mju_user_warning(before)


def _record(task_id: str, cfg: TaskCfg, policy: Policy, num_envs: int) -> list[Stretch]:
    """Let the policy walk in the default physics, and return stretches of the walk."""
    envs = gym.make_vec(task_id, num_envs=num_envs, cfg=evaluation_cfg(cfg), array="torch")
    policy.check(unwrap(envs))
    batch = cast(MujocoSimulation, unwrap(envs).sim).batch
    ctrl = batch.bind("ctrl")
    observation, _ = envs.reset(seed=0)
    stretches: list[Stretch] = []
    for i in range(CHUNKS):
        pause = CHUNK_SPACING if i > 0 else SETTLING_STEPS
        for _ in range(pause):
            observation, *_ = envs.step(policy(observation))
        rows = batch.state.copy()
        targets = []
        for _ in range(CHUNK_STEPS):
            observation, *_ = envs.step(policy(observation))
            targets.append(ctrl.copy())
        stretches.append((rows, targets))
    envs.close()
    return stretches


class _Loop:
    """Physics of one variant, without an environment around it."""

    def __init__(self, variant: Variant, cfg: TaskCfg, num_envs: int):
        model = variant.build(cfg.robot, cfg.sim)
        self._batch = mujoco.batch.Batch(model, num_envs, cfg.sim.num_threads)
        self._ctrl = self._batch.bind("ctrl")
        self._decimation = replace(cfg.sim, **variant.sim).decimation

    def run(self, stretch: Stretch) -> tuple[float, float]:
        """Step through a stretch. Returns wall-clock and CPU seconds.

        Loading states and writing targets is not timed.
        """
        wall = 0.0
        cpu = 0.0
        rows, targets = stretch
        self._batch.state[:] = rows
        for target in targets:
            self._ctrl[:] = target
            wall_begun = time.perf_counter()
            cpu_begun = time.process_time()
            self._batch.step(nstep=self._decimation)
            wall += time.perf_counter() - wall_begun
            cpu += time.process_time() - cpu_begun
        return wall, cpu


def measure_times(
    task_id: str, cfg: TaskCfg, policy: Policy, rounds: int, num_envs: int
) -> dict[str, np.ndarray]:
    """Time all variants on the same walk.

    Args:
        task_id: Registered id of a velocity task.
        cfg: Its configuration.
        policy: The policy that walks.
        rounds: Rounds that count.
        num_envs: Number of robots.

    Returns:
        Wall-clock and CPU seconds of an environment step, (rounds, 2), by name of the variant.
    """
    stretches = _record(task_id, cfg, policy, num_envs)
    loops = {variant.name: _Loop(variant, cfg, num_envs) for variant in variants()}
    seconds = {name: np.zeros((rounds + 1, 2)) for name in loops}
    for i in track(range(rounds + 1), "time", transient=True):
        for turn, stretch in enumerate(stretches):
            for name in rotated(list(loops), i * CHUNKS + turn):
                seconds[name][i] += loops[name].run(stretch)
    env_steps = CHUNKS * CHUNK_STEPS * num_envs
    # The first round warms up.
    return {name: values[1:] / env_steps for name, values in seconds.items()}


def _row(name: str, times: dict[str, np.ndarray], walk: Walk | None) -> list[str]:
    """Return a row of the table."""
    wall, cpu = np.median(times[name] / times[DEFAULT], axis=0)
    cells = [name, f"{cpu:.2f}", f"{wall:.2f}"]
    if walk is None:
        return cells + ["–"] * len(WALK_COLUMNS)
    evaluation = walk.evaluation
    return [
        *cells,
        f"{evaluation.lin_vel_error:.3f}",
        f"{evaluation.ang_vel_error:.3f}",
        f"{evaluation.falls:.1%}",
        f"{evaluation.costs['foot_slip']:.4f}",
        f"{1e3 * walk.foot_depth:.2f}",
        f"{100 * walk.force_noise:.1f}",
    ]


def main(
    task_id: Annotated[str, tyro.conf.Positional],
    policy: Path | None = None,
    rounds: int = 7,
    episodes: int = 256,
    num_envs: int = 256,
    markdown: Path | None = None,
) -> None:
    """Measure what solver, integrator, cone, time step and so on cost, and do to a walk.

    Args:
        task_id: Registered id of a velocity task.
        policy: A policy.safetensors, or the run folder with it; the shipped one by default.
        rounds: Paired rounds of the timing; medians are reported.
        episodes: Walks of each variant.
        num_envs: Robots of the timing.
        markdown: Where to write the table.
    """
    whole_number("rounds", rounds)
    whole_number("episodes", episodes)
    whole_number("num_envs", num_envs)
    check_output("--markdown", markdown)
    if kind_of(make_task_cfg(task_id)).imitates_motions:
        raise ValueError(
            f"{task_id!r} imitates motions; what is measured here is a walk: name a velocity task"
        )
    loaded, cfg, _ = policy_and_task(task_id, policy)
    rows = []
    with warnings_counted() as warnings:
        times = measure_times(task_id, cfg, loaded, rounds, num_envs)
        for variant in track(variants(), "walk", transient=True):
            walk = None
            if variant.walks:
                walk = measure_walk(task_id, cfg, loaded, variant, episodes)
            rows.append(_row(variant.name, times, walk))
    notes = [
        f"`python -m benchmarks.physics {task_id} --rounds {rounds} --episodes {episodes}`, "
        f"policy: {policy or 'shipped'}.",
        _machine_note(),
        _time_note(cfg, times, rounds, num_envs),
        _walk_note(episodes),
    ]
    for kind, count in warnings.items():
        notes.append(f"MuJoCo warned {count} times: {kind}.")
    title = f"Physics settings of {task_id}"
    _print(title, notes, rows)
    if markdown is not None:
        markdown.parent.mkdir(parents=True, exist_ok=True)
        markdown.write_text(_markdown(title, notes, rows))
        print(f"wrote {markdown}")


def _machine_note() -> str:
    facts = []
    for name, value in machine().items():
        label = name.replace("_", " ")
        facts.append(f"{label} {value}")
    return f"Machine: {', '.join(facts)}."


def _time_note(cfg: TaskCfg, times: dict[str, np.ndarray], rounds: int, num_envs: int) -> str:
    step_ms = 1e3 * cfg.sim.step_dt
    default_us = 1e6 * np.median(times[DEFAULT][:, 1])
    return (
        f"Time: physics of a control step ({step_ms:g} ms) of {num_envs} walking robots, median "
        f"of {rounds} paired rounds, relative to the default, which takes {default_us:.1f} µs of "
        'CPU time per robot. The distance of "default again" from 1 is noise.'
    )


def _walk_note(episodes: int) -> str:
    seconds = VelocityMetrics.EPISODE_SECONDS
    return (
        f"Walk: {episodes} episodes of {seconds:g} s with one policy, trained in the default "
        "physics. Foot depth: of the deepest foot in the ground, mean over time. Force noise: "
        "change of the vertical force on a standing foot from one physics step to the next, root "
        "mean square relative to the robot's weight."
    )


def _print(title: str, notes: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in COLUMNS:
        justify: Any = "left" if column == "variant" else "right"
        table.add_column(column.replace(" ", "\n"), justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(*notes, sep="\n", markup=False, highlight=False)


def _markdown(title: str, notes: list[str], rows: list[list[str]]) -> str:
    """Return title, notes and table as Markdown."""
    rule = ["---"] + ["---:"] * (len(COLUMNS) - 1)
    lines = []
    for cells in (COLUMNS, rule, *rows):
        lines.append(f"| {' | '.join(cells)} |")
    table = "\n".join(lines)
    paragraphs = [f"# {title}", *notes, table]
    return "\n\n".join(paragraphs) + "\n"


if __name__ == "__main__":
    tyro.cli(main)
