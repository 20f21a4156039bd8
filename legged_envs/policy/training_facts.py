"""Conditions of a policy's training, and properties of its robot: facts for those who drive it.

A loop needs none of them to compute an action. They describe for which commands, ground and robot
the policy was made.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import mujoco

from legged_envs.envs.cfg import TaskCfg
from legged_envs.mdp import curricula, events
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.gait_clock import GaitClockCfg
from legged_envs.policy.start_facts import start_facts
from legged_envs.robots import RobotCfg
from legged_envs.terrains.cfg import TerrainCfg

STANDING = 0.05
"""Least share of commands to stand still from which on a policy has learnt to stand."""

RANGES: dict[str, tuple[Callable[..., None], str]] = {
    "friction": (events.randomize_friction, "range"),
    "com_shift": (events.randomize_base_com, "range"),
    "gain_factor": (events.randomize_gains, "range"),
    "push_velocity": (events.push, "velocity"),
}
"""Entry → event of a training, and the parameter that is its range or bound."""

SCAN_RULES = {
    "lowest": "the lowest of the corners (0, 0), (1, 0) and (0, 1) of the cell of the point",
    "bilinear": "bilinear between the four corners of the cell of the point",
    "height": "the surface: two triangles in each cell, divided from corner (0, 0) to (1, 1)",
}
"""Lookup of a height scan → rule that gives the height at a point."""

Facts = dict[str, Any]
"""Entries of a contract by name."""


def training_facts(cfg: TaskCfg) -> Facts:
    """Return what a policy of a task meets in training, as the entry `training` of its contract."""
    facts: Facts = {"commands": _command_facts(cfg), "can_stand": _can_stand(cfg)}
    facts["payload"] = _payload(cfg)
    for name, (function, parameter) in RANGES.items():
        facts[name] = None
        for event in cfg.events.values():
            if event.func is function:
                facts[name] = event.params.get(parameter)
    facts["action_delay"] = [0, cfg.max_action_delay]
    facts["terrain"] = _terrain_facts(cfg.scene.terrain)
    facts["start"] = start_facts(cfg)
    return facts


def _payload(cfg: TaskCfg) -> tuple[float, float] | None:
    """Return the bounds of the mass that is added to the base, kg, as they are for this robot."""
    for event in cfg.events.values():
        if event.func is events.randomize_base_mass:
            most_share = event.params.get("most_share")
            base_mass = _read_model(cfg.robot).base_mass
            low, high = events.fit_mass_range(event.params["range"], most_share, base_mass)
            return low, high
    return None


def _command_facts(cfg: TaskCfg) -> Facts | None:
    command = cfg.commands.get("velocity")
    if not isinstance(command, VelocityCommandCfg):
        return None
    facts: Facts = {}
    for name in ("lin_vel_x", "lin_vel_y", "ang_vel_z"):
        facts[name] = list(getattr(command, name))
    for term in cfg.curriculum.values():
        # A range that grows in training ends at this.
        if term.func is curricula.widen_velocity_command:
            most = term.params.get("largest", 1.0)
            low, high = facts["lin_vel_x"]
            facts["lin_vel_x"] = [min(low, -most), max(high, most)]
    if command.kind_ranges:
        facts["kind_ranges"] = command.kind_ranges
    facts["resampling_time_s"] = list(command.resampling_time_s)
    facts["standing_fraction"] = command.standing_fraction
    if command.inversion_fraction > 0.0:
        facts["inversion_fraction"] = command.inversion_fraction
    facts["heading"] = command.heading
    return facts


def _can_stand(cfg: TaskCfg) -> bool:
    """Return True if a policy stands still under the zero command.

    With a gait clock it steps on the spot.
    """
    command = cfg.commands.get("velocity")
    if not isinstance(command, VelocityCommandCfg):
        return False
    if any(isinstance(each, GaitClockCfg) for each in cfg.commands.values()):
        return False
    return command.standing_fraction >= STANDING


def _terrain_facts(terrain: TerrainCfg | None) -> Facts | None:
    """Return kinds and levels of rough ground. None: a plane."""
    if terrain is None:
        return None
    if terrain.source is not None:
        return {"kinds": ["source"], "levels": 1, "cell": terrain.horizontal_scale}
    return {
        "kinds": list(terrain.kinds),
        "levels": terrain.rows,
        "cell": terrain.horizontal_scale,
    }


def scan_facts(lookup: str, terrain: TerrainCfg | None) -> Facts:
    """Return the cell and the rule of a height scan.

    Args:
        lookup: How the scan reads heights.
        terrain: Ground of the task. None: a plane.
    """
    return {
        "cell": None if terrain is None else terrain.horizontal_scale,
        "rule": SCAN_RULES.get(lookup, lookup),
    }


class JointFacts(NamedTuple):
    """Properties of a joint in the model of a robot."""

    armature: float
    """Inertia of the rotor as the joint sees it, kg·m²."""
    friction_loss: float
    """Dry friction, N·m."""
    span: tuple[float, float] | None
    """Range of positions, rad. None: the joint turns without an end."""


class ModelFacts(NamedTuple):
    """Properties of a robot in its model."""

    joints: tuple[JointFacts, ...]
    """Facts of each joint."""
    base_mass: float
    """Mass of the base, kg."""


def _read_model(robot: RobotCfg) -> ModelFacts:
    path = robot.path
    return _read_file(path, path.stat().st_mtime_ns, robot.base_body, robot.joint_names)


@lru_cache(maxsize=32)
def _read_file(path: Path, changed: int, base: str, names: tuple[str, ...]) -> ModelFacts:
    """Return facts of the joints and the base in a robot's file, which was `changed` at a time in
    ns."""
    model = mujoco.MjSpec.from_file(str(path)).compile()
    rows = []
    for name in names:
        joint = model.joint(name)
        low, high = joint.range.tolist()
        dof = joint.dofadr[0]
        rows.append(
            JointFacts(
                armature=float(model.dof_armature[dof]),
                friction_loss=float(model.dof_frictionloss[dof]),
                span=(low, high) if joint.limited[0] else None,
            )
        )
    return ModelFacts(joints=tuple(rows), base_mass=float(model.body(base).mass[0]))


def joint_facts(robot: RobotCfg) -> Facts:
    """Return the entries `armature`, `friction_loss` and `joint_ranges` of a contract."""
    rows = _read_model(robot).joints
    return {
        "armature": [row.armature for row in rows],
        "friction_loss": [row.friction_loss for row in rows],
        "joint_ranges": [None if row.span is None else list(row.span) for row in rows],
    }


def complete_contract(entries: Facts, cfg: TaskCfg) -> Facts:
    """Return a contract with the facts of this module, for policies of earlier versions.

    Entries that the contract has are kept.

    Args:
        entries: The contract.
        cfg: Task of the policy, as it was trained.
    """
    facts: Facts = {"training": training_facts(cfg), **joint_facts(cfg.robot)}
    completed = {**facts, **entries}
    completed["training"] = {**facts["training"], **entries.get("training", {})}
    if "scan" in entries:
        scan = entries["scan"]
        lookup = scan.get("lookup", "lowest")
        completed["scan"] = {**scan, **scan_facts(lookup, cfg.scene.terrain)}
    # JSON has no tuples. The round trip gives the same values here as after a file was read.
    plain: Facts = json.loads(json.dumps(completed))
    return plain
