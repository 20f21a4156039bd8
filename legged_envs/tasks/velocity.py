"""Velocity tracking on flat ground: the base of most tasks, and the tasks of quadrupeds.

Observations, terms and randomization follow LeggedGym-Ex's ``go2``.
"""

import copy
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import median

from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import (
    CostTermCfg,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from legged_envs.mdp import costs, events, observations, rewards, terminations
from legged_envs.mdp.actions import (
    JointActionCfg,
    JointPositionCfg,
    JointTorqueCfg,
    JointVelocityCfg,
)
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.robots import A1, ANYMAL_C, GO1, GO2, RobotCfg
from legged_envs.tasks.training_defaults import TrainingDefaults, quadruped_flat_training

FULL_HEIGHT = 0.25
"""Height of the base from which events are scaled for larger robots, m."""

# The base of a G1, the lightest of the robots of the package, weighs 3.8 kg.
MOST_PAYLOAD = 0.6
"""Largest change of the base's mass at the start, as a fraction of this mass."""

MOST_REACH = 1.5
"""Largest change of a joint target by an action of 1, rad."""

ACTION_SCALE = 0.5
"""Change of a joint target by an action of 1, rad, where the range of no joint is narrower."""

FEET_TO_STAND = 4
"""Number of feet from which a robot stands without a policy that balances it."""

START_SPEED = 0.3
"""Largest speed of the base at the start of an episode, m/s."""

START_OFFSET = 0.2
"""Largest distance of a joint from the default pose at the start of an episode, rad."""

# Nearly all G1s that start as quadrupeds do fall within a second: a servo makes no step.
GENTLE_SPEED = 0.1
"""``START_SPEED`` of robots that need a policy to balance."""

GENTLE_OFFSET = 0.05
"""``START_OFFSET`` of robots that need a policy to balance."""

WHEEL_SPEED = 2.0
"""Speed of a wheel along the ground for an action of 1, m/s."""


def velocity_task(robot: RobotCfg) -> TaskCfg:
    """Make the base velocity task for a robot, which the function of each task then adapts.

    Events of robots lower than 0.25 m scale with their height, and the payload is at most 60 % of
    the mass of the base. Robots with fewer than four feet start slowly and near their default pose;
    :func:`set_starts` changes this. Joints with velocity actuators, such as wheels, have a separate
    action term.

    Args:
        robot: The robot. Weights and targets are the same as for a Go2, except for the base height.
    """
    cfg = TaskCfg(robot=robot, observations=_observations())
    cfg.commands["velocity"] = VelocityCommandCfg(standing_fraction=0.15)
    cfg.rewards = _rewards(robot)
    cfg.costs = _costs()
    cfg.terminations = {
        "fallen": TerminationTermCfg(terminations.fallen, grace_s=0.1),
        "illegal_contact": TerminationTermCfg(terminations.illegal_contact, grace_s=0.1),
    }
    cfg.events = _events(robot)
    if len(robot.foot_names) < FEET_TO_STAND:
        set_starts(cfg, GENTLE_SPEED, GENTLE_OFFSET)
    if robot.actuators == ("position",) * robot.num_joints:
        scale = bound_by_ranges(robot, ACTION_SCALE)
        cfg.actions["joint_position"] = JointPositionCfg(scale=scale)
    else:
        cfg.actions = _actions(robot)
    return cfg


def set_starts(cfg: TaskCfg, speed: float = START_SPEED, offset: float = START_OFFSET) -> None:
    """Set how fast, and how far from the default pose, robots start their episodes.

    Args:
        cfg: A velocity task, changed in place.
        speed: Largest speed of the base, m/s. For robots lower than 0.25 m it is multiplied by
            √(height / 0.25 m).
        offset: Largest distance of a joint from the default pose, rad.
    """
    cfg.events["root"].params["velocity"] = speed * _pace(cfg.robot)
    cfg.events["joints"].params["range"] = offset


def _size(robot: RobotCfg) -> float:
    """Return the height of a robot relative to a small dog, at most 1."""
    return min(1.0, robot.base_height / FULL_HEIGHT)


def _pace(robot: RobotCfg) -> float:
    """Return the factor on speeds of a small robot (Froude's law)."""
    return math.sqrt(_size(robot))


def _observations() -> dict[str, ObservationGroupCfg]:
    """Make LeggedGym-Ex's observations, with its order, noise and scales.

    The critic sees the same without noise, and privileged observations.
    """
    policy = {
        "command": ObservationTermCfg(observations.command, mirror="velocity_command"),
        "gravity": ObservationTermCfg(observations.projected_gravity, noise=0.05, mirror="vector"),
        "ang_vel": ObservationTermCfg(
            observations.base_ang_vel, noise=0.2, scale=0.25, mirror="pseudovector"
        ),
        "joint_pos": ObservationTermCfg(observations.joint_pos, noise=0.01, mirror="joint"),
        "joint_vel": ObservationTermCfg(
            observations.joint_vel, noise=0.5, scale=0.05, mirror="joint"
        ),
        "action": ObservationTermCfg(observations.last_action, mirror="action"),
    }
    privileged = {
        "lin_vel": ObservationTermCfg(observations.base_lin_vel, mirror="vector"),
        "height": ObservationTermCfg(observations.base_height, mirror="scalar"),
        "foot_contact": ObservationTermCfg(observations.foot_contact, mirror="foot"),
        "foot_height": ObservationTermCfg(observations.foot_height, scale=5.0, mirror="foot"),
        "foot_air_time": ObservationTermCfg(observations.foot_air_time, mirror="foot"),
        "friction": ObservationTermCfg(observations.friction, mirror="scalar"),
        "base_mass": ObservationTermCfg(observations.base_mass_offset, mirror="scalar"),
        "base_com": ObservationTermCfg(observations.base_com_offset, scale=20.0, mirror="vector"),
        "gains": ObservationTermCfg(observations.gain_scale, mirror="scalar"),
    }
    # A copy, so that a change to a term of one group leaves the other group as it is.
    critic = {**copy.deepcopy(policy), **privileged}
    return {
        "policy": ObservationGroupCfg(policy, noisy=True),
        "critic": ObservationGroupCfg(critic),
    }


def _rewards(robot: RobotCfg) -> dict[str, RewardTermCfg]:
    return {
        # The task itself. Sigma 0.25 rewards an error of 0.5 m/s or rad/s with 1/e.
        "tracking_lin_vel": RewardTermCfg(rewards.tracking_lin_vel, 2.5, {"sigma": 0.25}),
        "tracking_ang_vel": RewardTermCfg(rewards.tracking_ang_vel, 2.25, {"sigma": 0.25}),
        # Posture of the base.
        "lin_vel_z": RewardTermCfg(rewards.lin_vel_z, -1.0),
        "ang_vel_xy": RewardTermCfg(rewards.ang_vel_xy, -0.05),
        "orientation": RewardTermCfg(rewards.orientation, -2.0),
        "base_height": RewardTermCfg(rewards.base_height, -10.0, {"target": robot.base_height}),
        # Effort and smoothness, which matter on a real robot.
        "joint_torque": RewardTermCfg(rewards.joint_torque, -1e-4),
        "joint_acc": RewardTermCfg(rewards.joint_acc, -1e-7),
        "action_rate": RewardTermCfg(rewards.action_rate, -0.02),
        "action_smoothness": RewardTermCfg(rewards.action_smoothness, -0.005),
        "collision": RewardTermCfg(rewards.collision, -0.5),
        # Gait.
        "foot_air_time": RewardTermCfg(rewards.foot_air_time, 3.0, {"target": 0.2, "longest": 0.2}),
        "foot_clearance": RewardTermCfg(rewards.foot_clearance, -10.0, {"target": 0.06}),
        "foot_slip": RewardTermCfg(rewards.foot_slip, -0.2),
        # Only under the zero command.
        "joint_pos_stand_still": RewardTermCfg(rewards.joint_pos_stand_still, -1.0),
        "joint_vel_stand_still": RewardTermCfg(rewards.joint_vel_stand_still, -0.02),
        "foot_contact_stand_still": RewardTermCfg(rewards.foot_contact_stand_still, 1.5),
        "joint_pos_limits": RewardTermCfg(rewards.joint_pos_limits, -1.0),
    }


def _costs() -> dict[str, CostTermCfg]:
    # Costs do not enter the reward. Constrained algorithms keep their means below the limits.
    return {
        "joint_position": CostTermCfg(
            costs.joint_position, limit=0.025, params={"soft_limit": 0.95}
        ),
        "joint_velocity": CostTermCfg(
            costs.joint_velocity, limit=0.025, params={"soft_limit": 0.8}
        ),
        "joint_torque": CostTermCfg(costs.joint_torque, limit=0.025, params={"soft_limit": 0.8}),
        "body_contact": CostTermCfg(costs.body_contact, limit=0.025),
        "base_orientation": CostTermCfg(costs.base_orientation, limit=0.025),
        "foot_slip": CostTermCfg(costs.foot_slip, limit=0.05),
    }


def _events(robot: RobotCfg) -> dict[str, EventTermCfg]:
    # Lengths scale with the height of robots that are smaller than a small dog, speeds with its
    # square root (Froude's law).
    size = _size(robot)
    pace = _pace(robot)
    shift = 0.03 * size
    return {
        # Mass and centre of mass are drawn once per robot, when the environments are made.
        "base_mass": EventTermCfg(
            events.randomize_base_mass,
            "startup",
            params={"range": (-1.0, 2.0), "most_share": MOST_PAYLOAD},
        ),
        "base_com": EventTermCfg(
            events.randomize_base_com, "startup", params={"range": (-shift, shift)}
        ),
        # Friction and gains are drawn once per episode. They are randomization even though they
        # happen at a reset, where events place the robot by default.
        "friction": EventTermCfg(
            events.randomize_friction, "reset", purpose="randomize", params={"range": (0.5, 1.25)}
        ),
        "gains": EventTermCfg(
            events.randomize_gains, "reset", purpose="randomize", params={"range": (0.9, 1.1)}
        ),
        "root": EventTermCfg(events.reset_root, "reset", params={"velocity": START_SPEED * pace}),
        "joints": EventTermCfg(events.reset_joints, "reset", params={"range": START_OFFSET}),
        "push": EventTermCfg(
            events.push, "interval", interval_s=(8.0, 12.0), params={"velocity": 0.7 * pace}
        ),
    }


def _actions(robot: RobotCfg) -> dict[str, JointActionCfg]:
    """Make an action term for each kind of actuator: positions of legs, velocities of wheels."""
    joints: dict[str, list[str]] = {}
    for joint, kind in zip(robot.joint_names, robot.actuators, strict=True):
        # The names of joints can have characters of regular expressions.
        joints.setdefault(kind, []).append(re.escape(joint))
    actions: dict[str, JointActionCfg] = {}
    if "position" in joints:
        legs = [i for i, kind in enumerate(robot.actuators) if kind == "position"]
        scale = bound_by_ranges(robot, ACTION_SCALE, legs)
        actions["legs"] = JointPositionCfg(scale=scale, joints=tuple(joints["position"]))
    if "velocity" in joints:
        speed = round(WHEEL_SPEED / robot.foot_radius, 1) if robot.wheels else 1.0
        actions["wheels"] = JointVelocityCfg(scale=speed, joints=tuple(joints["velocity"]))
    if "torque" in joints:
        actions["torques"] = JointTorqueCfg(joints=tuple(joints["torque"]))
    return actions


def sideways_joints(robot: RobotCfg) -> tuple[int, ...]:
    """Return the indices of the joints that change their sign in a mirror image of the robot.

    These joints move a leg or arm sideways, or turn it, and do not swing it forwards.
    """
    indices = []
    for i, (_, sign) in enumerate(robot.mirror):
        if sign < 0.0:
            indices.append(i)
    return tuple(indices)


def reach(robot: RobotCfg) -> list[float]:
    """Return the target offset at which each joint reaches its torque limit, rad.

    This is torque limit / stiffness, or 0 for a joint without stiffness.
    """
    angles = []
    for torque, kp in zip(robot.torque_limits, robot.kp, strict=True):
        angles.append(torque / kp if kp else 0.0)
    return angles


def bound_by_ranges(
    robot: RobotCfg, scale: float, joints: Sequence[int] | None = None
) -> float | tuple[float, ...]:
    """Limit an action scale, so that an action of 1 moves no joint target beyond its joint's range.

    Args:
        robot: The robot. If its file cannot be read, ``scale`` is returned; making an environment
            raises the error that names the file.
        scale: Change of a joint target by an action of 1, rad.
        joints: Indices of the joints of the action. None: all.

    Returns:
        ``scale`` if the range of every joint is at least as wide. Otherwise one number for each
        joint: the smaller one of ``scale`` and the width of its range.
    """
    widths = _range_widths(robot)
    if widths and joints is not None:
        widths = [widths[i] for i in joints]
    if min(widths, default=scale) >= scale:
        return scale
    return tuple(round(min(scale, width), 3) for width in widths)


def _range_widths(robot: RobotCfg) -> list[float]:
    """Return the width of the range of each joint, rad, infinite for a joint without one.

    The list is empty if the robot's file cannot be read.
    """
    try:
        path = robot.path
        widths = _read_widths(path, path.stat().st_mtime_ns)
    # Missing OpenGL, with which MuJoCo is loaded, is an error when an environment is made.
    except (ValueError, FileNotFoundError, RuntimeError):
        return []
    return [widths.get(name, math.inf) for name in robot.joint_names]


@lru_cache(maxsize=32)
def _read_widths(path: Path, changed: int) -> Mapping[str, float]:
    """Return the widths of ranges in a robot's file, which was ``changed`` at a time in ns."""
    import mujoco

    spec = mujoco.MjSpec.from_file(str(path))
    widths = {}
    for joint in spec.joints:
        width = float(joint.range[1] - joint.range[0])
        is_angle = joint.type == mujoco.mjtJoint.mjJNT_HINGE
        # A joint without a range has (0, 0).
        if width > 0.0:
            widths[joint.name] = math.radians(width) if is_angle and spec.compiler.degree else width
    return widths


def quadruped_flat(robot: RobotCfg) -> TaskCfg:
    """Make the task of a quadruped that tracks vx ±1 m/s, vy ±0.5 m/s and ωz ±1 rad/s at a trot.

    Lengths, times and torques in the rewards are scaled with the robot's size. An action of 1 moves
    a joint target as far as the weakest joint reaches its torque limit, at least by 0.5 rad and at
    most by 1.5 rad, and no joint target by more than the width of the joint's range.

    Args:
        robot: The quadruped.

    Raises:
        ValueError: If ``robot.diagonals`` does not have two entries.
    """
    if len(robot.diagonals) != 2:
        raise ValueError(
            f"RobotCfg {robot.name!r}: diagonals is {robot.diagonals}. "
            "Write the two pairs of feet that swing together in a trot, or use velocity_task."
        )
    size = robot.base_height / GO2.base_height
    cfg = velocity_task(robot)
    # Beyond a right angle the torque limit is not what bounds a joint.
    scale = min(max(0.5, round(min(reach(robot)), 1)), MOST_REACH)
    cfg.actions["joint_position"] = JointPositionCfg(scale=bound_by_ranges(robot, scale))
    # Times scale with the square root of lengths (Froude's law).
    trot = {"pairs": _foot_pairs(robot), "phase_time": round(0.16 * math.sqrt(size), 2)}
    cfg.rewards["trot"] = RewardTermCfg(rewards.trot, 1.5, trot)
    hips = {"joints": sideways_joints(robot)}
    cfg.rewards["hip_pos"] = RewardTermCfg(rewards.joint_deviation, -0.3, hips)
    cfg.rewards["base_height"].params["target"] = round(0.9 * robot.base_height, 2)
    cfg.rewards["foot_clearance"].params["target"] = round(0.06 * size, 2)
    # The torque term is a sum of squares: this weight gives robots of all sizes a similar penalty.
    strength = median(robot.torque_limits) / median(GO2.torque_limits)
    cfg.rewards["joint_torque"].weight /= strength**2
    return cfg


def _foot_pairs(robot: RobotCfg) -> tuple[tuple[int, ...], ...]:
    """Return the indices of the feet of each diagonal."""
    pairs = []
    for diagonal in robot.diagonals:
        pairs.append(tuple(robot.foot_names.index(name) for name in diagonal))
    return tuple(pairs)


def go2_flat() -> TaskCfg:
    """Make the task of the Unitree Go2 on flat ground."""
    return quadruped_flat(GO2)


def go2_flat_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/Go2-Flat-v0``: four minutes on two cores."""
    return quadruped_flat_training(iterations=270)


def go1_flat() -> TaskCfg:
    """Make the task of the Unitree Go1 on flat ground."""
    return quadruped_flat(GO1)


def go1_flat_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/Go1-Flat-v0``, as used for the shipped policy."""
    return quadruped_flat_training(iterations=560)


def a1_flat() -> TaskCfg:
    """Make the task of the Unitree A1 on flat ground."""
    return quadruped_flat(A1)


def a1_flat_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/A1-Flat-v0``, as used for the shipped policy."""
    return quadruped_flat_training(iterations=560)


def anymal_c_flat() -> TaskCfg:
    """Make the task of the ANYmal C on flat ground."""
    return quadruped_flat(ANYMAL_C)


def anymal_c_flat_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/AnymalC-Flat-v0``, as used for the shipped
    policy."""
    return quadruped_flat_training(iterations=560)
