"""A robot on a ground: one compiled MuJoCo model per scene, and where in its arrays the robot is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from legged_envs.checks import did_you_mean
from legged_envs.robots import RobotCfg
from legged_envs.sim.appearance import dress
from legged_envs.sim.cfg import SceneCfg
from legged_envs.sim.simulation import SimCfg
from legged_envs.tables import TableRepr, shorten
from legged_envs.terrains import Terrain

GROUND = "ground_floor"
_DEEPEST, _HIGHEST = (
    -0.02,
    0.15,
)  # where the lowest point of a robot may start, m above the ground: some are dropped


@dataclass(frozen=True, repr=False)
class RobotView(TableRepr):
    """One robot's parts of the arrays of a MuJoCo model, which may hold several, in the order of its ``RobotCfg``."""

    root_qpos: slice | None
    root_qvel: slice | None
    """Its free joint: position and quaternion, linear and angular velocity. None if the base is fixed."""
    joints: slice
    joint_qpos: slice
    joint_qvel: slice
    actuators: slice
    bodies: slice
    geoms: slice
    """Joints without the free one, bodies, the base first, and shapes from the first that collides to the last."""
    foot_sites: slice
    foot_velocities: slice
    """Three values per foot in ``sensordata``."""

    def _describe(self) -> str:
        return ", ".join(
            f"{name}={part and f'{part.start}:{part.stop}'}" for name, part in vars(self).items()
        )

    @classmethod
    def find(cls, model: mujoco.MjModel, robot: RobotCfg, prefix: str = "") -> "RobotView":
        """The view of ``robot``, whose names in the model begin with ``prefix``; ValueError if its parts do not fit."""
        base = model.body(prefix + robot.base_body).id
        bodies = np.flatnonzero(model.body_rootid == base)
        joints = np.flatnonzero(np.isin(model.jnt_bodyid, bodies))
        floats = bool((model.jnt_type[joints[:1]] == mujoco.mjtJoint.mjJNT_FREE).any())
        root, joints = joints[:floats], joints[floats:]
        names = tuple(model.joint(i).name for i in joints)
        if names != tuple(prefix + name for name in robot.joint_names):
            wrong = f"{robot.xml} has joints {names}, but RobotCfg {robot.name!r} names {robot.joint_names}"
            raise ValueError(f"{wrong}: name all of them, in the order of the file")
        if not np.isin(
            model.jnt_type[joints], (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
        ).all():
            raise ValueError(
                f"{robot.xml}: every joint but the free one of the base must be a hinge or a slide"
            )
        shapes = np.flatnonzero(np.isin(model.geom_bodyid, bodies) & (model.geom_conaffinity > 0))
        sites = [model.site(f"{prefix}{foot}_site").id for foot in robot.foot_names]
        velocities = [model.sensor(f"{prefix}{foot}_lin_vel").adr[0] for foot in robot.foot_names]

        def span(ids: Sequence[int] | np.ndarray, parts: str, stride: int = 1) -> slice:
            if list(ids) != list(range(ids[0], ids[0] + stride * len(ids), stride)):
                raise ValueError(
                    f"{robot.xml} must declare {parts} one after another, in RobotCfg's order"
                )
            return slice(int(ids[0]), int(ids[0]) + stride * len(ids))

        return cls(
            root_qpos=span(model.jnt_qposadr[root], "its base", 7) if floats else None,
            root_qvel=span(model.jnt_dofadr[root], "its base", 6) if floats else None,
            joints=span(joints, "its joints"),
            joint_qpos=span(model.jnt_qposadr[joints], "its joints"),
            joint_qvel=span(model.jnt_dofadr[joints], "its joints"),
            actuators=span([model.actuator(name).id for name in names], "its actuators"),
            bodies=span(bodies, "its bodies"),
            geoms=slice(int(shapes[0]), int(shapes[-1]) + 1),
            foot_sites=span(sites, "the sites of its feet"),
            foot_velocities=span(velocities, "the sensors of its feet", 3),
        )


def no_free_joint(robot: RobotCfg) -> ValueError:
    """What is wrong with a robot on a fixed base."""
    wrong = (
        f"{robot.xml}: base_body {robot.base_body!r} of RobotCfg {robot.name!r} has no free joint"
    )
    return ValueError(f'{wrong}: put <freejoint name="root"/> first into that body')


def build_scene(
    robot: RobotCfg,
    cfg: SimCfg,
    scene: SceneCfg | None = None,
    terrain: Terrain | None = None,
    appearance: str | None = None,
) -> mujoco.MjModel:
    """Compile ``robot`` with the physics options of ``cfg``, on a plane or ``terrain``, and what else is in ``scene``,
    for pictures in an ``appearance``; ValueError as :func:`robot_spec` and :func:`dress`."""
    spec = spec_on_ground(robot, cfg)
    model = _compile(spec, robot)
    view = RobotView.find(model, robot)
    collides = (model.geom_contype | model.geom_conaffinity) > 0
    for i in np.flatnonzero(collides & (model.body_rootid[model.geom_bodyid] != view.bodies.start)):
        if (name := model.geom(i).name) != GROUND:
            wrong = f"{robot.xml} has a collision shape {name!r} that is no part of RobotCfg {robot.name!r}"
            raise ValueError(f"{wrong}: take it out, the ground is added")
    for joint, position in zip(robot.joint_names, robot.default_joint_pos, strict=True):
        low, high = model.joint(joint).range
        if model.joint(joint).limited and not low <= position <= high:
            given = f"RobotCfg {robot.name!r}: default_joint_pos of {joint!r} is {position}"
            how = f"the nearest is {np.clip(position, low, high):g}"
            raise ValueError(
                f"{given}, outside of its range in {robot.xml}, {low:g} to {high:g}; {how}"
            )
    if robot.wheels:
        _check_wheels(model, robot)
    if view.root_qpos is not None:
        _check_stance(model, view, robot, view.root_qpos.start + 2)
    if terrain is not None:
        lay_terrain(spec, terrain)
        spec.stat.extent, spec.stat.center = (
            model.stat.extent,
            model.stat.center,
        )  # else what is near is cut off
        model = spec.compile()
    if appearance is not None:
        dress(spec, robot, appearance)
        model = spec.compile()
    return (
        _add_scene(spec, cfg, scene, appearance)
        if scene and (scene.robots or scene.objects)
        else model
    )


def spec_on_ground(robot: RobotCfg, cfg: SimCfg) -> mujoco.MjSpec:
    """What ``build_scene`` compiles of a robot on a plane."""
    spec = robot_spec(robot)
    _add_light(spec, robot)
    option = spec.option
    option.timestep, option.iterations, option.ls_iterations = (
        cfg.dt,
        cfg.iterations,
        cfg.ls_iterations,
    )
    option.integrator, option.cone = (
        mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
        mujoco.mjtCone.mjCONE_PYRAMIDAL,
    )
    add_ground(spec)
    _set_contacts(spec, cfg)
    return spec


def _compile(spec: mujoco.MjSpec, robot: RobotCfg) -> mujoco.MjModel:
    try:
        return spec.compile()
    except ValueError as error:
        how = (
            "correct the file; a mesh is looked for in its folder, or in <compiler meshdir> in that"
        )
        wrong = f"RobotCfg {robot.name!r}: cannot compile {str(robot.path)!r}: {shorten(str(error), 200)}"
        raise ValueError(f"{wrong}; {how}") from error


def lay_terrain(spec: mujoco.MjSpec, terrain: Terrain) -> None:
    """Make the plane on which everything stands a height field."""
    (rows, columns), lowest = terrain.heights.shape, float(terrain.heights.min())
    span = max(float(terrain.heights.max()) - lowest, 1e-3)
    half = [0.5 * terrain.horizontal_scale * (points - 1) for points in (rows, columns)]
    centre = [low + radius for low, radius in zip(terrain.low, half, strict=True)]
    field = spec.add_hfield(name="terrain", nrow=columns, ncol=rows, size=[*half, span, 1.0])
    field.userdata = ((terrain.heights.T.astype(np.float64) - lowest) / span).ravel()
    ground = spec.geom(GROUND)
    ground.type, ground.hfieldname, ground.pos = (
        mujoco.mjtGeom.mjGEOM_HFIELD,
        "terrain",
        [*centre, lowest],
    )
    ground.group = 1  # which rays leave out


def _add_scene(
    spec: mujoco.MjSpec, cfg: SimCfg, scene: SceneCfg, appearance: str | None
) -> mujoco.MjModel:
    """Compile the first robot together with the other robots and the objects. Robot i has bit i of the contact types,
    and those of the other robots in its affinities; the ground and the objects have bit 0, as what they touch."""
    specs = [spec, *(robot_spec(placed.robot) for placed in scene.robots.values())]
    for i, each in enumerate(specs, 1):
        others = sum(2**j for j in range(1, len(specs) + 1) if j != i)
        for geom in each.geoms:
            if scene.robots_collide and geom.conaffinity & 1:
                geom.contype, geom.conaffinity = geom.contype | 2**i, geom.conaffinity | others
        _set_contacts(each, cfg)
    for (name, placed), each in zip(scene.robots.items(), specs[1:], strict=True):
        build_scene(placed.robot, cfg)  # for its checks
        if appearance is not None:
            dress(each, placed.robot, appearance)
        spec.attach(each, frame=spec.worldbody.add_frame(), prefix=f"{name}/")
    for name, thing in scene.objects.items():
        body = spec.worldbody.add_body(name=f"{name}/body", pos=thing.pos, quat=thing.quat)
        body.add_freejoint(name=f"{name}/root")
        kind = getattr(mujoco.mjtGeom, f"mjGEOM_{thing.shape.upper()}")
        size, rgba = (*thing.size, 0.0, 0.0)[:3], [*thing.rgba]
        shape = body.add_geom(
            name=f"{name}/shape", type=kind, size=size, rgba=rgba, mass=thing.mass, priority=2
        )
        shape.friction[0] = (
            thing.friction
        )  # its priority: an object's friction decides, not that of a robot
    return spec.compile()


def _set_contacts(spec: mujoco.MjSpec, cfg: SimCfg) -> None:
    for geom in spec.geoms:
        geom.solref, geom.solimp = cfg.solref, cfg.solimp


def _check_wheels(model: mujoco.MjModel, robot: RobotCfg) -> None:
    """Raise a ValueError unless each foot turns without an end about its own y axis."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    for foot in robot.foot_names:
        body = data.body(foot)
        joint = model.jnt_bodyid == model.body_weldid[body.id]
        off_axis = np.cross(data.xanchor[joint] - body.xpos, axle := body.xmat.reshape(3, 3)[:, 1])
        turned = np.cross(data.xaxis[joint], axle)
        if (
            joint.sum() != 1
            or model.jnt_limited[joint]
            or max(abs(off_axis).max(), abs(turned).max()) > 1e-6
        ):
            wrong = f"RobotCfg {robot.name!r} has wheels, but foot {foot!r} is none"
            raise ValueError(
                f"{wrong}: in {robot.xml} one joint without limits must turn it, about its own y axis"
            )


def _check_stance(model: mujoco.MjModel, view: RobotView, robot: RobotCfg, height: int) -> None:
    """Raise a ValueError unless the robot is near the ground in its default pose; ``height`` is the base's in qpos."""
    data = mujoco.MjData(model)
    data.qpos[height], data.qpos[view.joint_qpos] = robot.base_height, robot.default_joint_pos
    mujoco.mj_kinematics(model, data)
    shapes = [i for i in range(model.ngeom)[view.geoms] if model.geom_conaffinity[i] & 1]
    gaps = {
        i: mujoco.mj_geomDistance(model, data, model.geom(GROUND).id, i, 10.0, None) for i in shapes
    }
    lowest = min(gaps, key=gaps.__getitem__)
    if not _DEEPEST <= (gap := gaps[lowest]) <= _HIGHEST:
        place = "above the ground, onto which it would fall" if gap > 0.0 else "inside the ground"
        wrong = f"with base_height={robot.base_height} body {model.body(model.geom_bodyid[lowest]).name!r} starts"
        how = f"in default_joint_pos it touches the ground at {robot.base_height - gap:.4f}"
        raise ValueError(f"RobotCfg {robot.name!r}: {wrong} {abs(gap):.3f} m {place}; {how}")


def robot_spec(robot: RobotCfg) -> mujoco.MjSpec:
    """The file of ``robot`` with its actuators and sensors; ValueError if it does not fit the ``RobotCfg``."""
    try:
        spec = mujoco.MjSpec.from_file(str(robot.path))
    except ValueError as error:
        reason = shorten(str(error), 200)
        raise ValueError(
            f"RobotCfg {robot.name!r}: cannot read {str(robot.path)!r}: {reason}"
        ) from error
    _check_file(spec, robot)
    # Threads of the compiler load meshes; where none can be made, it fails without a reason.
    spec.compiler.usethread = len(spec.meshes) > 1
    for geom in spec.geoms:
        geom.priority = 1  # the robot's friction decides, not the larger one
    _add_actuators(spec, robot)
    _add_sensors(spec, robot)
    return spec


def _check_file(spec: mujoco.MjSpec, robot: RobotCfg) -> None:
    if given := ", ".join(repr(actuator.name) for actuator in spec.actuators):
        raise ValueError(
            f"{robot.xml} has actuators, {given}: take them out, one per joint is added from RobotCfg"
        )
    needed = {
        "body": (
            robot.base_body,
            *robot.foot_names,
            *robot.penalized_bodies,
            *robot.termination_bodies,
        ),
        "site": ("imu", *(f"{foot}_site" for foot in robot.foot_names)),
        "camera": ("track",),
        "joint": robot.joint_names,
    }
    for kind, names in needed.items():
        for name in names:
            if getattr(spec, kind)(name) is None:
                known = [
                    part.name for part in getattr(spec, "bodies" if kind == "body" else f"{kind}s")
                ]
                wrong = f"{robot.xml} has no {kind} {name!r}, which RobotCfg {robot.name!r} needs"
                raise ValueError(f"{wrong}; {did_you_mean(name, known)}it has: {', '.join(known)}")
    if spec.body(robot.base_body).parent.name != "world":
        base = f"base_body {robot.base_body!r} of RobotCfg {robot.name!r}"
        raise ValueError(
            f"{robot.xml}: {base} must be the outermost body, which has the others in it"
        )
    if not any(geom.conaffinity & 1 for geom in spec.geoms):
        raise ValueError(
            f'{robot.xml} has no collision shapes for the ground: geoms with contype="0" conaffinity="1"'
        )


def _add_light(spec: mujoco.MjSpec, robot: RobotCfg) -> None:
    # The shadow map covers what is near the light, so the light travels with the robot.
    light = spec.body(robot.base_body).add_light(
        pos=[-0.8, -0.6, 3.0], dir=[0.25, 0.19, -1.0], castshadow=True
    )
    light.mode, light.type = (
        mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM,
        mujoco.mjtLightType.mjLIGHT_SPOT,
    )
    light.cutoff, light.exponent = 50.0, 3.0
    light.diffuse, light.ambient = [0.55, 0.55, 0.55], [0.1, 0.1, 0.1]


def add_ground(spec: mujoco.MjSpec) -> None:
    ground = mujoco.MjSpec.from_file(str(Path(__file__).with_name("ground.xml")))
    spec.attach(ground, frame=spec.worldbody.add_frame(), prefix="ground_")
    visual = spec.visual
    visual.headlight.diffuse, visual.headlight.ambient = [0.45, 0.45, 0.45], [0.35, 0.35, 0.35]
    visual.global_.offwidth, visual.global_.offheight = 1920, 1080
    visual.quality.shadowsize = 2048
    visual.quality.offsamples = (
        0  # software rendering: four samples a pixel take three times as long
    )


def _add_actuators(spec: mujoco.MjSpec, robot: RobotCfg) -> None:
    gains = zip(
        robot.joint_names, robot.actuators, robot.kp, robot.kd, robot.torque_limits, strict=True
    )
    for joint, kind, kp, kd, limit in gains:
        actuator = spec.add_actuator(
            name=joint,
            target=joint,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            forcelimited=True,
            forcerange=[-limit, limit],
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
        spec.add_sensor(
            name=f"{foot}_lin_vel",
            type=sensor.mjSENS_FRAMELINVEL,
            objtype=site,
            objname=f"{foot}_site",
        )
    spec.add_sensor(name="imu_acc", type=sensor.mjSENS_ACCELEROMETER, objtype=site, objname="imu")
