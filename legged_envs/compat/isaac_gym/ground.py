"""The ground of a simulation: a plane, or a height field made of heights or of a mesh."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from legged_envs.compat.isaac_gym.mesh_ground import approximate_mesh
from legged_envs.compat.isaac_gym.mesh_pieces import Piece
from legged_envs.compat.isaac_gym.records import HeightFieldParams, PlaneParams, TriangleMeshParams
from legged_envs.terrains import Terrain

LARGEST_TURN = 1e-6
"""Largest component x, y or z of a quaternion that counts as no rotation."""

LARGEST_SHIFT = 1.01
"""Largest distance of a vertex of a mesh from its place in the grid, cells."""

FLOAT32_ERROR = 1e-6
"""Largest error of a coordinate of float32, relative to the largest coordinate, with a margin."""


@dataclass
class Ground:
    """A plane, or a height field if there is a ``terrain``."""

    friction: float
    """Coefficient of friction."""
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Normal of the plane."""
    distance: float = 0.0
    """Distance of the plane from the origin, against the normal, m."""
    terrain: Terrain | None = None
    """The height field. None: the ground is a plane."""
    pieces: list[Piece] = field(default_factory=list)
    """Static pieces with free room under them."""
    has_plane_too: bool = False
    """True if there is a plane in addition to the height field."""


@dataclass
class MeshInput:
    """A triangle mesh that a script adds as ground."""

    points: np.ndarray
    """Coordinates of the vertices, m. Shape: (num_vertices, 3)."""
    triangles: np.ndarray
    """Indices of the vertices of each triangle. Shape: (num_triangles, 3)."""
    params: TriangleMeshParams
    """Parameters."""


def plane(params: PlaneParams) -> Ground:
    """Return a plane as ground.

    Raises:
        ValueError: If the normal is 0.
    """
    if not any(params.normal.values):
        raise ValueError(
            "add_ground: the normal of the plane must not be 0, "
            f"got {params.normal.values}: give a vector such as Vec3(0.0, 0.0, 1.0)"
        )
    return Ground(_get_friction(params), params.normal.values, params.distance)


def height_field(samples: np.ndarray, params: HeightFieldParams) -> Ground:
    """Return a height field as ground.

    Args:
        samples: Heights in units of ``params.vertical_scale``, in memory in the order [x, y].
        params: Parameters.

    Raises:
        ValueError: If the number of heights is not ``nbRows`` × ``nbColumns``, or a parameter does
            not fit.
    """
    heights = np.asarray(samples)
    # Codebases name rows and columns either way, and transpose the array to fit. Isaac Gym reads
    # the memory, so its order is what counts.
    if heights.flags.f_contiguous and not heights.flags.c_contiguous:
        heights = heights.T
    sides = sorted((int(params.nbRows), int(params.nbColumns)))
    if heights.ndim != 2 or sorted(heights.shape) != sides:
        raise ValueError(
            f"add_heightfield: nbRows={params.nbRows}, nbColumns={params.nbColumns} "
            f"must be the two sides of the samples, got an array of shape {heights.shape}"
        )
    if params.row_scale != params.column_scale:
        raise ValueError(
            f"add_heightfield: row_scale={params.row_scale} and "
            f"column_scale={params.column_scale} must be equal"
        )
    return _make_field(heights * params.vertical_scale, params.row_scale, (0.0, 0.0), params)


def read_mesh(vertices: np.ndarray, triangles: np.ndarray, params: TriangleMeshParams) -> MeshInput:
    """Check a triangle mesh.

    Args:
        vertices: Coordinates of the vertices, m, x, y and z of each.
        triangles: Indices of vertices, three of each triangle.
        params: Parameters.

    Raises:
        ValueError: If the arrays are not a mesh.
    """
    if np.size(vertices) % 3 or np.size(triangles) % 3 or not np.size(triangles):
        raise ValueError(
            f"add_triangle_mesh: {np.size(vertices)} coordinates and {np.size(triangles)} indices "
            "are not a mesh: give three of each vertex and of each triangle"
        )
    points = np.asarray(vertices, float).reshape(-1, 3)
    corners = np.asarray(triangles).astype(np.int64).reshape(-1, 3)
    if not np.isfinite(points).all():
        raise ValueError("add_triangle_mesh: vertices must be finite, got NaN or infinity")
    if corners.min() < 0 or corners.max() >= len(points):
        raise ValueError(
            f"add_triangle_mesh: indices must be 0 to {len(points) - 1}, "
            f"got {int(corners.min())} to {int(corners.max())}"
        )
    return MeshInput(points, corners, params.copy())


