"""Moves the legs of a biped so that its soles are level and its centre of mass is above them."""

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from legged_envs.robots.reading.feet import Foot
from legged_envs.robots.reading.pose import Pose, body_path
from legged_envs.robots.reading.soles import DRAFTED_FACTOR, SOLE_DEPTH, Sole, find_sole

FEET_THAT_NEED_BALANCE = 2
"""Number of feet of robots that are balanced. Robots with more feet stand anyway."""

LEAST_SOLE = 0.02
"""Length of a sole below which it is a point on which no servo can balance, m."""

CENTRED = 0.1
"""Largest distance of the centre of mass from its best place at which a pose is kept.

It is a fraction of half of the usable length of the soles.
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

SAME_LEVEL = 0.003
"""Difference in height up to which two soles are on the same level, m. A stretched leg would bend
by a tenth of a radian for one millimetre."""

END_MARGIN = 0.02
"""Distance that joints keep from the ends of their ranges, rad."""


def balance(
    pose: Pose,
    feet: Sequence[Foot],
    positions: dict[str, float],
    torque_limits: Mapping[str, float],
    gain_factor: float = DRAFTED_FACTOR,
    centred: float = CENTRED,
) -> dict[str, float]:
    """Return the joint positions with which a biped's centre of mass is between its ankles and the
    middle of its soles.

    Positions are kept if the centre is near the middle and the soles are level already, if the
    robot has another number of feet, wheels, or points for feet, and if the legs cannot do it. The
    middle belongs to the part of a sole on which the ankle has the torque to hold the robot. Legs
    move by damped least squares, thus as little as possible.

    Args:
        pose: The robot with its joints at ``positions``, its base upright.
        feet: Its feet.
        positions: Joint positions, rad, by name.
        torque_limits: Torque limits of motors, N m, by the name of the joint, without placeholders.
        gain_factor: Gains of the robot, as a multiple of the smallest that hold it upright. The
            centre of mass is nearer to the ankles for small gains.
        centred: Largest distance of the centre of mass from its best place at which a pose is kept,
            as a fraction of half of the usable length of the soles.
    """
    if len(feet) != FEET_THAT_NEED_BALANCE or any(foot.wheel is not None for foot in feet):
        return positions
    soles = [find_sole(pose, foot, torque_limits, gain_factor) for foot in feet]
    soles = _on_one_level(pose, soles)
    length = min(sole.length for sole in soles)
    if length < LEAST_SOLE:
        return positions
    error = _error(pose, soles)
    num_places = 2 * len(soles)
    offset = abs(error[:num_places:2]).max()
    tilt = abs(error[num_places:]).max()
    usable_length = min(sole.usable_length for sole in soles)
    is_centred = offset < centred * usable_length / 2
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


def _on_one_level(pose: Pose, soles: list[Sole]) -> list[Sole]:
    """Return the soles with supports at the same height, if they are nearly so."""
    data = pose.data
    heights = []
    for sole in soles:
        from_body = data.xmat[sole.body].reshape(3, 3) @ sole.support
        heights.append(data.xpos[sole.body, 2] + from_body[2])
    if np.ptp(heights) > SAME_LEVEL:
        return soles
    levelled = []
    for sole, height in zip(soles, heights, strict=True):
        rise = np.array((0.0, 0.0, np.mean(heights) - height))
        in_body = data.xmat[sole.body].reshape(3, 3).T @ rise
        levelled.append(sole._replace(support=sole.support + in_body))
    return levelled


def _error(pose: Pose, soles: Sequence[Sole]) -> np.ndarray:
    """Return the errors of a pose: of each sole its place, m, then of each its weighted turns.

    A place has two: x relative to the centre of mass, and z relative to the other soles. Turns have
    three: the horizontal components of the normal, and the sideways one of the toes' direction.
    """
    data = pose.data
    centres = []
    turns: list[float] = []
    for sole in soles:
        orientation = data.xmat[sole.body].reshape(3, 3)
        from_body = orientation @ sole.support
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


def _solve(pose: Pose, soles: Sequence[Sole]) -> mujoco.MjData:
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


def _leg_joints(model: mujoco.MjModel, soles: Sequence[Sole]) -> np.ndarray:
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


def _jacobian(model: mujoco.MjModel, data: mujoco.MjData, soles: Sequence[Sole]) -> np.ndarray:
    """Return the derivatives of ``_error`` by all degrees of freedom. Shape: (n, nv)."""
    com = np.zeros((3, model.nv))
    mujoco.mj_jacSubtreeCom(model, data, com, 1)
    places = np.zeros((len(soles), 3, model.nv))
    turn = np.zeros((3, model.nv))
    rows: list[np.ndarray] = []
    for i, sole in enumerate(soles):
        orientation = data.xmat[sole.body].reshape(3, 3)
        centre = data.xpos[sole.body] + orientation @ sole.support
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
