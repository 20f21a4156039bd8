"""One policy on several engines, and in a plain loop from its ONNX file: how it does, and where the runs part."""

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from rich.console import Console
from rich.table import Column, Table

from legged_envs.envs import LeggedVectorEnv, unwrap
from legged_envs.envs.cfg import TaskCfg, replaced
from legged_envs.evaluation.conditions import (
    EVALUATION_ENV_OPTIONS,
    SETTLING_SECONDS,
    evaluation_cfg,
)
from legged_envs.evaluation.crosscheck_options import CrosscheckCfg
from legged_envs.evaluation.plain_loop import PlainLoop, Recording
from legged_envs.mdp.gait_clock import GaitClock
from legged_envs.policy.policy import POLICY_FILE, Policy, policy_and_task, policy_file, save_onnx
from legged_envs.robots import RobotCfg
from legged_envs.runs.run_folder import write_json
from legged_envs.sim.engines import find_device, find_engine, known_engines
from legged_envs.tasks.kind import kind_of

PLAIN = "plain mj_step"
LARGEST_TILT, LOWEST = 1.0, 0.5
"""A robot has fallen once it is tilted by more, rad, or its base is below this part of its height."""
BASE_APART, JOINT_APART = 0.05, 0.1
"""Two runs have parted once a base is this far from that of the first run, m, or a joint, rad."""
UNITS = {
    "lin_vel_error": "m/s",
    "ang_vel_error": "rad/s",
    "falls": "%",
    "torque_rms": "N·m",
    "duty_factor": "%",
}
UNITS |= {"same_contact": "%", "parted": "%", "parts_after": "s"}


def installed_engines() -> tuple[str, ...]:
    """Names of all engines that can be imported."""
    names = []
    for name in known_engines():
        with suppress(ImportError):
            find_engine(name)
            names.append(name)
    return tuple(names)


def crosscheck(
    options: CrosscheckCfg, cfg: TaskCfg, policy: Policy, onnx: Path
) -> tuple[dict[str, Recording], str]:
    """What robots did on each engine, and in the plain loop if it can run the policy, from the same states under the
    same commands, without noise, delays and randomisation: arrays (steps, robots, …), ``command`` (robots, 3); and a
    remark. ValueError unless the robots of the task ``cfg`` follow velocities, in terms; or an engine lacks things."""
    if not kind_of(cfg).follows_velocity or cfg.workflow is not None:
        raise ValueError(
            f"crosscheck is for velocity commands and tasks of terms, got {options.task_id!r}"
        )
    find_device(options.device)
    for sim in options.sims:
        find_engine(sim)
    placing = {name: event for name, event in cfg.events.items() if event.purpose == "place"}
    exact: dict[str, Any] = {
        "events": placing,
        "max_action_delay": 0,
        "commands.velocity.heading": False,
    }
    for name, group in cfg.observations.items():
        terms = {each: replace(term, delay=0) for each, term in group.terms.items()}
        exact[f"observations.{name}"] = replace(group, terms=terms, noisy=False)
    cfg = replaced(evaluation_cfg(cfg), exact)
    runs, start, steps = (
        dict[str, Recording](),
        dict[str, Any](),
        round(options.seconds / cfg.sim.step_dt),
    )
    for sim in options.sims or installed_engines():
        made: dict[str, Any] = {
            "sim": sim,
            "device": "cpu" if sim == "mujoco" else options.device,
            **EVALUATION_ENV_OPTIONS,
        }
        with closing(
            gym.make_vec(options.task_id, num_envs=options.robots, cfg=cfg, **made)
        ) as envs:
            policy.check(core := unwrap(envs))
            observation, _ = envs.reset(seed=options.seed)
            start = start or _start(core, observation[next(iter(policy.inputs))])
            rows = []
            for _ in range(steps):
                action = policy(*(observation[group].cpu() for group in policy.inputs))
                observation, *_ = envs.step(action.to(core.device))
                rows.append(_look(core))
        runs[sim] = _stacked(rows, start)
    try:
        if cfg.scene.terrain is not None:
            raise ValueError("the task is on rough ground, and this loop on a plane")
        loop = PlainLoop(onnx, cfg.robot, cfg.sim)
        loop.start(start["state"], start["command"], start["phase"])
        off = abs(loop.observe() - start["observation"]).max(initial=0.0)
        rows = [loop.step() for _ in range(steps)]
        runs[PLAIN] = _stacked(rows, start)
        remark = f"the first observation in the {PLAIN} loop, from the contract, is off by {off:.1g} at most"
    except ValueError as error:
        remark = f"no {PLAIN} loop from the contract alone: {error}"
    return runs, remark


