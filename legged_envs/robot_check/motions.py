"""Moves a robot to see what happens: each joint through its range, a drop, and random targets."""

from math import pi
from typing import NamedTuple

import mujoco
import numpy as np

from legged_envs.robot_check.limits import LIMITS
from legged_envs.robots.reading.placeholders import LEAST_VELOCITY
from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.cfg import SimCfg
from legged_envs.sim.scene import spec_on_ground
from legged_envs.tables import Table

SWEEP_DURATION = 1.0
"""Time in which a joint moves from one end of its range to the other, s."""

DROP_HEIGHT = 0.02
"""Height from which the robot is dropped in its default pose, m."""

DROP_DURATION = 2.0
"""Time for which the robot is watched after it was dropped, and under random targets, s."""

RANDOM_OFFSET = 1.0
"""Largest offset of a random joint target from the default pose, rad; of wheels rad/s."""

TARGET_INTERVAL = 4
"""Number of physics steps between two random targets, as in a control step of a task."""

IMPOSSIBLE_SPEED = 10.0
"""Speed of a joint beyond which its motion is no physics, as a multiple of its limit."""

DIVERGENCE_WARNINGS = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
)
"""Warnings of MuJoCo that the state was not finite or too large, and was reset."""


class MotionsCheck(NamedTuple):
    """Result of `check_motions`: a table for the report on a robot, and the problems found."""

    table: Table
    """Table of what happened: a row for each motion."""
    problems: list[str]
    """Problems: a sentence each, with the joint and the advice what to write."""


class MovingRobot(NamedTuple):
    """A robot that can move: its model, its data and the indices of its joints."""

    cfg: RobotCfg
    model: mujoco.MjModel
    data: mujoco.MjData
    qpos: np.ndarray
    qvel: np.ndarray


def check_motions(robot: RobotCfg) -> MotionsCheck:
    """Move a robot, and report what happens and where the simulation breaks.

    * Each joint moves through its range while the base is held in the air.
    * The robot is dropped from 2 cm on its own gains, without holding its base.
    * Joint targets are random, as from an untrained policy.
    """
    rows: list[tuple[object, ...]] = []
    problems: list[str] = []
    held = make_moving(robot, is_held=True)
    wild, stuck = _sweep(held)
    rows.append(("each joint through its range", _follow_sentence(robot, wild, stuck)))
    free = make_moving(robot, is_held=False)
    rows.append(("dropped from 2 cm", _drop(free, problems)))
    worst = _shake(free)
    rows.append(("random joint targets", _explosion_sentence(worst)))
    broken = list(dict.fromkeys([*wild, *worst]))
    if broken:
        problems.append(
            f"armature of {', '.join(map(repr, broken))}: the motor throws the joint to "
            f"{IMPOSSIBLE_SPEED:g} times its velocity limit: write an armature, such as "
            f"torque_limits · dt / velocity_limits, {_armature(robot, broken[0]):.2g} kg m² of "
            f"{broken[0]!r}, or smaller torque_limits"
        )
    if stuck:
        problems.append(
            f"kp of {', '.join(map(repr, stuck))}: the joint does not follow its target through "
            "its range: raise kp or torque_limits, or take friction and stops out"
        )
    table = ("what happens when it moves", ("motion", ""), rows)
    return MotionsCheck(table=table, problems=problems)


def _armature(robot: RobotCfg, joint: str) -> float:
    index = robot.joint_names.index(joint)
    return float(robot.torque_limits[index] * SimCfg().dt / robot.velocity_limits[index])


def _explosion_sentence(wild: list[str]) -> str:
    return f"explodes: {', '.join(wild)}" if wild else "nothing explodes"


def _follow_sentence(robot: RobotCfg, wild: list[str], stuck: list[str]) -> str:
    """Say how joints followed their targets: ``wild`` exploded, and ``stuck`` did not follow."""
    if wild:
        return _explosion_sentence(wild)
    if stuck:
        return f"do not follow: {', '.join(stuck)}"
    moved = robot.actuators.count("position")
    if moved == 0:
        return "no joint has position targets"
    if moved < robot.num_joints:
        return f"{moved} of {robot.num_joints} joints have position targets; all of these follow"
    return f"all {robot.num_joints} joints follow"


def make_moving(robot: RobotCfg, is_held: bool) -> MovingRobot:
    """Compile a robot on a plane, with a free base or with a base that is held in the air."""
    spec = spec_on_ground(robot, SimCfg())
    base = spec.body(robot.base_body)
    if is_held:
        # High in the air, where no limb reaches the ground.
        base.pos = [0.0, 0.0, 10.0 * robot.base_height]
        base.quat = [1.0, 0.0, 0.0, 0.0]
        spec.delete(base.joints[0])
    model = spec.compile()
    joints = [model.joint(name) for name in robot.joint_names]
    return MovingRobot(
        cfg=robot,
        model=model,
        data=mujoco.MjData(model),
        qpos=np.array([joint.qposadr[0] for joint in joints]),
        qvel=np.array([joint.dofadr[0] for joint in joints]),
    )


def start(robot: MovingRobot) -> None:
    """Put a robot into its default pose at the height of its file, with targets to match."""
    data = robot.data
    mujoco.mj_resetData(robot.model, data)
    data.qpos[robot.qpos] = robot.cfg.default_joint_pos
    data.ctrl[:] = _default_targets(robot.cfg)
    mujoco.mj_forward(robot.model, data)


