"""Direction in which the robot of a file looks, and turning it so that it looks along x."""

import mujoco
import numpy as np

from legged_envs.robots.reading.root import turn_base
from legged_envs.robots.robot import counterpart

LEFT_WORDS = ("left", "l")
"""Words and letters for left in names, in lower case."""

FRONT_AND_REAR = (("front", "rear"), ("front", "hind"), ("F", "R"), ("F", "H"))
"""Starts of the names of front joints, and of the rear joints on the same side."""

LEAST_WIDTH = 0.02
"""Distance of two partners below which their places do not decide left and right, m."""

SMALL_TURN = 0.8
"""Angle from x within which a robot is taken to look along x, rad: less than a right angle."""


def turn_forward(spec: mujoco.MjSpec, notes: list[str]) -> None:
    """Turn the parts of the base so that the robot looks along the x axis, its left along y.

    The direction follows from the places of joints with left and right in their names. Robots
    without such names, or that look along x, stay as they are. The turn is a multiple of 90°.

    Args:
        spec: Model, changed in place. Its base is upright.
        notes: Notes. One is added if parts are turned.
    """
    to_left = _direction_to_left(spec)
    if to_left is None:
        return
    # Forward is a right angle clockwise from left.
    forward = np.array((to_left[1], -to_left[0]))
    to_front = _direction_to_front(spec)
    if to_front is not None and forward @ to_front <= 0.0:
        # The names contradict each other, so they are not used.
        return
    angle = float(np.arctan2(forward[1], forward[0]))
    if abs(angle) < SMALL_TURN:
        return
    quarters = round(angle / (np.pi / 2))
    axis = {1: "y", -1: "-y"}.get(quarters, "-x")
    turn = np.zeros(4)
    mujoco.mju_axisAngle2Quat(turn, np.array((0.0, 0.0, 1.0)), -quarters * np.pi / 2)
    turn_base(spec, turn)
    notes.append(
        f"the robot looks along {axis} in its file, by the places of its left and right joints: "
        "its parts are turned, so that it looks along x"
    )


def _direction_to_left(spec: mujoco.MjSpec) -> np.ndarray | None:
    """Return the horizontal direction from right to left joints, or None if it is not known."""
    places = _joint_places(spec)
    names = list(places)
    total = np.zeros(2)
    extent = 0.0
    for name in names:
        partner = counterpart(name, names)
        if partner != name and _is_left(name, partner):
            offset = places[name] - places[partner]
            total += offset
            extent += float(np.linalg.norm(offset))
    # Partners with offsets that cancel out are not left and right, such as rear and lower.
    if extent < LEAST_WIDTH or np.linalg.norm(total) < 0.9 * extent:
        return None
    return total


def _joint_places(spec: mujoco.MjSpec) -> dict[str, np.ndarray]:
    """Return the horizontal place of each joint in the frame of the base, m. Shape: (2,)."""
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    # The file can have the base at any heading, which does not show where it looks.
    base = data.body(spec.worldbody.bodies[0].name)
    to_base = base.xmat.reshape(3, 3).T
    places = {}
    for i in range(1, model.njnt):  # Joint 0 is the free one.
        place = to_base @ (data.joint(i).xanchor - base.xpos)
        places[model.joint(i).name] = place[:2]
    return places


def _direction_to_front(spec: mujoco.MjSpec) -> np.ndarray | None:
    """Return the horizontal direction from rear to front joints, or None if it is not known."""
    places = _joint_places(spec)
    total = np.zeros(2)
    for name, place in places.items():
        for front, rear in FRONT_AND_REAR:
            partner = rear + name[len(front) :]
            if name.startswith(front) and partner in places:
                total += place - places[partner]
    return total if np.linalg.norm(total) > LEAST_WIDTH else None


def _is_left(name: str, partner: str) -> bool:
    """Return True if the first difference of two names is a word or letter for left."""
    first = 0
    while name[first] == partner[first]:
        first += 1
    return name[first:].lower().startswith(LEFT_WORDS)