def _start(core: LeggedVectorEnv, observation: torch.Tensor) -> dict[str, Any]:
    """What the plain loop is told: states, commands, times of the stride; and what its first observation is to be."""
    clocks = [term.value for term in core.commands.terms.values() if isinstance(term, GaitClock)]
    phase = torch.atan2(*clocks[0].T) / (2.0 * torch.pi) if clocks else torch.zeros(core.num_envs)
    arrays = {
        "command": core.commands["velocity"][:, :3],
        "phase": phase,
        "observation": observation,
    }
    return {"state": _look(core), **{name: _array(value) for name, value in arrays.items()}}


def _look(core: LeggedVectorEnv) -> Recording:
    sim, robot = core.sim, core.robot
    root, twist = (sim.root_pos_w, sim.root_quat_w), (sim.root_lin_vel_w, sim.root_ang_vel_b)
    row = {"root": torch.cat(root, 1), "twist": torch.cat(twist, 1), "lin_vel": robot.lin_vel_b}
    row |= {
        "gravity": robot.projected_gravity,
        "height": robot.base_height,
        "contact": robot.foot_contact,
    }
    row |= {"joints": sim.joint_pos, "joint_vel": sim.joint_vel, "torque": robot.joint_torque}
    return {name: _array(value) for name, value in row.items()}


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().clone().numpy()


def _stacked(rows: list[Recording], start: dict[str, Any]) -> Recording:
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]} | {
        "command": start["command"]
    }


def compare(
    runs: Mapping[str, Recording], robot: RobotCfg, step_dt: float
) -> dict[str, dict[str, Any]]:
    """Of each run the numbers of :data:`UNITS`, means over robots and over the time after the first second until they
    fall, None without any; and ``where`` it parts from the first run: robot, joint or base, how far the bases get."""
    first, numbers = next(iter(runs.values())), dict[str, dict[str, Any]]()
    settled = {name: _upright(run, robot, step_dt) for name, run in runs.items()}
    for name, run in runs.items():
        alive, counted = settled[name]
        error = run["command"] - np.concatenate(
            (run["lin_vel"][..., :2], run["twist"][..., 5:]), axis=2
        )
        bases = np.linalg.norm(run["root"][..., :3] - first["root"][..., :3], axis=2)
        joints = abs(run["joints"] - first["joints"])
        apart = ~np.concatenate(
            (bases[..., None] <= BASE_APART, joints <= JOINT_APART), axis=2
        )  # so is what is NaN
        places, where = (
            np.argwhere(apart),
            "" if run is first else f"never: bases at most {bases.max():.1g} m apart",
        )
        if len(places):
            _, i, part = places[0]
            where = f"robot {i}, {('base', *robot.joint_names)[part]}; bases {np.nanmax(bases):.2g} m apart at most"
        row = {
            "lin_vel_error": _mean(np.linalg.norm(error[..., :2], axis=2), counted),
            "ang_vel_error": _mean(abs(error[..., 2]), counted),
            "falls": float((~alive[-1]).mean()),
            "torque_rms": _mean((run["torque"] ** 2).mean(2), counted) ** 0.5,
            "duty_factor": _mean(run["contact"].mean(2), counted),
            "same_contact": _mean(
                (run["contact"] == first["contact"]).mean(2), counted & settled[next(iter(runs))][1]
            ),
            "parted": float(apart.any((0, 2)).mean()),
            "parts_after": (places[0][0] + 1) * step_dt if len(places) else float("nan"),
        }
        numbers[name] = {
            **{key: None if value != value else value for key, value in row.items()},
            "where": where,
        }
    return numbers