def _default_targets(robot: RobotCfg) -> np.ndarray:
    has_servo = np.array(robot.actuators) == "position"
    return np.where(has_servo, robot.default_joint_pos, 0.0)


def upright(data: mujoco.MjData) -> float:
    """Return the vertical component of the base's axis z: 1 for an upright robot."""
    x = float(data.qpos[4])
    y = float(data.qpos[5])
    return 1.0 - 2.0 * (x * x + y * y)


def wild_joints(robot: MovingRobot) -> list[str]:
    """Return the joints that move impossibly fast, or all if the state was not finite."""
    data = robot.data
    if any(data.warning[warning].number for warning in DIVERGENCE_WARNINGS):
        return list(robot.cfg.joint_names)
    speeds = abs(data.qvel[robot.qvel])
    # Smaller limits are placeholders, which are reported as such.
    limits = np.maximum(robot.cfg.velocity_limits, LEAST_VELOCITY)
    is_wild = speeds > IMPOSSIBLE_SPEED * limits
    return [robot.cfg.joint_names[i] for i in np.flatnonzero(is_wild)]


def _sweep(robot: MovingRobot) -> tuple[list[str], list[str]]:
    """Move each joint through its range; return the joints that explode, and the joints that do not
    follow.

    Joints without a position actuator are not moved.
    """
    model = robot.model
    data = robot.data
    wild: list[str] = []
    stuck = []
    num_steps = round(SWEEP_DURATION / model.opt.timestep)
    for i, name in enumerate(robot.cfg.joint_names):
        if robot.cfg.actuators[i] != "position":
            continue
        joint = model.joint(name)
        low, high = joint.range if joint.limited else (-pi, pi)
        if high - low > LIMITS.max_range:
            # The width of the range is reported; no motor turns that far in the time.
            low, high = (-pi, pi)
        start(robot)
        positions = []
        for target in (low, high):
            first = data.ctrl[i]
            for step in range(num_steps):
                data.ctrl[i] = first + (target - first) * (step + 1) / num_steps
                mujoco.mj_step(model, data)
            positions.append(float(data.qpos[robot.qpos[i]]))
            wild.extend(wild_joints(robot))
        travelled = positions[1] - positions[0]
        if travelled < LIMITS.min_travel * (high - low):
            stuck.append(name)
    wild = list(dict.fromkeys(wild))
    return wild, [name for name in stuck if name not in wild]


def _drop(robot: MovingRobot, problems: list[str]) -> str:
    """Drop the robot on its own gains, and return what happens."""
    model = robot.model
    data = robot.data
    cfg = robot.cfg
    start(robot)
    data.qpos[2] = cfg.base_height + DROP_HEIGHT
    num_steps = round(DROP_DURATION / model.opt.timestep)
    fell_at = None
    for step in range(num_steps):
        mujoco.mj_step(model, data)
        if wild_joints(robot):
            when = (step + 1) * model.opt.timestep
            problems.append(
                f"kp, kd: dropped from {DROP_HEIGHT:g} m, the robot explodes after {when:.2f} s: "
                "write smaller gains and torque_limits, or an armature of its joints"
            )
            return f"explodes after {when:.2f} s"
        verticality = upright(data)
        is_low = data.qpos[2] < LIMITS.min_drop_height * cfg.base_height
        if fell_at is None and (verticality < LIMITS.min_upright or is_low):
            fell_at = (step + 1) * model.opt.timestep
    if fell_at is None and lies_on_base(robot):
        if len(cfg.foot_names) > 3 and not cfg.wheels:
            problems.append(
                f"kp: dropped from {DROP_HEIGHT:g} m, the robot sinks onto {cfg.base_body!r}: "
                "raise kp, or write a default_joint_pos with straighter legs"
            )
        return f"lies on {cfg.base_body!r}, at {data.qpos[2]:.3f} m of {cfg.base_height:g}"
    if fell_at is None:
        return f"stands, at {data.qpos[2]:.3f} m of {cfg.base_height:g}"
    # Two feet need a policy to balance on. Four do not.
    if len(cfg.foot_names) > 3 and not cfg.wheels:
        problems.append(
            f"default_joint_pos: dropped from {DROP_HEIGHT:g} m, the robot falls after "
            f"{fell_at:.1f} s: move its feet around its centre of mass, or raise kp"
        )
    return f"falls after {fell_at:.1f} s"


def lies_on_base(robot: MovingRobot) -> bool:
    """Return True if the base of a robot touches the ground."""
    model = robot.model
    base = model.body(robot.cfg.base_body).id
    for contact in robot.data.contact:
        bodies = model.geom_bodyid[[contact.geom1, contact.geom2]]
        # Body 0 is the world.
        if 0 in bodies and base in bodies:
            return True
    return False


def _shake(robot: MovingRobot) -> list[str]:
    """Give the robot random joint targets, and return the joints that explode."""
    model = robot.model
    data = robot.data
    start(robot)
    data.qpos[2] = robot.cfg.base_height
    random = np.random.default_rng(0)
    default = _default_targets(robot.cfg)
    for step in range(round(DROP_DURATION / model.opt.timestep)):
        if step % TARGET_INTERVAL == 0:
            data.ctrl[:] = default + random.uniform(-RANDOM_OFFSET, RANDOM_OFFSET, model.nu)
        mujoco.mj_step(model, data)
        wild = wild_joints(robot)
        if wild:
            return wild
    return []