def triangle_mesh(
    vertices: np.ndarray, triangles: np.ndarray, params: TriangleMeshParams
) -> Ground:
    """Return a height field as ground, with static pieces if the mesh needs them.

    MuJoCo's meshes collide as their convex hulls, so a mesh itself cannot be the ground. The mesh
    that ``convert_heightfield_to_trimesh`` makes is the height field of which it was made. Another
    one is approximated, and a warning reports the error. A vertical wall becomes a slope over one
    cell.

    Args:
        vertices: Coordinates of the vertices, m, x, y and z of each.
        triangles: Indices of vertices, three of each triangle.
        params: Parameters.

    Raises:
        ValueError: If the arrays are not a mesh, or too many parts hover above the ground.
    """
    mesh = read_mesh(vertices, triangles, params)
    num_triangles = len(mesh.triangles)
    # The first cell has the vertices 0, 1, columns and columns + 1.
    columns = int(mesh.triangles[:2].max()) - 1
    rows = len(mesh.points) // max(columns, 1)
    if min(rows, columns) > 1:
        has_vertices = rows * columns == len(mesh.points)
        has_triangles = 2 * (rows - 1) * (columns - 1) == num_triangles
        if has_vertices and has_triangles:
            ground = _find_field(mesh.points.reshape(rows, columns, 3), params)
            if ground is not None:
                return ground
    return join_meshes([mesh])


def join_meshes(meshes: Sequence[MeshInput]) -> Ground:
    """Return the ground that stands for several meshes.

    Raises:
        ValueError: If they have different frictions, or too many parts hover above the ground.
    """
    frictions = [_get_friction(mesh.params) for mesh in meshes]
    if min(frictions) != max(frictions):
        raise ValueError(
            f"add_triangle_mesh: the meshes have the frictions {min(frictions):g} to "
            f"{max(frictions):g}, and all must have the same dynamic_friction"
        )
    points = []
    triangles = []
    num_before = 0
    for mesh in meshes:
        moved = mesh.params.transform.transform_points(mesh.points)
        points.append(moved)
        triangles.append(mesh.triangles + num_before)
        num_before += len(moved)
    ground = approximate_mesh(np.concatenate(points), np.concatenate(triangles))
    # The frames are this one, its caller, Gym and the script.
    warnings.warn(f"add_triangle_mesh: {ground.report}", UserWarning, stacklevel=4)
    terrain = _make_terrain(
        ground.heights, ground.lattice.cell, (ground.lattice.low_x, ground.lattice.low_y)
    )
    return Ground(frictions[0], terrain=terrain, pieces=ground.pieces)


def _find_field(points: np.ndarray, params: TriangleMeshParams) -> Ground | None:
    """Return the height field of a grid of vertices, or None if they are far from a grid.

    Args:
        points: Coordinates, m. Shape: (rows, columns, 3).
        params: Parameters.
    """
    x, y, z = points.transpose(2, 0, 1)
    # Vertices at a wall are moved by one cell, so that scale and origin are medians: most vertices
    # are in their places. Columns that are far apart give the scale: coordinates are float32, so
    # that errors would add up over thousands of columns.
    rows, columns = x.shape
    middle = np.median(y, axis=0)
    apart = max(columns // 2, 1)
    scale = float(np.median(middle[apart:] - middle[:-apart])) / apart
    row_ids = np.arange(rows)[:, None] + np.zeros_like(y)
    column_ids = np.arange(columns)[None] + np.zeros_like(x)
    low_x = float(np.median(x - scale * row_ids))
    low_y = float(np.median(y - scale * column_ids))
    shift_x = abs(x - low_x - scale * row_ids).max()
    shift_y = abs(y - low_y - scale * column_ids).max()
    rounding = FLOAT32_ERROR * abs(points[..., :2]).max()
    if scale > 0 and max(shift_x, shift_y) < LARGEST_SHIFT * scale + rounding:
        return _make_field(z, scale, (low_x, low_y), params)
    return None


def _make_field(
    heights: np.ndarray,
    scale: float,
    low: tuple[float, float],
    params: HeightFieldParams | TriangleMeshParams,
) -> Ground:
    """Return a height field as ground.

    Args:
        heights: Heights, m. Shape: (rows, columns).
        scale: Distance of neighboring heights, m.
        low: Place (x, y) of the first height before ``params.transform``, m.
        params: Parameters with a ``transform`` and a friction.
    """
    record = type(params).__name__
    turn = params.transform.r
    if max(abs(turn.x), abs(turn.y), abs(turn.z)) > LARGEST_TURN:
        raise ValueError(
            f"{record}.transform.r must be no turn, got {vars(turn)}: turn the heights themselves"
        )
    if not (scale > 0 and np.isfinite(heights).all()):
        raise ValueError(
            f"{record}: heights must be finite and their distances above 0, got scale {scale:g}"
        )
    x, y, z = params.transform.p.values
    terrain = _make_terrain(heights + z, scale, (x + low[0], y + low[1]))
    return Ground(_get_friction(params), terrain=terrain)


def _make_terrain(heights: np.ndarray, scale: float, low: tuple[float, float]) -> Terrain:
    origins = np.zeros((1, 1, 3), np.float32)
    return Terrain(heights.astype(np.float32), scale, low, origins, ("isaacgym",), 0.0)


def _get_friction(params: PlaneParams | HeightFieldParams | TriangleMeshParams) -> float:
    # MuJoCo has one coefficient, Isaac Gym two. legged_gym gives both the same value.
    friction: float = params.dynamic_friction
    if friction < 0:
        raise ValueError(
            f"{type(params).__name__}.dynamic_friction must not be negative, got {friction:g}"
        )
    return friction
