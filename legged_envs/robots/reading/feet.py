"""Finds the feet of a robot by their names or positions, and makes them separate bodies."""

import re
from typing import NamedTuple

import mujoco
import numpy as np

from legged_envs.robots.reading.pose import Pose, body_path, ground_distances

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


class Foot(NamedTuple):
    """The last body of a leg, with the shapes that touch the ground."""

    body: str
    """Name of the last body of the leg."""
    shapes: list[int]
    """Indices of the body's lowest collision shapes (MuJoCo: geoms), which are its sole."""


def find_feet(pose: Pose, height: float, base_height: float) -> list[Foot]:
    """Find the last body of each leg, with its lowest shapes.

    If two or more bodies near the ground have names of feet (``FOOT_NAME``), these are the feet.
    Else all bodies near the ground are. Of several on one limb only the outermost is a foot.

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
        if distance < highest:
            body = int(model.geom_bodyid[shape])
            shapes.setdefault(body, {})[shape] = distance
    named = [body for body in shapes if FOOT_NAME.search(model.body(body).name)]
    candidates = named if len(named) > 1 else list(shapes)
    # Of two candidates on one limb the outer one is the foot, such as a toe after an ankle.
    inner: set[int] = set()
    for body in candidates:
        inner.update(body_path(model, body)[:-1])
    bodies = sorted(set(candidates) - inner)
    if not bodies or bodies[0] == 1:  # Body 1 is the base.
        raise ValueError(
            "there are no feet: no limb has a collision shape near the ground in the default pose; "
            "give the last links some, or an MJCF a keyframe called home, in which it stands"
        )
    return [Foot(model.body(body).name, _lowest(shapes[body])) for body in bodies]


def _lowest(distances: dict[int, float]) -> list[int]:
    level = min(distances.values()) + SOLE_THICKNESS
    return [shape for shape, distance in distances.items() if distance < level]


def make_foot(spec: mujoco.MjSpec, pose: Pose, foot: Foot, height: float) -> str:
    """Move the lowest shapes of a leg to a new body, which is the foot.

    If the last body of the leg has no joint and no other collision shapes, it is the foot, and
    nothing changes.

    Args:
        spec: Model, changed in place.
        pose: The same model, compiled, in its default pose.
        foot: Last body of the leg, with its lowest shapes.
        height: Height of the base above the robot's lowest point, m.

    Returns:
        Name of the body that is the foot.
    """
    model, data = pose
    link = spec.body(foot.body)
    num_collision_shapes = sum(geom.conaffinity for geom in link.geoms)
    if not link.joints and num_collision_shapes == len(foot.shapes):
        return foot.body
    centres = [_foot_point(pose, shape, height) for shape in foot.shapes]
    body = data.body(foot.body)
    offset = np.mean(centres, axis=0) - body.xpos
    place = body.xmat.reshape(3, 3).T @ offset
    new_body = link.add_body(name=_foot_name(foot.body), pos=place)
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
        new.pos = old.pos - place
        spec.delete(old)
    return str(new_body.name)


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
