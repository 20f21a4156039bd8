"""A first :class:`RobotCfg`, and the model in the form that the package needs, of anyone's URDF or MJCF file."""

import os
import re
from collections.abc import Sequence
from math import inf
from pathlib import Path
from pprint import pformat
from textwrap import indent
from xml.etree import ElementTree

import mujoco
import numpy as np

from legged_envs.robots.reading.files import load_mesh, prepare_urdf
from legged_envs.robots.robot import RobotCfg, counterpart
from legged_envs.tables import shorten

GRAVITY = 9.81
SPEED = 20.0
"""Largest joint velocity where a file has none, rad/s: that of a common motor."""
_UP = 100.0
"""Height of the base while distances to the floor are measured, m: nothing may be in it."""
_NEAR = 0.1
"""How near to the ground feet are in the default pose, as a part of the robot's height."""
_FOOT = re.compile(r"foot|feet|toe|sole|ankle_?roll", re.IGNORECASE)
_LOOK = [0.76, 0.54, 0.21, 0.3]
"""Orientation of the camera, which looks from the right in front."""
_COPIED = ("type", "size", "quat", "meshname", "friction", "condim", "group", "rgba", "material")

Pose = tuple[mujoco.MjModel, mujoco.MjData]


def draft(path: Path, name: str, folder: Path) -> tuple[RobotCfg, dict[str, str]]:
    """Read a URDF or MJCF file, write the model as the package needs it to ``<name>.xml`` in ``folder``, and describe
    it: a ``RobotCfg``, and which of its fields are guesses, each with the reason and what to write. ValueError, naming
    the part, if it has what the package does not: closed loops, mimic, planar, ball or further free joints.

    Joints are in the order of the file, in the pose of its keyframe ``home`` or ``stand``, else at 0; one that cannot
    be at 0, a knee, is bent by a twentieth of its range, and the one before it half as much back. Feet are the bodies
    named after foot, toe, sole or ankle roll, else the ends of limbs, that come near the ground; their lowest shapes
    become bodies of their own unless they are. Gains: from the base to a foot kp = 2 m g h / feet, with the robot's
    mass m and height h, twice what keeps upright legs from falling over together; elsewhere kp = 10 m g r, by which the
    limb beyond a joint, with a mass m at the distance r, hangs down by at most 0.1 rad; kd = kp / 40 s. Mirror images
    are found by name, left and right, L and R, and their signs by the axes, diagonals by where four feet are."""
    gaps: dict[str, str] = {}
    try:
        spec, speeds = _read(path, gaps)
        limits, angles = _put_in_order(spec)
        pose = _pose(spec, angles)
        height = _UP - min(lowest(*pose).values(), default=0.0)
        feet = _find_feet(pose, height)
    except (ElementTree.ParseError, ValueError) as error:
        hints = {
            "mjMINVAL": ": write its <inertial>",
            "opening file": f": write a path from {str(path.parent)!r}",
        }
        how = "".join(hint for words, hint in hints.items() if words in str(error))
        raise ValueError(f"cannot read {str(path)!r}: {shorten(str(error), 400)}{how}") from error
    base, foot_names = (
        spec.worldbody.bodies[0],
        [_make_foot(spec, pose, *foot, height) for foot in feet],
    )
    base.add_site(name="imu")
    for foot in foot_names:
        spec.body(foot).add_site(name=f"{foot}_site")
    if spec.camera("track") is None:
        place = {"pos": [1.7 * height, -1.8 * height, 0.7 * height], "quat": _LOOK}
        base.add_camera(name="track", mode=mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM, **place)
    model, data = pose = _pose(spec, angles)
    heights = [(model.body(model.geom_bodyid[i]).name, z) for i, z in lowest(*pose).items()]
    ground = min(z for body, z in heights if body in foot_names)
    origin = float(np.mean([data.body(foot).xpos[2] for foot in foot_names])) - ground
    weak = _rounded(model.body_subtreemass[1] * GRAVITY * height / len(foot_names))
    for field, known, guess in (
        ("torque_limits", limits, f"{weak} N m"),
        ("velocity_limits", speeds, f"{SPEED} rad/s"),
    ):
        if missing := ", ".join(joint for joint in angles if joint not in known):
            gaps[field] = (
                f"{path.name} has none of {missing}: {guess} is a guess, write what the motors have"
            )
    touching = dict.fromkeys(body for body, _ in heights if body not in foot_names)
    if base.name not in touching:
        gaps["termination_bodies"] = (
            f"{base.name!r} has no collision shape: write the bodies whose contact is a fall"
        )
    base.pos, base.quat = [0, 0, round(_UP - ground, 4)], [1, 0, 0, 0]
    kp = _gains(pose, height, foot_names)
    robot = RobotCfg(
        name=name,
        xml=str(folder.resolve() / f"{name}.xml"),
        base_body=base.name,
        joint_names=tuple(angles),
        default_joint_pos=tuple(round(angle, 4) for angle in angles.values()),
        kp=kp,
        kd=tuple(_rounded(gain / 40) for gain in kp),
        torque_limits=tuple(limits.get(joint, weak) for joint in angles),
        velocity_limits=tuple(speeds.get(joint, SPEED) for joint in angles),
        base_height=float(base.pos[2]),
        foot_names=tuple(foot_names),
        foot_radius=max(round(origin, 4), 1e-3),
        penalized_bodies=tuple(body for body in touching if body != base.name),
        termination_bodies=(base.name,),
        mirror=_mirror(pose, tuple(angles), gaps),
        foot_mirror=tuple(foot_names.index(counterpart(foot, foot_names)) for foot in foot_names),
        diagonals=_diagonals(pose, foot_names),
    )
    spec.compile()
    text = spec.to_xml()
    for part in (*spec.meshes, *spec.textures, *spec.hfields):
        text = text.replace(
            f'file="{part.file}"', f'file="{os.path.relpath(part.file or ".", folder.resolve())}"'
        )
    folder.mkdir(parents=True, exist_ok=True)
    Path(robot.xml).write_text(text)
    return robot, gaps


