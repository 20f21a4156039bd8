"""Reader of robots in MJCF files, for Isaac Gym's ``load_asset``."""

from pathlib import Path

import mujoco


def read_mjcf(path: Path, visuals: bool) -> mujoco.MjSpec:
    """Read the robot of an MJCF file, without the scene around it.

    Motors, sensors, keyframes, lights, cameras, the ground and the free joint are left out. The
    base is moved to the origin. Bodies and joints without a name are given one.

    Args:
        path: MJCF file.
        visuals: True to keep the visual shapes, which do not collide.

    Raises:
        ValueError: There is not exactly one outermost body, joints are coupled, pairs of shapes
            have separate contact rules, or there is a ball joint. The message names the part.
    """
    spec = mujoco.MjSpec.from_file(str(path))
    _check_supported(spec)
    for part in _unused_parts(spec, visuals):
        spec.delete(part)
    spec.nkey = 0
    base = spec.worldbody.bodies[0]
    base.pos = [0, 0, 0]
    base.quat = [1, 0, 0, 0]
    for i, part in enumerate((*spec.bodies, *spec.joints)):
        part.name = part.name or f"part_{i}"
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_BALL:
            raise ValueError(f"joint {joint.name!r} is a ball joint, it must be a hinge or a slide")
    return spec


def _check_supported(spec: mujoco.MjSpec) -> None:
    outer = [body.name for body in spec.worldbody.bodies]
    if len(outer) != 1:
        raise ValueError(f"it must have one outermost body, got {outer}")
    couplings = [part.name for part in (*spec.equalities, *spec.tendons)]
    if couplings:
        raise ValueError(f"it has equalities or tendons, {couplings}: take them out")
    if spec.pairs:
        raise ValueError(
            "it has pairs of shapes with their own contact rules, <contact><pair>: take them out"
        )


def _unused_parts(spec: mujoco.MjSpec, visuals: bool) -> list[mujoco.MjsElement]:
    parts = [*spec.keys, *spec.actuators, *spec.sensors, *spec.lights, *spec.cameras]
    for geom in spec.geoms:
        if not (visuals or geom.contype or geom.conaffinity):
            parts.append(geom)
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_FREE:
            parts.append(joint)
    return [*parts, *spec.worldbody.geoms]
