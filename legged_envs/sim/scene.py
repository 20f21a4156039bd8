"""Builds scenes: robots and objects on a ground, compiled to one MuJoCo model."""

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from legged_envs.robots import RobotCfg
from legged_envs.sim.cfg import ObjectCfg, SceneCfg, SimCfg
from legged_envs.sim.render.appearance import dress
from legged_envs.sim.robot_spec import robot_spec
from legged_envs.sim.robot_view import RobotView
from legged_envs.sim.warnings_log import keep_no_log_file
from legged_envs.tables import shorten
from legged_envs.terrains import Terrain
from legged_envs.terrains.grid import Array

GROUND = "ground_floor"
"""Name of the ground's shape in the MuJoCo model."""
OBJECT_GEOMS = {
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
}
"""Shapes of objects (``ObjectCfg.shape``), and the type of MuJoCo's geom for each."""
DEEPEST_START = -0.02
"""Lowest allowed height of a robot's lowest point in its default pose at ``base_height``, m.

Negative heights are below the ground.
"""
HIGHEST_START = 0.15
"""Largest allowed height of a robot's lowest point in its default pose at ``base_height``, m.

It is above 0, because some tasks let their robot fall.
"""
HEIGHTS_FILE = "terrain.bin"
"""Name of the file of a terrain's heights in a model. The format is MuJoCo's own: rows and columns
as int32, then heights as float32, row by row."""
SHARED_BY_GROUND = (
    "contype",
    "conaffinity",
    "condim",
    "priority",
    "friction",
    "solref",
    "solimp",
    "material",
    "group",
)
"""Fields of a geom that the boxes of a terrain have from its height field."""
FLAT_TERRAIN_HEIGHT = 1e-3
"""Height range of MuJoCo's height field for flat ground, m. MuJoCo does not accept 0."""
PICTURE_SIZE = (1920, 1080)
"""Largest width and height of a picture, pixels."""
AXIS_TOLERANCE = 1e-6
"""Largest distance of a wheel's joint axis from the y axis of its foot, m, and largest sine of the
angle between the two."""


def build_scene(
    robot: RobotCfg,
    cfg: SimCfg,
    scene: SceneCfg | None = None,
    terrain: Terrain | None = None,
    appearance: str | None = None,
) -> mujoco.MjModel:
    """Compile a scene with all its robots and objects to a MuJoCo model, and check the robots.

    Args:
        robot: First robot of the scene.
        cfg: Physics settings.
        scene: Other robots and objects. None: there are no others.
        terrain: Rough ground. None: the plane z = 0.
        appearance: Appearance of the robots in pictures, see ``ViewerCfg.appearance``.

    Raises:
        ValueError: A robot's file does not fit its configuration or does not compile, its default
            pose is outside of a joint's range or not on the ground, or the appearance does not fit
            the robot.
        FileNotFoundError: A robot's file does not exist.
    """
    # First compiled on a plane without other robots, because the checks are of this robot only.
    spec = spec_on_ground(robot, cfg)
    model = _compile(spec, robot)
    view = RobotView.find(model, robot)
    _check_collision_shapes(model, view, robot)
    _check_default_pose(model, robot)
    if robot.wheels:
        _check_wheels(model, robot)
    if view.root_qpos is not None:
        _check_stance(model, view, robot, height_column=view.root_qpos.start + 2)
    if terrain is not None:
        lay_terrain(spec, terrain)
        # From the extent of a large terrain the renderer would cut off what is near the camera.
        spec.stat.extent = model.stat.extent
        spec.stat.center = model.stat.center
        model = spec.compile()
    if appearance is not None:
        dress(spec, robot, appearance)
        model = spec.compile()
    if scene is not None and (scene.robots or scene.objects):
        return _add_robots_and_objects(spec, cfg, scene, appearance)
    return model


def spec_on_ground(robot: RobotCfg, cfg: SimCfg) -> mujoco.MjSpec:
    """Return the model of one robot on a plane with light and physics settings, not yet compiled.

    `build_scene` compiles it. There are no other robots or objects.
    """
    keep_no_log_file()
    spec = robot_spec(robot)
    _add_light(spec, robot)
    option = spec.option
    option.timestep = cfg.dt
    option.iterations = cfg.iterations
    option.ls_iterations = cfg.ls_iterations
    # Implicit in velocity: the damping of the actuators stays stable at large gains.
    option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    option.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    add_ground(spec)
    _set_contacts(spec, cfg)
    return spec


def _compile(spec: mujoco.MjSpec, robot: RobotCfg) -> mujoco.MjModel:
    try:
        return spec.compile()
    except ValueError as error:
        raise ValueError(
            f"RobotCfg {robot.name!r}: cannot compile {str(robot.path)!r}: "
            f"{shorten(str(error), 200)}; correct the file; a mesh is looked for in its folder, "
            "or in <compiler meshdir> in that"
        ) from error


# --- Parts of a scene -----------------------------------------------------------------------------