def module_text(robot: RobotCfg, gaps: dict[str, str]) -> str:
    """A module with ``robot``, whose model is in a file beside it, as Python; guesses are marked with ``TODO``."""
    text = f'"""{robot.name}: {robot.num_joints} joints; a first description by legged-envs check."""\n\n'
    text += "from pathlib import Path\n\nfrom legged_envs.robots import RobotCfg\n\n"
    fields = {
        field: pformat(value, width=100, compact=True) for field, value in vars(robot).items()
    }
    fields["xml"] = f"str(Path(__file__).with_name({robot.name + '.xml'!r}))"
    lines = [
        f"# TODO: {gaps.get(name)}\n" * (name in gaps) + f"{name}={value},"
        for name, value in fields.items()
    ]
    return f"{text}{robot.name.upper()} = RobotCfg(\n{indent(chr(10).join(lines), ' ' * 4)}\n)\n"


def mirror_sign(pose: Pose, joint: str, partner: str) -> float:
    """The sign with which ``partner`` takes the place of ``joint`` when left and right are swapped, from their axes; 0
    if these are no mirror images. A hinge's axis is mirrored as a rotation: x and z change their signs, y does not."""
    hinge = pose[0].joint(joint).type[0] == mujoco.mjtJoint.mjJNT_HINGE
    image = pose[1].joint(joint).xaxis * ((-1, 1, -1) if hinge else (1, -1, 1))
    along = float(image @ pose[1].joint(partner).xaxis)
    return float(np.sign(along)) if abs(along) > 0.95 else 0.0


def lowest(model: mujoco.MjModel, data: mujoco.MjData) -> dict[int, float]:
    """How far each shape that collides with the ground, which is shape 0, is above it, m, by its number."""
    shapes = [i for i in range(model.ngeom) if model.geom_conaffinity[i] & 1]
    return {i: mujoco.mj_geomDistance(model, data, 0, i, 1e3, None) for i in shapes}


# --- Reading ----------------------------------------------------------------------------------------------------------


def _read(path: Path, gaps: dict[str, str]) -> tuple[mujoco.MjSpec, dict[str, float]]:
    """The model in a file, with meshes by their absolute paths, and the velocity limits in a URDF."""
    root, speeds, here = (
        ElementTree.parse(path).getroot(),
        dict[str, float](),
        path.resolve().parent,
    )
    if is_urdf := root.tag == "robot":
        speeds = prepare_urdf(root, here, gaps)
    spec = (
        mujoco.MjSpec.from_string(ElementTree.tostring(root))
        if is_urdf
        else mujoco.MjSpec.from_file(str(path))
    )
    for mesh in spec.meshes if is_urdf else ():
        load_mesh(spec, mesh)
    for part in (*spec.meshes, *spec.textures, *spec.hfields):
        inside = spec.texturedir if isinstance(part, mujoco.MjsTexture) else spec.meshdir
        part.file = part.file and str(here / inside / part.file)
    spec.meshdir = spec.texturedir = ""
    for geom in spec.geoms:
        geom.mass = (
            0.0 if is_urdf else geom.mass
        )  # a URDF has the mass of a link, if any, in its <inertial>
    spec.compile()
    return mujoco.MjSpec.from_string(
        spec.to_xml()
    ), speeds  # each shape has a position, none is from end to end


# --- Putting in order -------------------------------------------------------------------------------------------------


