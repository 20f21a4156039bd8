"""COLLADA meshes that are only drawn: MuJoCo does not read them, so they are written as STL."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco

from legged_envs.robots.reading.meshes import (
    COLLADA_SUFFIX,
    MOST_FACES,
    delete_mesh,
    unit_of,
)

MOST_BYTES = 2**24
"""Largest COLLADA file that is drawn, bytes. Reading takes a second for 5 MB."""


def write_drawn_meshes(
    spec: mujoco.MjSpec, meshes: Sequence[mujoco.MjsMesh], folder: Path, notes: list[str]
) -> None:
    """Write the COLLADA meshes of a model to a folder as STL files, which replace them.

    Args:
        spec: Model, changed in place.
        meshes: Meshes of the model that are only drawn.
        folder: Folder of the new files.
        notes: Notes. One is added that lists the meshes that cannot be drawn.
    """
    left_out = []
    for mesh in meshes:
        path = Path(mesh.file)
        if path.suffix.lower() != COLLADA_SUFFIX:
            continue
        target = folder / f"{path.stem}_{len(list(folder.iterdir()))}.stl"
        reason = _write_stl(path, target)
        if reason:
            left_out.append(f"{path.name!r} ({reason})")
            delete_mesh(spec, mesh)
        else:
            mesh.file = str(target)
    if left_out:
        notes.append(
            f"meshes that are only drawn are left out: {', '.join(left_out)}: write .stl files"
        )


def _write_stl(path: Path, target: Path) -> str:
    """Write a COLLADA file as STL, or return why it cannot be."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        return f"{size:,} bytes, at most {MOST_BYTES:,} are read"
    import trimesh

    try:
        # With `force`, the loaded geometry is a mesh, although its type is wider.
        loaded: Any = trimesh.load(path, force="mesh")
        loaded.apply_scale(unit_of(loaded))
        num_faces = len(loaded.faces)
        if not 0 < num_faces <= MOST_FACES:
            return f"{num_faces:,} faces, from 1 to {MOST_FACES:,} are drawn"
        loaded.export(target)
    except Exception as error:  # Of any kind, as damaged files may hold anything.
        return str(error)[:200]
    return ""


def keep_drawn_meshes(spec: mujoco.MjSpec, drawn: Path, folder: Path) -> None:
    """Copy the meshes of a model that are in the folder ``drawn`` to another folder.

    Args:
        spec: Model with the paths to change.
        drawn: Folder to which :func:`write_drawn_meshes` wrote.
        folder: Folder of the copies. It is made if there are meshes.
    """
    for mesh in spec.meshes:
        path = Path(mesh.file)
        if mesh.file and path.parent == drawn:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / path.name)
            mesh.file = str(folder / path.name)
