"""Simulates a robot that stands on its own gains, and checks that they hold its default pose."""

import pickle
from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np

from legged_envs.robots.reading.pose import GRAVITY, ground_distances
from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.cfg import SimCfg
from legged_envs.sim.scene import spec_on_ground

REPORT_DURATION = 2.0
"""Simulated time that a robot stands for the report of ``legged-envs check``, s."""
CHECK_DURATION = 0.8
"""Simulated time that a robot stands for the check when an environment is made, s."""
FULL_LOAD = 0.9
"""Torque of a joint, as a fraction of its limit, above which the limit is too low.

Below it, a joint that gives way has too small a gain.
"""
# The robots of the package sink by at most 0.06 of their height and sag by at most 0.1 rad. With
# half of their gains these are 0.12 and 0.3. Legs that give way sink by more than 0.3.
MAX_SINKING = 0.2
"""Largest height that the base may lose within `CHECK_DURATION`, as a fraction of
``RobotCfg.base_height``. Beyond it the robot falls."""
MAX_SAG = 0.6
"""Largest deviation of a joint from the default pose within `CHECK_DURATION`, rad. Beyond it the
joint gives way."""
SAG_OF_GOOD_GAIN = 0.1
"""Deviation of a joint from the default pose that the gain suggested in an error leaves, rad."""


class Stance(NamedTuple):
    """Result of `settle`: how far a robot has sunk after it has stood for some time."""

    sinking: float
    """Height that the base has lost since the default pose, m."""
    sag: np.ndarray
    """Deviation of each joint from the default pose, under the robot's weight, rad.

    It is the joint position minus the default position, and 0 for a joint without a position
    actuator. Shape: (num_joints,).
    """
    load: np.ndarray
    """Absolute torque of each joint, as a fraction of its limit. Shape: (num_joints,)."""


def check_gains(robot: RobotCfg) -> None:
    """Raise an error unless the gains of a robot hold its default pose.

    The robot stands for 0.8 s of simulated time, with its base held upright. Robots with torque
    actuators, and robots without wheels that have velocity actuators, are not checked: their policy
    has to hold them. The check takes 15 ms and is done once per robot and process.

    Raises:
        ValueError: The base sinks too far, or a joint gives way. The message names the joint and
            the advice what to write.
    """
    # A policy that sets torques, or velocities of legs, learns to hold the robot by itself.
    held_by_gains = {"position"}
    if robot.wheels:
        held_by_gains.add("velocity")
    if held_by_gains.issuperset(robot.actuators):
        # A RobotCfg can have lists in its fields, which cannot be hashed. Its bytes can.
        _check_gains(pickle.dumps(robot))


@cache
def _check_gains(pickled_robot: bytes) -> None:
    robot: RobotCfg = pickle.loads(pickled_robot)
    stance = settle(robot, CHECK_DURATION)
    weakest = int(abs(stance.sag).argmax())
    sag = abs(stance.sag[weakest])
    falls = stance.sinking > MAX_SINKING * robot.base_height
    gives_way = sag > MAX_SAG
    if not falls and not gives_way:
        return
    kp = robot.kp[weakest]
    torque_limit = robot.torque_limits[weakest]
    if stance.load[weakest] > FULL_LOAD:
        advice = (
            f"its torque reaches its limit of {torque_limit:g} N m: "
            "raise torque_limits, or bend the legs less"
        )
    elif falls:
        advice = (
            "for legs write kp of about 2 m g base_height / feet, "
            f"{gain_of_upright_legs(robot):.0f}"
        )
    else:
        advice = f"write a kp of {kp * sag / SAG_OF_GOOD_GAIN:.2g}"
    raise ValueError(
        f"RobotCfg {robot.name!r}: the default pose is not held: "
        f"in {CHECK_DURATION:g} s the base sinks by {stance.sinking:.2f} m; "
        f"joint {robot.joint_names[weakest]!r}, with kp = {kp:g}, gives way by {sag:.2f} rad; "
        f"{advice} (legged-envs check reports on a robot)"
    )


