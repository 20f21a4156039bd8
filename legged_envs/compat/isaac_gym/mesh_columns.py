"""Where vertical lines cut a triangle mesh."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

POINTS_PER_STRIP = 500_000
"""Number of lines that are cut at once, which bounds the memory."""

LEAST_GAP = 0.05
"""Height of the free room under a surface from which on a robot can get into it, m."""


@dataclass
class Mesh:
    """A triangle mesh with normals that point out of the ground."""

    points: np.ndarray
    """Coordinates of the vertices, m. Shape: (num_vertices, 3)."""
    triangles: np.ndarray
    """Indices of the vertices of each triangle. Shape: (num_triangles, 3)."""
    parts: np.ndarray
    """Number of the connected part of each triangle. Shape: (num_triangles,)."""

    def select(self, is_kept: np.ndarray) -> "Mesh":
        """Return the mesh of some triangles. Shape of the mask: (num_triangles,)."""
        return Mesh(self.points, self.triangles[is_kept], self.parts[is_kept])


@dataclass
class Lattice:
    """Vertical lines on a grid."""

    low_x: float
    """Coordinate x of the first line, m."""
    low_y: float
    """Coordinate y of the first line, m."""
    cell: float
    """Distance of neighboring lines, m."""
    rows: int
    """Number of lines along x."""
    columns: int
    """Number of lines along y."""

    def shift(self, x: float, y: float) -> "Lattice":
        """Return the same lattice at another place, ``x`` and ``y`` cells further along."""
        low_x = self.low_x + x * self.cell
        low_y = self.low_y + y * self.cell
        return Lattice(low_x, low_y, self.cell, self.rows, self.columns)


@dataclass
class Layers:
    """What vertical lines meet, of some rows of a lattice."""

    ground_ids: np.ndarray
    """Flat indices of the lines that meet something, each once."""
    ground_heights: np.ndarray
    """Top of the lowest solid on each of them, m."""
    slab_ids: np.ndarray
    """Flat indices of the lines that meet a solid with free room under it."""
    slab_tops: np.ndarray
    """Top of each of these solids, m."""
    slab_bottoms: np.ndarray
    """Bottom of each of these solids, m."""
    slab_parts: np.ndarray
    """Part of the mesh that is on top of each of these solids."""


def compute_normals(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return the normals of triangles, as long as twice their areas. Shape: (num_triangles, 3)."""
    first = points[triangles[:, 0]]
    side = points[triangles[:, 1]] - first
    other_side = points[triangles[:, 2]] - first
    return np.cross(side, other_side)


