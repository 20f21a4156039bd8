"""Meshes of robot files: their places, and formats that MuJoCo does not read by itself."""

import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import mujoco
import numpy as np

from legged_envs.robots.reading.size_limits import check_asset
from legged_envs.robots.reading.source import POINTER_ADVICE, is_pointer

MESH_SUFFIXES = (".stl", ".obj", ".msh")
"""Suffixes of the mesh files that MuJoCo reads."""

COLLADA_SUFFIX = ".dae"
"""Suffix of COLLADA files, which trimesh reads with the help of pycollada."""

MOST_FACES = 200_000
"""Largest number of faces of a mesh that MuJoCo reads."""

STL_HEADER = 84
"""Number of bytes before the first face of a binary STL file. The last four count the faces."""

BYTES_PER_FACE = 50
"""Number of bytes of a face in a binary STL file."""

NEAREST_FOLDERS = 3
"""Number of folders, from the folder of the robot's file upwards, in which the end of a path is
tried."""


def find_mesh(filename: str, folder: Path, mesh_folder: str) -> Path | None:
    """Find the file of a mesh that a URDF names.

    Args:
        filename: Path relative to the mesh folder, or a URL such as ``package://robot/a.stl``.
        folder: Folder of the URDF.
        mesh_folder: Option ``meshdir`` of the URDF, relative to ``folder``.

    Returns:
        Path of the first candidate that exists, or None.

    Raises:
        ValueError: If the file is too large.
    """
    scheme, _, path = filename.replace("\\", "/").rpartition("://")
    # In a URL, a space can be %20.
    for spelling in dict.fromkeys((path, unquote(path))):
        for candidate in _mesh_candidates(scheme, spelling, folder, mesh_folder):
            if candidate.is_file():
                check_asset(candidate, "mesh")
                return candidate
    return None


def _mesh_candidates(scheme: str, path: str, folder: Path, mesh_folder: str) -> Iterator[Path]:
    if scheme:
        # The folder of the ROS package is not known. It is usually above the URDF, and its name can
        # differ from the package's name.
        path_in_package = path.partition("/")[2]
        for parent in (folder, *folder.parents):
            yield parent / path_in_package
            yield parent / path
    else:
        yield folder / mesh_folder / path
        # Many files with the option meshdir have paths that start with this folder.
        yield folder / path
    # A file that was moved: the longest end of the path that exists near the robot's file.
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..")]
    nearest = (folder, *folder.parents)[:NEAREST_FOLDERS]
    for start in range(len(parts)):
        for parent in nearest:
            yield parent.joinpath(*parts[start:])


def collision_suffixes() -> tuple[str, ...]:
    """Return the suffixes of the mesh files that can be read here, COLLADA if trimesh reads it."""
    if find_spec("trimesh") and find_spec("collada"):
        return (*MESH_SUFFIXES, COLLADA_SUFFIX)
    return MESH_SUFFIXES


def why_unreadable(path: Path | None, suffixes: Sequence[str]) -> str:
    """Return why a mesh cannot be read, with the advice what to do; empty if it can be.

    Args:
        path: File of the mesh, or None if there is none.
        suffixes: Suffixes of the files that can be read.
    """
    if path is None:
        return f"there is no such file of {', '.join(MESH_SUFFIXES)}"
    if is_pointer(path):
        return f"the file is a pointer of Git LFS: {POINTER_ADVICE}"
    suffix = path.suffix.lower()
    if suffix in suffixes:
        return ""
    if suffix == COLLADA_SUFFIX and COLLADA_SUFFIX not in collision_suffixes():
        return "COLLADA needs trimesh: pip install trimesh pycollada, or convert it to .stl"
    return f"files of {suffix or 'this kind'} are not read: convert it to .stl or .obj"


def load_mesh(spec: mujoco.MjSpec, mesh: mujoco.MjsMesh, as_hull: bool = False) -> None:
    """Load a mesh with trimesh if MuJoCo cannot read its file: COLLADA, or STL as text.

    A visual mesh that trimesh cannot read is deleted, with a warning.

    Args:
        spec: Model, changed in place.
        mesh: Mesh of the model.
        as_hull: True to load its convex hull, with which MuJoCo collides. It has few corners.

    Raises:
        ValueError: trimesh cannot read a mesh with which the robot collides.
    """
    path = Path(mesh.file)
    if not _needs_trimesh(path):
        return
    try:
        _load_with_trimesh(mesh, path, as_hull)
    except Exception as error:  # Of any kind, as damaged files may hold anything.
        if is_collided_with(spec, mesh):
            raise ValueError(
                f"trimesh cannot read {str(path)!r}, with which the robot collides: {error}: "
                "repair it, or write a box"
            ) from error
        warnings.warn(f"{str(path)!r} is not drawn: {error}", stacklevel=2)
        delete_mesh(spec, mesh)


def _load_with_trimesh(mesh: mujoco.MjsMesh, path: Path, as_hull: bool) -> None:
    import trimesh

    # With `force`, the loaded geometry is a mesh, although its type is wider.
    loaded: Any = trimesh.load(path, force="mesh")
    loaded.apply_scale(unit_of(loaded))
    if as_hull:
        # The centre of a flat mesh divides by its volume.
        with np.errstate(all="ignore"):
            loaded = loaded.convex_hull
    mesh.uservert = loaded.vertices.ravel()
    mesh.userface = loaded.faces.ravel()
    mesh.file = ""


