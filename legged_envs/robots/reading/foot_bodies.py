"""Makes each foot of a robot a body that is welded to the last link of its leg."""

import re

import mujoco
import numpy as np

from legged_envs.robots.reading.feet import FOOT_NAME, FOOT_ZONE, Foot
from legged_envs.robots.reading.pose import Pose, lowest_point
from legged_envs.robots.reading.wheels import wheel_frame

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
    link = spec.body(foot.body)
    num_collision_shapes = sum(geom.conaffinity for geom in link.geoms)
    # The shapes of several bodies of one foot need a body that has them all.
    is_one_body = set(_bodies_of(pose.model, foot)) == {foot.body}
    is_separate = is_one_body and not link.joints and num_collision_shapes == len(foot.shapes)
    frame = _foot_frame(pose, foot, height)
    if is_separate and (foot.wheel is None or np.allclose(frame, IN_PLACE, atol=1e-6)):
        return foot.body
    new_body = link.add_body(name=_foot_name(foot.body), pos=frame[:3], quat=frame[3:])
    for body in _bodies_of(pose.model, foot):
        _keep_mass(spec, pose.model, body)
        _move_shapes(spec, pose, foot, body, new_body, frame)
    return str(new_body.name)


def _bodies_of(model: mujoco.MjModel, foot: Foot) -> list[str]:
    """Return the names of the bodies with the shapes of a foot."""
    names = [model.body(model.geom_bodyid[shape]).name for shape in foot.shapes]
    return list(dict.fromkeys(names))


def _keep_mass(spec: mujoco.MjSpec, model: mujoco.MjModel, body: str) -> None:
    """Give a body its own mass, which MuJoCo would compute from the shapes that remain in it."""
    link = spec.body(body)
    if not link.explicitinertial:
        compiled = model.body(body)
        link.explicitinertial = True
        link.mass = float(compiled.mass[0])
        link.ipos = compiled.ipos
        link.iquat = compiled.iquat
        link.inertia = compiled.inertia


def _move_shapes(
    spec: mujoco.MjSpec,
    pose: Pose,
    foot: Foot,
    body: str,
    new_body: mujoco.MjsBody,
    frame: np.ndarray,
) -> None:
    """Move the shapes of a foot that are in one body to the new body of the foot."""
    model = pose.model
    body_id = model.body(body).id
    first_geom = int(model.body_geomadr[body_id])
    shapes = [shape for shape in foot.shapes if model.geom_bodyid[shape] == body_id]
    # The list is complete before the loop, because deleting a shape renumbers the others.
    moved = [spec.body(body).geoms[shape - first_geom] for shape in shapes]
    offset = np.zeros(3)
    turn = np.array((1.0, 0.0, 0.0, 0.0))
    if body != foot.body:
        offset, turn = _relative(pose, foot.body, body)
    place = frame[:3]
    inverse = frame[3:] * (1.0, -1.0, -1.0, -1.0)
    for old in moved:
        attributes = {name: getattr(old, name) for name in COPIED_ATTRIBUTES}
        new = new_body.add_geom(**attributes, contype=0, conaffinity=1, mass=0.0)
        new.pos = _turn(inverse, offset + _turn(turn, old.pos) - place)
        new.quat = _product(inverse, _product(turn, old.quat))
        spec.delete(old)


def _relative(pose: Pose, link: str, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Return position, m, and quaternion of a body in the frame of a link."""
    origin = pose.data.body(link)
    other = pose.data.body(body)
    inverse = origin.xquat * (1.0, -1.0, -1.0, -1.0)
    return _turn(inverse, other.xpos - origin.xpos), _product(inverse, other.xquat)


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


def _turn(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    result = np.zeros(3)
    mujoco.mju_rotVecQuat(result, vector, quat)
    return result


def _product(quat: np.ndarray, other: np.ndarray) -> np.ndarray:
    result = np.zeros(4)
    mujoco.mju_mulQuat(result, quat, other)
    return result


def _foot_name(link: str) -> str:
    stem = re.sub(r"_?(link|body)$", "", link, flags=re.IGNORECASE)
    suffix = "sole" if FOOT_NAME.search(stem) else "foot"
    return f"{stem}_{suffix}"


def _foot_point(pose: Pose, shape: int, height: float) -> np.ndarray:
    """Return the centre of a shape, or of the lower end of a long one such as a shank."""
    model, data = pose
    centre = data.geom_xpos[shape]
    lowest = lowest_point(pose, shape)
    if centre[2] - lowest[2] <= FOOT_ZONE * height:
        return np.array(centre)
    radius = model.geom_size[shape, 0]
    return np.array(lowest + np.array([0.0, 0.0, radius]))
