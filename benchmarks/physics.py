"""What each physics setting costs in time, and what it does to a walking robot.

Time: batches with one variant each go through the same recorded walk in alternating order; reported are medians over
rounds and medians of the ratios to the default within a round. Walk: the policy walks in an environment with the
variant. A policy is trained in the default physics, so a worse walk says how far a variant is from the default, not
that it is worse physics::

    python -m benchmarks.physics Legged/Go2-Flat-v0
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import gymnasium as gym
import mujoco
import mujoco.batch
import numpy as np
import torch
import tyro
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.throughput import check_output, machine
from legged_envs.checks import whole_number
from legged_envs.envs import unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import evaluation_cfg
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.evaluation.metrics.velocity import VelocityEvaluation, VelocityMetrics
from legged_envs.policy.policy import Policy, policy_and_task
from legged_envs.robots import RobotCfg
from legged_envs.sim import SimCfg
from legged_envs.sim.engines import ENGINES
from legged_envs.sim.engines.mujoco import MujocoSimulation
from legged_envs.sim.scene import build_scene
from legged_envs.tasks import make_task_cfg
from legged_envs.tasks.kind import kind_of

CHUNK_STEPS = 10
"""Control steps that a variant goes on from a recorded state: too few to leave the walk."""
CHUNKS = 4
"""Stretches of the walk that a round goes through."""
SETTLING_STEPS, CHUNK_SPACING = 100, 37
"""Control steps before the first recorded stretch and between two."""
SOFT, STIFF = (0.9, 0.95, 0.001, 0.5, 2.0), (0.95, 0.99, 0.001, 0.5, 2.0)
"""Impedances of contacts: MuJoCo's default, and one that leaves a fifth of the slack."""
_WALK_COLUMNS = (
    "lin vel error, m/s",
    "ang vel error, rad/s",
    "falls",
    "foot slip cost, m/s",
    "foot depth, mm",
    "force noise, %",
)
_COLUMNS = ("variant", "CPU time", "wall time", *_WALK_COLUMNS)


@dataclass(frozen=True)
class Variant:
    """A change to the physics of a task."""

    name: str
    sim: dict[str, Any] = field(default_factory=dict)
    """Fields of ``SimCfg`` that differ."""
    option: dict[str, Any] = field(default_factory=dict)
    """Fields of ``model.opt`` that differ."""
    edit: Callable[[mujoco.MjModel], None] = lambda model: None
    """Changes the rest of the compiled model in place."""
    walks: bool = True
    """Whether the walk is worth measuring: not where it is the default's, or where contact forces are missing."""

    def build(self, robot: RobotCfg, cfg: SimCfg) -> mujoco.MjModel:
        """The scene of ``robot`` with this change."""
        model = build_scene(robot, replace(cfg, **self.sim))
        for name, value in self.option.items():
            setattr(model.opt, name, value)
        self.edit(model)
        return model


