"""Makes a first :class:`RobotCfg` and its model file from another project's URDF or MJCF file."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from xml.etree import ElementTree

import mujoco

from legged_envs.robots.reading.balance import FEET_THAT_NEED_BALANCE, balance
from legged_envs.robots.reading.cut_loops import refuse_cut_loops
from legged_envs.robots.reading.describe import Parts, describe_robot
from legged_envs.robots.reading.drawn_meshes import keep_drawn_meshes, write_drawn_meshes
from legged_envs.robots.reading.feet import Foot, find_feet
from legged_envs.robots.reading.foot_bodies import make_foot
from legged_envs.robots.reading.heading import turn_forward
from legged_envs.robots.reading.inertia import mend_inertias
from legged_envs.robots.reading.isolate import Joints, isolate_robot
from legged_envs.robots.reading.meshes import (
    collision_suffixes,
    is_collided_with,
    load_mesh,
    mend_huge_meshes,
    mend_meshes,
)
from legged_envs.robots.reading.motors import (
    MOST_JUMP,
    MOST_JUMP_TO_BALANCE,
    NUM_POSES,
    group_by_value,
    missing_armatures,
)
from legged_envs.robots.reading.options import reset_options
from legged_envs.robots.reading.placeholders import split_placeholders, torque_bounds
from legged_envs.robots.reading.pose import Pose, ground_distances
from legged_envs.robots.reading.root import gather_base, make_upright, unlimit_endless_joints
from legged_envs.robots.reading.source import read_root
from legged_envs.robots.reading.stretched_legs import bend_stretched_legs
from legged_envs.robots.reading.units import (
    check_height,
    check_mesh_sizes,
    check_shape_sizes,
    note_wrong_inertias,
)
from legged_envs.robots.reading.urdf import prepare_urdf
from legged_envs.robots.robot import RobotCfg
from legged_envs.tables import shorten

CLEARANCE = 100.0
"""Height of the base above the plane while the robot is measured, m.

