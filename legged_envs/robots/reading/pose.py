"""Measures of a robot in one pose: heights of its shapes, mirrored joint axes, bodies of a limb."""

from typing import NamedTuple

import mujoco
import numpy as np

GRAVITY = 9.81
"""Acceleration of gravity, m/s²."""

MIRROR_OF_HINGE_AXIS = (-1.0, 1.0, -1.0)
"""Factors (x, y, z) of a hinge axis when left and right are swapped.

Rotations about x and z change their signs.
"""

MIRROR_OF_SLIDE_AXIS = (1.0, -1.0, 1.0)
"""Factors (x, y, z) of a slide axis when left and right are swapped.

Translations along y change their signs.
"""

LEAST_ALIGNMENT = 0.95
"""Cosine of the angle above which a mirrored joint axis is parallel to the axis of its partner."""


class Pose(NamedTuple):
    """A robot in one pose above a plane: MuJoCo's model and its data."""

    model: mujoco.MjModel
    """Model of the robot and the plane. The plane is geom 0."""
    data: mujoco.MjData
    """Data of the pose, after ``mj_forward``."""


def ground_distances(model: mujoco.MjModel, data: mujoco.MjData) -> dict[int, float]:
    """Return the distance of each collision shape of a robot to the plane, m.

    The keys are the indices of the shapes (MuJoCo: geoms). Negative distances are below the plane.

    Args:
        model: Model of a robot and a plane, which is geom 0.
        data: Pose of the robot, after ``mj_forward``.
    """
    distances = {}
    for geom in range(model.ngeom):
        # Robots collide by their affinity: bit 0 is the ground's type.
        if model.geom_conaffinity[geom] & 1:
            distances[geom] = mujoco.mj_geomDistance(model, data, 0, geom, 1e3, None)
    return distances


def lowest_point(pose: Pose, shape: int) -> np.ndarray:
    """Return the point of a shape that is nearest to the plane, m, in the world frame."""
    nearest = np.zeros(6)  # Points on the plane and on the shape.
    mujoco.mj_geomDistance(pose.model, pose.data, 0, shape, 1e3, nearest)
    return nearest[3:]


def mirror_sign(model: mujoco.MjModel, data: mujoco.MjData, joint: str, partner: str) -> float:
    """Return the sign of ``RobotCfg.mirror`` that follows from the axes of two joints.

    When left and right are swapped, a joint has the position of its partner multiplied by this
    sign.

    Args:
        model: Model of the robot.
        data: Pose in which the axes are compared, after ``mj_forward``.
        joint: Name of the joint.
        partner: Name of the joint on the other side. For a joint in the middle: ``joint`` itself.

    Returns:
        1 or -1. 0 if the axes are not mirror images of each other.
    """
    is_hinge = model.joint(joint).type[0] == mujoco.mjtJoint.mjJNT_HINGE
    factors = MIRROR_OF_HINGE_AXIS if is_hinge else MIRROR_OF_SLIDE_AXIS
    image = data.joint(joint).xaxis * factors
    alignment = float(image @ data.joint(partner).xaxis)
    return float(np.sign(alignment)) if abs(alignment) > LEAST_ALIGNMENT else 0.0


def body_path(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the indices of the bodies from the base to ``body``, including both."""
    path: list[int] = []
    while body != 0:
        path.insert(0, body)
        body = int(model.body_parentid[body])
    return path
