"""Checks the joints of a robot: ranges, gains, torques and mirror signs in its default pose."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from typing import NamedTuple

from legged_envs.robot_check.limits import LIMITS
from legged_envs.robots.reading.motors import group_by_value
from legged_envs.robots.reading.placeholders import (
    split_placeholders,
    torque_bounds,
    velocity_bounds,
)
from legged_envs.robots.reading.pose import Pose, ground_distances, mirror_sign
from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.gains import (
    REPORT_DURATION,
    SAG_OF_GOOD_GAIN,
    Stance,
    StandingRobot,
    gain_of_upright_legs,
)
from legged_envs.tables import Table

JOINT_COLUMNS = (
    "joint",
    "low",
    "high",
    "default",
    "kp",
    "kd",
    "torque",
    "velocity",
    "to the end",
    "sag",
    "load",
)
"""Headers of the table of joints in the report."""


class JointsCheck(NamedTuple):
    """Result of `check_joints`: two tables for the report on a robot, and the problems found."""

    table: Table
    """Table with one row per joint: range, default position, gains, limits, sag and load."""
    stance_table: Table
    """Table of the robot after 2 s on its own gains with its base held upright.

    Its rows are height, sinking, largest sag and largest torque.
    """
    problems: list[str]
    """Problems with joints and gains: a sentence each, with the field and the advice what to
    write. Empty if there are none."""


class _Joint(NamedTuple):
    """One joint of a standing robot."""

    name: str
    """Name of the joint."""
    low: float
    """Lower end of the range, rad."""
    high: float
    """Upper end of the range, rad."""
    default: float
    """Default position, rad."""
    kp: float
    """Stiffness, N m/rad."""
    kd: float
    """Damping, N m s/rad."""
    torque_limit: float
    """Largest torque, N m."""
    velocity_limit: float
    """Largest velocity, rad/s."""
    end_distance: float
    """Distance of the default position to the nearer end of the range, rad."""
    sag: float
    """Joint position minus default position after the robot has stood for 2 s, rad."""
    load: float
    """Absolute torque at the end of these 2 s, as a fraction of its limit."""
    mirror: tuple[str, float]
    """Partner and sign of the joint in ``RobotCfg.mirror``."""
    axis_sign: float
    """Sign that the axes of the joint and its partner give; 0 if they are not mirror images."""

    def row(self) -> tuple[object, ...]:
        """Return the joint's row in the table of joints, in the order of ``JOINT_COLUMNS``."""
        numbers = (
            self.low,
            self.high,
            self.default,
            self.kp,
            self.kd,
            self.torque_limit,
            self.velocity_limit,
        )
        measured = (f"{value:.3f}" for value in (self.end_distance, self.sag, self.load))
        return (self.name, *numbers, *measured)


def check_joints(robot: RobotCfg, standing: StandingRobot, stance: Stance) -> JointsCheck:
    """Check ranges, gains, torques and mirror signs of all joints of a robot.

    Args:
        robot: Configuration of the robot.
        standing: The robot in its default pose, from :func:`~legged_envs.sim.gains.stand`.
        stance: Sinking, sag and load after the robot has stood on its own gains, from
            :func:`~legged_envs.sim.gains.settle`.
    """
    sinks = stance.sinking > LIMITS.max_sinking * robot.base_height
    # Each joint by itself can be stiff enough although the legs together fall over.
    leg_gain = gain_of_upright_legs(robot)
    joints = [_describe_joint(robot, standing, stance, i) for i in range(robot.num_joints)]
    problems = [
        *_placeholder_problems(robot, standing),
        *_joint_problems(joints, leg_gain if sinks else 0.0),
    ]
    if sinks:
        advice = f"for legs write about {leg_gain:.0f}, 2 m g base_height / feet"
        if max(stance.load) > LIMITS.max_load:
            advice = "see torque_limits"
        problems.append(f"kp: the robot sinks by {stance.sinking:.3f} m: {advice}")
    title = "joints: rad, N m, rad/s; torque in parts of its limit"
    return JointsCheck(
        table=(title, JOINT_COLUMNS, [joint.row() for joint in joints]),
        stance_table=_stance_table(robot, standing, stance),
        problems=problems,
    )


def _describe_joint(robot: RobotCfg, standing: StandingRobot, stance: Stance, index: int) -> _Joint:
    model, data = standing
    name = robot.joint_names[index]
    default = robot.default_joint_pos[index]
    part = model.joint(name)
    low, high = part.range if part.limited else (-inf, inf)
    mirror = robot.mirror[index]
    return _Joint(
        name=name,
        low=float(low),
        high=float(high),
        default=float(default),
        kp=float(robot.kp[index]),
        kd=float(robot.kd[index]),
        torque_limit=float(robot.torque_limits[index]),
        velocity_limit=float(robot.velocity_limits[index]),
        end_distance=min(default - low, high - default),
        sag=stance.sag[index],
        load=stance.load[index],
        mirror=mirror,
        axis_sign=mirror_sign(model, data, name, mirror[0]),
    )


