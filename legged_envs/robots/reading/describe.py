"""Derives the fields of a first :class:`RobotCfg` from a model in its default pose."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from legged_envs.robots.reading.balance import FEET_THAT_NEED_BALANCE
from legged_envs.robots.reading.isolate import Joints
from legged_envs.robots.reading.mirror import foot_partners, joint_partners
from legged_envs.robots.reading.motors import group_by_value
from legged_envs.robots.reading.placeholders import (
    Bounds,
    split_placeholders,
    torque_bounds,
    velocity_bounds,
)
from legged_envs.robots.reading.pose import (
    GRAVITY,
    Pose,
    body_path,
    ground_distances,
    mirror_sign,
)
from legged_envs.robots.robot import RobotCfg

COMMON_VELOCITY_LIMIT = 20.0
"""Velocity limit of a joint for which the robot's file has none, rad/s. Common motors have it."""

LEAST_GAIN = 1.0
"""Smallest stiffness kp of a joint, N m/rad."""

GAIN_RATIO = 40.0
"""Stiffness kp divided by damping kd, 1/s."""

# With 40, a biped rocks on its soles with a damping ratio of 0.1, and falls after some swings.
GAIN_RATIO_TO_BALANCE = 20.0
"""``GAIN_RATIO`` of robots on two feet."""

LEAST_FOOT_RADIUS = 1e-3
"""Smallest ``foot_radius``, the height of a foot's origin above its sole, m.

A :class:`RobotCfg` requires a positive value.
"""

LEAST_SIDE_OFFSET = 0.02
"""Distance of a joint from the sagittal plane above which it must have a partner, m.

The partner is the joint at the same place on the other side.
"""


class Parts(NamedTuple):
    """Parts of a robot that were found in its file."""

    base: tuple[str, ...]
    """The outermost body and the bodies that are welded to it."""
    feet: tuple[str, ...]
    """Bodies that are feet."""
    wheels: tuple[str, ...]
    """Joints about which feet turn as wheels."""
    toes: tuple[str, ...]
    """Bodies that move at the feet and stand on the ground with them."""


def describe_robot(
    pose: Pose,
    joints: Joints,
    velocity_limits: Mapping[str, float],
    parts: Parts,
    height: float,
    model_path: Path,
    source_name: str,
    gaps: dict[str, str],
) -> RobotCfg:
    """Return a first configuration of a robot, and note the fields that are guesses.

    Args:
        pose: Robot in its default pose above a plane. Its feet are separate bodies.
        joints: Joints of the robot's file.
        velocity_limits: Velocity limits of the joints that have one, rad/s.
        parts: Bodies of the base, feet and wheels.
        height: Height of the base above the robot's lowest point, m.
        model_path: File of the model, for ``RobotCfg.xml``. Its stem is the robot's name.
        source_name: Name of the file from which the robot was read, for the texts in ``gaps``.
        gaps: Notes. An entry is added for each field that is a guess: the name of the field, and a
            text with the reason and the advice what to write.
    """
    model, data = pose
    feet = parts.feet
    joint_names = tuple(joints.positions)
    distances = _body_distances(pose)
    # Height of the plane on which the feet stand, in the frame of the pose.
    ground = min(distance for body, distance in distances if body in feet)
    foot_heights = [data.body(foot).xpos[2] for foot in feet]
    foot_radius = float(np.mean(foot_heights)) - ground
    mass = float(model.body_subtreemass[1])
    torque_guess = _round_to_two_digits(mass * GRAVITY * height / len(feet))
    torques = _complete_limits(
        "torque_limits",
        joints.torque_limits,
        joint_names,
        bounds=torque_bounds(pose, feet, height),
        guess=torque_guess,
        unit="N m",
        source_name=source_name,
        gaps=gaps,
    )
    velocities = _complete_limits(
        "velocity_limits",
        velocity_limits,
        joint_names,
        bounds=velocity_bounds(pose),
        guess=COMMON_VELOCITY_LIMIT,
        unit="rad/s",
        source_name=source_name,
        gaps=gaps,
    )
    other_bodies = [body for body, _ in distances if body not in (*feet, *parts.toes)]
    contact_bodies = list(dict.fromkeys(other_bodies))
    kinds = tuple("velocity" if joint in parts.wheels else "position" for joint in joint_names)
    kp = _gains(pose, height, parts)
    return RobotCfg(
        name=model_path.stem,
        xml=str(model_path),
        base_body=parts.base[0],
        joint_names=joint_names,
        default_joint_pos=tuple(round(position, 4) for position in joints.positions.values()),
        kp=kp,
        kd=_damping(kp, kinds, torques, velocities, parts),
        torque_limits=torques,
        velocity_limits=velocities,
        base_height=round(float(data.qpos[2]) - ground, 4),
        foot_names=feet,
        foot_radius=max(round(foot_radius, 4), LEAST_FOOT_RADIUS),
        penalized_bodies=tuple(body for body in contact_bodies if body not in parts.base),
        termination_bodies=_termination_bodies(parts.base, contact_bodies, gaps),
        mirror=_mirror(pose, joint_names, height, gaps),
        foot_mirror=foot_partners(pose, feet, height),
        diagonals=() if parts.wheels else _diagonals(pose, feet),
        actuators=kinds if parts.wheels else (),
        wheels=len(parts.wheels) == len(feet),
    )


def _body_distances(pose: Pose) -> list[tuple[str, float]]:
    """Return the body of each collision shape, and its distance to the plane, m."""
    model = pose.model
    distances = []
    for shape, distance in ground_distances(*pose).items():
        body = model.body(model.geom_bodyid[shape]).name
        distances.append((body, distance))
    return distances


