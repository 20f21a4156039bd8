"""Triangle meshes, and their triangles prepared for being cut by vertical lines."""

from dataclasses import dataclass

import numpy as np

LEAST_NORMAL = 1e-12
"""Vertical component of a triangle's normal, square cells, below which it is a vertical wall."""


@dataclass
class Mesh:
    """A triangle mesh with normals that point out of the ground."""

    points: np.ndarray
    """Coordinates of the vertices, m. Shape: (num_vertices, 3)."""
    triangles: np.ndarray
    """Indices of the vertices of each triangle. Shape: (num_triangles, 3)."""
    parts: np.ndarray
    """Number of the connected part of each triangle. Shape: (num_triangles,)."""
    has_undersides: bool
    """True if triangles face down, or did before some were left out."""

    def select(self, is_kept: np.ndarray) -> "Mesh":
        """Return the mesh of some triangles. Shape of the mask: (num_triangles,)."""
        triangles = self.triangles[is_kept]
        return Mesh(self.points, triangles, self.parts[is_kept], self.has_undersides)


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


def reduce_corners(function: np.ufunc, values: np.ndarray) -> np.ndarray:
    """Return what a function of two arguments makes of three values each, faster than ``reduce``.

    Args:
        function: The function, such as ``np.minimum``.
        values: Value of each corner. Shape: (num_triangles, 3).
    """
    first, second, third = values.T
    result: np.ndarray = function(first, second)
    result = function(result, third)
    return result


def compute_upward(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return the vertical components of :func:`compute_normals`. Shape: (num_triangles,)."""
    x = points[:, 0][triangles.T]
    y = points[:, 1][triangles.T]
    side_x, other_x = x[1:] - x[0]
    side_y, other_y = y[1:] - y[0]
    upward: np.ndarray = side_x * other_y
    upward -= side_y * other_x
    return upward


def compute_normals(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return the normals of triangles, as long as twice their areas. Shape: (num_triangles, 3)."""
    first = points[triangles[:, 0]]
    side = points[triangles[:, 1]] - first
    other_side = points[triangles[:, 2]] - first
    return np.cross(side, other_side)


@dataclass
class Facets:
    """Triangles that are not vertical, prepared for being cut by vertical lines.

    Lengths along x and y are in cells of the lattice. The corners are sorted by x. The long side
    leads from the first to the last, and the other two sides meet at the middle corner.
    """

    x: np.ndarray
    """Coordinate x of the corners, cells. Shape: (3, num_facets)."""
    y: np.ndarray
    """Coordinate y of the corners, cells. Shape: (3, num_facets)."""
    long_slope: np.ndarray
    """Slope dy/dx of the long side. Shape: (num_facets,)."""
    first_slope: np.ndarray
    """Slope dy/dx of the side before the middle corner. Shape: (num_facets,)."""
    last_slope: np.ndarray
    """Slope dy/dx of the side after the middle corner. Shape: (num_facets,)."""
    height: np.ndarray
    """Height of the first corner, m. Shape: (num_facets,)."""
    incline_x: np.ndarray
    """Rise of the triangle along x, m per cell. Shape: (num_facets,)."""
    incline_y: np.ndarray
    """Rise of the triangle along y, m per cell. Shape: (num_facets,)."""
    signs: np.ndarray
    """1 where the triangle faces up, −1 where it faces down. Shape: (num_facets,)."""
    parts: np.ndarray
    """Number of the connected part of the mesh. Shape: (num_facets,)."""


def prepare_facets(mesh: Mesh, lattice: Lattice) -> Facets:
    """Return the triangles of a mesh that the vertical lines of a lattice can meet."""
    # Vertical walls are met by no line.
    upward = compute_upward(mesh.points, mesh.triangles) / lattice.cell**2
    is_flat = abs(upward) > LEAST_NORMAL
    kept = mesh.select(is_flat)
    # Corners are rows of the arrays: three long rows are faster than many short ones.
    corners = kept.triangles.T
    unsorted_x = (kept.points[:, 0] - lattice.low_x) / lattice.cell
    order = np.argsort(unsorted_x[corners], axis=0)
    corners = np.take_along_axis(corners, order, axis=0)
    x = unsorted_x[corners]
    y = (kept.points[:, 1] - lattice.low_y) / lattice.cell
    y = y[corners]
    z = kept.points[:, 2][corners]
    side_x, long_x = x[1:] - x[0]
    side_y, long_y = y[1:] - y[0]
    side_z, long_z = z[1:] - z[0]
    area = side_x * long_y - side_y * long_x
    rise_x = side_z * long_y - side_y * long_z
    rise_y = side_x * long_z - side_z * long_x
    return Facets(
        x,
        y,
        long_slope=_find_slopes(long_x, long_y),
        first_slope=_find_slopes(side_x, side_y),
        last_slope=_find_slopes(x[2] - x[1], y[2] - y[1]),
        height=z[0],
        incline_x=rise_x / area,
        incline_y=rise_y / area,
        signs=np.sign(upward[is_flat]),
        parts=kept.parts,
    )


def _find_slopes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return y / x, and 0 where x is 0."""
    return np.divide(y, x, out=np.zeros_like(y), where=x > 0)


def cut_rows(facets: Facets, owners: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where triangles begin and end on lines along y: least and largest y, cells.

    Args:
        facets: The triangles.
        owners: Index of the triangle of each line. Shape: (n,).
        x: Coordinate of each line, which meets its triangle, cells. Shape: (n,).
    """
    from_first = x - facets.x[0][owners]
    from_middle = x - facets.x[1][owners]
    is_before = from_middle < 0
    slope = np.where(is_before, facets.first_slope[owners], facets.last_slope[owners])
    one_end = facets.y[0][owners] + facets.long_slope[owners] * from_first
    other_end = facets.y[1][owners] + slope * from_middle
    return np.minimum(one_end, other_end), np.maximum(one_end, other_end)
