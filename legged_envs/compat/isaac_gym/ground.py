"""The ground of a simulation: a plane, or a height field made of heights or of a mesh."""

from dataclasses import dataclass

import numpy as np

from legged_envs.compat.isaac_gym.records import HeightFieldParams, PlaneParams, TriangleMeshParams
from legged_envs.terrains import Terrain

LARGEST_TURN = 1e-6
"""Largest component x, y or z of a quaternion that counts as no rotation."""

LARGEST_SHIFT = 1.01
"""Largest distance of a vertex of a mesh from its place in the grid, cells."""


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


def triangle_mesh(
    vertices: np.ndarray, triangles: np.ndarray, params: TriangleMeshParams
) -> Ground:
    """Return the height field from which ``convert_heightfield_to_trimesh`` made a mesh.

    MuJoCo's meshes collide as their convex hulls, so a mesh itself cannot be the ground. A vertical
    wall of the mesh becomes a slope over one cell.

    Args:
        vertices: Coordinates of the vertices, m, x, y and z of each.
        triangles: Indices of vertices, three of each triangle.
        params: Parameters.

    Raises:
        ValueError: If it is another mesh.
    """
    points = np.asarray(vertices, float).reshape(-1, 3)
    num_triangles = np.size(triangles) // 3
    # The first cell has the vertices 0, 1, columns and columns + 1.
    columns = int(np.max(np.ravel(triangles)[:6], initial=0)) - 1
    rows = len(points) // max(columns, 1)
    if min(rows, columns) > 1:
        has_vertices = rows * columns == len(points)
        has_triangles = 2 * (rows - 1) * (columns - 1) == num_triangles
        if has_vertices and has_triangles:
            ground = _find_field(points.reshape(rows, columns, 3), params)
            if ground is not None:
                return ground
    raise ValueError(
        f"add_triangle_mesh: {len(points)} vertices and {num_triangles} triangles are not a grid "
        "of heights: give what terrain_utils.convert_heightfield_to_trimesh makes, "
        "or use add_heightfield"
    )


def _find_field(points: np.ndarray, params: TriangleMeshParams) -> Ground | None:
    """Return the height field of a grid of vertices, or None if they are far from a grid.

    Args:
        points: Coordinates, m. Shape: (rows, columns, 3).
        params: Parameters.
    """
    x, y, z = points.transpose(2, 0, 1)
    # Vertices at a wall are moved by one cell, so that scale and origin are medians: most vertices
    # are in their places.
    scale = float(np.median(np.diff(y, axis=1)))
    rows, columns = x.shape
    row_ids = np.arange(rows)[:, None] + np.zeros_like(y)
    column_ids = np.arange(columns)[None] + np.zeros_like(x)
    low_x = float(np.median(x - scale * row_ids))
    low_y = float(np.median(y - scale * column_ids))
    shift_x = abs(x - low_x - scale * row_ids).max()
    shift_y = abs(y - low_y - scale * column_ids).max()
    if scale > 0 and max(shift_x, shift_y) < LARGEST_SHIFT * scale:
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
    terrain = Terrain(
        (heights + z).astype(np.float32),
        scale,
        (x + low[0], y + low[1]),
        np.zeros((1, 1, 3), np.float32),
        ("isaacgym",),
        0.0,
    )
    return Ground(_get_friction(params), terrain=terrain)


def _get_friction(params: PlaneParams | HeightFieldParams | TriangleMeshParams) -> float:
    # MuJoCo has one coefficient, Isaac Gym two. legged_gym gives both the same value.
    friction: float = params.dynamic_friction
    if friction < 0:
        raise ValueError(
            f"{type(params).__name__}.dynamic_friction must not be negative, got {friction:g}"
        )
    return friction
