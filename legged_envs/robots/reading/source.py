"""Reads the text of a robot's file: URDF, MJCF, or xacro, which is expanded to URDF."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

POINTER_HEADER = b"version https://git-lfs.github.com/spec"
"""First bytes of a pointer of Git LFS, which stands in for a large file that was not downloaded."""

POINTER_ADVICE = "run 'git lfs pull' in its repository"
"""Advice for files that are pointers of Git LFS."""


def is_pointer(path: Path) -> bool:
    """Return True if a file is a pointer of Git LFS instead of the file itself."""
    with path.open("rb") as file:
        return file.read(len(POINTER_HEADER)) == POINTER_HEADER


def read_root(path: Path) -> ElementTree.Element:
    """Return the root element of a robot's file. A file with elements of xacro is expanded.

    Raises:
        ValueError: The file is a pointer of Git LFS, or xacro is missing or cannot expand it.
        ElementTree.ParseError: The file is not XML.
    """
    if is_pointer(path):
        raise ValueError(f"it is a pointer of Git LFS, not the robot: {POINTER_ADVICE}")
    root = ElementTree.parse(path).getroot()
    return expand_xacro(path) if has_xacro(root) else root


def has_xacro(root: ElementTree.Element) -> bool:
    """Return True if a file has elements of xacro, such as macros, that are not expanded yet."""
    # A declaration of the name space alone, as in many URDF files, is not among the tags.
    return any("xacro" in element.tag for element in root.iter())


def expand_xacro(path: Path) -> ElementTree.Element:
    """Return the root element of the URDF to which xacro expands a file.

    Raises:
        ValueError: xacro is not installed, or cannot expand the file.
    """
    by_hand = "write the output of the command xacro to a file, and read that"
    if find_spec("xacro") is None:
        raise ValueError(f"it has elements of xacro: pip install xacro, or {by_hand}")
    xacro = import_module("xacro")
    try:
        text = xacro.process_file(str(path)).toxml()
    except Exception as error:  # Of any kind: files call functions of xacro and packages of ROS.
        raise ValueError(
            f"xacro cannot expand it: {type(error).__name__}: {error}: "
            f"correct it, or where the packages of ROS that it needs are installed, {by_hand}"
        ) from error
    root = ElementTree.fromstring(text)
    if has_xacro(root):
        raise ValueError(f"it has elements of xacro that xacro does not expand: {by_hand}")
    return root
