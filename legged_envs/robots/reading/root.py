"""The root of a robot: its welded bodies, its own orientation, and its free joint."""

import mujoco
import numpy as np

ENDLESS_RANGE = 1000.0
"""Width of the range of a hinge from which on it turns without an end, rad."""

ROOT_NAME = "root"
"""Name of the free joint of the base."""

LEAST_MASS_OF_BASE = 1e-3
"""Mass of the root up to which it is a frame, as a fraction of all that is welded to it."""

LOW = 0.5
"""Height of the root above the lowest link below which it is no base, as a fraction of the height
of its heaviest part."""

SMALL_TILT = 1e-3
"""Tilt of the root in the file below which it counts as upright, rad."""


def free_root(spec: mujoco.MjSpec) -> None:
    """Give the outermost body a free joint called ``root`` that is as MuJoCo's ``<freejoint>``.

    Defaults of the file for joints, such as a range, springs, friction or an armature, are meant
    for joints with motors. They do not reach the free joint.
    """
    base = spec.worldbody.bodies[0]
    joint = base.joints[0] if base.joints else base.add_freejoint()
    joint.name = ROOT_NAME
    joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE
    joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE
    joint.range = [0.0, 0.0]
    joint.armature = 0.0
    joint.frictionloss = 0.0
    # Numbers, or the coefficients of a polynomial.
    joint.stiffness = 0.0 * joint.stiffness
    joint.damping = 0.0 * joint.damping


def make_upright(spec: mujoco.MjSpec, standing: np.ndarray, notes: list[str]) -> None:
    """Turn the parts of the base so that its frame is upright where the file's robot stands.

    A task places the base without a tilt. The heading, which a task draws, is not kept.

    Args:
        spec: Model, changed in place.
        standing: Orientation of the root in the file, (w, x, y, z).
        notes: Notes. One is added if parts are turned.
    """
    tilt = _without_heading(standing / np.linalg.norm(standing))
    cosine = min(abs(tilt[0]), 1.0)
    angle = 2.0 * float(np.arccos(cosine))
    if angle < SMALL_TILT:
        return
    turn_base(spec, tilt)
    name = spec.worldbody.bodies[0].name
    notes.append(
        f"the root {name!r} is tilted by {np.degrees(angle):.0f}° where the robot stands: "
        "its parts are turned, so that its frame is upright"
    )


def turn_base(spec: mujoco.MjSpec, turn: np.ndarray) -> None:
    """Turn all parts of the base in its frame, by a quaternion (w, x, y, z)."""
    base = spec.worldbody.bodies[0]
    for part in _parts_of(base):
        part.pos = _rotate(turn, part.pos)
        if isinstance(part, mujoco.MjsLight):
            part.dir = _rotate(turn, part.dir)
        else:
            part.quat = _product(turn, part.quat)
    base.ipos = _rotate(turn, base.ipos)
    base.iquat = _product(turn, base.iquat)


def _without_heading(quat: np.ndarray) -> np.ndarray:
    """Return an orientation without its turn about the vertical."""
    heading = np.array((quat[0], 0.0, 0.0, quat[3]))
    length = np.linalg.norm(heading)
    if length < SMALL_TILT:  # Upside down: any heading will do.
        return quat
    back = heading * (1.0, 0.0, 0.0, -1.0) / length
    return _product(back, quat)


def _product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    result = np.zeros(4)
    mujoco.mju_mulQuat(result, first, second)
    return result


