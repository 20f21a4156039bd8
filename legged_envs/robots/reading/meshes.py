"""Meshes of robot files: where they are, and those that MuJoCo does not read by itself."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco

MESH_SUFFIXES = (".stl", ".obj", ".msh")
"""Suffixes of the mesh files that MuJoCo reads."""


def find_mesh(
    filename: str, folder: Path, mesh_folder: str, suffixes: Sequence[str]
) -> Path | None:
    """Find the file of a mesh that a URDF names.

    Args:
        filename: Path relative to the mesh folder, or a URL such as ``package://robot/a.stl``.
        folder: Folder of the URDF.
        mesh_folder: Option ``meshdir`` of the URDF, relative to ``folder``.
        suffixes: Suffixes of the files that can be read.

    Returns:
        Path of the first candidate that exists, or None.
    """
    scheme, _, path = filename.rpartition("://")
    if not scheme:
        candidates = [folder / mesh_folder / path]
    else:
        # The folder of the ROS package is not known. It is usually above the URDF, and its name can
        # differ from that of the package.
        path_in_package = path.partition("/")[2]
        candidates = []
        for parent in (folder, *folder.parents):
            candidates.append(parent / path_in_package)
            candidates.append(parent / path)
    for candidate in candidates:
        if candidate.is_file() and candidate.suffix.lower() in suffixes:
            return candidate
    return None


def load_mesh(spec: mujoco.MjSpec, mesh: mujoco.MjsMesh) -> None:
    """Load a mesh with trimesh if MuJoCo cannot read its file: COLLADA, or STL as text.

    A visual mesh that trimesh cannot read is deleted, with a warning.

    Args:
        spec: Model, changed in place.
        mesh: Mesh of the model.

    Raises:
        ValueError: trimesh cannot read a mesh with which the robot collides.
    """
    path = Path(mesh.file)
    if not _needs_trimesh(path):
        return
    try:
        import trimesh

        # With `force`, the loaded geometry is a mesh; its type does not say so.
        loaded: Any = trimesh.load(path, force="mesh")
        mesh.uservert = loaded.vertices.ravel()
        mesh.userface = loaded.faces.ravel()
        mesh.file = ""
    except Exception as error:  # Of any kind, as damaged files may hold anything.
        shapes = [geom for geom in spec.geoms if geom.meshname == mesh.name]
        if any(geom.contype or geom.conaffinity for geom in shapes):
            raise ValueError(
                f"trimesh cannot read {str(path)!r}, with which the robot collides: {error}"
            ) from error
        warnings.warn(f"{str(path)!r} is not drawn: {error}", stacklevel=2)
        for shape in shapes:
            spec.delete(shape)
        spec.delete(mesh)


def _needs_trimesh(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix == ".dae":
        return True
    return suffix == ".stl" and path.read_bytes()[:5] == b"solid"
