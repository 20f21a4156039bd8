"""Finds feet that are wheels: the last links of legs, which turn without an end."""

from collections.abc import Sequence

import mujoco
import numpy as np

from legged_envs.robots.reading.pose import Pose

STEEPEST_AXLE = 0.5
"""Largest vertical component of a wheel's axle, a unit vector. Steeper ones turn a leg or foot."""

LARGEST_OFFSET = 0.2
"""Largest distance of a wheel's centre from its axle, as a fraction of the height of its axle above
the ground. The sole below an ankle is as far from its axis as the axis is high."""


def find_wheel(pose: Pose, body: str, shapes: Sequence[int], ground: float) -> int | None:
    """Return the index of the joint about which a foot turns as a wheel, or None.

    Args:
        pose: Robot in its default pose.
        body: Name of the last body of the leg.
        shapes: Indices of its lowest collision shapes.
        ground: Height of the robot's lowest point, m.
    """
    model, data = pose
    link = model.body_weldid[model.body(body).id]
    joints = np.flatnonzero(model.jnt_bodyid == link)
    if len(joints) != 1:
        return None
    joint = int(joints[0])
    is_hinge = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
    if not is_hinge or model.jnt_limited[joint]:
        return None
    axle = data.xaxis[joint]
    centre = data.geom_xpos[list(shapes)].mean(axis=0)
    offset = np.linalg.norm(np.cross(centre - data.xanchor[joint], axle))
    radius = centre[2] - ground
    is_wheel = abs(axle[2]) < STEEPEST_AXLE and offset < LARGEST_OFFSET * radius
    return joint if is_wheel else None


def wheel_frame(pose: Pose, body: str, joint: int, centre: np.ndarray) -> np.ndarray:
    """Return the pose of a wheel's foot in its link: position, m, and quaternion (w, x, y, z).

    Its origin is the point of the axle that is nearest to ``centre``, and its y axis is the axle.

    Args:
        pose: Robot in its default pose.
        body: Name of the link.
        joint: Index of the wheel's joint.
        centre: Centre of the wheel's shapes in the world, m.
    """
    data = pose.data
    anchor = data.xanchor[joint]
    axle = data.xaxis[joint]
    place = anchor + (centre - anchor) @ axle * axle
    to_link = data.body(body).xmat.reshape(3, 3).T
    axle_in_link = to_link @ axle
    # The direction of an axle that is closer to the link's y axis.
    if axle_in_link[1] < 0.0:
        axle_in_link = -axle_in_link
    quat = np.array((1.0, 0.0, 0.0, 0.0))
    turn = np.cross((0.0, 1.0, 0.0), axle_in_link)
    angle = np.arctan2(np.linalg.norm(turn), axle_in_link[1])
    if angle > 1e-9:
        mujoco.mju_axisAngle2Quat(quat, turn / np.linalg.norm(turn), angle)
    return np.array((*(to_link @ (place - data.body(body).xpos)), *quat))
