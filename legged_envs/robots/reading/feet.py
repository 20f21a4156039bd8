"""Finds the feet of a robot by their names or positions."""

import re
from typing import NamedTuple

import mujoco

from legged_envs.robots.reading.pose import Pose, body_path, ground_distances
from legged_envs.robots.reading.wheels import find_wheel

FOOT_NAME = re.compile(r"foot|feet|toe|sole|ankle_?roll", re.IGNORECASE)
"""Pattern in the names of bodies that are feet."""

FOOT_ZONE = 0.1
"""Height of the zone above the robot's lowest point in which bodies can be feet.

It is a fraction of the height of the base, in the default pose.
"""

SOLE_THICKNESS = 0.01
"""Height range in which the shapes of a leg are its sole, m, from the lowest shape upwards."""


class Foot(NamedTuple):
    """The last body of a leg, with the shapes that touch the ground."""

    body: str
    """Name of the last body of the leg. If the foot is several bodies, such as the halves of a
    sole, it is the body that carries them."""
    shapes: list[int]
    """Indices of the collision shapes of the foot (MuJoCo: geoms): the lowest ones of its bodies,
    which are its sole, or all of a wheel."""
    wheel: int | None = None
    """Index of the joint about which the body turns as a wheel; None for a foot."""
    toes: tuple[str, ...] = ()
    """Names of bodies that move at the foot and stand on the ground with it."""


def find_feet(pose: Pose, height: float, base_height: float) -> list[Foot]:
    """Find the last body of each leg, with its lowest shapes.

    If two or more bodies near the ground have names of feet (``FOOT_NAME``), these are the feet.
    Else all bodies near the ground are. Of several on one limb only the outermost is a foot, and
    several of one leg are one foot, such as a heel and a toe. Bodies that are welded to the base
    are not feet.

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
    lowest_point = base_height - height
    shapes = _shapes_near_ground(pose, lowest_point + FOOT_ZONE * height)
    named = [body for body in shapes if FOOT_NAME.search(model.body(body).name)]
    candidates = named if len(named) > 1 else list(shapes)
    # Of two candidates on one limb the outer one is the foot.
    inner: set[int] = set()
    for body in candidates:
        inner.update(body_path(model, body)[:-1])
    bodies = sorted(set(candidates) - inner)
    if not bodies:
        raise ValueError(
            "there are no feet: no limb has a collision shape near the ground in the default pose; "
            "give the last links some, or an MJCF a keyframe called home, in which it stands"
        )
    heels = _heels(model, shapes, sorted(set(candidates) & inner), bodies)
    feet: list[Foot] = []
    for parts in _legs(pose, sorted({*bodies, *heels}), shapes, lowest_point):
        feet.append(_make_description(pose, parts, shapes, lowest_point))
    return _without_wheel_motors(model, feet)


def _shapes_near_ground(pose: Pose, highest: float) -> dict[int, dict[int, float]]:
    """Return the distances to the plane, m, of shapes of limbs, by body and shape."""
    shapes: dict[int, dict[int, float]] = {}
    for shape, distance in ground_distances(*pose).items():
        body = int(pose.model.geom_bodyid[shape])
        # Body 1 is the base.
        is_limb = pose.model.body_weldid[body] != 1
        if is_limb and distance < highest:
            shapes.setdefault(body, {})[shape] = distance
    return shapes


def _heels(
    model: mujoco.MjModel, shapes: dict[int, dict[int, float]], inner: list[int], bodies: list[int]
) -> list[int]:
    """Return the inner bodies that stand on the ground next to a toe with a joint."""
    heels = []
    for body in inner:
        level = min(shapes[body].values())
        for toe in bodies:
            path = body_path(model, toe)
            is_level = abs(min(shapes[toe].values()) - level) < SOLE_THICKNESS
            if body in path and is_level and _num_joints_beyond(model, body, toe) == 1:
                heels.append(body)
                break
    return heels


def _legs(
    pose: Pose, bodies: list[int], shapes: dict[int, dict[int, float]], lowest_point: float
) -> list[list[int]]:
    """Group the bodies that belong to the same foot, in the order of their first ones.

    These have at most one joint between them and a link that is not of the base. Wheels are
    separate feet.
    """
    model = pose.model
    legs: list[list[int]] = []
    wheels: set[int] = set()
    for body in bodies:
        name = model.body(body).name
        if find_wheel(pose, name, list(shapes[body]), lowest_point) is not None:
            wheels.add(body)
        for leg in legs:
            is_rigid = body not in wheels and leg[0] not in wheels
            if is_rigid and _are_of_one_foot(model, leg[0], body):
                leg.append(body)
                break
        else:
            legs.append([body])
    return legs


def _are_of_one_foot(model: mujoco.MjModel, body: int, other: int) -> bool:
    path = body_path(model, body)
    common = [link for link in body_path(model, other) if link in path][-1]
    if model.body_weldid[common] == 1:
        return False
    joints = (_num_joints_beyond(model, common, body), _num_joints_beyond(model, common, other))
    return max(joints) <= 1


def _num_joints_beyond(model: mujoco.MjModel, link: int, body: int) -> int:
    """Return the number of joints between a link and a body on the same limb beyond it."""
    path = body_path(model, body)
    beyond = path[path.index(link) + 1 :]
    return int(sum(model.body_jntnum[part] for part in beyond))


def _without_wheel_motors(model: mujoco.MjModel, feet: list[Foot]) -> list[Foot]:
    """Return the feet without bodies that carry a wheel, such as a motor at its hub."""
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
    pose: Pose, parts: list[int], shapes: dict[int, dict[int, float]], lowest_point: float
) -> Foot:
    """Make the foot of a leg from the bodies that belong to it."""
    model = pose.model
    # The parts that no joint moves are the foot, and the others are its toes.
    links = [int(model.body_weldid[part]) for part in parts]
    depths = [len(body_path(model, link)) for link in links]
    link = links[depths.index(min(depths))]
    rigid = [part for part in parts if model.body_weldid[part] == link]
    toes = tuple(model.body(part).name for part in parts if part not in rigid)
    body = model.body(rigid[0] if len(rigid) == 1 else link).name
    soles: list[int] = []
    for part in rigid:
        soles.extend(_lowest(shapes[part]))
    wheel = None
    if len(parts) == 1:
        wheel = find_wheel(pose, body, list(shapes[parts[0]]), lowest_point)
    if wheel is not None:
        soles = list(shapes[parts[0]])
    return Foot(body, soles, wheel, toes)


def _lowest(distances: dict[int, float]) -> list[int]:
    level = min(distances.values()) + SOLE_THICKNESS
    return [shape for shape, distance in distances.items() if distance < level]
