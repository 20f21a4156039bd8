"""Static pieces for the parts of a mesh that have free room under them."""

from dataclasses import dataclass

import numpy as np

from legged_envs.compat.isaac_gym.mesh_columns import Lattice, Mesh, cut_layers

FLATNESS = 1e-4
"""Largest distance of a vertex outside of a face of a part that counts as convex, m."""

LARGEST_TABLE = 4_000_000
"""Largest number of pairs of a vertex and a face of a part that is tested for being convex."""

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
        is_corner = (abs(self.points - low) < FLATNESS) | (abs(self.points - high) < FLATNESS)
        if not is_corner.all() or len(np.unique(self.points > (low + high) / 2, axis=0)) != 8:
            return None
        return (low + high) / 2, (high - low) / 2


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
        triangles = mesh.triangles[order[start:end]]
        if _is_convex(mesh.points, triangles):
            pieces.append((part, Piece(mesh.points[np.unique(triangles)])))
    return pieces


def _is_convex(points: np.ndarray, triangles: np.ndarray) -> bool:
    """Return True if triangles enclose a convex body. Their normals point outwards."""
    vertices = points[np.unique(triangles)]
    if len(vertices) * len(triangles) > LARGEST_TABLE:
        return False
    edges = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    _, counts = np.unique(edges, axis=0, return_counts=True)
    if (counts != 2).any():
        return False
    corners = points[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1)
    is_face = lengths > 1e-12
    normals = normals[is_face] / lengths[is_face, None]
    offsets = (normals * corners[is_face, 0]).sum(axis=1)
    outside: float = (vertices @ normals.T - offsets).max(initial=0.0)
    return outside < FLATNESS


def make_boxes(mesh: Mesh, lattice: Lattice, most: int) -> list[Piece]:
    """Return boxes that fill the solids with free room under them, on the cells of a lattice.

    Args:
        mesh: The mesh.
        lattice: Lattice of vertical lines.
        most: Number of boxes at which to stop.
    """
    runs: dict[tuple[int, int, int, int], list[int]] = {}
    for layers in cut_layers(mesh, lattice):
        rows, columns = np.divmod(layers.slab_ids, lattice.columns)
        tops = np.rint(layers.slab_tops / HEIGHT_STEP).astype(int)
        bottoms = np.rint(layers.slab_bottoms / HEIGHT_STEP).astype(int)
        _collect_runs(runs, np.stack((bottoms, tops, rows, columns), axis=1))
    pieces = []
    half = 0.5 * lattice.cell
    for (bottom, top, first_column, last_column), run_rows in runs.items():
        for first_row, last_row in _join_neighbors(run_rows):
            low = [
                lattice.low_x + first_row * lattice.cell - half,
                lattice.low_y + first_column * lattice.cell - half,
                bottom * HEIGHT_STEP,
            ]
            high = [
                lattice.low_x + last_row * lattice.cell + half,
                lattice.low_y + last_column * lattice.cell + half,
                max(top, bottom + 1) * HEIGHT_STEP,
            ]
            pieces.append(Piece(_make_corners(np.array(low), np.array(high))))
            if len(pieces) > most:
                return pieces
    return pieces


def _collect_runs(runs: dict[tuple[int, int, int, int], list[int]], slabs: np.ndarray) -> None:
    """Add the rows of each run of neighboring columns with the same bottom and top.

    Args:
        runs: Rows by (bottom, top, first column, last column).
        slabs: Bottom, top, row and column of each slab. Shape: (num_slabs, 4).
    """
    if not len(slabs):
        return
    ordered = slabs[np.lexsort(slabs.T[::-1])]
    is_start = np.ones(len(ordered), bool)
    is_same = (ordered[1:, :3] == ordered[:-1, :3]).all(axis=1)
    is_start[1:] = ~(is_same & (np.diff(ordered[:, 3]) == 1))
    starts = np.flatnonzero(is_start)
    ends = np.append(starts[1:], len(ordered)) - 1
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        bottom, top, row, first_column = ordered[start].tolist()
        key = (bottom, top, first_column, int(ordered[end, 3]))
        runs.setdefault(key, []).append(row)


def _join_neighbors(rows: list[int]) -> list[tuple[int, int]]:
    """Return first and last of each run of neighboring numbers."""
    spans: list[tuple[int, int]] = []
    for row in sorted(rows):
        if spans and row == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], row)
        else:
            spans.append((row, row))
    return spans


def _make_corners(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the corners of a box. Shape: (8, 3)."""
    corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, -1)
    return corners.T
