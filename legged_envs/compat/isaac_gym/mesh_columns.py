"""Where vertical lines cut a triangle mesh."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from legged_envs.compat.isaac_gym.mesh_facets import (
    Facets,
    Lattice,
    Mesh,
    cut_rows,
    prepare_facets,
    reduce_corners,
)

POINTS_PER_STRIP = 500_000
"""Number of lines that are cut at once, which bounds the memory."""

LEAST_GAP = 0.05
"""Height of the free room under a surface from which on a robot can get into it, m."""


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


def cut_layers(
    mesh: Mesh, lattice: Lattice, shifts: Sequence[tuple[float, float]]
) -> Iterator[tuple[int, Layers]]:
    """Yield what the vertical lines of a lattice meet, for some rows at a time.

    Args:
        mesh: The mesh.
        lattice: The lattice.
        shifts: Places of the lattice, cells further along x and y.

    Yields:
        The index of the shift, and what the lines meet.
    """
    rows_at_once = max(POINTS_PER_STRIP // lattice.columns, 1)
    x = (mesh.points[:, 0] - lattice.low_x) / lattice.cell
    corners = x[mesh.triangles]
    lowest = reduce_corners(np.minimum, corners)
    highest = reduce_corners(np.maximum, corners)
    least_shift = min(x for x, _ in shifts)
    largest_shift = max(x for x, _ in shifts)
    for first in range(0, lattice.rows, rows_at_once):
        last = min(first + rows_at_once, lattice.rows) - 1
        is_near = (highest >= first + least_shift) & (lowest <= last + largest_shift)
        facets = prepare_facets(mesh.select(is_near), lattice)
        for number, shift in enumerate(shifts):
            yield number, _cut_strip(facets, lattice, shift, first, last)


def _cut_strip(
    facets: Facets, lattice: Lattice, shift: tuple[float, float], first_row: int, last_row: int
) -> Layers:
    """Return what the lines of some rows of a lattice meet, ``shift`` cells further along."""
    shift_x, shift_y = shift
    low = np.maximum(np.ceil(facets.x[0] - shift_x).astype(int), first_row)
    high = np.minimum(np.floor(facets.x[2] - shift_x).astype(int), last_row)
    owners, rows = _expand(low, high)
    begin, end = cut_rows(facets, owners, rows + shift_x)
    low = np.maximum(np.ceil(begin - shift_y).astype(int), 0)
    high = np.minimum(np.floor(end - shift_y).astype(int), lattice.columns - 1)
    pairs, columns = _expand(low, high)
    owners = owners[pairs]
    rows = rows[pairs]
    distance_x = rows + shift_x - facets.x[0][owners]
    distance_y = columns + shift_y - facets.y[0][owners]
    rise_x = facets.incline_x[owners] * distance_x
    rise_y = facets.incline_y[owners] * distance_y
    heights = facets.height[owners] + rise_x + rise_y
    ids = rows * lattice.columns + columns
    if (facets.signs > 0).all():
        return _find_sheet(ids, heights, facets.parts[owners])
    return _find_layers(ids, heights, facets.signs[owners], facets.parts[owners])


def _expand(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all numbers of ranges, which include both ends, after the index of their range."""
    counts = np.maximum(high - low + 1, 0)
    indices = np.arange(len(low))
    owners = np.repeat(indices, counts)
    before = np.cumsum(counts) - counts
    places = np.arange(len(owners))
    numbers = low[owners] + places - before[owners]
    return owners, numbers


def _find_sheet(ids: np.ndarray, heights: np.ndarray, parts: np.ndarray) -> Layers:
    """Return the ground of a mesh in which no triangle faces down: the highest crossings.

    Args:
        ids: Flat index of the line of each crossing. Shape: (n,).
        heights: Height of each crossing, m. Shape: (n,).
        parts: Number of the part of the mesh that is crossed. Shape: (n,).
    """
    first = int(ids.min(initial=0))
    highest = np.full(int(ids.max(initial=0)) - first + 1, -np.inf)
    np.maximum.at(highest, ids - first, heights)
    is_met = np.isfinite(highest)
    nothing = np.zeros(0)
    return Layers(
        ground_ids=np.flatnonzero(is_met) + first,
        ground_heights=highest[is_met],
        slab_ids=np.zeros(0, int),
        slab_tops=nothing,
        slab_bottoms=nothing,
        slab_parts=parts[:0],
    )


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
