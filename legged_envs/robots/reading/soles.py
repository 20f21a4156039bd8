"""Finds the flat soles of feet, and the points of them above which a biped balances."""

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import mujoco
import numpy as np

from legged_envs.robots.reading.feet import Foot
from legged_envs.robots.reading.pose import GRAVITY, Pose, body_path

SOLE_DEPTH = 0.005
"""Height range above the lowest point of a foot in which its corners stand on the ground, m."""

LARGER_SOLE = 1.2
"""Factor by which a sole that is not level must be larger than the touching sole."""

TILTS = np.radians(np.arange(1.0, 31.0))
"""Angles by which a foot is turned about the y axis of the base to find its flat side, rad."""

DRAFTED_FACTOR = 2.0
"""Drafted gains, as a multiple of the smallest gains that hold a robot upright."""


def support_share(gain_factor: float) -> float:
    """Return the distance of the balance point from the ankle, as a fraction of the distance of the
    middle of the sole.

    The ankle gives way under the weight before it until the robot stands above the middle. With the
    gain K and the smallest gain m g h that holds the robot upright, the distance grows by the
    factor 1 / (1 − m g h / K).

    Args:
        gain_factor: K / (m g h), more than 1.
    """
    return 1.0 - 1.0 / gain_factor


class Sole(NamedTuple):
    """Sole of a foot in a pose of the robot."""

    body: int
    """Index of the foot's body."""
    support: np.ndarray
    """Point of the sole above which the centre of mass is best, in the frame of the body, m."""
    normal: np.ndarray
    """Its upward normal in the frame of the body."""
    forward: np.ndarray
    """Direction of the x axis of the base along the sole, in the frame of the body."""
    length: float
    """Its length along ``forward``, m."""
    usable_length: float
    """Length of the part of it on which the ankle has the torque to hold the robot, m."""
    area: float
    """Area of the rectangle around it, m²."""


class _Flat(NamedTuple):
    """Points of a foot that are on the ground together."""

    up: np.ndarray
    """Normal of the ground."""
    forward: np.ndarray
    """Direction of the x axis of the base along the ground."""
    centre: np.ndarray
    """Centre of the rectangle around the points, m."""
    length: float
    area: float


def find_sole(
    pose: Pose,
    foot: Foot,
    torque_limits: Mapping[str, float],
    gain_factor: float = DRAFTED_FACTOR,
) -> Sole:
    """Return the sole of a foot where it is largest.

    It is what touches the ground in the pose, with all joints at 0, or with the foot turned by up
    to 30° about the y axis of the base.

    Args:
        pose: The robot, its base upright.
        foot: One of its feet.
        torque_limits: Torque limits of joints, N m, by name.
        gain_factor: Gains of the robot, as a multiple of the smallest that hold it upright.
    """
    model, data = pose
    link = model.body_weldid[model.body(foot.body).id]
    points = []
    for geom in range(model.ngeom):
        is_part = model.body_weldid[model.geom_bodyid[geom]] == link
        if is_part and model.geom_conaffinity[geom] & 1:
            points.append(corners(pose, geom))
    best = _largest_flat(np.concatenate(points), _upward_directions(pose, foot))
    body = model.body(foot.body).id
    to_body = data.xmat[body].reshape(3, 3).T
    centre = to_body @ (best.centre - data.xpos[body])
    forward = to_body @ best.forward
    share = support_share(gain_factor)
    low, high, target = _support_range(pose, foot, best, torque_limits, share)
    return Sole(
        body=body,
        support=centre + target * forward,
        normal=to_body @ best.up,
        forward=forward,
        length=best.length,
        usable_length=high - low,
        area=best.area,
    )


def _upward_directions(pose: Pose, foot: Foot) -> list[np.ndarray]:
    """Return normals of the ground for the foot in the world: first the pose and joints at 0, then
    tilts, the smallest first."""
    model, data = pose
    straight = mujoco.MjData(model)
    straight.qpos[:7] = data.qpos[:7]
    # Beyond its range too: it is only the shape of the foot that is looked at.
    mujoco.mj_forward(model, straight)
    to_world = data.body(foot.body).xmat.reshape(3, 3)
    to_world_if_straight = straight.body(foot.body).xmat.reshape(3, 3)
    turn = to_world @ to_world_if_straight.T
    directions = [np.array((0.0, 0.0, 1.0)), turn[:, 2]]
    for tilt in TILTS:
        for angle in (tilt, -tilt):
            direction = (np.sin(angle), 0.0, np.cos(angle))
            directions.append(np.array(direction))
    return directions


