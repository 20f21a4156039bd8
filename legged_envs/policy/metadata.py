"""Metadata of a policy file: the meaning of the inputs and outputs of a policy.

The file keeps these entries under the key `contract`: they are the contract between a policy and
the robot or simulator that runs it. `comparison.py` compares the contracts of two tasks.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from inspect import signature
from math import isfinite
from typing import Any, NotRequired, TypedDict

import gymnasium as gym
import torch

from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.changes import Changes
from legged_envs.managers import ObservationTermCfg
from legged_envs.mdp import gait_observations, observations
from legged_envs.mdp.actions import JointAction
from legged_envs.mdp.commands import STILL_COMMAND
from legged_envs.mdp.gait_clock import GaitClock
from legged_envs.mdp.gait_command import GAITS, STYLE, GaitCommand
from legged_envs.mdp.motion_command import MotionCommand
from legged_envs.policy.start_facts import qualified_name
from legged_envs.policy.training_facts import joint_facts, scan_facts, training_facts

Contract = dict[str, Any]
"""Entries of a contract by name, as JSON values. `docs/how-to/deploy.md` explains each entry."""

ROBOT_ENTRIES = (
    "joint_names",
    "default_joint_pos",
    "actuators",
    "kp",
    "kd",
    "torque_limits",
)
"""Fields of `RobotCfg` that a contract repeats."""

ACTION_ENTRIES = ("action_joints", "action_scale", "action_limit", "target_clip", "action")
"""Entries of the action terms. A task that computes joint targets in methods lacks them."""

LATER_ENTRIES = (
    "actuators",
    "action_size",
    "observation_limit",
    "action_joints",
    "action_limit",
    "target_clip",
)
"""Entries that earlier versions did not write. A control loop without them has to guess."""

LOOP_QUANTITIES = {
    "command": observations.command,
    "gravity": observations.projected_gravity,
    "ang_vel": observations.base_ang_vel,
    "lin_vel": observations.base_lin_vel,
    "joint_pos": observations.joint_pos,
    "joint_vel": observations.joint_vel,
    "action": observations.last_action,
    "clock": observations.command,
    "gait": gait_observations.gait_offsets,
    "gait_style": gait_observations.gait_style,
    "clock_sin": gait_observations.foot_clock_sin,
    "clock_cos": gait_observations.foot_clock_cos,
}
"""Observation terms that control loops compute: name → the function that it stands for."""

CLOCK_FORMULA = (
    "sin, cos of 2 pi phase; phase = time / period mod 1, that of a foot (phase + its offset) mod 1"
)
GAIT_CLOCK_FORMULA = (
    "sin, cos of 2 pi phase of each foot, 0 while |command| <= still; phase = time + offsets of "
    "the gait * phase_offsets of the foot, mod 1; time goes on by control_dt / period"
)
LIFT_FORMULA = (
    "swing * sin(pi (phase - stance) / (1 - stance))^2 while the foot's phase > stance, else 0"
)

Bounds = tuple[float | None, ...]
"""(low, high); None where there is no bound."""


class ObservationEntry(TypedDict):
    """One term of an observation group, in the order of the observation vector."""

    name: str
    """Name of the term in the task configuration."""
    size: int
    """Number of elements of the vector that the term fills."""
    scale: Any
    """Factor of the value; one number, or a list with one number per element."""
    noise: float
    """Half-width of the uniform noise that the policy was trained with, in the unit of the term."""
    clip: Bounds | None
    """Bounds of the value before scaling; None if it is not clipped."""
    steps_ago: NotRequired[int]
    """Age of the value in control steps. Only in groups that show past steps."""
    own: NotRequired[str]
    """Name of the term's function, if control loops compute something else under `name`."""


Inputs = dict[str, list[ObservationEntry]]
"""Observation groups that a policy takes, in the order of its arguments, and the terms of each."""


