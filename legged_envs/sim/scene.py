"""Put a robot on a ground: one compiled MuJoCo model per scene."""

from __future__ import annotations

from pathlib import Path

import mujoco

from legged_envs.robots import RobotCfg
from legged_envs.sim.robot_view import RobotView
from legged_envs.sim.simulation import SimCfg


def build_scene(robot: RobotCfg, cfg: SimCfg) -> mujoco.MjModel:
    """Compile ``robot`` on flat ground with the physics options of ``cfg``; ValueError as :func:`robot_spec`."""
    spec = robot_spec(robot)
    option = spec.option
    option.timestep, option.iterations, option.ls_iterations = cfg.dt, cfg.iterations, cfg.ls_iterations
    option.integrator, option.cone = mujoco.mjtIntegrator.mjINT_IMPLICITFAST, mujoco.mjtCone.mjCONE_PYRAMIDAL
    _add_ground(spec)
    model = spec.compile()
    RobotView.find(model, robot)
    for joint, position in zip(robot.joint_names, robot.default_joint_pos, strict=True):
        low, high = model.joint(joint).range
        if model.joint(joint).limited and not low <= position <= high:
            given = f"RobotCfg {robot.name!r}: default_joint_pos of {joint!r} is {position}"
            raise ValueError(f"{given}, outside of its range in {robot.xml}, {low:g} to {high:g}")
    return model


def robot_spec(robot: RobotCfg) -> mujoco.MjSpec:
    """The file of ``robot`` with its actuators, sensors and light, to be compiled or attached to a scene.

    ValueError if the file lacks what is needed, or does not fit the ``RobotCfg``.
    """
    spec = mujoco.MjSpec.from_file(str(robot.path))
    _check_file(spec, robot)
    for geom in spec.geoms:
        geom.priority = 1  # the robot's friction decides, not the larger one
    # The shadow map covers what is near the light, so the light travels with the robot.
    spec.body(robot.base_body).add_light(
        mode=mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM,
        pos=[-0.8, -0.6, 3.0],
        dir=[0.25, 0.19, -1.0],
        type=mujoco.mjtLightType.mjLIGHT_SPOT,
        cutoff=50.0,
        exponent=3.0,
        diffuse=[0.55, 0.55, 0.55],
        ambient=[0.1, 0.1, 0.1],
        castshadow=True,
    )
    _add_actuators(spec, robot)
    _add_sensors(spec, robot)
    return spec


def _check_file(spec: mujoco.MjSpec, robot: RobotCfg) -> None:
    if given := ", ".join(repr(actuator.name) for actuator in spec.actuators):
        raise ValueError(f"{robot.xml} has actuators, {given}: take them out, one per joint is added from RobotCfg")
    needed = {
        "body": (robot.base_body, *robot.foot_names, *robot.penalized_bodies, *robot.termination_bodies),
        "site": ("imu", *(f"{foot}_site" for foot in robot.foot_names)),
        "camera": ("track",),
    }
    for kind, names in needed.items():
        for name in names:
            if getattr(spec, kind)(name) is None:
                raise ValueError(f"{robot.xml} has no {kind} {name!r}, which RobotCfg {robot.name!r} needs")
    if not any(geom.contype or geom.conaffinity for geom in spec.geoms):
        raise ValueError(f'{robot.xml} has no collision shapes: geoms with contype="0" conaffinity="1"')


def _add_ground(spec: mujoco.MjSpec) -> None:
    ground = mujoco.MjSpec.from_file(str(Path(__file__).with_name("ground.xml")))
    spec.attach(ground, frame=spec.worldbody.add_frame(), prefix="ground_")
    visual = spec.visual
    visual.headlight.diffuse, visual.headlight.ambient = [0.45, 0.45, 0.45], [0.35, 0.35, 0.35]
    visual.global_.offwidth, visual.global_.offheight = 1920, 1080
    visual.quality.shadowsize = 2048
    visual.quality.offsamples = 0  # software rendering: four samples a pixel take three times as long


def _add_actuators(spec: mujoco.MjSpec, robot: RobotCfg) -> None:
    """One actuator per joint, of the kind of ``RobotCfg.actuators``, evaluated in every physics step.

    With the target u: τ = clip(kp (u − q) − kd q̇, ±limit), clip(kd (u − q̇), ±limit) or clip(u, ±limit).
    """
    gains = zip(robot.joint_names, robot.actuators, robot.kp, robot.kd, robot.torque_limits, strict=True)
    for joint, kind, kp, kd, limit in gains:
        actuator = spec.add_actuator(
            name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT, forcelimited=True, forcerange=[-limit, limit]
        )
        if kind == "position":
            actuator.set_to_position(kp=kp, kv=kd)
        elif kind == "velocity":
            actuator.set_to_velocity(kv=kd)
        else:
            actuator.set_to_motor()


def _add_sensors(spec: mujoco.MjSpec, robot: RobotCfg) -> None:
    # An accelerometer makes the engine evaluate the contact force on every body (cfrc_ext).
    site, sensor = mujoco.mjtObj.mjOBJ_SITE, mujoco.mjtSensor
    for foot in robot.foot_names:
        spec.add_sensor(name=f"{foot}_lin_vel", type=sensor.mjSENS_FRAMELINVEL, objtype=site, objname=f"{foot}_site")
    spec.add_sensor(name="imu_acc", type=sensor.mjSENS_ACCELEROMETER, objtype=site, objname="imu")