def variants() -> list[Variant]:
    """The default first, which everything is relative to; its repetition shows the noise of the timing."""
    integrator, solver, disable = mujoco.mjtIntegrator, mujoco.mjtSolver, mujoco.mjtDisableBit
    elliptic = mujoco.mjtCone.mjCONE_ELLIPTIC
    return [
        Variant("default"),
        Variant("default again", walks=False),
        Variant("Euler", option={"integrator": integrator.mjINT_EULER}),
        Variant("implicit", option={"integrator": integrator.mjINT_IMPLICIT}),
        Variant("PGS, 50 iter", {"iterations": 50}, {"solver": solver.mjSOL_PGS}),
        Variant("CG, 100 iter", {"iterations": 100}, {"solver": solver.mjSOL_CG}),
        Variant("Newton, 1 iter, 5 ls", {"iterations": 1, "ls_iterations": 5}),
        Variant("Newton, 2 iter", {"iterations": 2}),
        Variant("elliptic, impratio 1", option={"cone": elliptic, "impratio": 1.0}),
        Variant("elliptic, impratio 100", option={"cone": elliptic, "impratio": 100.0}),
        Variant("islands off", option={"disableflags": disable.mjDSBL_ISLAND}),
        Variant("warm start off", option={"disableflags": disable.mjDSBL_WARMSTART}),
        Variant("condim 4", edit=partial(_set_condim, condim=4)),
        Variant("condim 6", edit=partial(_set_condim, condim=6)),
        Variant("2 ms × 10", {"dt": 0.002, "decimation": 10}),
        Variant("2.5 ms × 8", {"dt": 0.0025, "decimation": 8}),
        Variant("10 ms × 2", {"dt": 0.01, "decimation": 2}),
        Variant("solref 0.02", {"solref": (0.02, 1.0), "solimp": SOFT}),
        Variant("solref 0.015", {"solref": (0.015, 1.0), "solimp": SOFT}),
        Variant("solref 0.01", {"solref": (0.01, 1.0), "solimp": SOFT}),
        Variant("solref 0.02, solimp 0.95 0.99", {"solref": (0.02, 1.0), "solimp": STIFF}),
        Variant("solref 0.015, solimp 0.95 0.99", {"solref": (0.015, 1.0), "solimp": STIFF}),
        Variant("solref 0.01, solimp 0.95 0.99", {"solref": (0.01, 1.0), "solimp": STIFF}),
        Variant("no accelerometer", edit=_remove_accelerometer, walks=False),
    ]


def _set_condim(model: mujoco.MjModel, condim: int) -> None:
    """Set the contact dimension of the robot's collision shapes; a contact has the larger of the two shapes'."""
    model.geom_condim[(model.geom_bodyid > 0) & (model.geom_conaffinity > 0)] = condim


def _remove_accelerometer(model: mujoco.MjModel) -> None:
    """Make the accelerometer a gyroscope, which needs no contact forces on bodies (``cfrc_ext``)."""
    model.sensor_type[model.sensor("imu_acc").id] = mujoco.mjtSensor.mjSENS_GYRO
    model.sensor_needstage[model.sensor("imu_acc").id] = mujoco.mjtStage.mjSTAGE_VEL


@contextmanager
def _engine(variant: Variant) -> Iterator[str]:
    """The name of a physics engine that exists inside the ``with`` block and simulates ``variant``."""

    def make(robot: RobotCfg, cfg: SimCfg, num_envs: int, device: torch.device) -> MujocoSimulation:
        return MujocoSimulation(robot, cfg, num_envs, device, model=variant.build(robot, cfg))

    name = f"mujoco ({variant.name})"
    ENGINES[name] = make
    try:
        yield name
    finally:
        del ENGINES[name]


@contextmanager
def warnings_counted() -> Iterator[Counter[str]]:
    """Counts MuJoCo's warnings inside the ``with`` block, by kind; by default it appends each to MUJOCO_LOG.TXT."""
    counts: Counter[str] = Counter()
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(
        lambda message: counts.update([message.split(" at ")[0].split(".")[0]])
    )
    try:
        yield counts
    finally:
        mujoco.set_mju_user_warning(before)


_Stretch = tuple[np.ndarray, list[np.ndarray]]
"""A piece of a recorded walk: state rows at its beginning, and the joint targets of each control step, rad."""


def _record(task_id: str, cfg: TaskCfg, policy: Policy, num_envs: int) -> list[_Stretch]:
    """Let the policy walk in the default physics."""
    envs = gym.make_vec(task_id, num_envs=num_envs, cfg=evaluation_cfg(cfg), array="torch")
    policy.check(unwrap(envs))
    batch = cast(MujocoSimulation, unwrap(envs).sim).batch
    observation, _ = envs.reset(seed=0)
    stretches: list[_Stretch] = []
    for i in range(CHUNKS):
        for _ in range(CHUNK_SPACING if i else SETTLING_STEPS):
            observation, *_ = envs.step(policy(observation))
        state, targets = batch.state.copy(), []
        for _ in range(CHUNK_STEPS):
            observation, *_ = envs.step(policy(observation))
            targets.append(batch.bind("ctrl").copy())
        stretches.append((state, targets))
    envs.close()
    return stretches


