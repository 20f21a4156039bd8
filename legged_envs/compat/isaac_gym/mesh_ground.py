"""Height fields and static pieces that stand for a triangle mesh of any kind.

MuJoCo's meshes collide as their convex hulls, so a mesh of a whole terrain cannot be the ground.
"""

import math
from dataclasses import dataclass

import numpy as np

from legged_envs.compat.isaac_gym.mesh_columns import cut_layers
from legged_envs.compat.isaac_gym.mesh_facets import (
    Lattice,
    Mesh,
    compute_upward,
    reduce_corners,
)
from legged_envs.compat.isaac_gym.mesh_pieces import Piece, find_exact_pieces, make_boxes

FINEST_CELL = 0.05
"""Distance of the heights of a height field that stands for a mesh, m."""

MOST_POINTS = 6_000_000
"""Largest number of heights. The cells of larger grounds are larger."""

EDGE_OFFSET = 1e-4
"""Distance of the lines from the points of the grid, cells. Edges are often on the grid, and a line
on an edge would meet two triangles or none."""

CORNERS = (
    (EDGE_OFFSET, EDGE_OFFSET),
    (EDGE_OFFSET, -EDGE_OFFSET),
    (-EDGE_OFFSET, EDGE_OFFSET),
    (-EDGE_OFFSET, -EDGE_OFFSET),
)
"""Places of lines next to a point, cells from it along x and y."""

ERROR_OFFSET = (0.37, 0.61)
"""Place in each cell, in parts of it, at which the height field is compared with the mesh."""

MOST_PIECES = 5000
"""Largest number of static pieces."""

LEAST_HOLES = 1e-3
"""Part of the area without a surface that is worth a word."""


@dataclass
class MeshGround:
    """A height field and static pieces."""

    heights: np.ndarray
    """Heights, m. Shape: (rows, columns)."""
    lattice: Lattice
    """Where the heights are."""
    pieces: list[Piece]
    """Pieces with free room under them."""
    report: str
    """How far they are from the mesh, in one line."""


def approximate_mesh(points: np.ndarray, triangles: np.ndarray) -> MeshGround:
    """Return a height field and static pieces for a mesh.

    Lines from above find the height of the ground on a grid. A solid with free room under it
    becomes a piece: itself if it is convex, otherwise boxes of the size of a cell and larger.

    Args:
        points: Coordinates of the vertices, m. Shape: (num_vertices, 3).
        triangles: Indices of vertices. Shape: (num_triangles, 3).

    Raises:
        ValueError: If there would be too many pieces.
    """
    mesh = _orient(points, triangles)
    lattice = _make_lattice(points)
    hovering = _find_hovering_parts(mesh, lattice)
    exact = find_exact_pieces(mesh, hovering)
    pieces = [piece for _, piece in exact]
    rest = mesh.select(~np.isin(mesh.parts, [part for part, _ in exact]))
    boxes: list[Piece] = []
    if len(hovering) > len(exact):
        boxes = make_boxes(rest, lattice.shift(EDGE_OFFSET, EDGE_OFFSET), MOST_PIECES)
    pieces += boxes
    if len(pieces) > MOST_PIECES:
        raise ValueError(
            f"add_triangle_mesh: {len(pieces)} parts of the mesh hover above the ground, "
            f"and at most {MOST_PIECES} can be static pieces: give fewer or larger obstacles"
        )
    heights, true_heights = _find_heights(rest, lattice)
    holes = np.isnan(heights)
    heights[holes] = points[:, 2].min()
    report = _describe(heights, true_heights, lattice.cell, len(rest.triangles))
    part_of_holes = float(holes.mean())
    if exact:
        report += f"; {len(exact)} convex parts above free room are exact"
    if boxes:
        report += f"; others are {len(boxes)} boxes, to within {lattice.cell:.3g} m"
    if part_of_holes > LEAST_HOLES:
        report += f"; {part_of_holes:.1%} of the area has no surface, and lies at the lowest height"
    return MeshGround(heights, lattice, pieces, report)


