"""Translation of the robot of a configuration in LeggedGym-Ex's words.

A section of an instance is a namespace with the fields of a nested class. Annotations here name the
class, where the fields are described.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from legged_envs.checks import check_choice, check_known
from legged_envs.compat.legged_gym.cfg import LeggedRobotCfg
from legged_envs.mdp.actions import (
    JointActionCfg,
    JointPositionCfg,
    JointTorqueCfg,
    JointVelocityCfg,
)
from legged_envs.robots import ROBOTS, RobotCfg

ACTION_TERMS: dict[str, type[JointActionCfg]] = {
    "P": JointPositionCfg,
    "V": JointVelocityCfg,
    "T": JointTorqueCfg,
}
"""Values of ``cfg.control.control_type`` mapped to their action terms."""
GAIN_FIELDS: dict[str, dict[str, str]] = {
    "position": {"stiffness": "kp", "damping": "kd"},
    "velocity": {"stiffness": "kd"},
    "torque": {},
}
"""Kinds of actuators mapped to the fields of ``cfg.control`` that are gains of ``RobotCfg``."""


def robot_of(cfg: LeggedRobotCfg) -> RobotCfg:
    """Return the robot of ``cfg.asset`` with the gains, pose and bodies that ``cfg`` names.

    Args:
        cfg: The configuration.

    Raises:
        ValueError: If there is no such robot, or a field does not fit it.
    """
    robot = _find_robot(cfg.asset)
    _check_robot_fields(cfg, robot)
    check_choice("cfg.control.control_type", cfg.control.control_type, ACTION_TERMS)
    kind = ACTION_TERMS[cfg.control.control_type].kind
    joints = robot.joint_names
    changes: dict[str, Any] = {"actuators": (kind,) * len(joints)}
    if kind != "position":
        # The robot's own gains are position gains.
        changes["kp"] = (0.0,) * len(joints)
        changes["kd"] = (0.0,) * len(joints)
    for field, gain in GAIN_FIELDS[kind].items():
        # The engine's velocity actuators damp towards the target, so `stiffness` is their kd.
        values = getattr(cfg.control, field)
        # A gain of velocities has no default.
        if values is not None or gain in changes:
            changes[gain] = _joint_values(f"control.{field}", values or {}, joints)
    angles = cfg.init_state.default_joint_angles
    if angles is not None:
        changes["default_joint_pos"] = _joint_values(
            "init_state.default_joint_angles", angles, joints
        )
    asset = cfg.asset
    if asset.penalize_contacts_on is not None:
        changes["penalized_bodies"] = _matching_bodies(robot, asset.penalize_contacts_on)
    if asset.terminate_after_contacts_on is not None:
        changes["termination_bodies"] = _matching_bodies(robot, asset.terminate_after_contacts_on)
    return replace(robot, **changes)


def _find_robot(asset: type[LeggedRobotCfg.asset]) -> RobotCfg:
    if asset.robot is not None:
        return asset.robot
    if asset.name is None:
        raise ValueError(
            "cfg.asset has no robot. Set cfg.asset.robot to a RobotCfg, "
            f"or cfg.asset.name to one of {list(ROBOTS)}."
        )
    hint = "set cfg.asset.robot to a RobotCfg, or choose from"
    check_known("cfg.asset.name: there is no robot", [asset.name], ROBOTS, hint)
    return ROBOTS[asset.name]


def _check_robot_fields(cfg: LeggedRobotCfg, robot: RobotCfg) -> None:
    joint_names = list(robot.joint_names)
    if cfg.asset.dof_names not in (None, joint_names):
        raise ValueError(
            f"cfg.asset.dof_names must be {joint_names} for robot {robot.name!r}, "
            f"got {cfg.asset.dof_names}"
        )
    if cfg.env.num_actions not in (None, robot.num_joints):
        raise ValueError(
            f"cfg.env.num_actions must be {robot.num_joints} for robot {robot.name!r}, "
            f"got {cfg.env.num_actions}"
        )


def _joint_values(
    path: str, values: Mapping[str, float], joints: Sequence[str]
) -> tuple[float, ...]:
    """Return the value of each joint: the value of the last entry with a name that is a part of the
    joint's name.

    Args:
        path: Field of the configuration, for the error.
        values: Part of a joint's name mapped to a value.
        joints: Names of the joints.
    """
    found = []
    for joint in joints:
        matching = [value for part, value in values.items() if part in joint]
        if not matching:
            raise ValueError(f"cfg.{path} has no entry for joint {joint!r}, got {values}")
        found.append(float(matching[-1]))
    return tuple(found)


def _matching_bodies(robot: RobotCfg, parts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the robot's bodies in which one of ``parts`` occurs, in their order."""
    matching = []
    for body in ElementTree.parse(robot.path).iter("body"):
        name = str(body.get("name"))
        if any(part in name for part in parts):
            matching.append(name)
    return tuple(matching)