def contract(
    task_id: str,
    env: CoreVectorEnv,
    groups: Sequence[str] = ("policy",),
    changes: Changes | None = None,
) -> Contract:
    """Return the meaning of a policy's inputs and outputs, to run it elsewhere or on a robot.

    Args:
        task_id: Registered id of the task.
        env: Environment of that task.
        groups: Observation groups that the policy takes, one argument each.
        changes: Changes that were made to the registered task, by dotted path.
    """
    robot = env.cfg.robot
    inputs = {group: observation_entries(env, group) for group in groups}
    entries: Contract = {
        "task_id": task_id,
        "changes": dict(changes or {}),
        "robot": robot.name,
        "control_dt": env.step_dt,
        "joint_names": list(robot.joint_names),
        "default_joint_pos": list(robot.default_joint_pos),
        "actuators": list(robot.actuators),
        "kp": list(robot.kp),
        "kd": list(robot.kd),
        "torque_limits": list(robot.torque_limits),
        "action_size": gym.spaces.flatdim(env.single_action_space),
        "observation_limit": env.observation_limit,
    }
    # Only then does a formula with only the actions give the joint targets.
    if env.task.actions_are_targets:
        entries.update(_action_entries(env))
    entries["observation"] = inputs[groups[0]]
    entries["inputs"] = inputs
    entries.update(_command_entries(env))
    scan = _scan_entry(env, groups)
    if scan is not None:
        entries["scan"] = {**scan, **scan_facts(scan["lookup"], env.cfg.scene.terrain)}
    entries["training"] = training_facts(env.cfg)
    entries.update(joint_facts(robot))
    # JSON has no tuples. The round trip gives the same values here as after a file was read.
    plain: Contract = json.loads(json.dumps(entries))
    return plain


def _driven_joints(env: CoreVectorEnv) -> list[tuple[str, JointAction]]:
    """Return the joint of each action element and the action term that drives it."""
    names = env.cfg.robot.joint_names
    driven = []
    for term in env.actions.terms.values():
        for joint in term.joints:
            driven.append((names[joint], term))
    return driven


def _reference_name(term: JointAction) -> str | None:
    """Return the name of the command that the targets of an action term are relative to."""
    name: str | None = getattr(term.cfg, "around", None)
    return name


def _action_entries(env: CoreVectorEnv) -> Contract:
    driven = _driven_joints(env)
    return {
        "action_joints": [joint for joint, _ in driven],
        "action_scale": env.actions.scale.tolist(),
        "action_limit": env.actions.limit,
        "target_clip": [finite_bounds(term.cfg.clip) or (None, None) for _, term in driven],
        "action": _action_formula(env),
    }


def _action_formula(env: CoreVectorEnv) -> str:
    terms = list(env.actions.terms.values())
    references = [name for name in map(_reference_name, terms) if name]
    reference = env.commands.terms.get(references[0]) if references else None
    # The text is part of the file: people write their control loops by it.
    centre = "default_joint_pos"
    if isinstance(reference, MotionCommand):
        centre = (
            "(joint_pos of the reference one control step ahead "
            "where there is one, else default_joint_pos)"
        )
    elif isinstance(reference, GaitClock):
        centre = "(default_joint_pos + the gait's lift of each foot)"
    if any(term.cfg.kind != "position" for term in terms):
        centre = f"({centre} where actuators has position, else 0)"
    limit = env.actions.limit
    target = f"{centre} + action_scale * clip(action, -{limit:g}, {limit:g})"
    if any(term.cfg.clip for term in terms):
        target = f"clip({target}, target_clip)"
    return f"joint target = {target}"


def _command_entries(env: CoreVectorEnv) -> Contract:
    """Return the entries of the first motion command, gait clock and gait command."""
    entries: Contract = {}
    for command in env.commands.terms.values():
        if isinstance(command, MotionCommand):
            entries["clips"] = list(command.player.library.names)
            entries["reference"] = {
                "control_steps_ahead": list(command.cfg.window),
                "frame": command.frame_sizes,
            }
            break
    for name, command in env.commands.terms.items():
        if isinstance(command, GaitClock):
            entries["gait"] = _gait_entry(env, name, command)
            break
    for command in env.commands.terms.values():
        if isinstance(command, GaitCommand):
            entries["gait_command"] = _gait_command_entry(command)
            break
    return entries