It is so large that no robot touches the plane.
"""

CAMERA_ORIENTATION = (0.76, 0.54, 0.21, 0.3)
"""Orientation of the camera in the base frame, (w, x, y, z). It looks from the front right."""


class _Source(NamedTuple):
    """Robot of a file: its model, its limits and its feet."""

    spec: mujoco.MjSpec
    joints: Joints
    velocity_limits: dict[str, float]
    base: tuple[str, ...]
    feet: list[Foot]
    pose: Pose
    height: float


def draft_robot(path: Path, name: str, folder: Path) -> tuple[RobotCfg, dict[str, str]]:
    """Make a first configuration of the robot in a URDF or MJCF file, and write its model.

    The model is an MJCF file as :class:`RobotCfg` requires it. Fields that the file does not give
    are guessed:

    * Joints are in the order of the file. The default pose is the keyframe ``home`` or ``stand`` of
      the file. Without one, joints are at 0. A joint with a range that excludes 0, such as a knee,
      is bent by a twentieth of its range beyond the end. The joint before it, the hip, is bent back
      by half of this angle, so that the foot stays below the hip. Stretched legs of a robot with
      four feet or more are bent to 75 % of their length.
    * Feet are the bodies near the ground with foot, toe, sole or ankle roll in their names. If
      fewer than two have such a name, feet are the ends of the limbs near the ground. The lowest
      shapes of each foot are moved to a separate body.
    * Legs have kp = 2 m g h / (number of feet), with the mass m of the robot and the height h of
      its base. This is twice the kp that keeps upright legs from falling over together. Other
      joints have kp = 10 m g r, with the mass m of the limb beyond the joint and the distance r of
      its centre of mass. The limb then hangs down by at most 0.1 rad. kd = kp / 40 s⁻¹, and
      kp / 20 s⁻¹ for robots on two feet.
    * Partners for mirroring are found by names, left and right or L and R. Their signs follow from
      the joint axes. The diagonals of a quadruped follow from the positions of its feet.

    Args:
        path: URDF or MJCF file.
        name: Name of the robot. The model is written to ``<name>.xml``, and COLLADA meshes that are
            only drawn as STL files to the folder ``<name>_meshes``.
        folder: Folder of the new model.

    Returns:
        The configuration, and the fields of it that are guesses. Each of these fields has a text
        with the reason and the advice what to write.

    Raises:
        ValueError: The file cannot be read, or has parts that the package does not support: closed
            loops, mimic joints, planar joints, ball joints or a second free joint. The message
            names the part.
    """
    # Meshes are written here first, so that nothing is left of a file that is refused.
    with TemporaryDirectory() as drawn:
        return _draft(path, name, folder.resolve(), Path(drawn).resolve())


def _draft(path: Path, name: str, folder: Path, drawn: Path) -> tuple[RobotCfg, dict[str, str]]:
    gaps: dict[str, str] = {}
    notes: list[str] = []
    source = _read_source(path, notes, drawn)
    foot_names = []
    for foot in source.feet:
        foot_names.append(make_foot(source.spec, source.pose, foot, source.height))
    _add_sites_and_camera(source.spec, foot_names, source.height)
    pose = _default_pose(source.spec, source.joints.positions)
    robot = describe_robot(
        pose=pose,
        joints=source.joints,
        velocity_limits=source.velocity_limits,
        parts=_parts(source, foot_names),
        height=source.height,
        model_path=folder / f"{name}.xml",
        source_name=path.name,
        gaps=gaps,
    )
    armature_note = _add_armatures(source.spec, pose, robot, path.name)
    if armature_note and "velocity_limits" in gaps:
        # With the right velocities there may be no need for an armature.
        gaps["velocity_limits"] += f"; {armature_note}"
    elif armature_note:
        notes.append(armature_note)
    if notes:
        gaps["xml"] = "; ".join(notes)
    keep_drawn_meshes(source.spec, drawn, folder / f"{name}_meshes")
    _write_model(source.spec, robot)
    return robot, gaps


def _parts(source: _Source, foot_names: Sequence[str]) -> Parts:
    model = source.pose.model
    wheels = [model.joint(foot.wheel).name for foot in source.feet if foot.wheel is not None]
    toes: list[str] = []
    for foot in source.feet:
        toes.extend(foot.toes)
    return Parts(source.base, tuple(foot_names), tuple(wheels), tuple(toes))


def _add_armatures(spec: mujoco.MjSpec, pose: Pose, robot: RobotCfg, source_name: str) -> str:
    """Give joints that have too little inertia for their motors an armature.

    Returns:
        A note that names them; empty if there are none.
    """
    torque_limits = dict(zip(robot.joint_names, robot.torque_limits, strict=True))
    velocity_limits = dict(zip(robot.joint_names, robot.velocity_limits, strict=True))
    most_jump = MOST_JUMP
    num_poses = 0
    if len(robot.foot_names) <= FEET_THAT_NEED_BALANCE:
        most_jump = MOST_JUMP_TO_BALANCE
        # Humanoids have arms, which are light in other poses.
        num_poses = NUM_POSES
    armatures = missing_armatures(*pose, torque_limits, velocity_limits, most_jump, num_poses)
    # Left and right have the same motors, whatever their links in the file are.
    for joint, (partner, _) in zip(robot.joint_names, robot.mirror, strict=True):
        if joint in armatures:
            armatures.setdefault(partner, armatures[joint])
    for joint, armature in armatures.items():
        spec.joint(joint).armature = armature
    if not armatures:
        return ""
    return (
        f"{source_name} has too little inertia for its motors, so an armature is a guess, "
        f"{group_by_value(armatures)} in kg m²: write the inertia of each rotor times its gear "
        "ratio squared"
    )


def _read_source(path: Path, notes: list[str], drawn: Path) -> _Source:
    try:
        spec, velocity_limits = _read_model(path, notes, drawn)
        joints = isolate_robot(spec)
        reset_options(spec, notes)
        make_upright(spec, joints.orientation, notes)
        base = gather_base(spec, notes)
        turn_forward(spec, notes)
        pose = _default_pose(spec, joints.positions)
        check_mesh_sizes(pose.model)
        check_shape_sizes(pose.model)
        refuse_cut_loops(pose)
        feet, height = _find_feet(pose)
        check_height(height)
        note_wrong_inertias(pose.model, height, notes)
        if not joints.has_keyframe:
            bounds = torque_bounds(pose, [foot.body for foot in feet], height)
            torques = split_placeholders(joints.torque_limits, bounds).real
            positions = bend_stretched_legs(pose, feet, joints.positions)
            positions = balance(pose, feet, positions, torques)
            joints = joints._replace(positions=positions)
            _set_positions(pose, joints.positions)
            feet, height = _find_feet(pose)
    except (ElementTree.ParseError, ValueError) as error:
        advice = ""
        if "mjMINVAL" in str(error):
            advice += ": write its <inertial>"
        if "opening file" in str(error):
            advice += f": write a path from {str(path.parent)!r}"
        raise ValueError(
            f"cannot read {str(path)!r}: {shorten(str(error), 400)}{advice}"
        ) from error
    return _Source(
        spec=spec,
        joints=joints,
        velocity_limits=velocity_limits,
        base=base,
        feet=feet,
        pose=pose,
        height=height,
    )


def _find_feet(pose: Pose) -> tuple[list[Foot], float]:
    """Return the feet in a pose, and the height of the base above them, m."""
    lowest = min(ground_distances(*pose).values(), default=0.0)
    height = CLEARANCE - lowest
    return find_feet(pose, height, CLEARANCE), height


def _read_model(
    path: Path, notes: list[str], drawn: Path
) -> tuple[mujoco.MjSpec, dict[str, float]]:
    """Return the model of a file, with absolute paths, and the velocity limits of a URDF.

    What is left out or mended is added to ``notes``. Visuals of COLLADA are written to ``drawn``.
    """
    root = read_root(path)
    folder = path.resolve().parent
    velocity_limits: dict[str, float] = {}
    if root.tag == "robot":  # A URDF.
        velocity_limits = prepare_urdf(root, folder, notes, collision_suffixes())
        spec = mujoco.MjSpec.from_string(ElementTree.tostring(root))
        only_drawn = [mesh for mesh in spec.meshes if not is_collided_with(spec, mesh)]
        write_drawn_meshes(spec, only_drawn, drawn, notes)
        for mesh in spec.meshes:
            load_mesh(spec, mesh, as_hull=is_collided_with(spec, mesh))
        for geom in spec.geoms:
            geom.mass = 0.0  # A URDF has the mass of a link, if any, in its <inertial>.
    else:
        spec = mujoco.MjSpec.from_file(str(path))
    for part in (*spec.meshes, *spec.textures, *spec.hfields):
        is_texture = isinstance(part, mujoco.MjsTexture)
        subfolder = spec.texturedir if is_texture else spec.meshdir
        if part.file:
            part.file = str(folder / subfolder / part.file)
        if is_texture:
            part.cubefiles = [
                str(folder / subfolder / name) if name else "" for name in part.cubefiles
            ]
    spec.meshdir = ""
    spec.texturedir = ""
    unlimit_endless_joints(spec)
    mend_inertias(spec, notes)
    mend_huge_meshes(spec, notes)
    # A copy: a mesh that failed keeps what was read of it, to which a hull does not fit.
    checked = spec.copy()
    try:
        checked.compile()
    except ValueError:
        mend_meshes(spec, notes)
        checked = spec
        checked.compile()
    # The written form gives each shape a position, also where the file has two end points.
    return mujoco.MjSpec.from_string(checked.to_xml()), velocity_limits


def _default_pose(spec: mujoco.MjSpec, positions: dict[str, float]) -> Pose:
    """Compile the model with its base upright, high above a plane, and its joints as given."""
    spec = spec.copy()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], conaffinity=0)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:7] = [0.0, 0.0, CLEARANCE, 1.0, 0.0, 0.0, 0.0]
    pose = Pose(model, data)
    _set_positions(pose, positions)
    return pose


def _set_positions(pose: Pose, positions: dict[str, float]) -> None:
    for joint, position in positions.items():
        pose.data.joint(joint).qpos = position
    mujoco.mj_forward(pose.model, pose.data)


def _add_sites_and_camera(spec: mujoco.MjSpec, foot_names: Sequence[str], height: float) -> None:
    base = spec.worldbody.bodies[0]
    base.add_site(name="imu")
    for foot in foot_names:
        spec.body(foot).add_site(name=f"{foot}_site")
    if spec.camera("track") is None:
        base.add_camera(
            name="track",
            mode=mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM,
            pos=[1.7 * height, -1.8 * height, 0.7 * height],
            quat=list(CAMERA_ORIENTATION),
        )


def _write_model(spec: mujoco.MjSpec, robot: RobotCfg) -> None:
    """Write the model with the base at its height, and with relative paths of its meshes."""
    base = spec.worldbody.bodies[0]
    base.pos = [0, 0, robot.base_height]
    base.quat = [1, 0, 0, 0]
    spec.compile()
    text = spec.to_xml()
    path = Path(robot.xml)
    for part in (*spec.meshes, *spec.textures, *spec.hfields):
        relative = os.path.relpath(part.file or ".", path.parent)
        text = text.replace(f'file="{part.file}"', f'file="{relative}"')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
