"""URDF and MJCF files as models of one robot each, and what of them cannot be kept."""

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np

LEAST_MASS, LEAST_INERTIA = 1e-6, 1e-9
"""What a link without any has, kg and kg m²: MuJoCo refuses bodies that move and weigh nothing."""
MESHES = (".stl", ".obj", ".msh")
"""Endings of the meshes that MuJoCo reads."""


def prepare_urdf(
    root: ElementTree.Element, here: Path, gaps: dict[str, str], meshes: tuple[str, ...] = MESHES
) -> dict[str, float]:
    """Make MuJoCo read all of a URDF in the folder ``here`` that it can: meshes by their absolute paths, nothing fused.
    The velocity limits, which it does not read. Visuals without a file that ends like one of ``meshes`` are left out
    and told in ``gaps``, as are joints that lack a range; ValueError, naming the part, for what cannot be kept."""
    if any("xacro" in element.tag for element in root.iter()):
        raise ValueError(
            "it has elements of xacro: write the output of the command xacro to a file, and read that"
        )
    children, speeds, notes = [""], {}, list[str]()
    links = [link.get("name", "") for link in root.findall("link")]
    if twice := sorted({name for name in links if links.count(name) > 1}):
        raise ValueError(f"there are several links {twice[0]!r}: give each a name of its own")
    for joint in root.findall("joint"):
        link, limit, mimic = (
            getattr(joint.find(tag), "attrib", {}) for tag in ("child", "limit", "mimic")
        )
        name, kind = joint.get("name", ""), joint.get("type")
        if mimic:
            how = 'write type="fixed", or take <mimic> out and give it a motor'
            raise ValueError(
                f"joint {name!r} mimics {mimic['joint']!r}, and each joint must have its own motor: {how}"
            )
        if kind in ("planar", "floating"):
            how = "make it fixed; if it holds the base, which floats anyway, take it and its parent link out"
            raise ValueError(
                f"joint {name!r} is {kind}, it must be revolute, continuous, prismatic or fixed: {how}"
            )
        if link.get("link") in children:
            raise ValueError(
                f"joint {name!r} closes a loop: link {link['link']!r} has two parents, take one joint out"
            )
        parent = getattr(joint.find("parent"), "attrib", {})
        if lost := [each.get("link") for each in (parent, link) if each.get("link") not in links]:
            raise ValueError(
                f"joint {name!r} has a link {lost[0]!r}, which there is not: write the name of one"
            )
        children.append(link.get("link", ""))
        try:
            low, high, speeds[name] = (
                float(limit.get(key, 0)) for key in ("lower", "upper", "velocity")
            )
        except ValueError as error:
            raise ValueError(f"the limit of joint {name!r} has no numbers: {error}") from error
        if kind in ("revolute", "prismatic") and not low < high:
            notes.append(
                f'joint {name!r} moves without an end: write <limit lower="…" upper="…"/>, in rad or m'
            )
    options = root.find("mujoco/compiler")
    if options is None:
        options = ElementTree.SubElement(ElementTree.SubElement(root, "mujoco"), "compiler")
    folder = options.attrib.pop("meshdir", "")
    options.attrib.update(fusestatic="false", discardvisual="false", strippath="false")
    for link in root.findall("link"):
        for shape in (*link.findall("visual"), *link.findall("collision")):
            for mesh in shape.findall("geometry/mesh"):
                package, _, rest = mesh.get("filename", "").rpartition("://")
                rests = (rest.partition("/")[2], rest) if package else (Path(folder) / rest,)
                places = [
                    around / each
                    for around in ((here, *here.parents) if package else (here,))
                    for each in rests
                ]
                found = [
                    place for place in places if place.is_file() and place.suffix.lower() in meshes
                ]
                what = f"the {shape.tag} of link {link.get('name')!r} has the mesh {mesh.get('filename')!r}"
                how = f"there is no such file of {', '.join(meshes)}: write a path from {str(here)!r}, or a box"
                if found:
                    mesh.set("filename", str(found[0]))
                elif shape.tag == "visual":
                    link.remove(shape)
                    notes.append(f"{what}, which is left out: {how}")
                else:
                    raise ValueError(f"{what}, and {how}")
    if notes:
        gaps["xml"] = "; ".join(notes)
    return {joint: speed for joint, speed in speeds.items() if speed > 0}