def cut_layers(mesh: Mesh, lattice: Lattice) -> Iterator[Layers]:
    """Yield what the vertical lines of a lattice meet, for some rows at a time."""
    rows_at_once = max(POINTS_PER_STRIP // lattice.columns, 1)
    x = (mesh.points[:, 0] - lattice.low_x) / lattice.cell
    corners = x[mesh.triangles]
    lowest = corners.min(axis=1)
    highest = corners.max(axis=1)
    for first in range(0, lattice.rows, rows_at_once):
        last = min(first + rows_at_once, lattice.rows) - 1
        is_near = (highest >= first) & (lowest <= last)
        near = mesh.select(is_near)
        ids, heights, signs, triangles = _cut_triangles(near, lattice, first, last)
        yield _find_layers(ids, heights, signs, near.parts[triangles])


def _cut_triangles(
    mesh: Mesh, lattice: Lattice, first_row: int, last_row: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the cuts of lines and triangles.

    Returns:
        Flat index of the line, height, m, sign of the vertical component of the normal, and index
        of the triangle of each cut. Shape of each: (num_cuts,).
    """
    origin = np.array([lattice.low_x, lattice.low_y, 0.0])
    points = (mesh.points - origin) / [lattice.cell, lattice.cell, 1.0]
    corners = points[mesh.triangles]
    normals = compute_normals(points, mesh.triangles)
    # Vertical walls are met by no line.
    is_flat = abs(normals[:, 2]) > 1e-12
    indices = np.flatnonzero(is_flat)
    corners = corners[indices]
    normals = normals[indices]
    x = corners[..., 0]
    low = np.maximum(np.ceil(x.min(axis=1)).astype(int), first_row)
    high = np.minimum(np.floor(x.max(axis=1)).astype(int), last_row)
    owners, rows = _expand(low, high)
    begin, end = _cut_rows(corners[owners], rows)
    low = np.maximum(np.ceil(begin).astype(int), 0)
    high = np.minimum(np.floor(end).astype(int), lattice.columns - 1)
    pairs, columns = _expand(low, high)
    owners = owners[pairs]
    rows = rows[pairs]
    anchor = corners[owners, 0]
    normal = normals[owners]
    slope = normal[:, 0] * (rows - anchor[:, 0]) + normal[:, 1] * (columns - anchor[:, 1])
    heights = anchor[:, 2] - slope / normal[:, 2]
    return rows * lattice.columns + columns, heights, np.sign(normal[:, 2]), indices[owners]


def _expand(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all numbers of ranges, which include both ends, after the index of their range."""
    counts = np.maximum(high - low + 1, 0)
    owners = np.repeat(np.arange(len(low)), counts)
    before = np.cumsum(counts) - counts
    return owners, low[owners] + np.arange(len(owners)) - before[owners]


def _cut_rows(corners: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the boundary of triangles meets the lines x = row: least and largest y.

    Args:
        corners: Corners of the triangles, cells. Shape: (n, 3, 3).
        rows: A row that each triangle meets. Shape: (n,).
    """
    begin = np.full(len(rows), np.inf)
    end = np.full(len(rows), -np.inf)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        x_a = corners[:, a, 0]
        x_b = corners[:, b, 0]
        is_met = (np.minimum(x_a, x_b) <= rows) & (rows <= np.maximum(x_a, x_b)) & (x_a != x_b)
        part = (rows - x_a) / np.where(x_a == x_b, 1.0, x_b - x_a)
        y = corners[:, a, 1] + part * (corners[:, b, 1] - corners[:, a, 1])
        begin = np.where(is_met, np.minimum(begin, y), begin)
        end = np.where(is_met, np.maximum(end, y), end)
    # A row that no edge meets has the range of no number.
    return np.where(begin > end, 0.0, begin), np.where(begin > end, -1.0, end)


def _find_layers(
    ids: np.ndarray, heights: np.ndarray, signs: np.ndarray, parts: np.ndarray
) -> Layers:
    """Return the solids on each vertical line, from the points where it crosses the surface.

    Args:
        ids: Flat index of the line of each crossing. Shape: (n,).
        heights: Height of each crossing, m. Shape: (n,).
        signs: 1 where the surface faces up, −1 where it faces down. Shape: (n,).
        parts: Number of the part of the mesh that is crossed. Shape: (n,).
    """
    order = np.lexsort((-heights, ids))
    ids = ids[order]
    heights = heights[order]
    parts = parts[order]
    is_first = np.ones(len(ids), bool)
    is_first[1:] = ids[1:] != ids[:-1]
    starts = np.flatnonzero(is_first)
    # From above, a line enters a solid where a surface faces up, and leaves it where one faces
    # down. Solids overlap, so these are counted.
    depth = np.cumsum(signs[order])
    groups = np.cumsum(is_first) - 1
    depth_before = np.concatenate(([0.0], depth[:-1]))[starts]
    depth = depth - depth_before[groups]
    # True for the lowest crossing of a solid that has free room under it.
    is_gap = np.zeros(len(ids), bool)
    drop = heights[:-1] - heights[1:]
    is_gap[:-1] = ~is_first[1:] & (depth[:-1] <= 0) & (drop > LEAST_GAP)
    # A solid starts with the line, or after free room.
    is_top = is_first.copy()
    is_top[1:] |= is_gap[:-1]
    tops = np.flatnonzero(is_top)
    is_lowest = np.ones(len(tops), bool)
    is_lowest[:-1] = ids[tops[1:]] != ids[tops[:-1]]
    lowest = tops[is_lowest]
    upper = tops[~is_lowest]
    return Layers(
        ground_ids=ids[lowest],
        ground_heights=heights[lowest],
        slab_ids=ids[upper],
        slab_tops=heights[upper],
        slab_bottoms=heights[np.flatnonzero(is_gap)],
        slab_parts=parts[upper],
    )
