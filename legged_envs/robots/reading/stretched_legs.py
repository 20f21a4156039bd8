"""Bends the legs of a robot with four feet or more that stands on stretched legs in its file."""

from collections.abc import Sequence

import mujoco
import numpy as np

from legged_envs.robots.reading.balance import FEET_THAT_NEED_BALANCE
from legged_envs.robots.reading.feet import Foot
from legged_envs.robots.reading.pose import Pose, body_path, lowest_point

STRETCHED = 0.99
"""Length of a leg beyond which it is stretched, as a fraction of its thigh and shank together."""

# Go2, Go1 and A1 stand on 0.73 of the length of their legs, ANYmal C on 0.92.
STANDING = 0.75
"""Length to which stretched legs are bent, as a fraction of their thigh and shank together."""

ALIGNED = 0.9
"""Alignment with an axis of the base from which on a joint swings a leg about this axis."""


def bend_stretched_legs(
    pose: Pose, feet: Sequence[Foot], positions: dict[str, float]
) -> dict[str, float]:
    """Return the joint positions with stretched legs bent, so that the base is lower.

    On stretched legs a robot is as high as it can be, and falls sideways when the joints that swing
    its legs sideways give way. A foot keeps its place below the base, and the knee goes backwards.
    Positions are kept if the robot needs a policy to balance, has wheels, no knees or no joints
    that swing its legs sideways, and if a leg is bent already or cannot be bent within the ranges
    of its joints.

    Args:
        pose: The robot with its joints at ``positions``, its base upright.
        feet: Its feet.
        positions: Joint positions, rad, by name.
    """
    if len(feet) <= FEET_THAT_NEED_BALANCE or any(foot.wheel is not None for foot in feet):
        return positions
    bent = dict(positions)
    for foot in feet:
        joints = _hip_and_knee(pose, foot)
        if joints is None:
            return positions
        turns = _bend(pose, foot, joints)
        if turns is None:  # This leg is bent already, as the others then are.
            return positions
        for joint, turn in zip(joints, turns, strict=True):
            name = pose.model.joint(joint).name
            sign = np.sign(pose.data.xaxis[joint, 1])
            bent[name] = float(positions[name] + sign * turn)
            if not _is_in_range(pose.model, joint, bent[name]):
                return positions
    return bent


def _is_in_range(model: mujoco.MjModel, joint: int, position: float) -> bool:
    low, high = model.jnt_range[joint]
    return bool(not model.jnt_limited[joint] or low <= position <= high)


def _hip_and_knee(pose: Pose, foot: Foot) -> tuple[int, int] | None:
    """Return the indices of the only two joints that swing a leg forwards.

    The result is None if there are not two, or if no joint swings the leg sideways.
    """
    model, data = pose
    forwards = []
    swings_sideways = False
    leg = body_path(model, model.body(foot.body).id)
    for joint in range(model.njnt):
        is_hinge = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
        if not is_hinge or model.jnt_bodyid[joint] not in leg:
            continue
        alignment = abs(data.xaxis[joint])
        if alignment[0] > ALIGNED:
            swings_sideways = True
        if alignment[1] > ALIGNED:
            forwards.append(joint)
    if len(forwards) != 2 or not swings_sideways:
        return None
    return forwards[0], forwards[1]


def _bend(pose: Pose, foot: Foot, joints: tuple[int, int]) -> tuple[float, float] | None:
    """Return the turns of hip and knee about the y axis of the base, rad; None for a bent leg.

    The angles of the triangle of thigh, shank and leg follow from the law of cosines.
    """
    hip = pose.data.xanchor[joints[0]]
    knee = pose.data.xanchor[joints[1]]
    soles = [lowest_point(pose, shape) for shape in foot.shapes]
    sole = np.mean(soles, axis=0)
    thigh, thigh_angle = _length_and_angle(hip, knee)
    shank, shank_angle = _length_and_angle(knee, sole)
    leg, leg_angle = _length_and_angle(hip, sole)
    full_length = thigh + shank
    if leg < STRETCHED * full_length:
        return None
    length = STANDING * full_length
    at_hip = _angle(thigh, length, shank)
    at_knee = _angle(thigh, shank, length)
    # A turn about y moves what is below a joint backwards.
    new_thigh_angle = leg_angle - at_hip
    new_shank_angle = new_thigh_angle + np.pi - at_knee
    hip_turn = thigh_angle - new_thigh_angle
    shank_turn = shank_angle - new_shank_angle
    return hip_turn, shank_turn - hip_turn


def _length_and_angle(start: np.ndarray, end: np.ndarray) -> tuple[float, float]:
    """Return the length of a link in the plane of x and z, m, and its angle before the vertical."""
    x, _, z = end - start
    return float(np.hypot(x, z)), float(np.arctan2(x, -z))


def _angle(side: float, other: float, opposite: float) -> float:
    """Return the angle between two sides of a triangle, rad."""
    cosine = (side**2 + other**2 - opposite**2) / (2 * side * other)
    return float(np.arccos(np.clip(cosine, -1.0, 1.0)))