def read_urdf(
    path: Path, visuals: bool, density: float
) -> tuple[mujoco.MjSpec, dict[str, float], list[str]]:
    """A URDF of which nothing is refused that can be mended: the children of a link by the names of their joints, links
    without mass with that of their shapes of ``density``, inertias that no body has as the nearest of one. Also the
    velocity limits of joints, and the links of fixed joints with ``dont_collapse``. ValueError says what is wrong."""
    root = ElementTree.parse(path).getroot()
    for link in root.findall("link"):
        for seen in () if visuals else link.findall("visual"):
            link.remove(seen)
        _mend_inertia(link)
    joints = sorted(root.findall("joint"), key=lambda joint: joint.get("name", ""))
    for joint in joints:
        root.remove(joint)
        root.append(joint)
    fixed = [
        joint
        for joint in joints
        if joint.get("type") == "fixed" and joint.get("dont_collapse") == "true"
    ]
    not_collapsed = [str(child.get("link")) for joint in fixed for child in joint.findall("child")]
    speeds = prepare_urdf(
        root, path.parent.resolve(), {}, (*MESHES, ".dae") if find_spec("trimesh") else MESHES
    )
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, encoding="unicode"))
    if len(spec.worldbody.bodies) != 1:
        raise ValueError(
            f"it must have one link that is nobody's child, got {len(spec.worldbody.bodies)}"
        )
    for mesh in spec.meshes:
        load_mesh(spec, mesh)
    for geom in spec.geoms:
        geom.density = density
    return spec, speeds, not_collapsed


def read_mjcf(path: Path, visuals: bool) -> mujoco.MjSpec:
    """The robot alone of an MJCF file, at the origin, without its motors, sensors, keyframes and free joint. ValueError
    for what couples joints, and for ball joints."""
    spec = mujoco.MjSpec.from_file(str(path))
    if len(outer := spec.worldbody.bodies) != 1:
        raise ValueError(f"it must have one outermost body, got {[body.name for body in outer]}")
    if couplings := [*spec.equalities, *spec.tendons]:
        raise ValueError(
            f"it has equalities or tendons, {[part.name for part in couplings]}: take them out"
        )
    if spec.pairs:
        raise ValueError(
            "it has pairs of shapes that touch by rules of their own, <contact><pair>: take them out"
        )
    unused = [*spec.keys, *spec.actuators, *spec.sensors, *spec.lights, *spec.cameras]
    unused += [geom for geom in spec.geoms if not (visuals or geom.contype or geom.conaffinity)]
    unused += [joint for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]
    for part in (*unused, *spec.worldbody.geoms):
        spec.delete(part)
    spec.nkey, outer[0].pos, outer[0].quat = 0, [0, 0, 0], [1, 0, 0, 0]
    for i, part in enumerate((*spec.bodies, *spec.joints)):
        part.name = part.name or f"part_{i}"
    if ball := [joint.name for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_BALL]:
        raise ValueError(f"joint {ball[0]!r} is a ball joint, it must be a hinge or a slide")
    return spec


def _mend_inertia(link: ElementTree.Element) -> None:
    """Leave a mass of 0 out, so that shapes count; make principal moments positive, none above the others' sum."""
    keys = [f"i{min(a, b)}{max(a, b)}" for a in "xyz" for b in "xyz"]
    for inertial in link.findall("inertial"):
        mass, inertia = (getattr(inertial.find(tag), "attrib", {}) for tag in ("mass", "inertia"))
        if float(mass.get("value", 0)) <= 0:
            link.remove(inertial)
            continue
        moments, axes = np.linalg.eigh(
            np.reshape([float(inertia.get(key, 0)) for key in keys], (3, 3))
        )
        mended = np.maximum(moments, LEAST_INERTIA)
        mended[:2] += max(mended[2] - mended[0] - mended[1], 0) / 2 * 1.0001
        if (mended != moments).any():
            matrix = axes * mended @ axes.T
            inertia |= {
                key: f"{value:.17g}" for key, value in zip(keys, matrix.ravel(), strict=True)
            }


def load_mesh(spec: mujoco.MjSpec, mesh: Any) -> None:
    """Let trimesh read what MuJoCo does not, COLLADA files and STL files of text. What it cannot read is not seen."""
    path = Path(mesh.file)
    if path.suffix.lower() != ".dae" and not (
        path.suffix.lower() == ".stl" and path.read_bytes()[:5] == b"solid"
    ):
        return
    try:
        import trimesh

        loaded: Any = trimesh.load(path, force="mesh")
        mesh.uservert, mesh.userface, mesh.file = loaded.vertices.ravel(), loaded.faces.ravel(), ""
    except Exception as error:
        shapes = [geom for geom in spec.geoms if geom.meshname == mesh.name]
        if any(geom.contype or geom.conaffinity for geom in shapes):
            raise ValueError(
                f"trimesh cannot read {str(path)!r}, with which the robot collides: {error}"
            ) from error
        warnings.warn(f"{str(path)!r} is not drawn: {error}", stacklevel=2)
        for part in (*shapes, mesh):
            spec.delete(part)
