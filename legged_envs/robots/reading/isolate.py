"""Reduces a model to the robot in it, without motors and surroundings, and reads joint limits."""

import re
from math import inf
from typing import NamedTuple

import mujoco
import numpy as np

from legged_envs.robots.reading.root import ROOT_NAME, free_root
from legged_envs.robots.reading.units import check_range_excluding_zero

KNEE_BEND = 0.05
"""Distance of the default position from the end of the range, as a fraction of the range.

It is used for joints with a range that excludes 0, such as knees.
"""

PARALLEL_AXES = 0.9
"""Cosine of the angle between two joint axes above which the joints bend in one plane."""

COLLISION_GROUP = 3
"""Number of the group of collision shapes if the model also has visual shapes.

MuJoCo's viewer hides this group.
"""

VISIBLE_GROUP = 2
"""Number of the group of visual shapes, which are drawn.

Without visual shapes, collision shapes are in this group.
"""


class Joints(NamedTuple):
    """Joints of a robot as its file describes them, without the free joint of the base."""

    torque_limits: dict[str, float]
    """Torque limit of each joint that has one in the file, N m, by the joint's name."""
    positions: dict[str, float]
    """Position of each joint in the default pose, rad, by its name. The order is the file's."""
    orientation: np.ndarray
    """Orientation of the root where the robot stands in the file, (w, x, y, z)."""
    has_keyframe: bool
    """True if the default pose is a keyframe of the file."""


def isolate_robot(spec: mujoco.MjSpec) -> Joints:
    """Reduce a model to the bodies, joints and shapes of its robot.

    Motors, sensors, keyframes, lights and the ground are deleted. The base has a free joint
    ``root``. Bodies and joints without a name are given one. Collision shapes collide with the
    ground only.

    Args:
        spec: Model, changed in place.

    Returns:
        Torque limits and default positions of the joints, which the model then no longer has.

    Raises:
        ValueError: The model has parts that the package does not support: several outermost bodies,
            coupled joints, ball joints or a second free joint.
    """
    _check_supported(spec)
    # Names come first: motors and positions are looked up by them.
    torque_limits = _name_joints(spec)
    _add_free_joint(spec)
    # Positions and motors are read before the keyframes and motors are deleted.
    key = _standing_keyframe(spec)
    positions, orientation = _default_positions(spec, key)
    torque_limits.update(_motor_limits(spec, torque_limits))
    _delete_surroundings(spec)
    _set_collisions(spec)
    known_limits = {joint: float(limit) for joint, limit in torque_limits.items() if limit > 0}
    return Joints(
        torque_limits=known_limits,
        positions=positions,
        orientation=orientation,
        has_keyframe=key >= 0,
    )


def _check_supported(spec: mujoco.MjSpec) -> None:
    outer = [body.name for body in spec.worldbody.bodies]
    if len(outer) != 1:
        raise ValueError(f"it must have one outermost body, the base, got {outer}")
    for equality in spec.equalities:
        kind = equality.type.name.removeprefix("mjEQ_").lower()
        raise ValueError(
            f"the {kind} of {equality.name1!r} and {equality.name2!r} closes a loop or couples "
            "joints, and each must have its own motor: take it out"
        )
    tendons = [tendon.name for tendon in spec.tendons]
    if tendons:
        raise ValueError(
            f"tendons {tendons} couple joints, and each joint must have its own motor: "
            "take them out"
        )


def _name_joints(spec: mujoco.MjSpec) -> dict[str, float]:
    """Name bodies and joints, check the kinds of the joints, and take their torque limits out."""
    torque_limits = {}
    base = spec.worldbody.bodies[0]
    for i, body in enumerate(spec.bodies):
        body.name = body.name or f"body_{i}"
        allowed = ("free",) if body.name == base.name else ("hinge", "slide")
        for number, joint in enumerate(body.joints):
            suffix = str(number) if number > 0 else ""
            joint.name = joint.name or f"{body.name}_joint{suffix}"
            if joint.name == ROOT_NAME and body.name != base.name:
                raise ValueError(
                    f"joint {joint.name!r} of body {body.name!r} has the name of the free joint of "
                    "the base: give it another name"
                )
            kind = joint.type.name.removeprefix("mjJNT_").lower()
            if kind not in allowed:
                raise ValueError(
                    f"joint {joint.name!r} of body {body.name!r} is a {kind} joint; "
                    f"it must be a {' or '.join(allowed)} joint, or be taken out"
                )
            torque_limits[joint.name] = float(joint.actfrcrange[1])
            # The limits are fields of the RobotCfg instead.
            joint.actfrcrange = [0.0, 0.0]
            joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_AUTO
    return torque_limits


