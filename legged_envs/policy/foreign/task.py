"""A task for a policy of another framework: its observations, gains, pose and time step."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mujoco

from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg
from legged_envs.mdp import observations
from legged_envs.mdp.actions import JointActionCfg, JointPositionCfg, JointVelocityCfg
from legged_envs.mdp.gait_clock import GaitClockCfg
from legged_envs.policy.foreign.description import NO_LIMIT, ForeignContract, Range
from legged_envs.policy.foreign.mapping import action_shifts
from legged_envs.policy.foreign.motion import MOTION_QUANTITIES, MotionTerm
from legged_envs.robots import G1_29, H1, RobotCfg
from legged_envs.robots.h1 import LONG_SOLES
from legged_envs.sim import SimCfg
from legged_envs.sim.scene import GROUND, spec_on_ground
from legged_envs.tasks.kind import kind_of

TERM_FUNCTIONS = {
    "command": observations.command,
    "gravity": observations.projected_gravity,
    "ang_vel": observations.base_ang_vel,
    "lin_vel": observations.base_lin_vel,
    "joint_pos": observations.joint_pos,
    "joint_vel": observations.joint_vel,
    "action": observations.last_action,
    "clock": observations.command,
}
"""Quantity → the observation term that gives it."""

LARGER_ROBOTS = {"g1": G1_29}
"""Robot → the same one with more joints, for policies that move these."""

MESH_SOLES = {H1.xml: LONG_SOLES}
"""Model of a robot → its model with the soles of its maker's mesh, on which policies of other
frameworks were trained."""

SOLES_ASSUMED = (
    "the soles of the robot are 0.30 m long, as in the mesh of its maker; tasks of this package "
    "have soles of 0.215 m"
)
"""Assumption that is reported for policies of the robots `MESH_SOLES`."""

HIGH = 3.0
"""Height of a base from which no robot reaches the ground, m."""

GAIT = "gait"
"""Name of the gait clock among the commands of a task."""

STANCE = 0.55
"""Part of a stride for which a foot stands, of clocks that only a policy reads."""


def check_task(task_id: str, cfg: TaskCfg) -> None:
    """Check that policies of other frameworks can act in a task.

    Raises:
        ValueError: If the task does not follow velocity commands, or is not made of terms.
    """
    if not kind_of(cfg).follows_velocity or not cfg.is_reconfigurable:
        raise ValueError(
            f"policies of other frameworks act in tasks of velocity commands, and {task_id!r} "
            "is none: name another, such as Legged/Go2-Flat-v0"
        )


def find_robot(cfg: TaskCfg, foreign: ForeignContract) -> RobotCfg:
    """Return the robot of the task, with more joints or other soles if the policy needs these.

    Raises:
        ValueError: If the robot does not have all joints of the policy.
    """
    robot = replace(cfg.robot, xml=MESH_SOLES.get(cfg.robot.xml, cfg.robot.xml))
    larger = LARGER_ROBOTS.get(robot.name)
    if larger is not None and not set(foreign.joint_names) <= set(robot.joint_names):
        robot = larger
    missing = [name for name in foreign.joint_names if name not in robot.joint_names]
    if missing:
        raise ValueError(
            f"{foreign.source} has the joints {', '.join(missing)}, and robot {robot.name!r} does "
            "not: name a task of the policy's robot, or give its joints as joint_names in the file"
        )
    return robot


def adapted_task(cfg: TaskCfg, foreign: ForeignContract) -> TaskCfg:
    """Return a task in which a policy of another framework finds its own robot.

    Gains, default pose, actions, observations, time step, clock and ranges of commands come from
    the policy. Physics, ground, events and costs come from the task.

    Raises:
        ValueError: If the robot does not have all joints of the policy.
    """
    robot = adapted_robot(find_robot(cfg, foreign), foreign)
    shifts = action_shifts(foreign)
    largest_shift = max(abs(shift) for shift in shifts.values())
    limit = NO_LIMIT
    if foreign.action_clip is not None:
        limit = max(abs(bound) for pair in foreign.action_clip for bound in pair)
    changes: dict[str, Any] = {
        "robot": robot,
        "actions": action_terms(robot, foreign),
        "action_limit": limit + largest_shift,
        "observations.policy": observation_group(foreign),
    }
    if foreign.control_dt is not None:
        changes.update(_time_steps(cfg, foreign.control_dt))
    for name, span in foreign.command_ranges.items():
        changes[f"commands.velocity.{name}"] = span
    adapted = override(cfg, changes)
    if foreign.gait_period is not None:
        adapted.commands[GAIT] = _clock(adapted, foreign.gait_period)
    return adapted


def _time_steps(cfg: TaskCfg, control_dt: float) -> dict[str, Any]:
    """Return the changes that give the task the control step of the policy."""
    decimation = max(round(control_dt / cfg.sim.dt), 1)
    if math.isclose(decimation * cfg.sim.dt, control_dt, rel_tol=1e-6):
        return {"sim.decimation": decimation}
    # Physics steps become a little shorter, so that whole ones fill a control step.
    decimation = math.ceil(control_dt / cfg.sim.dt)
    return {"sim.decimation": decimation, "sim.dt": control_dt / decimation}


def _clock(cfg: TaskCfg, period: float) -> GaitClockCfg:
    present = cfg.commands.get(GAIT)
    if isinstance(present, GaitClockCfg):
        return replace(present, period=period)
    feet = len(cfg.robot.foot_names)
    # Feet on a diagonal together: only the clock is observed, and these numbers have no effect.
    offsets = tuple(0.5 * ((i + 1) // 2 % 2) for i in range(feet))
    return GaitClockCfg(period=period, stance=STANCE, offsets=offsets)


def observation_group(foreign: ForeignContract) -> ObservationGroupCfg:
    """Return the group with the quantities that a policy observes, neither scaled nor clipped."""
    terms = {}
    oldest = 0
    for term in foreign.terms:
        name = "joint_pos" if term.quantity == "joint_angle" else term.quantity
        if name in MOTION_QUANTITIES:
            assert foreign.motion is not None
            terms[name] = ObservationTermCfg(MotionTerm(foreign.motion, name))
        elif name == "height_scan":
            assert foreign.scan is not None
            terms[name] = ObservationTermCfg(foreign.scan)
        else:
            params = {"name": GAIT} if name == "clock" else {}
            terms[name] = ObservationTermCfg(TERM_FUNCTIONS[name], params=params)
        oldest = max(oldest, *term.ages)
    return ObservationGroupCfg(terms, noisy=False, history=oldest + 1)


def action_terms(robot: RobotCfg, foreign: ForeignContract) -> dict[str, JointActionCfg]:
    """Return action terms for the actions of a policy, one for each kind and clip of targets."""
    scale = dict(zip(foreign.action_joints, foreign.action_scale, strict=True))
    clips: dict[str, Range | None] = dict.fromkeys(foreign.action_joints)
    if foreign.target_clip is not None:
        clips.update(zip(foreign.action_joints, foreign.target_clip, strict=True))
    groups: dict[tuple[bool, Range | None], list[str]] = {}
    # Terms have their joints in the order of the robot.
    for name in robot.joint_names:
        if name in scale:
            key = (name in foreign.velocity_joints, clips[name])
            groups.setdefault(key, []).append(name)
    terms: dict[str, JointActionCfg] = {}
    for number, ((is_velocity, clip), names) in enumerate(groups.items()):
        kind = JointVelocityCfg if is_velocity else JointPositionCfg
        terms[f"joints_{number}"] = kind(
            scale=tuple(scale[name] for name in names),
            joints=tuple(re.escape(name) for name in names),
            clip=clip,
        )
    return terms


def adapted_robot(robot: RobotCfg, foreign: ForeignContract) -> RobotCfg:
    """Return a robot with the gains and the default pose of a policy.

    Joints that the policy does not know keep theirs.
    """
    pose = _replaced(robot, robot.default_joint_pos, foreign, foreign.default_joint_pos)
    actuators = list(robot.actuators)
    for name in foreign.action_joints:
        kind = "velocity" if name in foreign.velocity_joints else "position"
        actuators[robot.joint_names.index(name)] = kind
    changed = replace(
        robot,
        default_joint_pos=pose,
        kp=_replaced(robot, robot.kp, foreign, foreign.kp),
        kd=_replaced(robot, robot.kd, foreign, foreign.kd),
        actuators=tuple(actuators),
    )
    # In another pose the feet are at another height below the base.
    raised = _clearance(robot) - _clearance(changed)
    return replace(changed, base_height=robot.base_height + raised)


def _replaced(
    robot: RobotCfg, own: Sequence[float], foreign: ForeignContract, values: Sequence[float]
) -> tuple[float, ...]:
    numbers = dict(zip(robot.joint_names, own, strict=True))
    numbers.update(zip(foreign.joint_names, values, strict=True))
    return tuple(numbers[name] for name in robot.joint_names)


def _clearance(robot: RobotCfg) -> float:
    """Return how far the lowest shape is above the ground with the base at `HIGH`, m."""
    model = spec_on_ground(robot, SimCfg()).compile()
    data = mujoco.MjData(model)
    # The free joint of the base comes first.
    data.qpos[2] = HIGH
    for name, position in zip(robot.joint_names, robot.default_joint_pos, strict=True):
        data.qpos[model.joint(name).qposadr[0]] = position
    mujoco.mj_kinematics(model, data)
    ground = model.geom(GROUND).id
    distances = []
    for geom in range(model.ngeom):
        if geom != ground and model.geom_conaffinity[geom] & 1:
            distances.append(mujoco.mj_geomDistance(model, data, ground, geom, 2.0 * HIGH, None))
    return float(min(distances))
