"""Height fields and static pieces that stand for a triangle mesh of any kind.

MuJoCo's meshes collide as their convex hulls, so a mesh of a whole terrain cannot be the ground.
"""

import math
from dataclasses import dataclass

import numpy as np

from legged_envs.compat.isaac_gym.mesh_columns import (
    Lattice,
    Mesh,
    compute_normals,
    cut_layers,
)
from legged_envs.compat.isaac_gym.mesh_pieces import Piece, find_exact_pieces, make_boxes

FINEST_CELL = 0.05
"""Distance of the heights of a height field that stands for a mesh, m."""

MOST_POINTS = 6_000_000
"""Largest number of heights. The cells of larger grounds are larger."""

EDGE_OFFSET = 1e-4
"""Distance of the lines from the points of the grid, cells. Edges are often on the grid, and a line
on an edge would meet two triangles or none."""

ERROR_OFFSET = (0.37, 0.61)
"""Place in each cell, in parts of it, at which the height field is compared with the mesh."""

MOST_PIECES = 5000
"""Largest number of static pieces."""


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
    heights = _find_heights(rest, lattice)
    holes = np.isnan(heights)
    heights[holes] = points[:, 2].min()
    report = _describe(rest, lattice, heights, float(holes.mean()), len(exact), len(boxes))
    return MeshGround(heights, lattice, pieces, report)


def _orient(points: np.ndarray, triangles: np.ndarray) -> Mesh:
    """Return a mesh in which the normals of connected parts point outwards, or up."""
    parts = _label_parts(len(points), triangles)[triangles[:, 0]]
    upward = compute_normals(points, triangles)[:, 2]
    _, numbers = np.unique(parts, return_inverse=True)
    heights = points[triangles, 2]
    lowest = np.full(numbers.max() + 1, np.inf)
    np.minimum.at(lowest, numbers, heights.min(axis=1))
    above = heights.mean(axis=1) - lowest[numbers]
    # The volume below the surface, with a sign: negative if the normals point inwards. A flat sheet
    # has none, and should face up.
    volume = np.bincount(numbers, above * upward)
    area = np.bincount(numbers, upward)
    size = np.bincount(numbers, abs(upward))
    has_volume = abs(volume) > 1e-9 * np.maximum(size, 1e-9)
    is_turned = np.where(has_volume, volume < 0, area < 0)
    columns = is_turned[numbers][:, None]
    oriented = np.where(columns, triangles[:, ::-1], triangles)
    return Mesh(points, oriented, numbers)


def _label_parts(num_vertices: int, triangles: np.ndarray) -> np.ndarray:
    """Return a number for each vertex that is the same in all of a connected part."""
    labels = np.arange(num_vertices)
    while True:
        lowest = labels[triangles].min(axis=1)
        spread = labels.copy()
        np.minimum.at(spread, triangles.ravel(), np.repeat(lowest, 3))
        # Each label points to a vertex with a label that is at least as low.
        spread = spread[spread]
        if (spread == labels).all():
            return labels
        labels = spread


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
    for layers in cut_layers(mesh, lattice.shift(EDGE_OFFSET, EDGE_OFFSET)):
        found.append(np.unique(layers.slab_parts))
    return np.unique(np.concatenate(found))


def _find_heights(mesh: Mesh, lattice: Lattice) -> np.ndarray:
    """Return the height of the ground at each point, m, NaN where there is none.

    Shape: (rows, columns).
    """
    heights = np.full(lattice.rows * lattice.columns, np.nan)
    # A point on an edge has the height of its higher side, so that tops of steps keep their size.
    for x in (EDGE_OFFSET, -EDGE_OFFSET):
        for y in (EDGE_OFFSET, -EDGE_OFFSET):
            for layers in cut_layers(mesh, lattice.shift(x, y)):
                present = heights[layers.ground_ids]
                heights[layers.ground_ids] = np.fmax(present, layers.ground_heights)
    return heights.reshape(lattice.rows, lattice.columns)


def _describe(
    mesh: Mesh,
    lattice: Lattice,
    heights: np.ndarray,
    part_of_holes: float,
    num_exact: int,
    num_boxes: int,
) -> str:
    """Return how far the height field is from the mesh."""
    x, y = ERROR_OFFSET
    true_heights = np.full(heights.size, np.nan)
    for layers in cut_layers(mesh, lattice.shift(x, y)):
        true_heights[layers.ground_ids] = layers.ground_heights
    along_x = heights[:-1] * (1 - x) + heights[1:] * x
    between = along_x[:, :-1] * (1 - y) + along_x[:, 1:] * y
    expected = true_heights.reshape(heights.shape)
    differences = abs(between - expected[:-1, :-1])
    errors = differences[np.isfinite(differences)]
    typical = float(np.quantile(errors, 0.95)) if len(errors) else 0.0
    largest = float(errors.max(initial=0.0))
    text = (
        f"{len(mesh.triangles)} triangles are a height field of {lattice.cell:.3g} m cells: "
        f"its error is below {typical:.3f} m at 95 % of the points, and at most {largest:.3f} m, "
        "at walls, which are slopes over one cell"
    )
    if num_exact:
        text += f"; {num_exact} convex parts above free room are exact"
    if num_boxes:
        text += f"; others are {num_boxes} boxes, to within {lattice.cell:.3g} m"
    if part_of_holes > 1e-3:
        text += f"; {part_of_holes:.1%} of the area has no surface, and lies at the lowest height"
    return text
