"""Bounds of robot files, checked before a parser takes memory for what they describe."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

LARGEST_XML = 2**26
"""Largest size of a URDF or MJCF file, bytes."""

LARGEST_ASSET = 2**29
"""Largest size of a mesh, texture or height field file, bytes."""

DEEPEST_NESTING = 200
"""Largest depth of nested elements. The chains of bodies of robots have up to 20."""

MOST_COPIES = 10_000
"""Largest number of elements that ``<replicate>`` and ``<composite>`` make of one element."""

MOST_ELEMENTS = 200_000
"""Largest number of elements of a file, with all copies of ``<replicate>``. Robots have some
thousands."""

MOST_POINTS = 2**26
"""Largest number of points of a height field, and of pixels of a picture."""

MOST_FILES = 1000
"""Largest number of files that a file includes."""

BYTE_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
"""Letters after a number of bytes in MJCF, and what each stands for."""

PNG_HEADER = b"\x89PNG\r\n\x1a\n"
"""First bytes of a PNG file. The width and the height follow at byte 16."""

COUNT_ATTRIBUTES = {"replicate": ("count",), "composite": ("count",), "flexcomp": ("count",)}
"""Attributes that hold a number of copies, or the numbers along each axis, by tag."""

FOLDER_OPTIONS = ("assetdir", "meshdir", "texturedir")
"""Attributes of ``<compiler>`` that name folders of assets."""

GRID_ATTRIBUTES = {"hfield": ("nrow", "ncol"), "texture": ("width", "height")}
"""Attributes of a part, by tag; their product is its number of points."""


def check_model_size(path: Path) -> None:
    """Check that a robot file, and the files that it names, describe no more than fits in memory.

    Args:
        path: URDF or MJCF file.

    Raises:
        ValueError: If one of its parts is too large. The message names it.
        FileNotFoundError: If there is no such file.
    """
    visited: set[Path] = set()
    waiting = [path.resolve()]
    named = NamedFiles()
    while waiting:
        file = waiting.pop()
        # A missing file is reported by the parser, which knows other places to look.
        if file in visited or not file.is_file():
            continue
        visited.add(file)
        if len(visited) > MOST_FILES:
            raise ValueError(
                f"{str(path)!r} includes more than {MOST_FILES} files: write it as one file"
            )
        waiting.extend(_check_file(file, named))
    # At the end, because folders of one file hold for all, and may follow the assets.
    for parent, name, tag in named.assets:
        for folder in named.folders:
            # MuJoCo may leave out the folder of a name.
            for spelling in {name, Path(name).name}:
                check_asset(parent / folder / spelling, tag)


@dataclass
class NamedFiles:
    """Assets of a robot, and the folders in which they may be."""

    assets: list[tuple[Path, str, str]] = field(default_factory=list)
    """Folder of the XML file, name of the asset in it, and tag of its element."""
    folders: set[str] = field(default_factory=lambda: {""})
    """Folders of assets, relative to the folder of an XML file."""


def _check_file(path: Path, named: NamedFiles) -> list[Path]:
    """Check one file, add what it names to ``named``, and return the XML files that it includes."""
    _check_bytes(path, LARGEST_XML)
    included = []
    # Number of copies of each open element, the outermost first.
    copies = [1]
    num_elements = 0
    try:
        for event, element in _read_elements(path):
            if event == "end":
                copies.pop()
                continue
            copies.append(copies[-1] * _number_of_copies(path, element))
            num_elements += copies[-1]
            _check_copies(path, element, len(copies) - 1, copies[-1], num_elements)
            _check_grid(path, element)
            _check_memory(path, element)
            if element.tag == "compiler":
                named.folders.update(element.get(option, "") for option in FOLDER_OPTIONS)
            name = element.get("file", "")
            if element.tag in ("include", "model") and name:
                included.append((path.parent / name).resolve())
            elif name:
                named.assets.append((path.parent, name, element.tag))
    except ElementTree.ParseError:
        # The reader of the file reports the fault, in its own words.
        return included
    return included


def _read_elements(path: Path) -> Iterator[tuple[str, ElementTree.Element]]:
    """Yield ``"start"`` and ``"end"`` of each element, with as much of the file as is needed."""
    with path.open("rb") as file:
        for event, element in ElementTree.iterparse(file, events=("start", "end")):
            yield event, element
            if event == "end":
                # Children that are not needed any more must not fill the memory.
                element.clear()


def _check_bytes(path: Path, largest: int) -> None:
    size = path.stat().st_size
    if size > largest:
        raise ValueError(
            f"{str(path)!r} has {size:,} bytes, at most {largest:,} are read: make it smaller"
        )


def _check_copies(
    path: Path, element: ElementTree.Element, depth: int, copies: int, num_elements: int
) -> None:
    if depth > DEEPEST_NESTING:
        raise ValueError(
            f"{str(path)!r} nests <{element.tag}> {depth} deep, at most {DEEPEST_NESTING} are read:"
            " write elements next to each other"
        )
    if copies > MOST_COPIES:
        raise ValueError(
            f"<{element.tag}> in {str(path)!r} makes {copies:,} copies, at most {MOST_COPIES:,} "
            "are made: lower its count"
        )
    if num_elements > MOST_ELEMENTS:
        raise ValueError(
            f"{str(path)!r} describes more than {MOST_ELEMENTS:,} elements at <{element.tag}>: "
            "leave out all but the robot"
        )


def _number_of_copies(path: Path, element: ElementTree.Element) -> int:
    number = 1
    for attribute in COUNT_ATTRIBUTES.get(element.tag, ()):
        for word in element.get(attribute, "").split():
            number *= max(_whole(path, element, attribute, word), 1)
    return number


def _check_grid(path: Path, element: ElementTree.Element) -> None:
    points = 1
    for attribute in GRID_ATTRIBUTES.get(element.tag, ()):
        points *= max(_whole(path, element, attribute, element.get(attribute, "1")), 1)
    if points > MOST_POINTS:
        raise ValueError(
            f"<{element.tag}> {element.get('name', '')!r} in {str(path)!r} has {points:,} points, "
            f"at most {MOST_POINTS:,} are read: make it coarser"
        )


def _check_memory(path: Path, element: ElementTree.Element) -> None:
    """Check the memory that the element ``<size>`` of an MJCF file asks for."""
    if element.tag != "size":
        return
    for attribute, text in element.attrib.items():
        unit = BYTE_UNITS.get(text[-1:].upper(), 1)
        digits = text[:-1] if unit > 1 else text
        size = unit * _whole(path, element, attribute, digits)
        if size > LARGEST_ASSET:
            raise ValueError(
                f"{attribute}={text!r} of <size> in {str(path)!r} asks for more than "
                f"{LARGEST_ASSET:,} bytes: leave it out"
            )


def _whole(path: Path, element: ElementTree.Element, attribute: str, word: str) -> int:
    try:
        # Scientific notation has no whole number, and a reader may take it for one.
        return int(float(word))
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{attribute} of <{element.tag}> in {str(path)!r} must be a whole number, "
            f"got {word[:50]!r}: write one"
        ) from error


def check_asset(path: Path, tag: str) -> None:
    """Check the size of a mesh or picture, as far as its first bytes contain it.

    Args:
        path: The file.
        tag: Tag of the element that names it.
    """
    if not path.is_file():
        return
    _check_bytes(path, LARGEST_ASSET)
    points = 0
    if path.suffix.lower() == ".png":
        points = _png_pixels(path)
    elif tag == "hfield":
        points = _field_points(path)
    if points > MOST_POINTS:
        raise ValueError(
            f"{str(path)!r} declares {points:,} points, but at most {MOST_POINTS:,} are read: "
            "use a coarser mesh"
        )


def _png_pixels(path: Path) -> int:
    with path.open("rb") as file:
        head = file.read(24)
    if len(head) < 24 or not head.startswith(PNG_HEADER):
        return 0
    width, height = struct.unpack(">II", head[16:24])
    return int(width) * int(height)


def _field_points(path: Path) -> int:
    # MuJoCo's own format of height fields starts with the numbers of rows and columns.
    with path.open("rb") as file:
        head = file.read(8)
    if len(head) < 8:
        return 0
    rows, columns = struct.unpack("<ii", head)
    return max(int(rows), 0) * max(int(columns), 0)