def gain_of_upright_legs(robot: RobotCfg) -> float:
    """Return a kp for the leg joints of a robot, N m/rad: 2 m g base_height / (number of feet).

    It is twice the kp with which legs under an upright base would start to fall over together.
    """
    weight = GRAVITY * stand(robot).model.body_subtreemass[1]
    return float(2 * weight * robot.base_height / len(robot.foot_names))


def settle(
    robot: RobotCfg,
    duration: float = REPORT_DURATION,
    standing: "StandingRobot | None" = None,
) -> Stance:
    """Simulate a robot that stands on its own gains, and return how far it has sunk.

    The robot starts in its default pose with its lowest shape on the ground. Its base can only move
    up and down, so balance does not matter. The targets of position actuators are the default pose;
    the targets of other actuators are 0.

    Args:
        robot: Configuration of the robot.
        duration: Simulated time, s.
        standing: The robot from :func:`stand`, possibly with other gains. None: it is made, which
            takes seconds for large meshes.
    """
    if standing is None:
        standing = stand(robot)
    model, data = standing
    set_gains(model, robot)
    mujoco.mj_resetData(model, data)
    data.qpos[1:] = robot.default_joint_pos
    mujoco.mj_forward(model, data)
    # The slide is 0 at base_height, which may be some millimetres off the ground.
    start = -min(ground_distances(model, data).values())
    data.qpos[0] = start
    has_servo = np.array(robot.actuators) == "position"
    data.ctrl[:] = np.where(has_servo, robot.default_joint_pos, 0.0)
    mujoco.mj_step(model, data, round(duration / model.opt.timestep))
    sag = np.where(has_servo, data.qpos[1:] - robot.default_joint_pos, 0.0)
    load = abs(data.actuator_force) / robot.torque_limits
    return Stance(sinking=float(start - data.qpos[0]), sag=sag, load=load)


def set_gains(model: mujoco.MjModel, robot: RobotCfg) -> None:
    """Set the gains of a robot in its compiled model, which stays as it is in all else."""
    has_gain = np.array(robot.actuators) != "torque"
    has_servo = np.array(robot.actuators) == "position"
    gain = np.where(has_servo, robot.kp, robot.kd)
    # MuJoCo: force = gain · target − kp · position − kd · velocity.
    model.actuator_gainprm[has_gain, 0] = gain[has_gain]
    model.actuator_biasprm[has_servo, 1] = -np.array(robot.kp)[has_servo]
    model.actuator_biasprm[has_gain, 2] = -np.array(robot.kd)[has_gain]


class StandingRobot(NamedTuple):
    """Result of `stand`: a robot in its default pose on the ground, as MuJoCo's model and data."""

    model: mujoco.MjModel
    """Model of the robot on a plane. Its base can only move up and down."""
    data: mujoco.MjData
    """Data of the default pose, after ``mj_forward``."""


def stand(robot: RobotCfg) -> StandingRobot:
    """Return a robot in its default pose on a plane, at its ``base_height``.

    A vertical slide joint replaces the free joint of the base.
    """
    spec = spec_on_ground(robot, SimCfg())
    base = spec.body(robot.base_body)
    base.pos = [0.0, 0.0, robot.base_height]
    base.quat = [1.0, 0.0, 0.0, 0.0]
    # With a slide the base cannot tilt: only the gains decide whether the robot stands.
    slide = base.joints[0]
    slide.type = mujoco.mjtJoint.mjJNT_SLIDE
    # A default of the file for joints, such as limited="true", has no effect on a free joint.
    slide.limited = mujoco.mjtLimited.mjLIMITED_FALSE
    slide.axis = [0.0, 0.0, 1.0]
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[1:] = robot.default_joint_pos
    mujoco.mj_forward(model, data)
    return StandingRobot(model, data)


def foot_places(robot: RobotCfg) -> np.ndarray:
    """Return where the feet of a robot are in its default pose, seen from above.

    It is computed once per robot and process.

    Returns:
        x and y of each foot in the frame of the base, m. Shape: (num_feet, 2).
    """
    return _foot_places(pickle.dumps(robot))


@cache
def _foot_places(pickled_robot: bytes) -> np.ndarray:
    robot: RobotCfg = pickle.loads(pickled_robot)
    data = stand(robot).data
    places = [data.body(foot).xpos[:2] for foot in robot.foot_names]
    return np.array(places)
