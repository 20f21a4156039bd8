"""Derives the fields of a first :class:`RobotCfg` from a model in its default pose."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from legged_envs.robots.reading.isolate import Joints
from legged_envs.robots.reading.pose import (
    GRAVITY,
    Pose,
    body_path,
    ground_distances,
    mirror_sign,
)
from legged_envs.robots.robot import RobotCfg, counterpart

COMMON_VELOCITY_LIMIT = 20.0
"""Velocity limit of a joint for which the robot's file has none, rad/s. Common motors have it."""

GAIN_RATIO = 40.0
"""Stiffness kp divided by damping kd, 1/s."""

LEAST_FOOT_RADIUS = 1e-3
"""Smallest ``foot_radius``, the height of a foot's origin above its sole, m.

A :class:`RobotCfg` requires a positive value.
"""

LEAST_SIDE_OFFSET = 0.02
"""Distance of a joint from the sagittal plane above which it must have a partner, m.

The partner is the joint at the same place on the other side.
"""


def describe_robot(
    pose: Pose,
    joints: Joints,
    velocity_limits: Mapping[str, float],
    foot_names: Sequence[str],
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
        foot_names: Names of the bodies that are feet.
        height: Height of the base above the robot's lowest point, m.
        model_path: File of the model, for ``RobotCfg.xml``. Its stem is the robot's name.
        source_name: Name of the file from which the robot was read, for the texts in ``gaps``.
        gaps: Notes. An entry is added for each field that is a guess: the name of the field, and a
            text with the reason and the advice what to write.
    """
    model, data = pose
    base_name = model.body(1).name
    joint_names = tuple(joints.positions)
    distances = _body_distances(pose)
    # Height of the plane on which the feet stand, in the frame of the pose.
    ground = min(distance for body, distance in distances if body in foot_names)
    foot_heights = [data.body(foot).xpos[2] for foot in foot_names]
    foot_radius = float(np.mean(foot_heights)) - ground
    torque_guess = _round_to_two_digits(
        model.body_subtreemass[1] * GRAVITY * height / len(foot_names)
    )
    _note_missing_limits(joints, velocity_limits, torque_guess, source_name, gaps)
    other_bodies = [body for body, _ in distances if body not in foot_names]
    contact_bodies = list(dict.fromkeys(other_bodies))
    if base_name not in contact_bodies:
        gaps["termination_bodies"] = (
            f"{base_name!r} has no collision shape: write the bodies whose contact is a fall"
        )
    kp = _gains(pose, height, foot_names)
    return RobotCfg(
        name=model_path.stem,
        xml=str(model_path),
        base_body=base_name,
        joint_names=joint_names,
        default_joint_pos=tuple(round(position, 4) for position in joints.positions.values()),
        kp=kp,
        kd=tuple(_round_to_two_digits(gain / GAIN_RATIO) for gain in kp),
        torque_limits=tuple(joints.torque_limits.get(joint, torque_guess) for joint in joint_names),
        velocity_limits=tuple(
            velocity_limits.get(joint, COMMON_VELOCITY_LIMIT) for joint in joint_names
        ),
        base_height=round(float(data.qpos[2]) - ground, 4),
        foot_names=tuple(foot_names),
        foot_radius=max(round(foot_radius, 4), LEAST_FOOT_RADIUS),
        penalized_bodies=tuple(body for body in contact_bodies if body != base_name),
        termination_bodies=(base_name,),
        mirror=_mirror(pose, joint_names, gaps),
        foot_mirror=tuple(foot_names.index(counterpart(foot, foot_names)) for foot in foot_names),
        diagonals=_diagonals(pose, foot_names),
    )


def _body_distances(pose: Pose) -> list[tuple[str, float]]:
    """Return the body of each collision shape, and its distance to the plane, m."""
    model = pose.model
    distances = []
    for shape, distance in ground_distances(*pose).items():
        body = model.body(model.geom_bodyid[shape]).name
        distances.append((body, distance))
    return distances


def _note_missing_limits(
    joints: Joints,
    velocity_limits: Mapping[str, float],
    torque_guess: float,
    source_name: str,
    gaps: dict[str, str],
) -> None:
    guesses: tuple[tuple[str, Collection[str], str], ...] = (
        ("torque_limits", joints.torque_limits, f"{torque_guess} N m"),
        ("velocity_limits", velocity_limits, f"{COMMON_VELOCITY_LIMIT} rad/s"),
    )
    for field, known, guess in guesses:
        missing = [joint for joint in joints.positions if joint not in known]
        if missing:
            gaps[field] = (
                f"{source_name} has none of {', '.join(missing)}: "
                f"{guess} is a guess, write what the motors have"
            )


def _round_to_two_digits(value: float) -> float:
    # A guess: more digits would look measured.
    return float(f"{value:.2g}")


def _gains(pose: Pose, height: float, foot_names: Sequence[str]) -> tuple[float, ...]:
    """Return kp of each joint: the formulas are those of ``draft_robot``."""
    model, data = pose
    leg_bodies: set[int] = set()
    for foot in foot_names:
        leg_bodies.update(body_path(model, model.body(foot).id))
    body_of_joint = model.jnt_bodyid
    lever = np.linalg.norm(data.subtree_com[body_of_joint] - data.xanchor, axis=1)
    limb_moment = 10 * model.body_subtreemass[body_of_joint] * lever
    leg_moment = 2 * model.body_subtreemass[1] * height / len(foot_names)
    in_leg = np.isin(body_of_joint, list(leg_bodies))
    moments = np.where(in_leg, leg_moment, limb_moment)[1:]  # Joint 0 is the free one.
    return tuple(max(_round_to_two_digits(GRAVITY * moment), 1.0) for moment in moments)


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
    pose: Pose, joints: tuple[str, ...], gaps: dict[str, str]
) -> tuple[tuple[str, float], ...]:
    model, data = pose
    mirror = []
    without_partner = []
    without_image = []
    for joint in joints:
        partner = counterpart(joint, joints)
        sign = mirror_sign(model, data, joint, partner)
        mirror.append((partner, sign or 1.0))
        if partner == joint and abs(data.joint(joint).xanchor[1]) > LEAST_SIDE_OFFSET:
            without_partner.append(joint)
        if not sign:
            without_image.append(joint)
    doubtful = dict.fromkeys([*without_partner, *without_image])
    if doubtful:
        gaps["mirror"] = (
            f"{', '.join(doubtful)} find no partner by name, or none with a mirrored axis: "
            "write (joint in its place, 1.0 or -1.0)"
        )
    return tuple(mirror)