def _put_in_order(spec: mujoco.MjSpec) -> tuple[dict[str, float], dict[str, float]]:
    """Leave the bodies, joints and shapes of one robot with a free joint ``root``; ValueError if it has what the
    package does not. The torque limits of joints that have one, and the positions of all in the default pose."""
    if len(outer := spec.worldbody.bodies) != 1:
        raise ValueError(
            f"it must have one outermost body, the base, got {[body.name for body in outer]}"
        )
    for pair in spec.equalities:
        what = (
            f"{pair.type.name.removeprefix('mjEQ_').lower()} of {pair.name1!r} and {pair.name2!r}"
        )
        raise ValueError(
            f"the {what} closes a loop or couples joints, and each must have its own motor: take it out"
        )
    if coupled := [part.name for part in spec.tendons]:
        how = "each joint must have its own motor: take them out"
        raise ValueError(f"tendons {coupled} couple joints, and {how}")
    limits: dict[str, float] = {}
    for i, body in enumerate(spec.bodies):
        body.name = body.name or f"body_{i}"
        wanted = ("free",) if body.name == outer[0].name else ("hinge", "slide")
        for joint in body.joints:
            joint.name, kind = (
                joint.name or f"{body.name}_joint",
                joint.type.name.removeprefix("mjJNT_").lower(),
            )
            if kind not in wanted:
                what = f"joint {joint.name!r} of body {body.name!r} is a {kind} joint"
                raise ValueError(
                    f"{what}; it must be a {' or '.join(wanted)} joint, or be taken out"
                )
            limits[joint.name], joint.actfrcrange = float(joint.actfrcrange[1]), [0.0, 0.0]
    (outer[0].joints or [outer[0].add_freejoint()])[0].name = "root"
    data, angles = mujoco.MjData(model := spec.compile()), {}
    if home := [i for i, key in enumerate(spec.keys) if re.search("home|stand", key.name)]:
        mujoco.mj_resetDataKeyframe(model, data, home[0])
    mujoco.mj_kinematics(model, data)
    for i in range(1, model.njnt):
        low, high = model.jnt_range[i] if model.jnt_limited[i] else (-inf, inf)
        angle = data.qpos[model.jnt_qposadr[i]]
        if not low <= angle <= high:
            angle = np.clip(angle, low + 0.05 * (high - low), high - 0.05 * (high - low))
            before = model.body_jntadr[model.body_parentid[model.jnt_bodyid[i]]]
            if before > 0 and abs(along := data.xaxis[before] @ data.xaxis[i]) > 0.9:
                angles[model.joint(before).name] = float(
                    np.clip(-0.5 * along * angle, *model.jnt_range[before])
                )
        angles[model.joint(i).name] = float(angle)
    for motor in spec.actuators:
        most = motor.forcerange[1] or motor.ctrlrange[1] * (
            motor.biastype == mujoco.mjtBias.mjBIAS_NONE
        )
        limits[motor.target] = most * abs(motor.gear[0]) or limits.get(motor.target, 0.0)
    parts = (
        spec.keys,
        spec.actuators,
        spec.sensors,
        spec.excludes,
        spec.pairs,
        spec.lights,
        spec.sites,
    )
    for part in (
        *(each for kind in parts for each in kind),
        *spec.worldbody.geoms,
        *spec.worldbody.cameras,
    ):
        spec.delete(part)
    spec.nkey = 0
    collide = [bool(geom.contype or geom.conaffinity) for geom in spec.geoms]
    for geom, collides in zip(spec.geoms, collide, strict=True):
        geom.contype, geom.conaffinity, geom.group = (
            0,
            int(collides),
            2 + (collides and not all(collide)),
        )
    return {name: float(limit) for name, limit in limits.items() if limit > 0}, angles


def _pose(spec: mujoco.MjSpec, angles: dict[str, float]) -> Pose:
    """The model, upright in its default pose, high above a plane."""
    spec = spec.copy()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], conaffinity=0)
    data = mujoco.MjData(model := spec.compile())
    data.qpos[:7] = 0.0, 0.0, _UP, 1.0, 0.0, 0.0, 0.0
    for joint, angle in angles.items():
        data.joint(joint).qpos = angle
    mujoco.mj_forward(model, data)
    return model, data


def _find_feet(pose: Pose, height: float) -> list[tuple[str, list[int]]]:
    """The last body of each leg, in the order of the file, with its lowest shapes; ValueError if there is none."""
    model, shapes = pose[0], dict[int, dict[int, float]]()
    for i, z in lowest(*pose).items():
        if z < _UP - (1 - _NEAR) * height:
            shapes.setdefault(int(model.geom_bodyid[i]), {})[i] = z
    named = [body for body in shapes if _FOOT.search(model.body(body).name)]
    feet = named if len(named) > 1 else [*shapes]
    feet = sorted(
        body for body in feet if not any(body in way(model, other)[:-1] for other in feet)
    )
    if not feet or feet[0] == 1:
        wrong = (
            "there are no feet: no limb has a collision shape near the ground in the default pose"
        )
        raise ValueError(
            f"{wrong}; give the last links some, or an MJCF a keyframe called home, in which it stands"
        )
    level = {body: min(shapes[body].values()) + 0.01 for body in feet}
    return [
        (model.body(body).name, [i for i, z in shapes[body].items() if z < level[body]])
        for body in feet
    ]


