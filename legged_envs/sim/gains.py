"""The stance of a robot on its own gains, and the check that they hold its default pose."""

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
"""Time that a robot stands in a report, s."""
CHECK_DURATION = 0.8
"""Time that a robot stands when an environment is made, s."""
FULL_LOAD = 0.9
"""Torque of a joint from which its limit is to blame, as a fraction of the limit."""
# The robots of the package sink by at most 0.06 of their height and sag by at most 0.1 rad. With
# half of their gains these are 0.12 and 0.3. Legs that give way sink by more than 0.3.
MAX_SINKING = 0.2
"""Largest sinking within `CHECK_DURATION` of a robot that its gains hold, as a fraction of its
height."""
MAX_SAG = 0.6
"""Largest sag of a joint within `CHECK_DURATION` of a robot that its gains hold, rad."""
SAG_OF_GOOD_GAIN = 0.1
"""Sag of a joint with the gain that an error suggests, rad."""


class Stance(NamedTuple):
    """Result of `settle`: how a robot stands after a while."""

    sinking: float
    """Height that the base has lost, m."""
    sag: np.ndarray
    """Joint positions minus the default pose, rad; 0 without a position actuator. (num_joints,)."""
    load: np.ndarray
    """Absolute torques as fractions of their limits. Shape: (num_joints,)."""


def check_gains(robot: RobotCfg) -> None:
    """Raise an error unless the gains of a robot hold its default pose.

    Robots with a leg that a learned torque or velocity drives are not checked. The check takes
    15 ms and is done once for a robot.

    Raises:
        ValueError: The robot falls or a joint gives way within 0.8 s.
    """
    # A policy that sets torques, or velocities of legs, learns to hold the robot by itself.
    held_by_gains = {"position"}
    if robot.wheels:
        held_by_gains.add("velocity")
    if held_by_gains.issuperset(robot.actuators):
        # A RobotCfg may hold lists, which cannot be hashed; its bytes are the key of the cache.
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
    """Return twice the kp that keeps upright legs from falling over together, N·m/rad."""
    weight = GRAVITY * stand(robot).model.body_subtreemass[1]
    return float(2 * weight * robot.base_height / len(robot.foot_names))


def settle(robot: RobotCfg, duration: float = REPORT_DURATION) -> Stance:
    """Let a robot stand on its own gains, its base held upright on a vertical slide.

    Args:
        robot: Robot that starts in its default pose, its lowest foot on the ground.
        duration: Simulated time, s.
    """
    model, data = stand(robot)
    # The slide is 0 at base_height, which may be some millimetres off the ground.
    start = -min(ground_distances(model, data).values())
    data.qpos[0] = start
    has_servo = np.array(robot.actuators) == "position"
    data.ctrl[:] = np.where(has_servo, robot.default_joint_pos, 0.0)
    mujoco.mj_step(model, data, round(duration / model.opt.timestep))
    sag = np.where(has_servo, data.qpos[1:] - robot.default_joint_pos, 0.0)
    load = abs(data.actuator_force) / robot.torque_limits
    return Stance(sinking=float(start - data.qpos[0]), sag=sag, load=load)


class StandingRobot(NamedTuple):
    """Result of `stand`: a compiled model and its data."""

    model: mujoco.MjModel
    """Model of the robot on a plane; its base moves on a vertical slide."""
    data: mujoco.MjData
    """Data with the default pose, after ``mj_forward``."""


def stand(robot: RobotCfg) -> StandingRobot:
    """Put a robot in its default pose on a plane, its base on a vertical slide."""
    spec = spec_on_ground(robot, SimCfg())
    base = spec.body(robot.base_body)
    base.pos = [0.0, 0.0, robot.base_height]
    base.quat = [1.0, 0.0, 0.0, 0.0]
    # The free joint becomes a slide: without balance only the gains decide.
    slide = base.joints[0]
    slide.type = mujoco.mjtJoint.mjJNT_SLIDE
    slide.axis = [0.0, 0.0, 1.0]
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[1:] = robot.default_joint_pos
    mujoco.mj_forward(model, data)
    return StandingRobot(model, data)