def _add_free_joint(spec: mujoco.MjSpec) -> None:
    had_joint = bool(spec.worldbody.bodies[0].joints)
    free_root(spec)
    if had_joint:
        return
    # The keyframes of a robot on a fixed base lack the pose of the base.
    for key in spec.keys:
        if len(key.qpos):
            key.qpos = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, *key.qpos]
        if len(key.qvel):
            key.qvel = [0.0] * 6 + [*key.qvel]


def _standing_keyframe(spec: mujoco.MjSpec) -> int:
    """Return the index of the first keyframe in which the robot stands, -1 if there is none."""
    for i, key in enumerate(spec.keys):
        if re.search("home|stand", key.name):
            return i
    return -1


def _default_positions(spec: mujoco.MjSpec, key: int) -> tuple[dict[str, float], np.ndarray]:
    """Return the joint positions of a keyframe, or those nearest to 0, with bent knees.

    Args:
        spec: The robot.
        key: Number of the keyframe; negative without one.

    Returns:
        Position of each joint by name, and the orientation of the root, (w, x, y, z).

    Raises:
        ValueError: If the range of a joint excludes 0 and is likely in degrees.
    """
    model = spec.compile()
    data = mujoco.MjData(model)
    if key >= 0:
        mujoco.mj_resetDataKeyframe(model, data, key)
    mujoco.mj_kinematics(model, data)
    positions = {}
    for i in range(1, model.njnt):  # Joint 0 is the free one.
        low, high = model.jnt_range[i] if model.jnt_limited[i] else (-inf, inf)
        position = data.qpos[model.jnt_qposadr[i]]
        if key >= 0:
            # Keyframes are kept, but for rounding beyond the end of a range.
            position = np.clip(position, low, high)
        elif not low <= position <= high:
            check_range_excluding_zero(model.joint(i).name, low, high)
            margin = KNEE_BEND * (high - low)
            position = np.clip(position, low + margin, high - margin)
            hip = _joint_before(model, i)
            if hip > 0:
                alignment = data.xaxis[hip] @ data.xaxis[i]
                if abs(alignment) > PARALLEL_AXES:
                    # Half as much back, so that the foot stays below the hip.
                    hip_position = -0.5 * alignment * position
                    # The range of a joint without limits is (0, 0) in MuJoCo.
                    if model.jnt_limited[hip]:
                        hip_position = np.clip(hip_position, *model.jnt_range[hip])
                    positions[model.joint(hip).name] = float(hip_position)
        positions[model.joint(i).name] = float(position)
    return positions, data.qpos[3:7].copy()


def _joint_before(model: mujoco.MjModel, joint: int) -> int:
    """Return the last joint of the parent body, or a number below 0 if it has no joint."""
    parent = model.body_parentid[model.jnt_bodyid[joint]]
    return int(model.body_jntadr[parent] + model.body_jntnum[parent] - 1)


def _motor_limits(spec: mujoco.MjSpec, joint_limits: dict[str, float]) -> dict[str, float]:
    """Return the torque limit of each joint by name, N m: the lower one of motor and joint.

    A joint whose file has neither limit has 0.
    """
    limits = dict(joint_limits)
    for motor in spec.actuators:
        force = motor.forcerange[1]
        if not force and motor.biastype == mujoco.mjtBias.mjBIAS_NONE:
            force = motor.ctrlrange[1] * abs(motor.gainprm[0])
        torque = force * abs(motor.gear[0])
        if torque:
            limits[motor.target] = min(torque, joint_limits.get(motor.target) or inf)
    return limits


def _delete_surroundings(spec: mujoco.MjSpec) -> None:
    """Delete motors, sensors, sites, keyframes, contact rules, lights and the ground."""
    parts = [
        *spec.keys,
        *spec.actuators,
        *spec.sensors,
        *spec.excludes,
        *spec.pairs,
        *spec.lights,
        *spec.sites,
        *spec.worldbody.geoms,
        *spec.worldbody.cameras,
    ]
    for part in parts:
        spec.delete(part)
    spec.nkey = 0


def _set_collisions(spec: mujoco.MjSpec) -> None:
    collides = [bool(geom.contype or geom.conaffinity) for geom in spec.geoms]
    has_visuals = not all(collides)
    for geom, geom_collides in zip(spec.geoms, collides, strict=True):
        # The ground has type 1. With type 0, shapes of the robot do not collide with each other.
        geom.contype = 0
        geom.conaffinity = int(geom_collides)
        geom.group = COLLISION_GROUP if geom_collides and has_visuals else VISIBLE_GROUP