def _rotate(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    result = np.zeros(3)
    mujoco.mju_rotVecQuat(result, vector, quat)
    return result


def gather_base(spec: mujoco.MjSpec, notes: list[str]) -> tuple[str, ...]:
    """Give the root the mass of all that is welded to it, and return the names of these bodies.

    The root of many files is a frame without mass, and the trunk is welded to it. Together they are
    the base: its mass is randomized, and it is not a foot. The robot moves as before, because the
    bodies are rigidly connected.

    Args:
        spec: Model, changed in place.
        notes: Notes. One is added if the frame of the root moves: a root without mass on
            the ground, such as ``base_footprint``, moves to the heaviest body that is welded to it.

    Returns:
        Names of the root and of the bodies welded to it, in the order of the file.
    """
    model = spec.compile()
    group = np.flatnonzero(model.body_weldid == model.body_weldid[1])
    names = tuple(str(model.body(i).name) for i in group)
    masses = model.body_mass[group]
    if masses[1:].sum() == 0.0:
        return names
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    root = data.body(names[0])
    to_root = root.xmat.reshape(3, 3).T
    centres = (data.xipos[group] - root.xpos) @ to_root.T
    centre = masses @ centres / masses.sum()
    inertia = np.zeros((3, 3))
    for i, body in enumerate(group):
        axes = to_root @ data.ximat[body].reshape(3, 3)
        inertia += axes * model.body_inertia[body] @ axes.T
        inertia += masses[i] * _inertia_of_point(centres[i] - centre)
    _set_inertial(spec.body(names[0]), masses.sum(), centre, inertia)
    trunk = int(masses.argmax())
    is_frame = masses[0] <= LEAST_MASS_OF_BASE * masses.sum()
    if is_frame and _is_low(data.xpos[1:, 2], int(group[trunk])):
        offset_in_world = data.xpos[group[trunk]] - root.xpos
        offset = to_root @ offset_in_world
        _move_frame(spec, offset, names[trunk], notes)
    nothing = np.zeros((3, 3))
    for name in names[1:]:
        _set_inertial(spec.body(name), 0.0, np.zeros(3), nothing)
    return names


def _is_low(heights: np.ndarray, trunk: int) -> bool:
    """Return True if the root is near the ground or below it, and the trunk is not.

    Args:
        heights: Heights of the frames of all bodies, m. The first is the root's.
        trunk: MuJoCo's index of the trunk. The root has the index 1.
    """
    lowest = heights[1:].min()
    height_of_root = heights[0] - lowest
    height_of_trunk = heights[trunk - 1] - lowest
    return bool(height_of_root < LOW * height_of_trunk)


def _move_frame(spec: mujoco.MjSpec, offset: np.ndarray, trunk: str, notes: list[str]) -> None:
    """Move the frame of the base by an offset, m, relative to its parts."""
    base = spec.worldbody.bodies[0]
    for part in _parts_of(base):
        part.pos = part.pos - offset
    base.ipos = base.ipos - offset
    place = ", ".join(f"{number:.3g}" for number in offset)
    notes.append(
        f"the root {base.name!r} is a frame without mass: it is moved by ({place}) m "
        f"to {trunk!r}, which is welded to it"
    )


def _parts_of(base: mujoco.MjsBody) -> list[mujoco.MjsElement]:
    """Return what has a place in the frame of the base."""
    return [
        *base.geoms,
        *base.bodies,
        *base.cameras,
        *base.lights,
        *base.sites,
    ]


def _inertia_of_point(place: np.ndarray) -> np.ndarray:
    """Return the inertia of 1 kg at a place about the origin, kg m² (Steiner's theorem)."""
    distance_squared = place @ place
    return np.asarray(distance_squared * np.eye(3) - np.outer(place, place))


def _set_inertial(
    body: mujoco.MjsBody, mass: float, centre: np.ndarray, inertia: np.ndarray
) -> None:
    moments, axes = np.linalg.eigh(inertia)
    # A rotation, not a reflection.
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, axes.ravel())
    body.explicitinertial = True
    body.mass = float(mass)
    body.ipos = centre
    body.iquat = quat
    body.inertia = moments
    body.fullinertia = [np.nan] * 6


def unlimit_endless_joints(spec: mujoco.MjSpec) -> None:
    """Take the range from joints that turn without an end.

    These are free joints, which get the range of the file's defaults, and hinges with a range such
    as ±1e16 rad.
    """
    for joint in spec.joints:
        is_free = joint.type == mujoco.mjtJoint.mjJNT_FREE
        is_hinge = joint.type == mujoco.mjtJoint.mjJNT_HINGE
        low, high = joint.range
        if is_free or (is_hinge and high - low > ENDLESS_RANGE):
            joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE
            joint.range = [0.0, 0.0]
