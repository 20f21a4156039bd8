"""Finds limits in a robot's file that no motor has, such as 1000 N m or 0.001 rad/s."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from legged_envs.robots.reading.pose import GRAVITY, Pose, body_path

# The strongest motor of the package's robots has 0.9 of it (Go2).
MOST_TORQUE = 5.0
"""Largest torque of a joint in multiples of m g h, with the mass m of the robot and the height h
of its base. Files with more have a placeholder, such as 1000 N m."""

LEAST_TORQUE = 0.001
"""Smallest torque of a joint of a leg in multiples of m g h. The weakest ankles known have 0.006
of it (GR1T1)."""

LEAST_HOLD = 0.05
"""Smallest torque of a joint, as a fraction of the torque that holds the limb beyond it level."""

MOST_VELOCITY = 100.0
"""Largest velocity of a joint, rad/s. Files with more have a placeholder, such as 1000 rad/s."""

LEAST_VELOCITY = 0.2
"""Smallest velocity of a hinge, rad/s. Files with less have a placeholder, such as 0.001 rad/s."""


class Bounds(NamedTuple):
    """Limits that a motor of a robot can have."""

    least: Mapping[str, float]
    """Smallest limit of each hinge, by name."""
    most: float
    """Largest limit of any joint."""


class Split(NamedTuple):
    """Limits of the joints of a robot, by name, that are real, too large or too small."""

    real: dict[str, float]
    too_large: dict[str, float]
    too_small: dict[str, float]


def torque_bounds(pose: Pose, feet: Sequence[str], height: float) -> Bounds:
    """Return the torques, N m, that motors of a robot can have.

    Args:
        pose: The robot in its default pose.
        feet: Names of its feet.
        height: Height of the base above the lowest point, m.
    """
    model, data = pose
    tipping_moment = float(model.body_subtreemass[1]) * GRAVITY * height
    leg_bodies: set[int] = set()
    for foot in feet:
        leg_bodies.update(body_path(model, model.body(foot).id))
    least = {}
    for joint in _hinges(model):
        body = int(model.jnt_bodyid[joint])
        lever = np.linalg.norm(data.subtree_com[body] - data.xanchor[joint])
        bound = LEAST_HOLD * float(model.body_subtreemass[body] * GRAVITY * lever)
        if body in leg_bodies:
            bound = max(bound, LEAST_TORQUE * tipping_moment)
        least[model.joint(joint).name] = bound
    return Bounds(least, MOST_TORQUE * tipping_moment)


def velocity_bounds(pose: Pose) -> Bounds:
    """Return the velocities that motors of a robot can have, rad/s."""
    model = pose.model
    least = {model.joint(joint).name: LEAST_VELOCITY for joint in _hinges(model)}
    return Bounds(least, MOST_VELOCITY)


def _hinges(model: mujoco.MjModel) -> list[int]:
    return [i for i in range(model.njnt) if model.jnt_type[i] == mujoco.mjtJoint.mjJNT_HINGE]


def split_placeholders(limits: Mapping[str, float], bounds: Bounds) -> Split:
    """Split limits into those that a motor can have and those that are placeholders."""
    split = Split({}, {}, {})
    for joint, limit in limits.items():
        if limit > bounds.most:
            split.too_large[joint] = limit
        elif limit < bounds.least.get(joint, 0.0):
            split.too_small[joint] = limit
        else:
            split.real[joint] = limit
    return split