def _joint_problems(joints: Sequence[_Joint], least_gain: float) -> Iterator[str]:
    """Yield the problems of all joints. Joints with the same problem are one sentence."""
    for sentence in (_end_problem, _range_problem, _load_problem):
        yield from _grouped(joints, sentence)
    yield from _grouped(joints, partial(_sag_problem, least_gain=least_gain))
    yield from _grouped(joints, _mirror_problem)


def _grouped(
    joints: Sequence[_Joint], sentence: Callable[[_Joint], tuple[str, str] | None]
) -> Iterator[str]:
    """Yield each problem once, with the names of the joints that have it.

    Args:
        joints: The joints.
        sentence: Returns the field of a joint and its problem, or None if it has none.
    """
    names: dict[tuple[str, str], list[str]] = {}
    for joint in joints:
        found = sentence(joint)
        if found is not None:
            names.setdefault(found, []).append(repr(joint.name))
    for (field, problem), joint_names in names.items():
        yield f"{field} of {', '.join(joint_names)}: {problem}"


def _end_problem(joint: _Joint) -> tuple[str, str] | None:
    if joint.end_distance >= LIMITS.min_end_distance:
        return None
    return (
        "default_joint_pos",
        f"{joint.default:g} is at an end of {joint.low:g} to {joint.high:g}: move it",
    )


def _range_problem(joint: _Joint) -> tuple[str, str] | None:
    # Joints without a range have an infinite one.
    if not LIMITS.max_range < joint.high - joint.low < inf:
        return None
    return (
        "range",
        f"{joint.low:g} to {joint.high:g} rad is several turns: write rad, not degrees, or a "
        "joint without a range",
    )


def _load_problem(joint: _Joint) -> tuple[str, str] | None:
    if not _is_overloaded(joint):
        return None
    return (
        "torque_limits",
        f"more than {LIMITS.max_load:.0%} of {joint.torque_limit:g} N m to stand: bend it less, "
        "or raise them",
    )


def _is_overloaded(joint: _Joint) -> bool:
    return joint.load > LIMITS.max_load


def _sag_problem(joint: _Joint, least_gain: float) -> tuple[str, str] | None:
    # A joint at its torque limit sags with any gain. The limit is then the problem, not the gain.
    if abs(joint.sag) <= LIMITS.max_sag or _is_overloaded(joint):
        return None
    gain = max(joint.kp * abs(joint.sag) / SAG_OF_GOOD_GAIN, least_gain)
    return "kp", f"it sags by more than {LIMITS.max_sag:g} rad: write {gain:.2g}"


def _mirror_problem(joint: _Joint) -> tuple[str, str] | None:
    # Without mirrored axes the sign is not known, and axis_sign is 0.
    if joint.axis_sign in (0, joint.mirror[1]):
        return None
    return "mirror", f"the sign is {joint.mirror[1]:g}, but the axes give {joint.axis_sign:g}"


def _placeholder_problems(robot: RobotCfg, standing: StandingRobot) -> Iterator[str]:
    """Name limits that no motor has, such as 1000 N m of a file in which nobody knew them."""
    pose = Pose(*standing)
    mass = float(standing.model.body_subtreemass[1])
    torques = torque_bounds(pose, robot.foot_names, robot.base_height)
    fields = (
        ("torque_limits", robot.torque_limits, torques, "N m"),
        ("velocity_limits", robot.velocity_limits, velocity_bounds(pose), "rad/s"),
    )
    for field, values, bounds, unit in fields:
        limits = dict(zip(robot.joint_names, values, strict=True))
        split = split_placeholders(limits, bounds)
        for placeholders, comparison in ((split.too_large, "more"), (split.too_small, "less")):
            if placeholders:
                yield (
                    f"{field}: {group_by_value(placeholders)} is {comparison} {unit} than a motor "
                    f"of a robot of {mass:.3g} kg has: write the values of the motors"
                )


def _stance_table(robot: RobotCfg, standing: StandingRobot, stance: Stance) -> Table:
    lowest = min(ground_distances(*standing).values())
    rows = [
        ("base_height, m", robot.base_height),
        ("at which it touches the ground, m", robot.base_height - lowest),
        ("sinks by, m", stance.sinking),
        ("most sag, rad", float(max(abs(stance.sag)))),
        ("most torque", f"{max(stance.load):.0%}"),
    ]
    return f"{REPORT_DURATION:g} s on its own gains, held upright", ("what", ""), rows
