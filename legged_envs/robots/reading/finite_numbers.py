"""Checks the numbers of a URDF, so that an error names their link or joint."""

from math import isfinite
from xml.etree import ElementTree

NUMBERS = {
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
}
"""Attributes that hold finite numbers, by tag. ``<limit>`` is not among them: files have infinity
where nobody knew a limit."""


def check_numbers(root: ElementTree.Element) -> None:
    """Check the numbers of all links and joints of a URDF.

    Args:
        root: Root element of the file.

    Raises:
        ValueError: An attribute holds no finite numbers, or a mass is negative. The message names
            the link or joint, the element and the text.
    """
    for part in (*root.findall("link"), *root.findall("joint")):
        place = f"{part.tag} {part.get('name')!r}"
        for element in part.iter():
            for attribute in NUMBERS.get(element.tag, ()):
                text = element.get(attribute, "0")
                if not _are_finite(text):
                    raise ValueError(
                        f"the <{element.tag}> of {place} has {attribute}={text[:50]!r}: "
                        "write finite numbers"
                    )
            if element.tag == "mass" and float(element.get("value", 0)) < 0.0:
                raise ValueError(
                    f"the <mass> of {place} is {element.get('value')}: write its mass in kg"
                )


def _are_finite(text: str) -> bool:
    try:
        return all(isfinite(float(word)) for word in text.split())
    except ValueError:
        return False
