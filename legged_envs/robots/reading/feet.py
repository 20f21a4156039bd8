"""Finds the feet of a robot by their names or positions, and makes them separate bodies."""

import re
from typing import NamedTuple

import mujoco
import numpy as np

from legged_envs.robots.reading.pose import Pose, body_path, ground_distances
from legged_envs.robots.reading.wheels import find_wheel, wheel_frame

FOOT_NAME = re.compile(r"foot|feet|toe|sole|ankle_?roll", re.IGNORECASE)
"""Pattern in the names of bodies that are feet."""

FOOT_ZONE = 0.1
"""Height of the zone above the robot's lowest point in which bodies can be feet.

It is a fraction of the height of the base, in the default pose.
"""

SOLE_THICKNESS = 0.01
"""Height range in which the shapes of a leg are its sole, m, from the lowest shape upwards."""

COPIED_ATTRIBUTES = (
    "type",
    "size",
    "quat",
    "meshname",
    "friction",
    "condim",
    "group",
    "rgba",
    "material",
)
"""Attributes of a shape (MuJoCo: geom) that stay when it becomes a shape of another body."""


IN_PLACE = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
"""Pose of a body at its parent: position and quaternion."""


class Foot(NamedTuple):
    """The last body of a leg, with the shapes that touch the ground."""

    body: str
    """Name of the last body of the leg."""
    shapes: list[int]
    """Indices of the collision shapes of the foot (MuJoCo: geoms): the lowest ones of the body,
    which are its sole, or all of a wheel."""
    wheel: int | None = None
    """Index of the joint about which the body turns as a wheel; None for a foot."""


def find_feet(pose: Pose, height: float, base_height: float) -> list[Foot]:
    """Find the last body of each leg, with its lowest shapes.

    If two or more bodies near the ground have names of feet (``FOOT_NAME``), these are the feet.
    Else all bodies near the ground are. Of several on one limb only the outermost is a foot. Bodies
    that are welded to the base are no feet.

    Args:
        pose: Robot in its default pose.
        height: Height of the base above the robot's lowest point, m.
        base_height: Height of the base above the plane, m.

    Returns:
        The feet in the order of the file.

    Raises:
        ValueError: If no limb is near the ground.
    """
    model = pose.model
    highest = base_height - (1 - FOOT_ZONE) * height
    shapes: dict[int, dict[int, float]] = {}
    for shape, distance in ground_distances(*pose).items():
        body = int(model.geom_bodyid[shape])
        # Body 1 is the base.
        is_limb = model.body_weldid[body] != 1
        if is_limb and distance < highest:
            shapes.setdefault(body, {})[shape] = distance
    named = [body for body in shapes if FOOT_NAME.search(model.body(body).name)]
    candidates = named if len(named) > 1 else list(shapes)
    # Of two candidates on one limb the outer one is the foot, such as a toe after an ankle.
    inner: set[int] = set()
    for body in candidates:
        inner.update(body_path(model, body)[:-1])
    bodies = sorted(set(candidates) - inner)
    if not bodies:
        raise ValueError(
            "there are no feet: no limb has a collision shape near the ground in the default pose; "
            "give the last links some, or an MJCF a keyframe called home, in which it stands"
        )
    lowest_point = base_height - height
    feet = [_make_description(pose, body, shapes[body], lowest_point) for body in bodies]
    return _without_wheel_motors(model, feet)


def _without_wheel_motors(model: mujoco.MjModel, feet: list[Foot]) -> list[Foot]:
    """Return the feet without those that carry a wheel, such as a motor at its hub."""
    carriers: set[int] = set()
    for foot in feet:
        if foot.wheel is not None:
            path = body_path(model, model.body(foot.body).id)
            carriers.update(int(model.body_weldid[body]) for body in path)
            carriers.discard(int(model.body_weldid[path[-1]]))
    kept = []
    for foot in feet:
        link = int(model.body_weldid[model.body(foot.body).id])
        if foot.wheel is not None or link not in carriers:
            kept.append(foot)
    return kept


def _make_description(
    pose: Pose, body: int, distances: dict[int, float], lowest_point: float
) -> Foot:
    name = pose.model.body(body).name
    shapes = _lowest(distances)
    wheel = find_wheel(pose, name, list(distances), lowest_point)
    if wheel is not None:
        shapes = list(distances)
    return Foot(name, shapes, wheel)


