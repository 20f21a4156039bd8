"""Reader of URDF files. It makes them readable for MuJoCo and notes or refuses what gets lost."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from legged_envs.robots.reading.finite_numbers import check_numbers
from legged_envs.robots.reading.inertia import possible_moments
from legged_envs.robots.reading.meshes import (
    COLLADA_SUFFIX,
    MESH_SUFFIXES,
    collision_suffixes,
    find_mesh,
    load_mesh,
    why_unreadable,
)
from legged_envs.robots.reading.shapes import leave_out_empty_shapes
from legged_envs.robots.reading.size_limits import DEEPEST_NESTING
from legged_envs.robots.reading.source import has_xacro

# MuJoCo refuses bodies that move and weigh nothing.
LEAST_MASS = 1e-6
"""Smallest mass of a link, kg. Links without mass in the file have it."""

INERTIA_KEYS = ("ixx", "ixy", "ixz", "ixy", "iyy", "iyz", "ixz", "iyz", "izz")
"""Attributes of ``<inertia>`` as the entries of the 3 × 3 matrix, row by row."""


def prepare_urdf(
    root: ElementTree.Element,
    folder: Path,
    notes: list[str],
    visual_suffixes: Sequence[str] = MESH_SUFFIXES,
) -> dict[str, float]:
    """Change a URDF so that MuJoCo reads all of it.

    Paths of meshes become absolute, and MuJoCo is set to keep links of fixed joints. Visuals
    without a readable mesh are removed.

    Args:
        root: Root element of the file, changed in place.
        folder: Folder of the file.
        notes: Notes. One is added if visuals are removed, and one if joints have no range. They
            list them.
        visual_suffixes: Suffixes of the mesh files that are kept although they are only drawn.

    Returns:
        Velocity limits of the joints that have one, rad/s or m/s, by name. MuJoCo does not read
        them.

    Raises:
        ValueError: The file has parts that cannot be kept, such as xacro elements or mimic joints.
            The message names the part.
    """
    if has_xacro(root):
        raise ValueError(
            "it has elements of xacro: write the output of the command xacro to a file, "
            "and read that"
        )
    check_numbers(root)
    _take_out_floating_root(root, notes)
    _rename_world(root, notes)
    link_names = [link.get("name", "") for link in root.findall("link")]
    repeated = sorted({name for name in link_names if link_names.count(name) > 1})
    if repeated:
        raise ValueError(f"there are several links {repeated[0]!r}: give each a different name")
    velocity_limits = _read_joints(root, link_names, notes)
    _check_depth(root)
    mesh_folder = _set_compiler_options(root)
    suffixes = {"visual": visual_suffixes, "collision": collision_suffixes()}
    leave_out_empty_shapes(root, notes)
    left_out: dict[str, list[str]] = {}
    for link in root.findall("link"):
        _keep_first_materials(link)
        _locate_meshes(link, folder, mesh_folder, suffixes, left_out)
    for reason, meshes in left_out.items():
        notes.append(
            f"visuals are left out, of {', '.join(meshes)}: {reason}; "
            f"meshes are looked for from {str(folder)!r}"
        )
    return {joint: limit for joint, limit in velocity_limits.items() if limit > 0}


def _take_out_floating_root(root: ElementTree.Element, notes: list[str]) -> None:
    """Remove an empty outermost link and its floating joint: the base floats anyway."""
    joints = root.findall("joint")
    children = [_attributes(joint, "child").get("link") for joint in joints]
    parents = [_attributes(joint, "parent").get("link") for joint in joints]
    for joint in joints:
        name = _attributes(joint, "parent").get("link", "")
        is_outermost = name not in children and parents.count(name) == 1
        if joint.get("type") != "floating" or not is_outermost:
            continue
        for link in root.findall("link"):
            if link.get("name") == name and len(link) == 0:
                root.remove(link)
                root.remove(joint)
                notes.append(
                    f"the empty link {name!r} and the floating joint {joint.get('name')!r} are "
                    "left out: the base floats anyway"
                )


def _rename_world(root: ElementTree.Element, notes: list[str]) -> None:
    """Rename a link ``world`` that has a body: MuJoCo would take it for the ground."""
    name = "world"
    links = [link for link in root.findall("link") if link.get("name") == name]
    if not any(len(link) for link in links):
        return
    taken = {link.get("name") for link in root.findall("link")}
    while name in taken:
        name += "_link"
    for link in links:
        link.set("name", name)
    for joint in root.findall("joint"):
        for end in (*joint.findall("parent"), *joint.findall("child")):
            if end.get("link") == "world":
                end.set("link", name)
    notes.append(f"the link 'world' is called {name!r}: 'world' is the ground")


def _check_depth(root: ElementTree.Element) -> None:
    """Raise a ValueError if chains of links are longer than those of any robot.

    MuJoCo reads them by recursion.
    """
    parents = {}
    for joint in root.findall("joint"):
        parents[_attributes(joint, "child").get("link", "")] = _attributes(joint, "parent")["link"]
    for link in parents:
        place = link
        depth = 0
        while place in parents:
            place = parents[place]
            depth += 1
            if depth > DEEPEST_NESTING:
                raise ValueError(
                    f"link {link!r} is at the end of a chain of more than {DEEPEST_NESTING} links "
                    "or of a loop: leave out all but the robot"
                )


def _attributes(element: ElementTree.Element, tag: str) -> dict[str, str]:
    child = element.find(tag)
    return {} if child is None else child.attrib


def _read_joints(
    root: ElementTree.Element, link_names: Sequence[str], notes: list[str]
) -> dict[str, float]:
    """Check all joints, note those without a range, and return their velocity limits."""
    # A joint without a child counts as a joint with the child "".
    children = [""]
    velocity_limits = {}
    without_range = []
    swapped = []
    for joint in root.findall("joint"):
        _check_joint_type(joint)
        _check_links_of_joint(joint, link_names, children)
        children.append(_attributes(joint, "child").get("link", ""))
        name = joint.get("name", "")
        limit = _attributes(joint, "limit")
        try:
            low = float(limit.get("lower", 0))
            high = float(limit.get("upper", 0))
            velocity_limits[name] = float(limit.get("velocity", 0))
            effort = float(limit.get("effort", 0))
        except ValueError as error:
            raise ValueError(f"the limit of joint {name!r} has no numbers: {error}") from error
        # MuJoCo takes the absolute value of a negative torque.
        if not effort > 0.0:
            limit.pop("effort", None)
        if joint.get("type") not in ("revolute", "prismatic") or low < high:
            continue
        if high < low:
            swapped.append(f"{name!r} ({low:g} to {high:g})")
            limit["lower"] = str(high)
            limit["upper"] = str(low)
        else:
            without_range.append(repr(name))
    if swapped:
        notes.append(f"lower is above upper, and they are swapped, of {', '.join(swapped)}")
    if without_range:
        notes.append(
            f"joints without a range move without an end, {', '.join(without_range)}: "
            'write <limit lower="…" upper="…"/>, in rad or m'
        )
    return velocity_limits


def _check_joint_type(joint: ElementTree.Element) -> None:
    name = joint.get("name", "")
    kind = joint.get("type")
    mimic = _attributes(joint, "mimic")
    # A joint that is fixed cannot follow another one: <mimic> in it has no meaning.
    if mimic and kind != "fixed":
        raise ValueError(
            f"joint {name!r} mimics {mimic.get('joint')!r}, and each joint must have its own "
            'motor: write type="fixed", or take <mimic> out and give it a motor'
        )
    if kind in ("planar", "floating"):
        raise ValueError(
            f"joint {name!r} is {kind}, it must be revolute, continuous, prismatic or fixed: "
            "make it fixed; if it holds the base, which floats anyway, "
            "take it and its parent link out"
        )


def _check_links_of_joint(
    joint: ElementTree.Element, link_names: Sequence[str], children: Sequence[str]
) -> None:
    name = joint.get("name", "")
    child = _attributes(joint, "child").get("link")
    parent = _attributes(joint, "parent").get("link")
    if child in children:
        raise ValueError(
            f"joint {name!r} closes a loop: link {child!r} has two parents, take one joint out"
        )
    for link in (parent, child):
        if link not in link_names:
            raise ValueError(
                f"joint {name!r} has a link {link!r}, which does not exist: "
                "write the name of a link"
            )


def _set_compiler_options(root: ElementTree.Element) -> str:
    """Make MuJoCo keep fixed links, visuals and paths, and return the folder of the meshes."""
    options = root.find("mujoco/compiler")
    if options is None:
        options = ElementTree.SubElement(ElementTree.SubElement(root, "mujoco"), "compiler")
    mesh_folder = options.attrib.pop("meshdir", "")
    options.set("fusestatic", "false")
    options.set("discardvisual", "false")
    options.set("strippath", "false")
    return mesh_folder


def _keep_first_materials(link: ElementTree.Element) -> None:
    """Remove all materials of a visual but the first, as MuJoCo refuses several."""
    for visual in link.findall("visual"):
        for material in visual.findall("material")[1:]:
            visual.remove(material)


def _locate_meshes(
    link: ElementTree.Element,
    folder: Path,
    mesh_folder: str,
    suffixes: Mapping[str, Sequence[str]],
    left_out: dict[str, list[str]],
) -> None:
    """Give the meshes of a link absolute paths, and remove visuals without a readable mesh.

    Args:
        link: The link, changed in place.
        folder: Folder of the file.
        mesh_folder: Option ``meshdir`` of the file.
        suffixes: Suffixes of the mesh files that can be read, for ``"visual"`` and
            ``"collision"``.
        left_out: Reasons why visuals are removed. Each has a list of links and meshes, which grows.
    """
    for shape in (*link.findall("visual"), *link.findall("collision")):
        for mesh in shape.findall("geometry/mesh"):
            filename = mesh.get("filename", "")
            file = find_mesh(filename, folder, mesh_folder)
            reason = why_unreadable(file, suffixes[shape.tag])
            name = link.get("name")
            if not reason:
                mesh.set("filename", str(file))
            elif shape.tag == "visual":
                link.remove(shape)
                left_out.setdefault(reason, []).append(f"{name!r} ({filename!r})")
            else:
                # Other reasons come with their own advice.
                advice = f": write a path from {str(folder)!r} to one, or a box" if not file else ""
                raise ValueError(
                    f"the collision of link {name!r} has the mesh {filename!r}, "
                    f"and {reason}{advice}"
                )


def read_urdf(
    path: Path, visuals: bool, density: float
) -> tuple[mujoco.MjSpec, dict[str, float], list[str]]:
    """Read a URDF for Isaac Gym's ``load_asset``, and repair masses and inertias as Isaac Gym does.

    The children of a link are sorted by the names of their joints. The mass of a link without one
    follows from its shapes. An inertia that is physically impossible is replaced by a possible one
    close to it.

    Args:
        path: URDF file.
        visuals: True to keep the visual shapes, which do not collide.
        density: Density of the shapes of links without mass, kg/m³.

    Returns:
        The model, the velocity limits of the joints that have one, rad/s or m/s, and the names of
        links that Isaac Gym keeps separate: bodies of fixed joints with ``dont_collapse``.

    Raises:
        ValueError: The file has parts that cannot be kept. The message names the part.
    """
    root = ElementTree.parse(path).getroot()
    for link in root.findall("link"):
        if not visuals:
            for visual in link.findall("visual"):
                link.remove(visual)
        _mend_inertia(link)
    # MuJoCo puts the children of a link in the order of their joints in the file.
    joints = _sort_joints(root)
    suffixes = (*MESH_SUFFIXES, COLLADA_SUFFIX) if find_spec("trimesh") else MESH_SUFFIXES
    velocity_limits = prepare_urdf(root, path.parent.resolve(), [], suffixes)
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, encoding="unicode"))
    num_roots = len(spec.worldbody.bodies)
    if num_roots != 1:
        raise ValueError(f"it must have one link that is not the child of a joint, got {num_roots}")
    for mesh in spec.meshes:
        load_mesh(spec, mesh)
    for geom in spec.geoms:
        geom.density = density
    return spec, velocity_limits, _links_to_keep(joints)


def _sort_joints(root: ElementTree.Element) -> list[ElementTree.Element]:
    joints = sorted(root.findall("joint"), key=_name_of)
    for joint in joints:
        root.remove(joint)
        root.append(joint)
    return joints


def _name_of(element: ElementTree.Element) -> str:
    return element.get("name", "")


def _links_to_keep(joints: Sequence[ElementTree.Element]) -> list[str]:
    links: list[str] = []
    for joint in joints:
        if joint.get("type") == "fixed" and joint.get("dont_collapse") == "true":
            links.extend(str(child.get("link")) for child in joint.findall("child"))
    return links


def _mend_inertia(link: ElementTree.Element) -> None:
    """Remove an inertial element without mass, or make its inertia physically possible."""
    for inertial in link.findall("inertial"):
        mass = float(_attributes(inertial, "mass").get("value", 0))
        if mass <= 0:
            link.remove(inertial)  # MuJoCo then takes the mass of the shapes.
            continue
        inertia = _attributes(inertial, "inertia")
        values = [float(inertia.get(key, 0)) for key in INERTIA_KEYS]
        moments, axes = np.linalg.eigh(np.reshape(values, (3, 3)))
        mended = possible_moments(moments)
        if (mended != moments).any():
            matrix = axes * mended @ axes.T
            for key, value in zip(INERTIA_KEYS, matrix.ravel(), strict=True):
                inertia[key] = f"{value:.17g}"