def _termination_bodies(
    base: Sequence[str], contact_bodies: Sequence[str], gaps: dict[str, str]
) -> tuple[str, ...]:
    """Return the bodies of the base that can touch the ground, or its outermost body."""
    bodies = tuple(body for body in contact_bodies if body in base)
    if bodies:
        return bodies
    gaps["termination_bodies"] = (
        f"{base[0]!r} has no collision shape: list the bodies that touch the ground only in a fall"
    )
    return (base[0],)


def _complete_limits(
    field: str,
    limits: Mapping[str, float],
    joint_names: Sequence[str],
    *,
    bounds: Bounds,
    guess: float,
    unit: str,
    source_name: str,
    gaps: dict[str, str],
) -> tuple[float, ...]:
    """Return the limit of each joint, with a guess where the file has none or a placeholder.

    Args:
        field: Name of the field, for ``gaps``.
        limits: Limits that the file has.
        joint_names: Names of all joints.
        bounds: Limits that a motor can have. Others are placeholders.
        guess: Limit of joints without one.
        unit: Unit of the limits.
        source_name: Name of the file.
        gaps: Notes. An entry is added if some limits are guesses.
    """
    split = split_placeholders(
        {name: limits[name] for name in joint_names if name in limits}, bounds
    )
    reasons = []
    missing = [joint for joint in joint_names if joint not in limits]
    if missing:
        reasons.append(f"{source_name} has none of {', '.join(missing)}")
    for placeholders, comparison in ((split.too_large, "more"), (split.too_small, "less")):
        if placeholders:
            reasons.append(
                f"{source_name} has {group_by_value(placeholders)}, "
                f"{comparison} {unit} than a motor of this robot has"
            )
    if reasons:
        gaps[field] = (
            f"{'; '.join(reasons)}: {guess} {unit} is a guess, write the values of the motors"
        )
    return tuple(split.real.get(joint, guess) for joint in joint_names)


def _round_to_two_digits(value: float) -> float:
    # A guess: more digits would look measured.
    return float(f"{value:.2g}")


def _gains(pose: Pose, height: float, parts: Parts) -> tuple[float, ...]:
    """Return kp of each joint: the formulas of ``draft_robot`` give them; 0 for wheels."""
    model, data = pose
    leg_bodies: set[int] = set()
    for foot in parts.feet:
        leg_bodies.update(body_path(model, model.body(foot).id))
    body_of_joint = model.jnt_bodyid
    lever = np.linalg.norm(data.subtree_com[body_of_joint] - data.xanchor, axis=1)
    limb_moment = 10 * model.body_subtreemass[body_of_joint] * lever
    # Wheels roll apart, so that their friction does not help to hold the legs.
    factor = 4 if parts.wheels else 2
    leg_moment = factor * model.body_subtreemass[1] * height / len(parts.feet)
    in_leg = np.isin(body_of_joint, list(leg_bodies))
    moments = np.where(in_leg, leg_moment, limb_moment)
    gains = []
    for i in range(1, model.njnt):  # Joint 0 is the free one.
        is_wheel = model.joint(i).name in parts.wheels
        gain = max(_round_to_two_digits(GRAVITY * moments[i]), LEAST_GAIN)
        gains.append(0.0 if is_wheel else gain)
    return tuple(gains)


def _damping(
    kp: Sequence[float],
    kinds: Sequence[str],
    torques: Sequence[float],
    velocities: Sequence[float],
    parts: Parts,
) -> tuple[float, ...]:
    """Return kd of each joint: the gain of a wheel gives its largest torque at full speed."""
    balances = len(parts.feet) <= FEET_THAT_NEED_BALANCE and not parts.wheels
    ratio = GAIN_RATIO_TO_BALANCE if balances else GAIN_RATIO
    damping = []
    for i, gain in enumerate(kp):
        value = gain / ratio
        if kinds[i] == "velocity":
            value = torques[i] / velocities[i]
        damping.append(_round_to_two_digits(value))
    return tuple(damping)


def _diagonals(pose: Pose, feet: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of feet of a quadruped at opposite corners; empty for other robots."""
    places = np.array([pose.data.body(foot).xpos[:2] for foot in feet])
    # Positive front left and rear right, negative at the other two corners.
    corner = np.prod(places - places.mean(0), axis=1) > 0.0
    if len(feet) != 4 or corner.sum() != 2:
        return ()
    first = [foot for foot, side in zip(feet, corner, strict=True) if side == corner[0]]
    second = [foot for foot, side in zip(feet, corner, strict=True) if side != corner[0]]
    return (first[0], first[1]), (second[0], second[1])


def _mirror(
    pose: Pose, joints: tuple[str, ...], height: float, gaps: dict[str, str]
) -> tuple[tuple[str, float], ...]:
    model, data = pose
    mirror = []
    without_partner = []
    without_image = []
    partners = joint_partners(pose, joints, height)
    middle = np.mean([data.joint(joint).xanchor[1] for joint in joints])
    for joint in joints:
        partner = partners[joint]
        sign = mirror_sign(model, data, joint, partner)
        mirror.append((partner, sign or 1.0))
        offset = abs(data.joint(joint).xanchor[1] - middle)
        if partner == joint and offset > LEAST_SIDE_OFFSET:
            without_partner.append(joint)
        if not sign:
            without_image.append(joint)
    doubtful = dict.fromkeys([*without_partner, *without_image])
    if doubtful:
        gaps["mirror"] = (
            f"{', '.join(doubtful)} find no partner by name or place, or none with a mirrored "
            "axis: write (joint in its place, 1.0 or -1.0)"
        )
    return tuple(mirror)