def _lowest(distances: dict[int, float]) -> list[int]:
    level = min(distances.values()) + SOLE_THICKNESS
    return [shape for shape, distance in distances.items() if distance < level]


def make_foot(spec: mujoco.MjSpec, pose: Pose, foot: Foot, height: float) -> str:
    """Move the lowest shapes of a leg to a new body, which is the foot.

    If the last body of the leg has no joint and no other collision shapes, it is the foot, and
    nothing changes. The y axis of a wheel is its axle.

    Args:
        spec: Model, changed in place.
        pose: The same model, compiled, in its default pose.
        foot: Last body of the leg, with its lowest shapes.
        height: Height of the base above the robot's lowest point, m.

    Returns:
        Name of the body that is the foot.
    """
    model = pose.model
    link = spec.body(foot.body)
    num_collision_shapes = sum(geom.conaffinity for geom in link.geoms)
    is_separate = not link.joints and num_collision_shapes == len(foot.shapes)
    frame = _foot_frame(pose, foot, height)
    if is_separate and (foot.wheel is None or np.allclose(frame, IN_PLACE, atol=1e-6)):
        return foot.body
    place = frame[:3]
    turn = frame[3:]
    new_body = link.add_body(name=_foot_name(foot.body), pos=place, quat=turn)
    if not link.explicitinertial:
        # Without this, MuJoCo would compute the mass from the shapes that remain in the body.
        compiled = model.body(foot.body)
        link.explicitinertial = True
        link.mass = float(compiled.mass[0])
        link.ipos = compiled.ipos
        link.iquat = compiled.iquat
        link.inertia = compiled.inertia
    first_geom = int(model.body(foot.body).geomadr[0])
    moved = [link.geoms[shape - first_geom] for shape in foot.shapes]
    # The list is complete before the loop, because deleting a shape renumbers the others.
    for old in moved:
        attributes = {name: getattr(old, name) for name in COPIED_ATTRIBUTES}
        new = new_body.add_geom(**attributes, contype=0, conaffinity=1, mass=0.0)
        new.pos = _turn_back(turn, old.pos - place)
        new.quat = _divide(turn, old.quat)
        spec.delete(old)
    return str(new_body.name)


def _foot_frame(pose: Pose, foot: Foot, height: float) -> np.ndarray:
    """Return the pose of a foot in its link: position, m, and quaternion (w, x, y, z)."""
    data = pose.data
    if foot.wheel is not None:
        centre = data.geom_xpos[foot.shapes].mean(axis=0)
        return wheel_frame(pose, foot.body, foot.wheel, centre)
    centres = [_foot_point(pose, shape, height) for shape in foot.shapes]
    body = data.body(foot.body)
    offset = np.mean(centres, axis=0) - body.xpos
    place = body.xmat.reshape(3, 3).T @ offset
    return np.array((*place, 1.0, 0.0, 0.0, 0.0))


def _turn_back(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    result = np.zeros(3)
    inverse = quat * (1.0, -1.0, -1.0, -1.0)
    mujoco.mju_rotVecQuat(result, vector, inverse)
    return result


def _divide(quat: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the orientation ``other`` relative to ``quat``."""
    result = np.zeros(4)
    inverse = quat * (1.0, -1.0, -1.0, -1.0)
    mujoco.mju_mulQuat(result, inverse, other)
    return result


def _foot_name(link: str) -> str:
    stem = re.sub(r"_?(link|body)$", "", link, flags=re.IGNORECASE)
    suffix = "sole" if FOOT_NAME.search(stem) else "foot"
    return f"{stem}_{suffix}"


def _foot_point(pose: Pose, shape: int, height: float) -> np.ndarray:
    """Return the centre of a shape, or of the lower end of a long one such as a shank."""
    model, data = pose
    nearest = np.zeros(6)  # Points on the plane and on the shape.
    mujoco.mj_geomDistance(model, data, 0, shape, 1e3, nearest)
    centre = data.geom_xpos[shape]
    lowest_point = nearest[3:]
    if centre[2] - lowest_point[2] <= FOOT_ZONE * height:
        return np.array(centre)
    radius = model.geom_size[shape, 0]
    return np.array(lowest_point + np.array([0.0, 0.0, radius]))