def add_ground(spec: mujoco.MjSpec) -> None:
    """Add the plane z = 0, the sky and the settings of pictures to a model."""
    ground = mujoco.MjSpec.from_file(str(Path(__file__).with_name("ground.xml")))
    spec.attach(ground, frame=spec.worldbody.add_frame(), prefix="ground_")
    width, height = PICTURE_SIZE
    visual = spec.visual
    visual.headlight.diffuse = [0.45, 0.45, 0.45]
    visual.headlight.ambient = [0.35, 0.35, 0.35]
    visual.global_.offwidth = width
    visual.global_.offheight = height
    visual.quality.shadowsize = 2048
    # In software, four samples per pixel take three times as long.
    visual.quality.offsamples = 0


def lay_terrain(spec: mujoco.MjSpec, terrain: Terrain) -> None:
    """Replace the plane of a model by the height field and the boxes of a terrain."""
    heights = terrain.heights
    if terrain.collision_heights is not None:
        heights = terrain.collision_heights
    num_x, num_y = heights.shape
    low_x, low_y = terrain.low
    half_x = 0.5 * terrain.horizontal_scale * (num_x - 1)
    half_y = 0.5 * terrain.horizontal_scale * (num_y - 1)
    lowest = float(heights.min())
    # The true range, however small: MuJoCo stretches the heights to the range that it is given.
    span = (float(heights.max()) - lowest) or FLAT_TERRAIN_HEIGHT
    # MuJoCo's rows run along y, and its heights from 0 to 1 above the lowest point. They are given
    # as a file in memory: MuJoCo would take an array element by element, which is slow.
    shape = np.array([num_y, num_x], np.int32)
    scaled = (heights.T.astype(np.float64) - lowest) / span
    data = shape.tobytes() + scaled.astype(np.float32).tobytes()
    spec.assets = {**spec.assets, HEIGHTS_FILE: data}
    spec.add_hfield(name="terrain", file=HEIGHTS_FILE, size=[half_x, half_y, span, 1.0])
    ground = spec.geom(GROUND)
    ground.type = mujoco.mjtGeom.mjGEOM_HFIELD
    ground.hfieldname = "terrain"
    ground.pos = [low_x + half_x, low_y + half_y, lowest]
    # The engines' rays ignore this group: rays at the ground are computed in PyTorch.
    ground.group = 1
    if terrain.boxes is not None:
        _add_boxes(spec, ground, terrain.boxes)


def _add_boxes(spec: mujoco.MjSpec, ground: Any, boxes: Array) -> None:
    """Add the boxes of a terrain to a model, with the contacts and the looks of its ground."""
    for i, (x, y, z, half_x, half_y, half_z) in enumerate(boxes.tolist()):
        box = spec.worldbody.add_geom(
            name=f"{GROUND}_box_{i}",
            type=mujoco.mjtGeom.mjGEOM_BOX,
            pos=[x, y, z],
            size=[half_x, half_y, half_z],
        )
        for field in SHARED_BY_GROUND:
            setattr(box, field, getattr(ground, field))


def _add_light(spec: mujoco.MjSpec, robot: RobotCfg) -> None:
    # The shadow map covers what is near the light, so the light travels with the robot.
    light = spec.body(robot.base_body).add_light(
        pos=[-0.8, -0.6, 3.0], dir=[0.25, 0.19, -1.0], castshadow=True
    )
    light.mode = mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM
    light.type = mujoco.mjtLightType.mjLIGHT_SPOT
    light.cutoff = 50.0
    light.exponent = 3.0
    light.diffuse = [0.55, 0.55, 0.55]
    light.ambient = [0.1, 0.1, 0.1]


def _set_contacts(spec: mujoco.MjSpec, cfg: SimCfg) -> None:
    # The parameters of a contact come from the shape of higher priority, or are a mean of both:
    # all shapes get the same ones.
    for geom in spec.geoms:
        geom.solref = cfg.solref
        geom.solimp = cfg.solimp


def _add_robots_and_objects(
    spec: mujoco.MjSpec, cfg: SimCfg, scene: SceneCfg, appearance: str | None
) -> mujoco.MjModel:
    """Compile the first robot, ``spec``, together with the other robots and the objects."""
    further = {name: robot_spec(placed.robot) for name, placed in scene.robots.items()}
    all_specs = [spec, *further.values()]
    for number, each in enumerate(all_specs, start=1):
        if scene.robots_collide:
            _let_collide(each, number, len(all_specs))
        _set_contacts(each, cfg)
    for name, each in further.items():
        robot = scene.robots[name].robot
        # For its checks of only the robot.
        build_scene(robot, cfg)
        if appearance is not None:
            dress(each, robot, appearance)
        spec.attach(each, frame=spec.worldbody.add_frame(), prefix=f"{name}/")
    for name, thing in scene.objects.items():
        _add_object(spec, name, thing)
    return spec.compile()


