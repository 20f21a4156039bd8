"""The height field under the robots, and the tile on which each environment begins."""

import math
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, normalize, pad

from legged_envs.rng import Stream
from legged_envs.state import Stateful
from legged_envs.terrains import Terrain

FARTHEST_EDGE = 1.0
"""Largest distance that `Ground.edge_distance` returns, m."""


class Places(NamedTuple):
    """Points on the cells of a height field. All shapes are that of the points."""

    x: Tensor
    """Position in the cell along x, from 0 to 1."""
    y: Tensor
    """Position in the cell along y, from 0 to 1."""
    cell: Tensor
    """Index of the cell, row by row, int32."""


class Corners(NamedTuple):
    """Heights of the four corners of a cell, m. All shapes are that of the points."""

    h00: Tensor
    """Height of the corner at the smallest x and y."""
    h10: Tensor
    """Height of the corner at the largest x and the smallest y."""
    h01: Tensor
    """Height of the corner at the smallest x and the largest y."""
    h11: Tensor
    """Height of the corner at the largest x and y."""


class Ground(Stateful):
    """One :class:`~legged_envs.terrains.Terrain` under all environments.

    Beyond its border the ground is as high as at the nearest point of the field. Look-ups take
    world coordinates x and y, m, of the same shape, and return tensors of that shape.

    Args:
        terrain: Heights and tiles.
        num_envs: Number of environments.
        device: Device of all tensors.
    """

    STATE = ("levels", "columns")

    def __init__(self, terrain: Terrain, num_envs: int, device: torch.device):
        self.terrain = terrain
        """Heights and tiles."""
        self.num_envs = num_envs
        """Number of environments."""
        heights = torch.from_numpy(terrain.heights).to(device)
        self._heights = heights[None, None].contiguous()
        self._corners = _corners_of_cells(heights)
        self._lowest = self._corners[:, :3].amin(1)
        num_x, num_y = terrain.heights.shape
        self._num_cells = (num_x - 1, num_y - 1)
        self.half_extent = (
            0.5 * self._num_cells[0] * terrain.horizontal_scale,
            0.5 * self._num_cells[1] * terrain.horizontal_scale,
        )
        """Half of the field's sides along x and y, m."""
        self.tile_origins = torch.from_numpy(terrain.origins).to(device)
        """Start of robots on each tile in the world, m. Shape: (rows, columns, 3)."""
        self.levels = torch.zeros(num_envs, dtype=torch.int64, device=device)
        """Row of the tile on which each environment begins its episodes. Shape: (num_envs,)."""
        self.columns = torch.zeros(num_envs, dtype=torch.int64, device=device)
        """Column of that tile. Shape: (num_envs,)."""

    @cached_property
    def _edges(self) -> Tensor:
        """Distance of each cell to the nearest edge, m, at most `FARTHEST_EDGE`. (cells,)."""
        scale = self.terrain.horizontal_scale
        steep = self.terrain.slope_threshold * scale
        drop = self._corners.amax(1) - self._corners.amin(1)
        is_edge = (drop > steep).view(self._num_cells)
        # Squared distance in cells: along x first, then along y from the results of that.
        squared = torch.where(is_edge, 0.0, torch.inf)
        reach = math.ceil(FARTHEST_EDGE / scale)
        squared = _spread_along(squared, 0, pad(squared, (0, 0, reach, reach), value=torch.inf))
        squared = _spread_along(squared, 1, pad(squared, (reach, reach), value=torch.inf))
        return (squared.sqrt() * scale).clamp(max=FARTHEST_EDGE).flatten()

    @property
    def origins(self) -> Tensor:
        """Start of each environment in the world, m. Shape: (num_envs, 3)."""
        return self.tile_origins[self.levels, self.columns]

    def height(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the height of the surface that the engine collides with, m.

        It has two triangles per cell, divided by the diagonal from the smallest x and y.
        """
        place = self._place(x, y)
        corner = self._corners_at(place)
        is_first = place.x >= place.y
        slope_x = torch.where(is_first, corner.h10 - corner.h00, corner.h11 - corner.h01)
        slope_y = torch.where(is_first, corner.h11 - corner.h10, corner.h01 - corner.h00)
        return corner.h00 + place.x * slope_x + place.y * slope_y

    def normal(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the unit normal of the surface of `height`. Shape: (…, 3)."""
        place = self._place(x, y)
        corner = self._corners_at(place)
        is_first = place.x >= place.y
        down_x = torch.where(is_first, corner.h00 - corner.h10, corner.h01 - corner.h11)
        down_y = torch.where(is_first, corner.h10 - corner.h11, corner.h00 - corner.h01)
        up = torch.full_like(place.x, self.terrain.horizontal_scale)
        return normalize(torch.stack((down_x, down_y, up), dim=-1), dim=-1)

    def cast(self, origins: Tensor, directions: Tensor, farthest: float) -> Tensor:
        """Return the distance to the surface along rays, m.

        The surface is looked up every half cell, and is assumed to be straight in between.

        Args:
            origins: Points in the world, m. Shape: (…, 3).
            directions: Unit vectors in the world. Shape: (…, 3).
            farthest: Largest distance that is returned, m.

        Returns:
            Distances. Shape: (…,).
        """
        step = 0.5 * self.terrain.horizontal_scale
        distance = torch.full(origins.shape[:-1], farthest, device=origins.device)
        has_hit = torch.zeros_like(distance, dtype=torch.bool)
        above = torch.zeros_like(distance)
        for i in range(math.ceil(farthest / step) + 1):
            x, y, z = (origins + directions * (i * step)).unbind(-1)
            before = above
            above = z - self.height(x, y)
            hits_now = ~has_hit & (above < 0.0)
            crossing = step * (i - above / (above - before))
            distance = torch.where(hits_now, crossing, distance)
            has_hit |= hits_now
            if has_hit.all():
                break
        return distance.clamp(0.0, farthest)

    def bilinear(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the height interpolated between the four corners of a cell, m."""
        low_x, low_y = self.terrain.low
        cells_x, cells_y = self._num_cells
        scale = self.terrain.horizontal_scale
        # From −1 to 1 over the field; y comes first, because the field's columns run along it.
        grid_x = (x - low_x) * (2.0 / (cells_x * scale)) - 1.0
        grid_y = (y - low_y) * (2.0 / (cells_y * scale)) - 1.0
        grid = torch.stack((grid_y, grid_x), dim=-1).reshape(1, 1, -1, 2)
        heights = grid_sample(self._heights, grid, align_corners=True, padding_mode="border")
        return heights.view(x.shape)

    def lowest(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the least height of three corners of a cell, m.

        They are those at (0, 0), (1, 0) and (0, 1), as in legged_gym's ``_get_heights``.
        """
        return self._lowest[self._place(x, y).cell]

    def edge_distance(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the distance to the nearest point of an edge, at most 1 m."""
        return self._edges[self._place(x, y).cell]

    def choose_tiles(self, env_ids: Tensor, random: Stream) -> None:
        """Draw the tiles of ``env_ids`` (n,): any column, and one of the first levels."""
        low, high = self.terrain.first_levels
        num_columns = self.tile_origins.shape[1]
        draw = random.uniform(0.0, 1.0, 2, env_ids)
        self.levels[env_ids] = low + (draw[:, 0] * (high + 1 - low)).long()
        self.columns[env_ids] = (draw[:, 1] * num_columns).long()

    def _corners_at(self, place: Places) -> Corners:
        return Corners(*self._corners[place.cell].unbind(-1))

    def _place(self, x: Tensor, y: Tensor) -> Places:
        low_x, low_y = self.terrain.low
        cells_x, cells_y = self._num_cells
        scale = 1.0 / self.terrain.horizontal_scale
        place_x = ((x - low_x) * scale).clamp_(0.0, cells_x)
        place_y = ((y - low_y) * scale).clamp_(0.0, cells_y)
        # The last point of the field belongs to the last cell.
        row = place_x.int().clamp_(max=cells_x - 1)
        column = place_y.int().clamp_(max=cells_y - 1)
        return Places(x=place_x - row, y=place_y - column, cell=row * cells_y + column)


def _corners_of_cells(heights: Tensor) -> Tensor:
    """Return the heights of the corners (0, 0), (1, 0), (0, 1) and (1, 1) of each cell.

    Shape: (cells, 4).
    """
    h00 = heights[:-1, :-1]
    h10 = heights[1:, :-1]
    h01 = heights[:-1, 1:]
    h11 = heights[1:, 1:]
    return torch.stack((h00, h10, h01, h11), dim=-1).flatten(0, 1)


def _spread_along(squared: Tensor, axis: int, padded: Tensor) -> Tensor:
    """Return the least of the squared distances of all cells along an axis, each plus the way.

    Args:
        squared: Squared distances, in cells.
        axis: Axis along which distances spread.
        padded: ``squared`` with as many infinite cells on both sides as distances reach.
    """
    size = squared.shape[axis]
    reach = (padded.shape[axis] - size) // 2
    candidates = []
    for offset in range(-reach, reach + 1):
        shifted = padded.narrow(axis, reach + offset, size)
        candidates.append(shifted + offset * offset)
    return torch.stack(candidates).amin(0)
