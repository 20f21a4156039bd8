"""Checks the feet of a robot in its default pose, and finds other bodies on the ground."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import NamedTuple

import mujoco
import numpy as np

from legged_envs.robot_check.limits import LIMITS
from legged_envs.robots.reading.pose import ground_distances
from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.gains import StandingRobot
from legged_envs.tables import Table, shorten

# As integers: MuJoCo's enumerations are not equal to the NumPy integers of a model.
ROUND_SHAPES = (int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE))
"""Types of collision shapes with a radius: balls and capsules. They touch the ground in points."""

POSE_ADVICE = "change default_joint_pos"
"""Advice in the problems of feet that are not on the ground or not level."""

LISTED_LENGTH = 80
"""Largest number of characters of the names of bodies in a problem."""


class FeetCheck(NamedTuple):
    """Result of `check_feet`: a table for the report on a robot, and the problems found."""

    table: Table
    """Table with one row per foot: height above the ground, unevenness, height of its origin."""
    problems: list[str]
    """Problems with feet and with other bodies near the ground: a sentence each, with the name and
    the advice what to write. Empty if there are none."""


class _Foot(NamedTuple):
    """One foot of a standing robot."""

    name: str
    """Name of its body."""
    low: float
    """Height of its lowest point above the ground, m; infinite without a shape."""
    high: float
    """Height of the highest corner of its soles, m; infinite without a shape."""
    origin: float
    """Height of its origin above its lowest point, m."""
    ball_radius: float
    """Radius of its smallest ball or capsule that is too small, m; infinite without one."""
    has_joint: bool
    """True if a joint moves it."""


def check_feet(robot: RobotCfg, standing: StandingRobot) -> FeetCheck:
    """Check that the feet of a robot stand level on the ground and no other body touches it.

    It also checks that each foot is a body without a joint, and that bodies with penalized or
    terminating contacts have collision shapes.

    Args:
        robot: Configuration of the robot.
        standing: The robot in its default pose, from :func:`~legged_envs.sim.gains.stand`.
    """
    heights = _heights_by_body(standing)
    rows = []
    problems: list[str] = []
    for name in robot.foot_names:
        foot = _describe_foot(standing, name, heights)
        values = (foot.low, foot.high - foot.low, foot.origin)
        rows.append((foot.name, *(f"{value:.4f}" for value in values)))
        problems.extend(_foot_problems(robot, foot))
    problems.extend(_body_problems(robot, heights))
    header = ("foot", "above the ground", "uneven by", "origin above its sole")
    return FeetCheck(table=("feet, m", header, rows), problems=problems)


def _heights_by_body(standing: StandingRobot) -> dict[str, list[float]]:
    """Return the heights above the ground, m, of the lower corners of each body's shapes."""
    model = standing.model
    heights: dict[str, list[float]] = {}
    for geom, distance in ground_distances(*standing).items():
        body = str(model.body(model.geom_bodyid[geom]).name)
        corners = [distance, distance + _rise_of_lower_side(standing, geom)]
        heights.setdefault(body, []).extend(corners)
    return heights


def _rise_of_lower_side(standing: StandingRobot, geom: int) -> float:
    """Return the height of one edge of a box's lower side above another, m; 0 for other shapes."""
    model, data = standing
    if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_BOX:
        return 0.0
    # Vertical component of each axis of the box. The steepest axis is normal to the lower side.
    steepness = abs(data.geom_xmat[geom].reshape(3, 3)[2])
    rises = 2 * steepness * model.geom_size[geom]
    return float(np.delete(rises, steepness.argmax()).sum())


def _describe_foot(standing: StandingRobot, name: str, heights: Mapping[str, list[float]]) -> _Foot:
    model, data = standing
    own_heights = heights.get(name, [inf])
    low = min(own_heights)
    small_radii = [inf]
    for geom in ground_distances(*standing):
        # By geom_bodyid, not body_weldid: a foot is welded to its leg, and is a separate body here.
        if model.body(model.geom_bodyid[geom]).name != name:
            continue
        radius = model.geom_size[geom, 0]
        is_round = int(model.geom_type[geom]) in ROUND_SHAPES
        if is_round and radius < LIMITS.min_ball_radius:
            small_radii.append(radius)
    return _Foot(
        name=name,
        low=low,
        high=max(own_heights),
        origin=data.body(name).xpos[2] - low,
        ball_radius=min(small_radii),
        has_joint=model.body(name).jntnum[0] > 0,
    )


def _foot_problems(robot: RobotCfg, foot: _Foot) -> Iterator[str]:
    if foot.ball_radius < LIMITS.min_ball_radius:
        yield (
            f"foot {foot.name!r} has a ball or capsule of radius {foot.ball_radius:g} m; "
            "smaller than 15 mm it catches on the inner edges of rough ground: "
            "write 0.02, and raise it as much"
        )
    if foot.low == inf:
        yield f"foot {foot.name!r} has no collision shape: give it one in {robot.xml}"
    if foot.has_joint:
        yield (
            f"foot {foot.name!r} has a joint: weld a body with the contact shapes to it, "
            "the new foot"
        )
    # A foot without a shape has an infinite height. It has its problem already.
    if LIMITS.height_tolerance < abs(foot.low) < inf:
        yield (
            f"foot {foot.name!r} is {foot.low:.3f} m above the ground: {POSE_ADVICE} or base_height"
        )
    unevenness = foot.high - foot.low
    if unevenness > LIMITS.height_tolerance:
        yield f"foot {foot.name!r} is not level, by {unevenness:.3f} m: {POSE_ADVICE}"
    radius_error = abs(foot.origin - robot.foot_radius)
    if LIMITS.height_tolerance < radius_error < inf:
        yield (f"foot_radius: the origin of {foot.name!r} is at {foot.origin:.4f} m: write this")


def _body_problems(robot: RobotCfg, heights: Mapping[str, list[float]]) -> Iterator[str]:
    # A body this low touches the ground as soon as the robot sinks a little.
    low = {}
    for body, own_heights in heights.items():
        lowest = min(own_heights)
        if body not in robot.foot_names and lowest < LIMITS.height_tolerance:
            low[body] = lowest
    if robot.base_body in low or len(low) > len(robot.foot_names):
        yield (
            f"default_joint_pos: the robot does not stand but lies on the ground, on "
            f"{_listed(low)}, with base_height {robot.base_height:.3f} m: "
            f"write angles in which only {_listed(robot.foot_names)} touch the ground, "
            "or correct foot_names"
        )
    elif low:
        yield (
            f"{_listed(low)}, not named in foot_names, is {max(low.values()):.3f} m or less above "
            f"the ground: {POSE_ADVICE}, or name it in foot_names"
        )
    for body in (*robot.penalized_bodies, *robot.termination_bodies):
        if body not in heights:
            yield (
                f"penalized_bodies, termination_bodies: {body!r} has no collision shape: "
                f"take it out, or give it one in {robot.xml}"
            )


def _listed(names: Iterable[str]) -> str:
    return shorten(", ".join(map(repr, names)), LISTED_LENGTH)