def _let_collide(spec: mujoco.MjSpec, number: int, num_robots: int) -> None:
    """Let robot ``number``, counted from 1, touch the other robots.

    Its shapes have the bit of its number as their contact type, and the bits of the other robots
    as their affinities. Ground and objects have bit 0, as have the affinities of what they touch.
    """
    others = 0
    for other in range(1, num_robots + 1):
        if other != number:
            others |= 2**other
    for geom in spec.geoms:
        if geom.conaffinity & 1:
            geom.contype = geom.contype | 2**number
            geom.conaffinity = geom.conaffinity | others


def _add_object(spec: mujoco.MjSpec, name: str, thing: ObjectCfg) -> None:
    body = spec.worldbody.add_body(name=f"{name}/body", pos=thing.pos, quat=thing.quat)
    body.add_freejoint(name=f"{name}/root")
    unused_sizes = [0.0] * (3 - len(thing.size))
    shape = body.add_geom(
        name=f"{name}/shape",
        type=OBJECT_GEOMS[thing.shape],
        size=[*thing.size, *unused_sizes],
        rgba=[*thing.rgba],
        mass=thing.mass,
        # Above the priority of robots: the friction of an object decides.
        priority=2,
    )
    # The other two frictions, of turning and rolling, stay MuJoCo's.
    shape.friction[0] = thing.friction


# --- Checks of a robot ----------------------------------------------------------------------------


def _check_collision_shapes(model: mujoco.MjModel, view: RobotView, robot: RobotCfg) -> None:
    """Raise a ValueError if something but the robot and the ground collides."""
    collides = (model.geom_contype | model.geom_conaffinity) > 0
    is_part_of_robot = model.body_rootid[model.geom_bodyid] == view.bodies.start
    for i in np.flatnonzero(collides & ~is_part_of_robot):
        name = model.geom(i).name
        if name != GROUND:
            raise ValueError(
                f"{robot.xml} has a collision shape {name!r} that does not belong to RobotCfg "
                f"{robot.name!r}: remove it; the package adds the ground"
            )


def _check_default_pose(model: mujoco.MjModel, robot: RobotCfg) -> None:
    """Raise a ValueError unless the default pose is within the ranges of the joints."""
    for joint, position in zip(robot.joint_names, robot.default_joint_pos, strict=True):
        low, high = model.joint(joint).range
        if model.joint(joint).limited and not low <= position <= high:
            raise ValueError(
                f"RobotCfg {robot.name!r}: default_joint_pos of {joint!r} is {position}, outside "
                f"of its range in {robot.xml}, {low:g} to {high:g}; the nearest is "
                f"{np.clip(position, low, high):g}"
            )


def _check_wheels(model: mujoco.MjModel, robot: RobotCfg) -> None:
    """Raise a ValueError unless each foot turns without an end about the y axis of its body."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    for foot in robot.foot_names:
        body = data.body(foot)
        axle = body.xmat.reshape(3, 3)[:, 1]
        # A foot is welded to the link that turns.
        is_wheel_joint = model.jnt_bodyid == model.body_weldid[body.id]
        distance = np.cross(data.xanchor[is_wheel_joint] - body.xpos, axle)
        angle = np.cross(data.xaxis[is_wheel_joint], axle)
        if (
            is_wheel_joint.sum() != 1
            or model.jnt_limited[is_wheel_joint]
            or abs(distance).max() > AXIS_TOLERANCE
            or abs(angle).max() > AXIS_TOLERANCE
        ):
            raise ValueError(
                f"RobotCfg {robot.name!r} has wheels, but foot {foot!r} is not a wheel: in "
                f"{robot.xml} one joint without limits must turn it, about the y axis of the foot"
            )


def _check_stance(
    model: mujoco.MjModel, view: RobotView, robot: RobotCfg, height_column: int
) -> None:
    """Raise a ValueError unless the robot is near the ground in its default pose.

    ``height_column`` is the column of the base's height in ``qpos``.
    """
    data = mujoco.MjData(model)
    data.qpos[height_column] = robot.base_height
    data.qpos[view.joint_qpos] = robot.default_joint_pos
    mujoco.mj_kinematics(model, data)
    ground = model.geom(GROUND).id
    heights = {}
    for geom in range(model.ngeom)[view.geoms]:
        if model.geom_conaffinity[geom] & 1:
            heights[geom] = mujoco.mj_geomDistance(model, data, ground, geom, 10.0, None)
    # One shape is enough: the robot falls until it touches, or is pushed out of the ground.
    lowest = min(heights, key=heights.__getitem__)
    height = heights[lowest]
    if DEEPEST_START <= height <= HIGHEST_START:
        return
    place = "above the ground, onto which it would fall" if height > 0.0 else "inside the ground"
    raise ValueError(
        f"RobotCfg {robot.name!r}: with base_height={robot.base_height} body "
        f"{model.body(model.geom_bodyid[lowest]).name!r} starts {abs(height):.3f} m {place}; "
        f"in default_joint_pos it touches the ground at {robot.base_height - height:.4f}"
    )
