"""Static pieces for the parts of a mesh that have free room under them."""

from dataclasses import dataclass

import numpy as np

from legged_envs.compat.isaac_gym.mesh_columns import cut_layers
from legged_envs.compat.isaac_gym.mesh_facets import Lattice, Mesh, compute_normals

FLATNESS = 1e-4
"""Largest distance of a vertex outside of a face of a part that counts as convex, m."""

LARGEST_TABLE = 4_000_000
"""Largest number of pairs of a vertex and a face of a part that is tested for being convex."""

NUM_CORNERS = 8
"""Number of corners of a box."""

HEIGHT_STEP = 0.01
"""Step to which tops and bottoms of boxes are rounded, m."""


@dataclass
class Piece:
    """A static convex body: the hull of points."""

    points: np.ndarray
    """Corners, m. Shape: (num_corners, 3)."""

    def get_box(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return center and half sides of a box along the axes, m, or None if it is none."""
        low = self.points.min(axis=0)
        high = self.points.max(axis=0)
        center = (low + high) / 2
        distance_low = abs(self.points - low)
        distance_high = abs(self.points - high)
        is_on_a_side = (distance_low < FLATNESS) | (distance_high < FLATNESS)
        if not is_on_a_side.all():
            return None
        is_upper = self.points > center
        corners = np.unique(is_upper, axis=0)
        if len(corners) != NUM_CORNERS:
            return None
        return center, high - center


def find_exact_pieces(mesh: Mesh, parts: np.ndarray) -> list[tuple[int, Piece]]:
    """Return the convex ones of some parts of a mesh, with their numbers.

    Args:
        mesh: The mesh.
        parts: Numbers of the parts.
    """
    pieces = []
    order = np.argsort(mesh.parts, kind="stable")
    sorted_parts = mesh.parts[order]
    for part in parts.tolist():
        start, end = np.searchsorted(sorted_parts, (part, part + 1))
        own = order[start:end]
        triangles = mesh.triangles[own]
        if _is_convex(mesh.points, triangles):
            vertices = np.unique(triangles)
            piece = Piece(mesh.points[vertices])
            pieces.append((part, piece))
    return pieces


def _is_convex(points: np.ndarray, triangles: np.ndarray) -> bool:
    """Return True if triangles enclose a convex body. Their normals point outwards."""
    ids = np.unique(triangles)
    if len(ids) * len(triangles) > LARGEST_TABLE:
        return False
    pairs = triangles[:, [0, 1, 1, 2, 2, 0]]
    pairs = pairs.reshape(-1, 2)
    edges = np.sort(pairs, axis=1)
    _, counts = np.unique(edges, axis=0, return_counts=True)
    # A closed surface has two triangles at each edge.
    if (counts != 2).any():
        return False
    normals = compute_normals(points, triangles)
    lengths = np.linalg.norm(normals, axis=1)
    is_face = lengths > 1e-12
    face_lengths = lengths[is_face, None]
    units = normals[is_face] / face_lengths
    first_ids = triangles[is_face, 0]
    products = units * points[first_ids]
    offsets = products.sum(axis=1)
    projections = points[ids] @ units.T
    distances = projections - offsets
    outside: float = distances.max(initial=0.0)
    return outside < FLATNESS


def make_boxes(mesh: Mesh, lattice: Lattice, most: int) -> list[Piece]:
    """Return boxes that fill the solids with free room under them, on the cells of a lattice.

    Args:
        mesh: The mesh.
        lattice: Lattice of vertical lines.
        most: Number of boxes at which to stop.
    """
    runs: dict[tuple[int, int, int, int], list[int]] = {}
    for _, layers in cut_layers(mesh, lattice, [(0.0, 0.0)]):
        rows, columns = np.divmod(layers.slab_ids, lattice.columns)
        tops = _count_height_steps(layers.slab_tops)
        bottoms = _count_height_steps(layers.slab_bottoms)
        slabs = np.stack((bottoms, tops, rows, columns), axis=1)
        _collect_runs(runs, slabs)
    pieces = []
    scale = np.array([lattice.cell, lattice.cell, HEIGHT_STEP])
    origin = np.array([lattice.low_x, lattice.low_y, 0.0])
    for (bottom, top, first_column, last_column), run_rows in runs.items():
        highest = max(top, bottom + 1)
        for first_row, last_row in _join_neighbors(run_rows):
            # A point of the lattice is in the middle of its cell.
            low = np.array([first_row - 0.5, first_column - 0.5, bottom])
            high = np.array([last_row + 0.5, last_column + 0.5, highest])
            low = origin + scale * low
            high = origin + scale * high
            corners = _make_corners(low, high)
            pieces.append(Piece(corners))
            if len(pieces) > most:
                return pieces
    return pieces


def _count_height_steps(heights: np.ndarray) -> np.ndarray:
    """Return heights, m, as whole numbers of ``HEIGHT_STEP``."""
    steps = np.rint(heights / HEIGHT_STEP)
    return steps.astype(int)


def _collect_runs(runs: dict[tuple[int, int, int, int], list[int]], slabs: np.ndarray) -> None:
    """Add the rows of each run of neighboring columns with the same bottom and top.

    Args:
        runs: Rows by (bottom, top, first column, last column).
        slabs: Bottom, top, row and column of each slab. Shape: (num_slabs, 4).
    """
    if not len(slabs):
        return
    order = np.lexsort(slabs.T[::-1])
    ordered = slabs[order]
    steps = np.diff(ordered, axis=0)
    is_next = (steps == [0, 0, 0, 1]).all(axis=1)
    is_start = np.ones(len(ordered), bool)
    is_start[1:] = ~is_next
    starts = np.flatnonzero(is_start)
    ends = np.append(starts[1:], len(ordered))
    ends = ends - 1
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        bottom, top, row, first_column = ordered[start].tolist()
        last_column = int(ordered[end, 3])
        key = (bottom, top, first_column, last_column)
        rows = runs.setdefault(key, [])
        rows.append(row)


def _join_neighbors(rows: list[int]) -> list[tuple[int, int]]:
    """Return first and last of each run of neighboring numbers."""
    spans: list[tuple[int, int]] = []
    for row in sorted(rows):
        first = row
        if spans and row == spans[-1][1] + 1:
            first, _ = spans.pop()
        spans.append((first, row))
    return spans


def _make_corners(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the corners of a box. Shape: (8, 3)."""
    x, y, z = np.stack((low, high), axis=1)
    grid = np.meshgrid(x, y, z)
    corners = np.stack(grid, axis=-1)
    return corners.reshape(-1, 3)
