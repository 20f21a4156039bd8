"""Finds closed loops that a robot's file has cut open, such as the rods that drive a knee."""

import mujoco
import numpy as np

from legged_envs.robots.reading.pose import Pose

FULL_TURN = 2.0 * np.pi
"""Range of a joint from which on it is a pin that turns freely, rad."""

PARALLEL = 0.999
"""Alignment of two axes from which on they are parallel."""

LEAST_LENGTH = 0.25
"""Smallest distance between the two pins of a rod, as a fraction of the rod's size."""


CLEARANCE = 0.1
"""Distance of a pin from the bounding box of a rod up to which it is in the rod, as a fraction of
the rod's size. Rods are flat, and their pins are next to them."""


MOST_NAMES = 4
"""Largest number of joints that the message names."""


def refuse_cut_loops(pose: Pose) -> None:
    """Raise a ValueError if two free ends of a robot's links meet in a pin joint.

    A URDF is a tree. Exporters of CAD programs write a four-bar linkage as a rod and a pin that
    hang from two links: no motor drives them, and nothing holds them together. Such a pair has two
    joints that turn through a full turn about parallel axes, and the pin is in the rod's shape.

    Args:
        pose: The robot as it is assembled, with its joints near 0.
    """
    meetings = _meetings(pose)
    if not meetings:
        return
    joints = dict.fromkeys(joint for meeting in meetings for joint in meeting)
    names = [repr(pose.model.joint(joint).name) for joint in joints]
    listed = ", ".join(names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        listed += f" and {len(names) - MOST_NAMES} more of this kind"
    rod, pin = (_link_of(pose.model, joint) for joint in meetings[0])
    raise ValueError(
        f"links {rod!r} and {pin!r} meet in a pin and hang on joints that turn freely: they close "
        "a loop, which a tree of links cannot have, and each joint must have its own motor: set "
        f'type="fixed" on the joints {listed}'
    )


def _meetings(pose: Pose) -> list[tuple[int, int]]:
    """Return the pairs of joints of a rod and of a pin at its other end."""
    model, data = pose
    free_ends = [joint for joint in range(model.njnt) if _is_free_end(model, joint)]
    meetings = []
    for rod in free_ends:
        for pin in free_ends:
            is_same_limb = _parent(model, rod) == _parent(model, pin)
            alignment = abs(data.xaxis[rod] @ data.xaxis[pin])
            if rod == pin or is_same_limb or alignment < PARALLEL:
                continue
            place = data.xanchor[pin]
            if _is_at_other_end(pose, rod, place):
                meetings.append((rod, pin))
    return meetings


def _is_free_end(model: mujoco.MjModel, joint: int) -> bool:
    """Return True if a joint turns at least once about itself and moves a single link."""
    if model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_HINGE:
        return False
    low, high = model.jnt_range[joint]
    is_pin = not model.jnt_limited[joint] or high - low >= FULL_TURN
    children = model.body_parentid == model.jnt_bodyid[joint]
    return bool(is_pin and not model.body_jntnum[children].any())


def _is_at_other_end(pose: Pose, rod: int, place: np.ndarray) -> bool:
    """Return True if a place is in a shape of the link of a joint, away from this joint."""
    model, data = pose
    distance = np.linalg.norm(place - data.xanchor[rod])
    for geom in np.flatnonzero(model.geom_bodyid == model.jnt_bodyid[rod]):
        centre = model.geom_aabb[geom, :3]
        half = model.geom_aabb[geom, 3:]
        to_shape = data.geom_xmat[geom].reshape(3, 3).T
        in_shape = to_shape @ (place - data.geom_xpos[geom])
        size = 2.0 * half.max()
        outside = abs(in_shape - centre) - half
        is_inside = (outside <= CLEARANCE * size).all()
        if is_inside and distance > LEAST_LENGTH * size:
            return True
    return False


def _parent(model: mujoco.MjModel, joint: int) -> int:
    """Return the rigid body to which a joint connects its link."""
    return int(model.body_weldid[model.body_parentid[model.jnt_bodyid[joint]]])


def _link_of(model: mujoco.MjModel, joint: int) -> str:
    return str(model.body(model.jnt_bodyid[joint]).name)
