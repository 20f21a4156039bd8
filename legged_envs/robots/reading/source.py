"""Reads the text of a robot's file: URDF, MJCF, or xacro, which is expanded to URDF."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from xml.etree import ElementTree

from legged_envs.robots.reading import xacro_process
from legged_envs.robots.reading.size_limits import LARGEST_XML
from legged_envs.robots.reading.xacro_process import FAILED, MOST_MEMORY

LONGEST_EXPANSION = 60
"""Longest time in which xacro expands a file, s."""

XACRO_PROCESS = Path(xacro_process.__file__)
"""Program that expands files of xacro."""

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
    is_named_xacro = path.suffix.lower() == ".xacro"
    return expand_xacro(path) if is_named_xacro or has_xacro(root) or _has_values(root) else root


def has_xacro(root: ElementTree.Element) -> bool:
    """Return True if a file has elements of xacro, such as macros, that are not expanded yet."""
    # A mere declaration of the name space, as in many URDF files, is not among the tags.
    return any("xacro" in element.tag for element in root.iter())


def _has_values(root: ElementTree.Element) -> bool:
    """Return True if a URDF has values for xacro, such as ``${mass}`` or ``$(arg mass)``."""
    if root.tag != "robot":
        return False
    # $(find package) stands in paths of URDF files that are not xacro too.
    return any(
        "${" in value or "$(arg " in value for part in root.iter() for value in part.attrib.values()
    )


def expand_xacro(path: Path) -> ElementTree.Element:
    """Return the root element of the URDF to which xacro expands a file.

    Raises:
        ValueError: xacro is not installed, or cannot expand the file.
    """
    by_hand = "write the output of the command xacro to a file, and read that"
    if find_spec("xacro") is None:
        raise ValueError(f"it has elements of xacro: pip install xacro, or {by_hand}")
    # Not in this process: a file's expressions are limited in what they can do and use there.
    words = [sys.executable, "-P", str(XACRO_PROCESS), str(path)]
    with TemporaryFile() as output:
        try:
            status = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=output, timeout=LONGEST_EXPANSION
            ).returncode
        except subprocess.TimeoutExpired:
            status = -1
        size = output.seek(0, os.SEEK_END)
        output.seek(0)
        text = output.read(LARGEST_XML + 1).decode(errors="replace")
    if status == FAILED:
        raise ValueError(
            f"xacro cannot expand it: {text.strip()}: "
            f"correct it, or where the packages of ROS that it needs are installed, {by_hand}"
        )
    if status != 0 or size > LARGEST_XML:
        raise ValueError(
            f"xacro needs more than {LONGEST_EXPANSION} s, {MOST_MEMORY:,} bytes of memory or "
            f"{LARGEST_XML:,} bytes of URDF for it: take loops without an end out"
        )
    root = ElementTree.fromstring(text)
    if has_xacro(root):
        raise ValueError(f"it has elements of xacro that xacro does not expand: {by_hand}")
    return root
