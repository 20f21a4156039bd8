"""Meshes of bodies and of the ground, for the page."""

from typing import Any

import mujoco
import numpy as np
import trimesh
from trimesh.creation import box, capsule, cylinder, icosphere
from trimesh.transformations import quaternion_matrix

from legged_envs.terrains import Terrain

NUM_SHOWN_GROUPS = 3
"""Number of geom groups that MuJoCo's pictures show, from group 0 on."""
DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)
"""Color of a geom without a color of its own. It then has the color of its material."""
CYLINDER_SECTIONS = 24
"""Number of faces around a cylinder."""
CAPSULE_SECTIONS = (16, 12)
"""Numbers of faces of a capsule along and around its axis."""
SPHERE_SUBDIVISIONS = 2
"""Subdivisions of the icosahedron that stands for a sphere."""


def make_body_mesh(model: mujoco.MjModel, body: int) -> trimesh.Trimesh | None:
    """Return the shapes of a body that MuJoCo's pictures show, in its frame and in their colors.

    Planes and height fields are left out.

    Args:
        model: The model.
        body: Index of the body.

    Returns:
        One mesh of all shapes. None: the body has no shapes.
    """
    is_own = model.geom_bodyid == body
    is_shown = model.geom_group < NUM_SHOWN_GROUPS
    parts = []
    for geom in np.flatnonzero(is_own & is_shown):
        part = _make_geom_mesh(model, int(geom))
        if part is not None:
            parts.append(part)
    if not parts:
        return None
    mesh: Any = trimesh.util.concatenate(parts)
    mesh.vertex_normals = _vertex_normals(mesh)
    return mesh


def _make_geom_mesh(model: mujoco.MjModel, geom: int) -> Any:
    """Return the mesh of a shape in the frame of its body, or None if the shape is not drawn."""
    rgba = model.geom_rgba[geom]
    geom_type = int(model.geom_type[geom])
    if geom_type == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = _copy_mesh(model, model.geom_dataid[geom])
    # Shapes that are fully transparent mark places.
    elif rgba[3] > 0.0:
        mesh = _make_primitive(geom_type, model.geom_size[geom])
    else:
        mesh = None
    if mesh is None:
        return None
    pose = np.eye(4)
    pose[:3, :3] = quaternion_matrix(model.geom_quat[geom])[:3, :3]
    pose[:3, 3] = model.geom_pos[geom]
    material = model.geom_matid[geom]
    # A color of the geom itself comes before that of its material, as in MuJoCo.
    if material >= 0 and np.allclose(rgba, DEFAULT_RGBA):
        rgba = model.mat_rgba[material]
    mesh.visual.vertex_colors = np.uint8(255.0 * rgba)
    return mesh.apply_transform(pose)


def _copy_mesh(model: mujoco.MjModel, mesh_id: int) -> Any:
    first_vertex = model.mesh_vertadr[mesh_id]
    last_vertex = first_vertex + model.mesh_vertnum[mesh_id]
    first_face = model.mesh_faceadr[mesh_id]
    last_face = first_face + model.mesh_facenum[mesh_id]
    return trimesh.Trimesh(
        vertices=model.mesh_vert[first_vertex:last_vertex],
        faces=model.mesh_face[first_face:last_face],
    )


def _make_primitive(geom_type: int, size: np.ndarray) -> Any:
    """Return the mesh of a simple shape, or None if it is a plane or a height field.

    Args:
        geom_type: Type of the shape, an ``mjtGeom``.
        size: Its half sizes or its radius and half length, m, as MuJoCo has them. Shape: (3,).
    """
    kinds = mujoco.mjtGeom
    if geom_type == kinds.mjGEOM_BOX:
        mesh = box(extents=2.0 * size)
        # Faces that share no vertices keep their edges sharp.
        mesh.unmerge_vertices()
        return mesh
    if geom_type == kinds.mjGEOM_CYLINDER:
        mesh = cylinder(radius=size[0], height=2.0 * size[1], sections=CYLINDER_SECTIONS)
        mesh.unmerge_vertices()
        return mesh
    if geom_type == kinds.mjGEOM_CAPSULE:
        return capsule(height=2.0 * size[1], radius=size[0], count=list(CAPSULE_SECTIONS))
    if geom_type == kinds.mjGEOM_SPHERE:
        return icosphere(subdivisions=SPHERE_SUBDIVISIONS, radius=size[0])
    if geom_type == kinds.mjGEOM_ELLIPSOID:
        return icosphere(subdivisions=SPHERE_SUBDIVISIONS).apply_scale(size)
    return None


def _vertex_normals(mesh: Any) -> np.ndarray:
    """Return the mean normal of the faces at each vertex, weighted by area. Shape: (n, 3)."""
    # trimesh's own normals need SciPy.
    corners = np.asarray(mesh.triangles)
    first_edge = corners[:, 1] - corners[:, 0]
    second_edge = corners[:, 2] - corners[:, 0]
    face_normals = np.cross(first_edge, second_edge)
    normals = np.zeros_like(mesh.vertices)
    np.add.at(normals, mesh.faces.ravel(), np.repeat(face_normals, 3, axis=0))
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    # A vertex without faces has the length 0.
    return normals / lengths.clip(1e-12)


def make_field_mesh(
    terrain: Terrain, rows: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a part of a height field as triangles, the same that the engine has.

    Args:
        terrain: The terrain.
        rows: Indices of the points along x, ascending by 1.
        columns: Indices of the points along y, ascending by 1.

    Returns:
        Points, m, world frame, shape (n, 3), and triangles, indices of points, shape (m, 3).
    """
    x = terrain.low[0] + rows * terrain.horizontal_scale
    y = terrain.low[1] + columns * terrain.horizontal_scale
    x_of_points, y_of_points = np.meshgrid(x, y, indexing="ij")
    heights = terrain.heights[np.ix_(rows, columns)]
    points = np.stack((x_of_points, y_of_points, heights), axis=-1).reshape(-1, 3)

    num_columns = len(columns)
    row_starts = np.arange(len(rows) - 1)[:, None] * num_columns
    # Each cell is named by its first corner, and consists of two triangles.
    first_corners = (row_starts + np.arange(num_columns - 1)).reshape(-1, 1)
    lower = first_corners + np.array((0, num_columns, num_columns + 1))
    upper = first_corners + np.array((0, num_columns + 1, 1))
    return points, np.concatenate((lower, upper))