class _Loop:
    """Physics of one variant without an environment around it."""

    def __init__(self, variant: Variant, cfg: TaskCfg, num_envs: int):
        self._batch = mujoco.batch.Batch(
            variant.build(cfg.robot, cfg.sim), num_envs, cfg.sim.num_threads
        )
        self._ctrl = self._batch.bind("ctrl")
        self._decimation = replace(cfg.sim, **variant.sim).decimation

    def run(self, stretch: _Stretch) -> np.ndarray:
        """Wall-clock and CPU seconds of a stretch; loading states and writing targets is not timed."""
        seconds = np.zeros(2)
        self._batch.state[:], targets = stretch
        for target in targets:
            self._ctrl[:] = target
            begun = np.array((time.perf_counter(), time.process_time()))
            self._batch.step(nstep=self._decimation)
            seconds += np.array((time.perf_counter(), time.process_time())) - begun
        return seconds


def measure_times(
    task_id: str, cfg: TaskCfg, policy: Policy, rounds: int, num_envs: int
) -> dict[str, np.ndarray]:
    """Variant → wall-clock and CPU seconds of an environment step. Shape: (rounds, 2)."""
    stretches = _record(task_id, cfg, policy, num_envs)
    loops = {variant.name: _Loop(variant, cfg, num_envs) for variant in variants()}
    seconds = {name: np.zeros((rounds + 1, 2)) for name in loops}
    for i in track(range(rounds + 1), "time", transient=True):
        for turn, stretch in enumerate(stretches):
            shift = (i * CHUNKS + turn) % len(loops)
            for name in [*loops][shift:] + [*loops][:shift]:
                seconds[name][i] += loops[name].run(stretch)
    env_steps = CHUNKS * CHUNK_STEPS * num_envs
    return {
        name: values[1:] / env_steps for name, values in seconds.items()
    }  # the first round warms up


def measure_walk(
    task_id: str, cfg: TaskCfg, policy: Policy, variant: Variant, episodes: int
) -> tuple[VelocityEvaluation, float, float]:
    """Let the policy walk in a variant.

    Returns:
        What ``legged-envs eval`` measures, and how deep the deepest foot is in the ground on average, m (feet that are
        spheres; falls included), and by how much the vertical force on a foot that stands changes from one physics step
        to the next, root mean square relative to the robot's weight.
    """
    with _engine(variant) as sim:
        # The environment counts steps with its own cfg: time step and decimation must be the variant's there too.
        evaluator = Evaluator(
            task_id, replace(cfg, sim=replace(cfg.sim, **variant.sim)), episodes, sim
        )
    policy.check(evaluator.core)
    simulation = cast(MujocoSimulation, evaluator.core.sim)
    model = simulation.model
    feet = [model.body(name).id for name in cfg.robot.foot_names]
    spheres = np.flatnonzero(
        np.isin(model.geom_bodyid, feet)
        & (model.geom_conaffinity > 0)
        & (model.geom_type == mujoco.mjtGeom.mjGEOM_SPHERE)
    )
    positions, depths = simulation.batch.bind("geom_xpos"), []
    forces, weight = simulation.batch.bind("cfrc_ext"), 9.81 * model.body_mass.sum()
    jumps: list[np.ndarray] = []

    def step(num_steps: int) -> None:
        for _ in range(num_steps):
            before = forces[:, feet, 5].copy()
            type(simulation).step(simulation, 1)
            standing = (before > 1.0) & (forces[:, feet, 5] > 1.0)
            jumps.append(np.square((forces[:, feet, 5] - before)[standing] / weight))

    simulation.step = step  # type: ignore[method-assign]

    def act(observation: torch.Tensor) -> torch.Tensor:
        depth = model.geom_size[spheres, 0] - positions[:, spheres, 2]
        depths.append(depth.max(axis=1).clip(min=0.0).mean())
        return policy(observation)

    evaluation = evaluator.run(act, still=False)
    evaluator.close()
    noise = np.sqrt(np.concatenate(jumps).mean())
    return (
        evaluation,
        float(np.mean(depths[1:])),
        float(noise),
    )  # nothing is known of the positions before the first step