def way(model: mujoco.MjModel, body: int) -> list[int]:
    """The bodies on the way from the base to ``body``."""
    return [] if body == 0 else [*way(model, int(model.body_parentid[body])), body]


def _make_foot(spec: mujoco.MjSpec, pose: Pose, name: str, shapes: list[int], height: float) -> str:
    """Make the ``shapes`` at the end of a leg a body of their own, if they are none. The name of this body."""
    (model, data), link, body, points = pose, spec.body(name), pose[1].body(name), np.zeros(6)
    if not link.joints and sum(geom.conaffinity for geom in link.geoms) == len(shapes):
        return name
    centres = []
    for i in shapes:
        mujoco.mj_geomDistance(model, data, 0, i, 1e3, points)
        centre, end = data.geom_xpos[i], points[3:] + np.array([0.0, 0.0, model.geom_size[i, 0]])
        centres.append(
            end if centre[2] - points[5] > _NEAR * height else centre
        )  # the lower end of a shank
    place = body.xmat.reshape(3, 3).T @ (np.mean(centres, axis=0) - body.xpos)
    stem = re.sub(r"_?(link|body)$", "", name, flags=re.IGNORECASE)
    foot = link.add_body(name=f"{stem}_{'sole' if _FOOT.search(stem) else 'foot'}", pos=place)
    if not link.explicitinertial:  # it is that of its shapes
        link.explicitinertial, link.mass, link.ipos = (
            True,
            float(model.body(name).mass[0]),
            model.body(name).ipos,
        )
        link.iquat, link.inertia = model.body(name).iquat, model.body(name).inertia
    for old in [link.geoms[i - int(model.body(name).geomadr[0])] for i in shapes]:
        new = foot.add_geom(
            **{key: getattr(old, key) for key in _COPIED}, contype=0, conaffinity=1, mass=0.0
        )
        new.pos = old.pos - place
        spec.delete(old)
    return str(foot.name)


# --- Fields -----------------------------------------------------------------------------------------------------------


def _rounded(value: float) -> float:
    """Two digits of ``value``: more would seem to be known."""
    return float(f"{value:.2g}")


def _gains(pose: Pose, height: float, feet: Sequence[str]) -> tuple[float, ...]:
    (model, data), legs = (
        pose,
        {body for foot in feet for body in way(pose[0], pose[0].body(foot).id)},
    )
    reach = np.linalg.norm(data.subtree_com[model.jnt_bodyid] - data.xanchor, axis=1)
    limbs = 10 * model.body_subtreemass[model.jnt_bodyid] * reach
    leg = 2 * model.body_subtreemass[1] * height / len(feet)
    moments = np.where(np.isin(model.jnt_bodyid, [*legs]), leg, limbs)[1:]
    return tuple(max(_rounded(GRAVITY * moment), 1.0) for moment in moments)


def _diagonals(pose: Pose, feet: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The pairs of feet of a quadruped at opposite corners; empty for other robots."""
    places = np.array([pose[1].body(foot).xpos[:2] for foot in feet])
    corner = np.prod(places - places.mean(0), axis=1) > 0.0
    if len(feet) != 4 or corner.sum() != 2:
        return ()
    (a, b), (c, d) = (
        [feet[i] for i in np.flatnonzero(corner == side).tolist()]
        for side in (corner[0], not corner[0])
    )
    return (a, b), (c, d)


def _mirror(
    pose: Pose, joints: tuple[str, ...], gaps: dict[str, str]
) -> tuple[tuple[str, float], ...]:
    partners = {joint: counterpart(joint, joints) for joint in joints}
    signs = {joint: mirror_sign(pose, joint, partner) for joint, partner in partners.items()}
    alone = [
        joint
        for joint in joints
        if partners[joint] == joint and abs(pose[1].joint(joint).xanchor[1]) > 0.02
    ]
    if wrong := dict.fromkeys([*alone, *(joint for joint in joints if not signs[joint])]):
        why = "find no partner by name, or none with a mirrored axis"
        gaps["mirror"] = f"{', '.join(wrong)} {why}: write (joint in its place, 1.0 or -1.0)"
    return tuple((partner, signs[joint] or 1.0) for joint, partner in partners.items())