def unit_of(loaded: Any) -> float:
    """Return the unit of length of a mesh that trimesh loaded, m. COLLADA files name theirs."""
    # It is None, "meters" or text such as "0.0254 * meters".
    number, _, unit = str(loaded.units).partition(" * ")
    return float(number) if unit == "meters" else 1.0


def _needs_trimesh(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix == COLLADA_SUFFIX:
        return True
    return suffix == ".stl" and path.read_bytes()[:5] == b"solid"


def is_collided_with(spec: mujoco.MjSpec, mesh: mujoco.MjsMesh) -> bool:
    """Return True if a shape of the mesh collides. If not, the mesh is only drawn."""
    shapes = [geom for geom in spec.geoms if geom.meshname == mesh.name]
    return any(geom.contype or geom.conaffinity for geom in shapes)


def delete_mesh(spec: mujoco.MjSpec, mesh: mujoco.MjsMesh) -> None:
    """Delete a mesh and the shapes that have it."""
    for shape in [geom for geom in spec.geoms if geom.meshname == mesh.name]:
        spec.delete(shape)
    spec.delete(mesh)


def count_faces(path: Path) -> int:
    """Return the number of faces that a binary STL file names; 0 for files of other kinds."""
    if path.suffix.lower() != ".stl":
        return 0
    with path.open("rb") as file:
        header = file.read(STL_HEADER)
    count = int.from_bytes(header[80:], "little")
    # A file of another size is text, a pointer of Git LFS, or damaged.
    is_binary = path.stat().st_size == STL_HEADER + count * BYTES_PER_FACE
    return count if is_binary else 0


def mend_huge_meshes(spec: mujoco.MjSpec, notes: list[str]) -> None:
    """Replace huge meshes by their convex hulls, and delete huge meshes that are only drawn.

    MuJoCo collides with convex hulls in any case.

    Args:
        spec: Model, changed in place. Paths of its meshes are absolute.
        notes: Notes. One is added that lists the deleted meshes.

    Raises:
        ValueError: The hull of a mesh with which the robot collides cannot be made.
    """
    deleted = []
    for mesh in list(spec.meshes):
        path = Path(mesh.file)
        if not mesh.file or not path.is_file() or count_faces(path) <= MOST_FACES:
            continue
        if is_collided_with(spec, mesh):
            _replace_by_hull(mesh, path, f"it has more than {MOST_FACES:,} faces")
        else:
            deleted.append(repr(path.name))
            delete_mesh(spec, mesh)
    if deleted:
        notes.append(
            f"meshes of more than {MOST_FACES:,} faces are not drawn, {', '.join(deleted)}: "
            "write ones with fewer"
        )


def mend_meshes(spec: mujoco.MjSpec, notes: list[str]) -> None:
    """Change a model so that MuJoCo compiles all its meshes.

    A mesh that is only drawn gets the inertia of a shell, or is deleted if this does not help. A
    mesh with which the robot collides is replaced by its convex hull.

    Args:
        spec: Model, changed in place. Paths of its meshes are absolute.
        notes: Notes. One is added that lists the deleted meshes.

    Raises:
        ValueError: A mesh with which the robot collides cannot be compiled. The message names it.
    """
    deleted = []
    for mesh in list(spec.meshes):
        error = _error_of(mesh)
        if not error:
            continue
        path = Path(mesh.file)
        if is_collided_with(spec, mesh):
            _replace_by_hull(mesh, path, error)
            continue
        # Flat meshes have no volume; meshes that are only drawn need none.
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
        if _error_of(mesh):
            pointer = path.is_file() and is_pointer(path)
            reason = f"a pointer of Git LFS, {POINTER_ADVICE}" if pointer else error
            deleted.append(f"{path.name!r} ({reason})")
            delete_mesh(spec, mesh)
    if deleted:
        notes.append(f"meshes that are only drawn are left out: {', '.join(deleted)}")


def _error_of(mesh: mujoco.MjsMesh) -> str:
    """Return the error of MuJoCo for a single mesh, in one line; empty if it compiles."""
    path = Path(mesh.file)
    if mesh.file and path.is_file() and is_pointer(path):
        return f"it is a pointer of Git LFS: {POINTER_ADVICE}"
    alone = mujoco.MjSpec()
    copy = alone.add_mesh(name="mesh", file=mesh.file, scale=mesh.scale, inertia=mesh.inertia)
    if not mesh.file:
        copy.uservert = mesh.uservert
        copy.userface = mesh.userface
    alone.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh")
    try:
        alone.compile()
    except ValueError as error:
        first_line = str(error).splitlines()[0]
        return first_line.removeprefix("Error: ")
    return ""


def _replace_by_hull(mesh: mujoco.MjsMesh, path: Path, reason: str) -> None:
    what = f"the robot collides with the mesh {str(path)!r}: {reason}"
    if path.is_file() and is_pointer(path):
        raise ValueError(what)
    if find_spec("trimesh") is None:
        raise ValueError(f"{what}: pip install trimesh, which makes its hull, or write a box")
    try:
        _load_with_trimesh(mesh, path, as_hull=True)
    except Exception as error:  # Of any kind, as damaged files may hold anything.
        raise ValueError(f"{what}: repair it, or write a box") from error
    if _error_of(mesh):
        # A flat mesh has no hull.
        raise ValueError(f"{what}: write a thin box instead")
