"""Moves the legs of a biped so that its soles are level and its centre of mass is above them."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from legged_envs.robots.reading.feet import Foot
from legged_envs.robots.reading.pose import Pose, body_path

FEET_THAT_NEED_BALANCE = 2
"""Number of feet of robots that are balanced. One foot or none is no biped; more stand anyway."""

SOLE_DEPTH = 0.005
"""Height range above the lowest point of a foot in which its corners stand on the ground, m."""

LEAST_SOLE = 0.02
"""Length of a sole below which it is a point on which no servo can balance, m."""

CENTRED = 0.4
"""Largest distance of the centre of mass from the middle of the soles at which a pose is kept.

It is a fraction of half of their length.
"""

TILT_WEIGHT = 0.3
"""Weight of the tilt of a sole relative to the place of the centre of mass, m/rad."""

DAMPING = 1e-5
"""Damping of the least squares, m². It keeps steps small where legs are stretched."""

SOLVED = 5e-4
"""Largest rest of the errors, m, with which the least squares have found a pose."""

NUM_ITERATIONS = 100
"""Number of iterations of the least squares."""

LARGEST_CHANGE = 0.6
"""Change of a joint beyond which the pose is kept as it is, rad."""

END_MARGIN = 0.02
"""Distance that joints keep from the ends of their ranges, rad."""


class _Sole(NamedTuple):
    """Sole of a foot in a pose of the robot."""

    body: int
    """Index of the foot's body."""
    centre: np.ndarray
    """Its centre in the frame of the body, m."""
    normal: np.ndarray
    """Its upward normal in the frame of the body."""
    forward: np.ndarray
    """Direction of the x axis of the base in the frame of the body."""
    length: float
    """Its length along the x axis of the base, m."""
    area: float
    """Area of the rectangle around it, m²."""


def balance(pose: Pose, feet: Sequence[Foot], positions: dict[str, float]) -> dict[str, float]:
    """Return the joint positions with which a biped's centre of mass is above the middle of its
    soles.

    Positions are kept if the centre is near the middle and the soles are level already, if the
    robot has another number of feet, wheels, or points for feet, and if the legs cannot do it. The
    soles are level where they are in the given pose or with all joints at 0, whichever has the
    larger soles on the ground. Legs move by damped least squares, thus as little as possible.

    Args:
        pose: The robot with its joints at ``positions``, its base upright.
        feet: Its feet.
        positions: Joint positions, rad, by name.
    """
    if len(feet) != FEET_THAT_NEED_BALANCE or any(foot.wheel is not None for foot in feet):
        return positions
    soles = [_level_sole(pose, foot) for foot in feet]
    length = min(sole.length for sole in soles)
    if length < LEAST_SOLE:
        return positions
    error = _error(pose, soles)
    num_places = 2 * len(soles)
    offset = abs(error[:num_places:2]).max()
    tilt = abs(error[num_places:]).max()
    is_centred = offset < CENTRED * length / 2
    is_level = tilt < TILT_WEIGHT * SOLE_DEPTH / length
    if is_centred and is_level:
        return positions
    moved = _solve(pose, soles)
    rest = _error(Pose(pose.model, moved), soles)
    balanced = {}
    largest_change = 0.0
    for name, position in positions.items():
        balanced[name] = float(moved.joint(name).qpos[0])
        change = abs(balanced[name] - position)
        largest_change = max(largest_change, change)
    if np.linalg.norm(rest) > SOLVED or largest_change > LARGEST_CHANGE:
        return positions
    return balanced


def _level_sole(pose: Pose, foot: Foot) -> _Sole:
    """Return the sole of a foot where it is largest: in the pose, or with all joints at 0."""
    model, data = pose
    straight = mujoco.MjData(model)
    straight.qpos[:7] = data.qpos[:7]
    # Beyond its range too: it is only the shape of the foot that is looked at.
    mujoco.mj_forward(model, straight)
    given = _sole(pose, foot)
    other = _sole(Pose(model, straight), foot)
    return other if other.area > 1.2 * given.area else given


def _sole(pose: Pose, foot: Foot) -> _Sole:
    model, data = pose
    points = np.concatenate([corners(pose, shape) for shape in foot.shapes])
    points = points[points[:, 2] < points[:, 2].min() + SOLE_DEPTH]
    low = points.min(axis=0)
    high = points.max(axis=0)
    body = model.body(foot.body).id
    to_body = data.xmat[body].reshape(3, 3).T
    size = high - low
    return _Sole(
        body=body,
        centre=to_body @ ((low + high) / 2 - data.xpos[body]),
        normal=to_body[:, 2],
        forward=to_body[:, 0],
        length=float(size[0]),
        area=float(size[0] * size[1]),
    )


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


