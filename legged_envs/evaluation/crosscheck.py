"""Crosscheck of a policy: run it on several physics engines and in a plain `mj_step` loop.

All runs start from the same states with the same commands, so their trajectories can be compared.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from rich.console import Console

from legged_envs.envs import CoreVectorEnv, unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.changes import apply_changes
from legged_envs.evaluation.conditions import (
    EVALUATION_ENV_OPTIONS,
    SETTLING_SECONDS,
    evaluation_cfg,
)
from legged_envs.evaluation.crosscheck_comparison import compare, comparison_table, plot_crosscheck
from legged_envs.evaluation.crosscheck_costs import engine_differences
from legged_envs.evaluation.crosscheck_options import CrosscheckCfg
from legged_envs.evaluation.plain_loop import PlainLoop, Recording
from legged_envs.mdp.gait_clock import GaitClock
from legged_envs.mdp.gait_command import GaitCommand
from legged_envs.policy.foreign.summary import print_foreign
from legged_envs.policy.header import without_nan
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.policy import POLICY_FILE, Policy, policy_file, save_onnx
from legged_envs.runs.run_folder import write_json
from legged_envs.sim.engines import find_device, find_engine, known_engines
from legged_envs.tasks import make_task_cfg
from legged_envs.tasks.kind import kind_of

PLAIN = "plain mj_step"
"""Name of the run of the plain loop, which uses only MuJoCo and the exported ONNX file."""


class Start(NamedTuple):
    """Start of a run on the first engine, from which the plain loop starts as well."""

    state: Recording
    """Initial state of the robots."""
    command: np.ndarray
    """Velocity commands (vx, vy, ωz), m/s and rad/s. Shape: (robots, 3)."""
    phase: np.ndarray
    """Initial phase of the gait clock, as a fraction of a stride. 0 without a gait clock. Shape:
    (robots,)."""
    gaits: np.ndarray | None
    """Gait commands. None: the task has none. Shape: (robots, 7)."""
    observation: np.ndarray
    """First observation, which the plain loop must reproduce. Shape: (robots, size)."""


def installed_engines() -> tuple[str, ...]:
    """Return the names of all physics engines that can be imported on this machine."""
    names = []
    for name in known_engines():
        with suppress(ImportError):
            find_engine(name)
            names.append(name)
    return tuple(names)


def crosscheck(
    options: CrosscheckCfg, cfg: TaskCfg, policy: Policy, onnx: Path | None
) -> tuple[dict[str, Recording], str]:
    """Run a policy from the same initial states with the same commands on each engine.

    Noise, delays and randomization are off. The policy also runs in the plain loop, if the
    description in its ONNX file suffices.

    Args:
        options: Options of `legged-envs crosscheck`.
        cfg: Configuration of the task.
        policy: Policy that was trained on the task.
        onnx: ONNX file of the policy, for the plain loop. None: the policy is one of another
            framework, and acts in the plain loop too.

    Returns:
        A pair. The recording of each run, by name of the engine: arrays (steps, robots, …), and
        `command` (robots, 3). A remark on the plain loop, as text.

    Raises:
        ValueError: If the task is not a velocity task made of terms, or an engine cannot run it.
    """
    _check_task(options.task_id, cfg)
    # Unknown names are told before the first engine has run for minutes.
    find_device(options.device)
    for sim in options.sims:
        find_engine(sim)
    cfg = _exact_cfg(cfg)
    steps = round(options.seconds / cfg.sim.step_dt)
    runs: dict[str, Recording] = {}
    start: Start | None = None
    for sim in options.sims or installed_engines():
        started, rows = _run_engine(sim, options, cfg, policy, steps)
        # All engines start in the state of the first one.
        start = start or started
        runs[sim] = _stacked(rows, start.command)
    assert start is not None
    try:
        rows, error = _run_plain_loop(onnx or policy, cfg, start, steps)
    # A contract that the plain loop cannot run is a finding, not an error.
    except ValueError as reason:
        return runs, f"no {PLAIN} loop from the contract alone: {reason}"
    runs[PLAIN] = _stacked(rows, start.command)
    remark = (
        f"the first observation in the {PLAIN} loop, from the contract, "
        f"is off by {error:.1g} at most"
    )
    return runs, remark


def _check_task(task_id: str, cfg: TaskCfg) -> None:
    if not kind_of(cfg).follows_velocity or not cfg.is_reconfigurable:
        raise ValueError(f"crosscheck is for velocity commands and tasks of terms, got {task_id!r}")


def _exact_cfg(cfg: TaskCfg) -> TaskCfg:
    """Return the configuration without noise, delays and randomization."""
    # Events that place the robots stay: they draw the first states from the seed.
    placing = {name: event for name, event in cfg.events.items() if event.purpose == "place"}
    changes: dict[str, Any] = {
        "events": placing,
        "max_action_delay": 0,
        # A heading would change the command from step to step, and the loop holds it.
        "commands.velocity.heading": False,
    }
    for name, group in cfg.observations.items():
        terms = {each: replace(term, delay=0) for each, term in group.terms.items()}
        changes[f"observations.{name}"] = replace(group, terms=terms, noisy=False)
    return apply_changes(evaluation_cfg(cfg), changes)


def _run_engine(
    sim: str, options: CrosscheckCfg, cfg: TaskCfg, policy: Policy, steps: int
) -> tuple[Start, list[Recording]]:
    """Return how robots start on an engine, and their states after each step."""
    envs = gym.make_vec(
        options.task_id,
        num_envs=options.robots,
        cfg=cfg,
        sim=sim,
        device="cpu" if sim == "mujoco" else options.device,
        **EVALUATION_ENV_OPTIONS,
    )
    with closing(envs):
        core = unwrap(envs)
        # `--changes` may have made a task that the policy does not fit.
        policy.check(core)
        observation, _ = envs.reset(seed=options.seed)
        policy.reset()
        first_group = next(iter(policy.inputs))
        start = _start(core, observation[first_group])
        rows = []
        for _ in range(steps):
            # The policy acts on the CPU, so that it computes the same for every engine.
            inputs = [observation[group].cpu() for group in policy.inputs]
            action = policy(*inputs).to(core.device)
            observation, *_, info = envs.step(action)
            rows.append({**_look(core), "costs": _as_array(info["costs"])})
    return start, rows


def _start(core: CoreVectorEnv, observation: torch.Tensor) -> Start:
    phase = torch.zeros(core.num_envs)
    gaits = None
    for term in core.commands.terms.values():
        if isinstance(term, GaitClock):
            # The command shows (sin, cos) of the time of the stride.
            sine, cosine = term.value.T
            phase = torch.atan2(sine, cosine) / (2.0 * torch.pi)
            break
        if isinstance(term, GaitCommand):
            phase = term.stride_time
            gaits = _as_array(term.value)
            break
    return Start(
        state=_look(core),
        command=_as_array(core.commands["velocity"][:, :3]),
        phase=_as_array(phase),
        gaits=gaits,
        observation=_as_array(observation),
    )


def _look(core: CoreVectorEnv) -> Recording:
    """Return what `PlainLoop.look` returns, from an environment."""
    sim = core.sim
    robot = core.robot
    return {
        "root": _as_array(torch.cat((sim.root_pos_w, sim.root_quat_w), 1)),
        "twist": _as_array(torch.cat((sim.root_lin_vel_w, sim.root_ang_vel_b), 1)),
        "lin_vel": _as_array(robot.lin_vel_b),
        "gravity": _as_array(robot.projected_gravity),
        "height": _as_array(robot.base_height),
        "contact": _as_array(robot.foot_contact),
        "joints": _as_array(sim.joint_pos),
        "joint_vel": _as_array(sim.joint_vel),
        "torque": _as_array(robot.joint_torque),
    }


def _as_array(tensor: torch.Tensor) -> np.ndarray:
    # Views of the simulation change with the next step: a copy is kept.
    array: np.ndarray = tensor.detach().cpu().clone().numpy()
    return array


def _run_plain_loop(
    source: Path | Policy, cfg: TaskCfg, start: Start, steps: int
) -> tuple[list[Recording], float]:
    """Return the states after each step, and the error of the first observation."""
    if cfg.scene.terrain is not None:
        raise ValueError("the task is on rough ground, and this loop on a plane")
    loop = PlainLoop(source, cfg.robot, cfg.sim)
    loop.start(start.state, start.command, start.phase, start.gaits)
    error = abs(loop.observe() - start.observation).max(initial=0.0)
    rows = [loop.step() for _ in range(steps)]
    return rows, error


def _stacked(rows: Sequence[Recording], command: np.ndarray) -> Recording:
    run = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    run["command"] = command
    return run


def main(options: CrosscheckCfg) -> None:
    """Run a crosscheck, print its table, plot it and write its numbers.

    The ONNX file is read from the run folder. If there is none, the policy is exported first.

    Args:
        options: Options of `legged-envs crosscheck`.

    Raises:
        ValueError: If `options.seconds` is too short or the task is not a velocity task.
    """
    # Before a policy and motions are read.
    _check_task(options.task_id, make_task_cfg(options.task_id))
    policy, cfg, _ = policy_and_task(
        options.task_id,
        options.policy,
        options.changes,
        motions=options.motions,
        description=options.contract,
        reading=options.motion,
    )
    print_foreign(policy)
    least = SETTLING_SECONDS + cfg.sim.step_dt
    if options.seconds < least:
        raise ValueError(
            f"--seconds must be at least {least:g}, a control step more than is left out, "
            f"got {options.seconds:g}"
        )
    # The file that others run is checked, not one that this version would export today.
    file = policy_file(options.policy or "")
    with TemporaryDirectory() as folder:
        onnx: Path | None = file.with_name("policy.onnx")
        is_run = options.policy is not None and file.name == POLICY_FILE
        if "foreign" in policy.contract:
            onnx = None
        elif onnx is None or not is_run or not onnx.is_file():
            onnx = Path(folder) / "policy.onnx"
            save_onnx(onnx, policy, {"inputs": policy.inputs, **policy.contract})
        runs, remark = crosscheck(options, cfg, policy, onnx)
    limits = {name: term.limit for name, term in cfg.costs.items()}
    numbers = compare(runs, cfg.robot, cfg.sim.step_dt, limits)
    plot_crosscheck(runs, cfg.robot.foot_names, cfg.sim.step_dt, options.picture)
    table = comparison_table(numbers, options.task_id, limits)
    costs = {name: row["costs"] for name, row in numbers.items()}
    differences = engine_differences(costs, limits)
    Console().print(table, *differences, f"{remark}; drawn to {options.picture}", sep="\n")
    if options.json is not None:
        facts = {"remark": remark, "cost_limits": limits, "engine_differences": differences}
        _write_numbers(options, options.json, facts, numbers)


def _write_numbers(
    options: CrosscheckCfg, path: Path, facts: Mapping[str, Any], numbers: Mapping[str, Any]
) -> None:
    values = {
        "task_id": options.task_id,
        "seed": options.seed,
        "seconds": options.seconds,
        "robots": options.robots,
        **facts,
        "runs": numbers,
    }
    write_json(path, without_nan(values))
