"""A robot in one pose: heights of its shapes, mirrored joint axes and the bodies of its limbs."""

from typing import NamedTuple

import mujoco
import numpy as np

GRAVITY = 9.81
"""Acceleration of gravity, m/s²."""

MIRROR_OF_HINGE_AXIS = (-1.0, 1.0, -1.0)
"""Factors that mirror a rotation left and right: those about x and z change their signs."""

MIRROR_OF_SLIDE_AXIS = (1.0, -1.0, 1.0)
"""Factors that mirror a translation left and right."""

LEAST_ALIGNMENT = 0.95
"""Cosine of the angle between two joint axes from which they count as mirror images."""


class Pose(NamedTuple):
    """A compiled model of one robot above a plane, with its data after ``mj_forward``."""

    model: mujoco.MjModel
    """Model whose geom 0 is the plane."""
    data: mujoco.MjData
    """Data with the pose."""


def ground_distances(model: mujoco.MjModel, data: mujoco.MjData) -> dict[int, float]:
    """Return the distance of each collision shape to the plane, m, by its number.

    The plane must be geom 0.
    """
    distances = {}
    for geom in range(model.ngeom):
        # Robots collide by their affinity: bit 0 is the ground's type.
        if model.geom_conaffinity[geom] & 1:
            distances[geom] = mujoco.mj_geomDistance(model, data, 0, geom, 1e3, None)
    return distances


def mirror_sign(model: mujoco.MjModel, data: mujoco.MjData, joint: str, partner: str) -> float:
    """Return the sign with which a joint takes the place of its partner in the mirror.

    Args:
        model: Model of the robot.
        data: Pose in which the axes are compared.
        joint: Name of the joint.
        partner: Name of the joint on the other side, or ``joint`` itself in the middle.

    Returns:
        1 or -1; 0 if the axes are not mirror images.
    """
    is_hinge = model.joint(joint).type[0] == mujoco.mjtJoint.mjJNT_HINGE
    factors = MIRROR_OF_HINGE_AXIS if is_hinge else MIRROR_OF_SLIDE_AXIS
    image = data.joint(joint).xaxis * factors
    alignment = float(image @ data.joint(partner).xaxis)
    return float(np.sign(alignment)) if abs(alignment) > LEAST_ALIGNMENT else 0.0


def body_path(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the bodies from the base to ``body``, including both."""
    path: list[int] = []
    while body != 0:
        path.insert(0, body)
        body = int(model.body_parentid[body])
    return path