def _error(pose: Pose, soles: Sequence[_Sole]) -> np.ndarray:
    """Return the errors of a pose: of each sole its place, m, then of each its weighted turns.

    A place has two: x relative to the centre of mass, and z relative to the other soles. Turns have
    three: the horizontal components of the normal, and the sideways one of the toes' direction.
    """
    data = pose.data
    centres = []
    turns: list[float] = []
    for sole in soles:
        orientation = data.xmat[sole.body].reshape(3, 3)
        from_body = orientation @ sole.centre
        centres.append(data.xpos[sole.body] + from_body)
        normal = orientation @ sole.normal
        forward = orientation @ sole.forward
        turns.extend((normal[0], normal[1], forward[1]))
    places = np.array(centres)
    com_x = data.subtree_com[1, 0]
    ground = places[:, 2].mean()
    offset = places - (com_x, 0.0, ground)
    place_errors = offset[:, (0, 2)].ravel()
    turn_errors = TILT_WEIGHT * np.array(turns)
    errors = (place_errors, turn_errors)
    return np.concatenate(errors)


def _solve(pose: Pose, soles: Sequence[_Sole]) -> mujoco.MjData:
    """Return the pose after the least squares."""
    model = pose.model
    data = mujoco.MjData(model)
    data.qpos[:] = pose.data.qpos
    mujoco.mj_forward(model, data)
    joints = _leg_joints(model, soles)
    dofs = model.jnt_dofadr[joints]
    places = model.jnt_qposadr[joints]
    low, high = _ranges(model, joints)
    for _ in range(NUM_ITERATIONS):
        error = _error(Pose(model, data), soles)
        jacobian = _jacobian(model, data, soles)[:, dofs]
        squared = jacobian @ jacobian.T
        damping = DAMPING * np.eye(len(error))
        damped = squared + damping
        solution = np.linalg.solve(damped, error)
        step = jacobian.T @ solution
        positions = data.qpos[places] - step
        data.qpos[places] = np.clip(positions, low, high)
        mujoco.mj_forward(model, data)
    return data


def _leg_joints(model: mujoco.MjModel, soles: Sequence[_Sole]) -> np.ndarray:
    """Return the indices of the hinges between the base and the feet."""
    joints: set[int] = set()
    for sole in soles:
        for body in body_path(model, sole.body):
            first = model.body_jntadr[body]
            joints.update(range(first, first + model.body_jntnum[body]))
    hinges = [i for i in joints if model.jnt_type[i] == mujoco.mjtJoint.mjJNT_HINGE]
    return np.array(sorted(hinges), dtype=int)


def _ranges(model: mujoco.MjModel, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    limited = model.jnt_limited[joints].astype(bool)
    # Short ranges have no room for the margin.
    margin = np.minimum(END_MARGIN, 0.25 * np.ptp(model.jnt_range[joints], axis=1))
    low = model.jnt_range[joints, 0] + margin
    high = model.jnt_range[joints, 1] - margin
    low[~limited] = -np.inf
    high[~limited] = np.inf
    return low, high


def _jacobian(model: mujoco.MjModel, data: mujoco.MjData, soles: Sequence[_Sole]) -> np.ndarray:
    """Return the derivatives of ``_error`` by all degrees of freedom. Shape: (n, nv)."""
    com = np.zeros((3, model.nv))
    mujoco.mj_jacSubtreeCom(model, data, com, 1)
    places = np.zeros((len(soles), 3, model.nv))
    turn = np.zeros((3, model.nv))
    rows: list[np.ndarray] = []
    for i, sole in enumerate(soles):
        orientation = data.xmat[sole.body].reshape(3, 3)
        centre = data.xpos[sole.body] + orientation @ sole.centre
        mujoco.mj_jac(model, data, places[i], turn, centre, sole.body)
        normal = _turning(turn, orientation @ sole.normal)
        forward = _turning(turn, orientation @ sole.forward)
        rows.extend((normal[0], normal[1], forward[1]))
    places[:, 0] -= com[0]
    places[:, 2] -= places[:, 2].mean(axis=0)
    place_rows = places[:, (0, 2)].reshape(-1, model.nv)
    turn_rows = TILT_WEIGHT * np.array(rows)
    return np.concatenate([place_rows, turn_rows])


def _turning(turn: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return the derivative of a direction, ω × direction. Shapes: (3, nv), (3,) → (3, nv)."""
    crossed = np.cross(
        turn,
        direction,
        axisa=0,
        axisb=0,
    )
    return crossed.T
