"""Shapes of a URDF that have no size."""

from xml.etree import ElementTree

SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length")}
"""Shapes of a URDF with sizes, and the attributes that hold these, m."""

NUM_SIZES = {"size": 3, "radius": 1, "length": 1}
"""Number of sizes in each attribute."""


def leave_out_empty_shapes(root: ElementTree.Element, notes: list[str]) -> None:
    """Remove visuals without a size, which files have instead of none, from a URDF.

    Args:
        root: Root element of the file, changed in place.
        notes: Notes. One is added that lists the visuals.

    Raises:
        ValueError: A collision shape has no size. The message names the link and the shape.
    """
    left_out = []
    for link in root.findall("link"):
        for shape in (*link.findall("visual"), *link.findall("collision")):
            given = _empty_shape(shape)
            if given and shape.tag == "collision":
                raise ValueError(
                    f"the collision of link {link.get('name')!r} has <{given}>, and a shape needs "
                    "sizes above 0: write them, or take this <collision> out"
                )
            if given:
                link.remove(shape)
                left_out.append(f"{link.get('name')!r} (<{given}>)")
    if left_out:
        notes.append(f"visuals without a size are left out, of {', '.join(left_out)}")


def _empty_shape(shape: ElementTree.Element) -> str:
    """Return the element of a shape without a size as text; empty if it has one."""
    for kind, attributes in SIZES.items():
        for element in shape.findall(f"geometry/{kind}"):
            sizes = _empty_sizes(element, attributes)
            if sizes:
                return f"{kind} {sizes}"
    return ""


def _empty_sizes(element: ElementTree.Element, attributes: tuple[str, ...]) -> str:
    """Return the attributes of a shape that are missing, no numbers or not above 0, as text."""
    wrong = []
    for attribute in attributes:
        text = element.get(attribute, "")
        if not _are_sizes(text, NUM_SIZES[attribute]):
            wrong.append(f'{attribute}="{text}"')
    return " ".join(wrong)


def _are_sizes(text: str, count: int) -> bool:
    try:
        sizes = [float(word) for word in text.split()]
    except ValueError:
        return False
    return len(sizes) == count and min(sizes) > 0.0
