"""Reads the MJCF file of a robot, and adds the robot's actuators and sensors to its model."""

from collections.abc import Sequence

import mujoco

from legged_envs.checks import did_you_mean
from legged_envs.robots import RobotCfg
from legged_envs.tables import shorten

GROUPS_OF_SHAPES = (2, 2, 2, 3, 3, 3)
"""Group of a robot's shapes for each group in its file, 0 to 5.

Rays ignore groups 2 and 3, so they never hit a robot. MuJoCo draws groups 0 to 2, so what is drawn
stays the same.
"""


def robot_spec(robot: RobotCfg) -> mujoco.MjSpec:
    """Return the model of a robot with actuators and sensors, as an editable ``MjSpec``.

    The model is read from ``RobotCfg.xml``. There is no ground yet.

    Raises:
        ValueError: The file cannot be read, or lacks parts that the configuration names.
        FileNotFoundError: The file does not exist.
    """
    try:
        spec = mujoco.MjSpec.from_file(str(robot.path))
    except ValueError as error:
        raise ValueError(
            f"RobotCfg {robot.name!r}: cannot read {str(robot.path)!r}: {shorten(str(error), 200)}"
        ) from error
    _check_file(spec, robot)
    # MuJoCo's compiler starts threads only to load meshes. They are switched off for robots with
    # fewer than two meshes: where the system allows no more threads, compiling would fail, with an
    # error that does not name the cause.
    spec.compiler.usethread = len(spec.meshes) > 1
    for geom in spec.geoms:
        # MuJoCo uses the friction of the shape with the higher priority, and the ground has 0.
        # With equal priorities it would use the larger friction.
        geom.priority = 1
        geom.group = GROUPS_OF_SHAPES[geom.group]
    _add_actuators(spec, robot)
    _add_sensors(spec, robot)
    return spec


def _check_file(spec: mujoco.MjSpec, robot: RobotCfg) -> None:
    """Raise a ValueError if a part that the configuration names is missing in a file."""
    # An actuator in the file would be a second one of its joint, with other gains.
    if spec.actuators:
        given = ", ".join(repr(actuator.name) for actuator in spec.actuators)
        raise ValueError(
            f"{robot.xml} has actuators, {given}: remove them; the package adds one per joint from "
            "RobotCfg"
        )
    bodies = [body.name for body in spec.bodies]
    sites = [site.name for site in spec.sites]
    cameras = [camera.name for camera in spec.cameras]
    joints = [joint.name for joint in spec.joints]
    body_names = (
        robot.base_body,
        *robot.foot_names,
        *robot.penalized_bodies,
        *robot.termination_bodies,
    )
    foot_sites = [f"{foot}_site" for foot in robot.foot_names]
    _check_parts(robot, "body", body_names, bodies)
    _check_parts(robot, "site", ("imu", *foot_sites), sites)
    _check_parts(robot, "camera", ("track",), cameras)
    _check_parts(robot, "joint", robot.joint_names, joints)
    if spec.body(robot.base_body).parent.name != "world":
        raise ValueError(
            f"{robot.xml}: base_body {robot.base_body!r} of RobotCfg {robot.name!r} must be the "
            "outermost body, which has the others in it"
        )
    if not any(geom.conaffinity & 1 for geom in spec.geoms):
        raise ValueError(
            f"{robot.xml} has no collision shapes for the ground: geoms with "
            'contype="0" conaffinity="1"'
        )


def _check_parts(robot: RobotCfg, kind: str, needed: Sequence[str], known: Sequence[str]) -> None:
    for name in needed:
        if name not in known:
            raise ValueError(
                f"{robot.xml} has no {kind} {name!r}, which RobotCfg {robot.name!r} needs; "
                f"{did_you_mean(name, known)}it has: {', '.join(known)}"
            )


def _add_actuators(spec: mujoco.MjSpec, robot: RobotCfg) -> None:
    # MuJoCo clips the torque of the actuator to ``forcerange`` in every physics step.
    for i, joint in enumerate(robot.joint_names):
        torque_limit = robot.torque_limits[i]
        actuator = spec.add_actuator(
            name=joint,
            target=joint,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            forcelimited=True,
            forcerange=[-torque_limit, torque_limit],
        )
        if robot.actuators[i] == "position":
            actuator.set_to_position(kp=robot.kp[i], kv=robot.kd[i])
        elif robot.actuators[i] == "velocity":
            actuator.set_to_velocity(kv=robot.kd[i])
        else:
            actuator.set_to_motor()


def _add_sensors(spec: mujoco.MjSpec, robot: RobotCfg) -> None:
    for foot in robot.foot_names:
        spec.add_sensor(
            name=f"{foot}_lin_vel",
            type=mujoco.mjtSensor.mjSENS_FRAMELINVEL,
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname=f"{foot}_site",
        )
    # An accelerometer makes the engine compute the contact force on every body, `cfrc_ext`.
    spec.add_sensor(
        name="imu_acc",
        type=mujoco.mjtSensor.mjSENS_ACCELEROMETER,
        objtype=mujoco.mjtObj.mjOBJ_SITE,
        objname="imu",
    )