def _upright(run: Recording, robot: RobotCfg, step_dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Whether robots had not fallen by each step, and of which of these steps means are taken. (steps, robots)."""
    upright = (run["gravity"][..., 2] < -np.cos(LARGEST_TILT)) & (
        run["height"] > LOWEST * robot.base_height
    )
    alive = np.logical_and.accumulate(upright)
    later = np.arange(len(alive))[:, None] >= round(SETTLING_SECONDS / step_dt)
    return alive, alive & later


def _mean(values: np.ndarray, counted: np.ndarray) -> float:
    return float(values[counted].mean()) if counted.any() else float("nan")


def plot_crosscheck(
    runs: Mapping[str, Recording], feet: Sequence[str], step_dt: float, path: Path
) -> None:
    """Draw the speed of the first robot, how far the bases are from those of the first run, torques, and the first
    robot's contacts, as a PNG."""
    from matplotlib.figure import Figure

    first, steps = next(iter(runs.values())), len(next(iter(runs.values()))["height"])
    times = step_dt * np.arange(1, steps + 1)
    figure = Figure((13, 7), layout="constrained")
    axes = figure.subplot_mosaic([["speed", "apart", "torque"], ["contact"] * 3])
    axes["speed"].axhline(
        first["command"][0, 0], color="black", linestyle="--", linewidth=1.0, label="command"
    )
    for i, (name, run) in enumerate(runs.items()):
        style: dict[str, Any] = {
            "label": name,
            "color": f"C{i}",
            "linewidth": 3.5 if run is first else 1.2,
        }
        bases = np.linalg.norm(run["root"][..., :3] - first["root"][..., :3], axis=2)
        axes["speed"].plot(times, run["lin_vel"][:, 0, 0], **style)
        axes["torque"].plot(times, np.sqrt((run["torque"] ** 2).mean((1, 2))), **style)
        axes["contact"].axhline((i + 1) * len(feet) - 0.5, color="tab:red")
        if run is not first:
            axes["apart"].plot(times, np.maximum(np.median(bases, axis=1), 1e-9), **style)
    axes["apart"].set_yscale("log")
    rows = np.concatenate([run["contact"][:, 0].T for run in runs.values()])
    extent = (0.0, times[-1], len(rows) - 0.5, -0.5)
    axes["contact"].imshow(
        rows, aspect="auto", interpolation="nearest", cmap="Greys", extent=extent
    )
    labels = [f"{name}: {foot}" for name in runs for foot in feet]
    axes["contact"].set(
        yticks=range(len(rows)), yticklabels=labels, ylabel="contact of robot 0", xlabel="time, s"
    )
    names = {
        "speed": "speed ahead, robot 0, m/s",
        "apart": "base, from the first run's, m",
        "torque": "torque, N·m",
    }
    for axis, label in names.items():
        axes[axis].set(xlabel="time, s", ylabel=label)
        axes[axis].grid(alpha=0.3)
    axes["speed"].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main(options: CrosscheckCfg) -> None:
    """Compare, print and draw. The ONNX file is that of the run folder, else the policy is exported."""
    policy, cfg, _ = policy_and_task(options.task_id, options.policy, options.changes)
    if options.seconds < (least := SETTLING_SECONDS + cfg.sim.step_dt):
        wrong = f"--seconds must be at least {least:g}, a control step more than is left out, got {options.seconds:g}"
        raise ValueError(wrong)
    file = policy_file(options.policy or "")
    onnx = file.with_name("policy.onnx")
    with TemporaryDirectory() as folder:
        if options.policy is None or file.name != POLICY_FILE or not onnx.is_file():
            onnx = Path(folder) / "policy.onnx"
            save_onnx(onnx, policy, {"inputs": policy.inputs, **policy.contract})
        runs, remark = crosscheck(options, cfg, policy, onnx)
    numbers = compare(runs, cfg.robot, cfg.sim.step_dt)
    table = Table(
        "quantity", *(Column(name, justify="right") for name in runs), title=options.task_id
    )
    for quantity, unit in UNITS.items():
        values = [each[quantity] for each in numbers.values()]
        shown = [
            "–" if v is None else f"{v:.1%}" if unit == "%" else f"{v:.3f} {unit}" for v in values
        ]
        table.add_row(quantity.replace("_", " "), *shown)
    table.add_row("parts where", *(each["where"] for each in numbers.values()))
    plot_crosscheck(runs, cfg.robot.foot_names, cfg.sim.step_dt, options.picture)
    Console().print(table, f"{remark}; drawn to {options.picture}", sep="\n")
    if options.json is not None:
        about = {
            "task_id": options.task_id,
            "seed": options.seed,
            "seconds": options.seconds,
            "remark": remark,
        }
        write_json(options.json, about | {"robots": options.robots, "runs": numbers})