def _orient(points: np.ndarray, triangles: np.ndarray) -> Mesh:
    """Return a mesh in which the normals of connected parts point outwards, or up."""
    parts = _label_parts(len(points), triangles)[triangles[:, 0]]
    upward = compute_upward(points, triangles)
    _, numbers = np.unique(parts, return_inverse=True)
    heights = points[:, 2][triangles]
    lowest = np.full(numbers.max() + 1, np.inf)
    np.minimum.at(lowest, numbers, reduce_corners(np.minimum, heights))
    above = reduce_corners(np.add, heights) / 3 - lowest[numbers]
    # The volume below the surface, with a sign: negative if the normals point inwards. A flat sheet
    # has none, and should face up.
    volume = np.bincount(numbers, above * upward)
    area = np.bincount(numbers, upward)
    size = np.bincount(numbers, abs(upward))
    has_volume = abs(volume) > 1e-9 * np.maximum(size, 1e-9)
    is_turned = np.where(has_volume, volume < 0, area < 0)[numbers]
    oriented = np.where(is_turned[:, None], triangles[:, ::-1], triangles)
    has_undersides = bool((np.where(is_turned, -upward, upward) < 0).any())
    return Mesh(points, oriented, numbers, has_undersides)


def _label_parts(num_vertices: int, triangles: np.ndarray) -> np.ndarray:
    """Return the lowest vertex of each vertex's connected part. Shape: (num_vertices,)."""
    # Each label leads to a vertex that is at least as low. A root leads to itself.
    labels = np.arange(num_vertices)
    roots = triangles
    while True:
        lowest = reduce_corners(np.minimum, roots)
        is_split = lowest < reduce_corners(np.maximum, roots)
        if not is_split.any():
            return labels
        # Triangles that lie in one part stay there.
        triangles = triangles[is_split]
        np.minimum.at(labels, roots[is_split].ravel(), np.repeat(lowest[is_split], 3))
        labels = _find_roots(labels)
        roots = labels[triangles]


def _find_roots(labels: np.ndarray) -> np.ndarray:
    """Return where the labels lead to in the end. Shape: (num_vertices,)."""
    while True:
        further = labels[labels]
        if (further == labels).all():
            return labels
        labels = further


def _make_lattice(points: np.ndarray) -> Lattice:
    low = points[:, :2].min(axis=0)
    high = points[:, :2].max(axis=0)
    area = float((high - low).prod())
    cell = max(FINEST_CELL, math.sqrt(area / MOST_POINTS))
    # The last line must not lie outside the mesh.
    counts = np.floor((high - low) / cell + 1e-3).astype(int) + 1
    rows, columns = np.maximum(counts, 2).tolist()
    return Lattice(float(low[0]), float(low[1]), cell, rows, columns)


def _find_hovering_parts(mesh: Mesh, lattice: Lattice) -> np.ndarray:
    """Return the numbers of the parts of a mesh that have free room under them."""
    found = [np.zeros(0, int)]
    if mesh.has_undersides:
        for _, layers in cut_layers(mesh, lattice, CORNERS[:1]):
            found.append(np.unique(layers.slab_parts))
    return np.unique(np.concatenate(found))


def _find_heights(mesh: Mesh, lattice: Lattice) -> tuple[np.ndarray, np.ndarray]:
    """Return heights of the ground, m, NaN where there is none.

    Returns:
        Heights at the points of the lattice, and at ``ERROR_OFFSET`` from them. Shape of each:
        (rows, columns).
    """
    # A point on an edge has the height of its higher side, so that tops of steps keep their size.
    heights = np.full(lattice.rows * lattice.columns, np.nan)
    between = heights.copy()
    for number, layers in cut_layers(mesh, lattice, (*CORNERS, ERROR_OFFSET)):
        target = heights if number < len(CORNERS) else between
        present = target[layers.ground_ids]
        target[layers.ground_ids] = np.fmax(present, layers.ground_heights)
    shape = (lattice.rows, lattice.columns)
    return heights.reshape(shape), between.reshape(shape)


def _describe(
    heights: np.ndarray,
    true_heights: np.ndarray,
    cell: float,
    num_triangles: int,
) -> str:
    """Return how far the height field is from the mesh.

    Args:
        heights: Heights at the points of the lattice, m. Shape: (rows, columns).
        true_heights: Heights of the mesh at ``ERROR_OFFSET`` from them, m. Shape: (rows, columns).
        cell: Distance of the points, m.
        num_triangles: Number of triangles of the mesh.
    """
    x, y = ERROR_OFFSET
    along_x = heights[:-1] * (1 - x) + heights[1:] * x
    between = along_x[:, :-1] * (1 - y) + along_x[:, 1:] * y
    differences = abs(between - true_heights[:-1, :-1])
    errors = differences[np.isfinite(differences)]
    typical = float(np.quantile(errors, 0.95)) if len(errors) else 0.0
    largest = float(errors.max(initial=0.0))
    return (
        f"{num_triangles} triangles are a height field of {cell:.3g} m cells: "
        f"its error is below {typical:.3f} m at 95 % of the points, and at most {largest:.3f} m, "
        "at walls, which are slopes over one cell"
    )