def _row(
    name: str, times: dict[str, np.ndarray], walk: tuple[VelocityEvaluation, float, float] | None
) -> list[str]:
    wall, cpu = np.median(times[name] / times["default"], axis=0)
    cells = [name, f"{cpu:.2f}", f"{wall:.2f}"]
    if walk is None:
        return cells + ["–"] * len(_WALK_COLUMNS)
    result, depth, noise = walk
    errors = [f"{result.lin_vel_error:.3f}", f"{result.ang_vel_error:.3f}", f"{result.falls:.1%}"]
    return [
        *cells,
        *errors,
        f"{result.costs['foot_slip']:.4f}",
        f"{1e3 * depth:.2f}",
        f"{100 * noise:.1f}",
    ]


def main(
    task_id: Annotated[str, tyro.conf.Positional],
    policy: Path | None = None,
    rounds: int = 7,
    episodes: int = 256,
    num_envs: int = 256,
    markdown: Path | None = None,
) -> None:
    """Measure what solver, integrator, friction cone, time step and the like cost, and what they do to a walk.

    Args:
        task_id: Registered id of a velocity task.
        policy: A policy.safetensors, or the run folder with it; by default the one that ships with the package.
        rounds: Paired rounds of the timing; medians are reported.
        episodes: Walks of each variant.
        num_envs: Robots of the timing.
        markdown: Where to write the table.
    """
    for name, number in {"rounds": rounds, "episodes": episodes, "num_envs": num_envs}.items():
        whole_number(name, number)
    if markdown is not None:
        check_output("--markdown", markdown)
    if kind_of(make_task_cfg(task_id)).imitates_motions:
        raise ValueError(
            f"{task_id!r} imitates motions; what is measured here is a walk: name a velocity task"
        )
    loaded, cfg, _ = policy_and_task(task_id, policy)
    facts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in machine().items())
    with warnings_counted() as warnings:
        times = measure_times(task_id, cfg, loaded, rounds, num_envs)
        rows = []
        for variant in track(variants(), "walk", transient=True):
            walk = measure_walk(task_id, cfg, loaded, variant, episodes) if variant.walks else None
            rows.append(_row(variant.name, times, walk))
    default_us = 1e6 * np.median(times["default"][:, 1])
    notes = [
        f"`python -m benchmarks.physics {task_id} --rounds {rounds} --episodes {episodes}`, "
        f"policy: {policy or 'shipped'}.",
        f"Machine: {facts}.",
        f"Time: physics of a control step ({1e3 * cfg.sim.step_dt:g} ms) of {num_envs} walking robots, median of "
        f"{rounds} paired rounds, relative to the default, which takes {default_us:.1f} µs of CPU time per robot. What "
        '"default again" has instead of 1 is noise.',
        f"Walk: {episodes} episodes of {VelocityMetrics.EPISODE_SECONDS:g} s with one policy, trained in the default physics. Foot depth: of "
        "the deepest foot in the ground, mean over time. Force noise: change of the vertical force on a standing foot "
        "from one physics step to the next, root mean square relative to the robot's weight.",
        *(f"MuJoCo warned {count} times: {kind}." for kind, count in warnings.items()),
    ]
    _print(f"Physics settings of {task_id}", notes, rows)
    if markdown is not None:
        markdown.parent.mkdir(parents=True, exist_ok=True)
        markdown.write_text(_markdown(f"Physics settings of {task_id}", notes, rows))
        print(f"wrote {markdown}")


def _print(title: str, notes: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in _COLUMNS:
        justify: Any = "left" if column == "variant" else "right"
        table.add_column(column.replace(" ", "\n"), justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(*notes, sep="\n", markup=False, highlight=False)


def _markdown(title: str, notes: list[str], rows: list[list[str]]) -> str:
    lines = [_COLUMNS, ["---", *["---:"] * (len(_COLUMNS) - 1)], *rows]
    return (
        "\n\n".join((f"# {title}", *notes, "\n".join(f"| {' | '.join(line)} |" for line in lines)))
        + "\n"
    )


if __name__ == "__main__":
    tyro.cli(main)