def _gait_command_entry(command: GaitCommand) -> Contract:
    entry: Contract = {"gaits": {name: list(GAITS[name]) for name in command.cfg.gaits}}
    for name in STYLE:
        entry[name] = list(getattr(command.cfg, name))
    entry["phase_offsets"] = command.phase_offsets.tolist()
    entry["still"] = STILL_COMMAND
    entry["clock"] = GAIT_CLOCK_FORMULA
    return entry


def _gait_entry(env: CoreVectorEnv, name: str, clock: GaitClock) -> Contract:
    # The clock computes a lift for all joints, but only joints of terms around the clock follow it.
    lifted = {joint for joint, term in _driven_joints(env) if _reference_name(term) == name}
    swing = []
    for turns in clock.swing.tolist():
        foot = {}
        for joint, turn in zip(env.cfg.robot.joint_names, turns, strict=True):
            foot[joint] = turn if joint in lifted else 0.0
        swing.append(foot)
    entry: Contract = asdict(clock.cfg)
    entry["swing"] = swing
    entry["clock"] = CLOCK_FORMULA
    entry["lift"] = LIFT_FORMULA
    return entry


def _scan_entry(env: CoreVectorEnv, groups: Sequence[str]) -> Contract | None:
    """Return the parameters of the first height scan that the groups show, None without a scan."""
    for group in groups:
        # Groups of tasks without an observation manager have no terms.
        if group not in env.cfg.observations:
            continue
        for term in env.cfg.observations[group].terms.values():
            if term.func is observations.height_scan:
                entry = {
                    name: parameter.default
                    for name, parameter in signature(observations.height_scan).parameters.items()
                    if name != "env"
                }
                entry.update(term.params)
                return entry
    return None


def observation_entries(env: CoreVectorEnv, group: str) -> list[ObservationEntry]:
    """Return the terms of an observation group, in the order of its vector.

    A group that no observation manager makes is one term.

    Raises:
        KeyError: If there is no such group.
    """
    if group not in env.observations.groups:
        whole = ObservationEntry(
            name=group, size=env.group_sizes[group], scale=1.0, noise=0.0, clip=None
        )
        return [whole]
    shown = env.observations.groups[group]
    terms = env.cfg.observations[group].terms
    entries = []
    for name, size, age in shown.layout:
        entry = _observation_entry(env, name, size, terms[name], shown.noisy)
        # The order of the keys is part of the file format: `own` is the last.
        if shown.history > 1:
            entry["steps_ago"] = age
        function = terms[name].func
        if name in LOOP_QUANTITIES and function is not LOOP_QUANTITIES[name]:
            entry["own"] = qualified_name(function)
        entries.append(entry)
    return entries


def _observation_entry(
    env: CoreVectorEnv, name: str, size: int, term: ObservationTermCfg, noisy: bool
) -> ObservationEntry:
    scale: Any = term.scale
    endless = env.robot.endless
    if term.func is observations.joint_pos and endless.any():
        # Wheels turn without end: the environment shows their angle as 0.
        scale = (torch.as_tensor(scale) * ~endless.cpu()).tolist()
    return ObservationEntry(
        name=name,
        size=size,
        scale=scale,
        noise=term.noise if noisy else 0.0,
        clip=finite_bounds(term.clip),
    )


def finite_bounds(clip: Sequence[float | None] | None) -> Bounds | None:
    """Return a clip as JSON values: None where a bound is infinite, None if both are."""
    if clip is None:
        return None
    bounds = tuple(bound if bound is not None and isfinite(bound) else None for bound in clip)
    if all(bound is None for bound in bounds):
        return None
    return bounds


def policy_inputs(entries: Contract) -> Inputs:
    """Return the observation groups that a policy takes, from the entries of its contract."""
    inputs: Inputs = entries.get("inputs") or {}
    # The first versions knew one group and wrote only `observation`.
    return inputs or {"policy": entries.get("observation", [])}


def is_earlier_version(entries: Contract) -> bool:
    """Return True if a version wrote the contract that did not know all of `LATER_ENTRIES`."""
    return "action_size" not in entries


def missing_entries(entries: Contract) -> list[str]:
    """Return the names of `LATER_ENTRIES` that a contract does not have."""
    return [name for name in LATER_ENTRIES if name not in entries]
