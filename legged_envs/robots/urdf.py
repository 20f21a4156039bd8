"""URDF files in the form that MuJoCo's importer reads, and what of them cannot be kept."""

from pathlib import Path
from xml.etree import ElementTree

MESHES = (".stl", ".obj", ".msh")
"""Endings of the meshes that MuJoCo reads."""


def prepare_urdf(
    root: ElementTree.Element, here: Path, gaps: dict[str, str], meshes: tuple[str, ...] = MESHES
) -> dict[str, float]:
    """Make MuJoCo read all of a URDF in the folder ``here`` that it can: meshes by their absolute paths, nothing fused.
    The velocity limits, which it does not read. A visual without a file that ends like one of ``meshes`` is left out
    and told in ``gaps``; ValueError, naming the part, for what cannot be kept."""
    if any("xacro" in element.tag for element in root.iter()):
        raise ValueError("it has elements of xacro: write the output of the command xacro to a file, and read that")
    children, speeds = [""], {}
    for joint in root.findall("joint"):
        link, limit, mimic = (getattr(joint.find(tag), "attrib", {}) for tag in ("child", "limit", "mimic"))
        name, kind = joint.get("name", ""), joint.get("type")
        if mimic:
            how = 'write type="fixed", or take <mimic> out and give it a motor'
            raise ValueError(f"joint {name!r} mimics {mimic['joint']!r}, and each joint must have its own motor: {how}")
        if kind in ("planar", "floating"):
            how = "make it fixed; if it holds the base, which floats anyway, take it and its parent link out"
            raise ValueError(f"joint {name!r} is {kind}, it must be revolute, continuous, prismatic or fixed: {how}")
        if link.get("link") in children:
            raise ValueError(f"joint {name!r} closes a loop: link {link['link']!r} has two parents, take one joint out")
        children.append(link.get("link", ""))
        speeds[name] = float(limit.get("velocity", 0))
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
                places = [around / each for around in ((here, *here.parents) if package else (here,)) for each in rests]
                found = [place for place in places if place.is_file() and place.suffix.lower() in meshes]
                what = f"the {shape.tag} of link {link.get('name')!r} has the mesh {mesh.get('filename')!r}"
                how = f"there is no such file of {', '.join(meshes)}: write a path from {str(here)!r}, or a box"
                if found:
                    mesh.set("filename", str(found[0]))
                elif shape.tag == "visual":
                    link.remove(shape)
                    gaps["xml"] = f"{what}, which is left out: {how}"
                else:
                    raise ValueError(f"{what}, and {how}")
    return {joint: speed for joint, speed in speeds.items() if speed > 0}