def _largest_flat(points: np.ndarray, directions: list[np.ndarray]) -> _Flat:
    flats = [_flat(points, up) for up in directions]
    best = flats[0]
    for flat in flats[1:]:
        if flat.area > LARGER_SOLE * best.area:
            best = flat
    is_exact = best.up is directions[0] or best.up is directions[1]
    if is_exact:
        return best
    normal = _plane_normal(points, best.up)
    return _flat(points, normal)


def _flat(points: np.ndarray, up: np.ndarray) -> _Flat:
    forward = np.array((1.0, 0.0, 0.0)) - up[0] * up
    forward /= np.linalg.norm(forward)
    sideways = np.cross(up, forward)
    axes = np.array((forward, sideways, up))
    touching = _touching(points, up)
    places = touching @ axes.T
    low = places.min(axis=0)
    high = places.max(axis=0)
    size = high - low
    centre = 0.5 * (low + high)
    centre[2] = low[2]
    return _Flat(
        up=up,
        forward=forward,
        centre=axes.T @ centre,
        length=float(size[0]),
        area=float(size[0] * size[1]),
    )


def _touching(points: np.ndarray, up: np.ndarray) -> np.ndarray:
    heights = points @ up
    return np.asarray(points[heights < heights.min() + SOLE_DEPTH])


def _plane_normal(points: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Return the normal of the plane through the points that touch the ground."""
    touching = _touching(points, up)
    deviations = touching - touching.mean(axis=0)
    # The direction in which the points deviate least.
    normal = np.linalg.svd(deviations)[2][2]
    return np.asarray(normal if normal @ up > 0.0 else -normal)


def _support_range(
    pose: Pose, foot: Foot, flat: _Flat, torque_limits: Mapping[str, float], share: float
) -> tuple[float, float, float]:
    """Return the ends of the usable part of a sole, and the best place of the centre of mass.

    All are distances from the middle of the sole, m. At the ends the ankle needs its full torque
    for half of the robot's weight.
    """
    model, data = pose
    half = 0.5 * flat.length
    joint = _ankle(pose, foot)
    if joint is None:
        return -half, half, 0.0
    offset = data.xanchor[joint] - flat.centre
    ankle = float(offset @ flat.forward)
    mass = float(model.body_subtreemass[1])
    force = 0.5 * mass * GRAVITY
    torque = torque_limits.get(model.joint(joint).name, np.inf)
    reach = torque / force
    low = max(-half, ankle - reach)
    high = min(half, ankle + reach)
    if low > high:  # The sole is before or behind all that the ankle can hold.
        end = float(np.clip(ankle, -half, half))
        return end, end, end
    middle = 0.5 * (low + high)
    target = ankle + share * (middle - ankle)
    return low, high, float(np.clip(target, low, high))


def _ankle(pose: Pose, foot: Foot) -> int | None:
    """Return the index of the last joint of a leg with a sideways axis, or None."""
    model, data = pose
    ankle = None
    for body in body_path(model, model.body(foot.body).id):
        for joint in np.flatnonzero(model.jnt_bodyid == body):
            is_hinge = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
            is_sideways = abs(data.xaxis[joint, 1]) > np.sqrt(0.5)
            if is_hinge and is_sideways:
                ankle = int(joint)
    return ankle


def corners(pose: Pose, geom: int) -> np.ndarray:
    """Return points of a geom in the world frame, m. Shape: (n, 3).

    They are the vertices of a mesh, the lowest point of a sphere, or the corners of the bounding
    box of another kind.

    Args:
        pose: Model and data of the robot.
        geom: Index of the geom.
    """
    model, data = pose
    position = data.geom_xpos[geom]
    orientation = data.geom_xmat[geom].reshape(3, 3)
    kind = model.geom_type[geom]
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return np.asarray(position - (0.0, 0.0, model.geom_size[geom, 0]))[None]
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first = model.mesh_vertadr[mesh]
        local = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
    else:
        centre = model.geom_aabb[geom, :3]
        half = model.geom_aabb[geom, 3:]
        # Minus or plus along each axis: the eight corners.
        signs = np.array(list(itertools.product((-1, 1), repeat=3)))
        local = centre + signs * half
    return np.asarray(position + local @ orientation.T)
