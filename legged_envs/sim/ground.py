"""The height field under every robot: what is where on it, and on which of its tiles each environment begins."""

import math
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, normalize, pad

from legged_envs.rng import Stream
from legged_envs.state import Stateful
from legged_envs.terrains import Terrain


class Ground(Stateful):
    """One :class:`~legged_envs.terrains.Terrain` under all environments, on ``device``. Outside of the field the ground
    is as high as at its nearest point. Look-ups take world coordinates x and y, m, of the same shape."""

    STATE = ("levels", "columns")

    def __init__(self, terrain: Terrain, num_envs: int, device: torch.device):
        self.terrain, self.num_envs = terrain, num_envs
        heights = torch.from_numpy(terrain.heights).to(device)
        self._heights = heights[None, None].contiguous()
        corners = (heights[:-1, :-1], heights[1:, :-1], heights[:-1, 1:], heights[1:, 1:])
        self._corners = torch.stack(corners, dim=-1).flatten(0, 1)
        """Heights of the corners (0, 0), (1, 0), (0, 1) and (1, 1) of each cell, m. Shape: (cells, 4)."""
        self._lowest = self._corners[:, :3].amin(1)
        self._cells = tuple(points - 1 for points in terrain.heights.shape)
        self.half_extent = tuple(0.5 * cells * terrain.horizontal_scale for cells in self._cells)
        """Half of the field's sides along x and y, m."""
        self.tile_origins = torch.from_numpy(terrain.origins).to(device)
        """Where robots begin on each tile, m in the world. Shape: (rows, columns, 3)."""
        self.levels = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self.columns = self.levels.clone()
        """The tile on which each environment begins its episodes: its row, or level, and column. Shape: (num_envs,)."""

    @cached_property
    def _edges(self) -> Tensor:
        """Distance of each cell to the nearest edge, m, at most 1 m. Shape: (cells,)."""
        terrain = self.terrain
        steep = terrain.slope_threshold * terrain.horizontal_scale
        drop = self._corners.amax(1) - self._corners.amin(1)
        squared = torch.where((drop > steep).view(self._cells), 0.0, torch.inf)
        reach = math.ceil(1.0 / terrain.horizontal_scale)
        for axis in (0, 1):  # the distance along one axis, then along the other
            wide = pad(squared, (0, 0) * (1 - axis) + (reach, reach), value=torch.inf)
            shifted = [
                wide.narrow(axis, reach + k, squared.shape[axis]) + k * k
                for k in range(-reach, reach + 1)
            ]
            squared = torch.stack(shifted).amin(0)
        return (squared.sqrt() * terrain.horizontal_scale).clamp(max=1.0).flatten()

    @property
    def origins(self) -> Tensor:
        """Where each environment begins, m. Shape: (num_envs, 3)."""
        return self.tile_origins[self.levels, self.columns]

    def height(self, x: Tensor, y: Tensor) -> Tensor:
        """Height of the surface with which the engine collides, two triangles per cell, m."""
        x, y, (h00, h10, h01, h11) = self._cell(x, y)
        first = x >= y
        return (
            h00
            + x * torch.where(first, h10 - h00, h11 - h01)
            + y * torch.where(first, h11 - h10, h01 - h00)
        )

    def cast(self, origins: Tensor, directions: Tensor, farthest: float) -> Tensor:
        """How far it is to the surface from each origin along each unit direction, at most ``farthest``, m. Looks every
        half cell, and takes the ground to be straight between. Shapes: (…, 3) twice → (…,)."""
        step = 0.5 * self.terrain.horizontal_scale
        distance = torch.full(origins.shape[:-1], farthest, device=origins.device)
        hit, above = torch.zeros_like(distance, dtype=torch.bool), torch.zeros_like(distance)
        for i in range(math.ceil(farthest / step) + 1):
            x, y, z = (origins + directions * (i * step)).unbind(-1)
            before, above = above, z - self.height(x, y)
            first = ~hit & (above < 0.0)
            distance = torch.where(first, step * (i - above / (above - before)), distance)
            hit |= first
            if hit.all():
                break
        return distance.clamp(0.0, farthest)

    def normal(self, x: Tensor, y: Tensor) -> Tensor:
        """Unit normal of that surface. Shape: (…, 3)."""
        x, y, (h00, h10, h01, h11) = self._cell(x, y)
        first = x >= y
        slopes = torch.where(first, h00 - h10, h01 - h11), torch.where(first, h10 - h11, h00 - h01)
        return normalize(
            torch.stack((*slopes, torch.full_like(x, self.terrain.horizontal_scale)), dim=-1),
            dim=-1,
        )

    def bilinear(self, x: Tensor, y: Tensor) -> Tensor:
        """Height between the four corners of a cell, m."""
        places = [
            (value - low) * (2.0 / (cells * self.terrain.horizontal_scale)) - 1.0
            for value, low, cells in zip(
                (y, x), self.terrain.low[::-1], self._cells[::-1], strict=True
            )
        ]
        grid = torch.stack(places, dim=-1).reshape(1, 1, -1, 2)
        return grid_sample(self._heights, grid, align_corners=True, padding_mode="border").view(
            x.shape
        )

    def edge_distance(self, x: Tensor, y: Tensor) -> Tensor:
        """Distance to the nearest point of an edge, at most 1 m."""
        return self._edges[self._index(x, y)[2]]

    def choose_tiles(self, env_ids: Tensor, random: Stream) -> None:
        """Draw the tiles of ``env_ids``: any column, and one of the first levels."""
        low, high = self.terrain.first_levels
        draw = random.uniform(0.0, 1.0, 2, env_ids)
        self.levels[env_ids] = low + (draw[:, 0] * (high + 1 - low)).long()
        self.columns[env_ids] = (draw[:, 1] * self.tile_origins.shape[1]).long()

    def lowest(self, x: Tensor, y: Tensor) -> Tensor:
        """The least height of the corners (0, 0), (1, 0) and (0, 1) of a cell (legged_gym ``_get_heights``), m."""
        return self._lowest[self._index(x, y)[2]]

    def _cell(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Where in its cell each point is, 0 to 1 along x and y, and the heights of the corners of that."""
        x, y, index = self._index(x, y)
        return x, y, self._corners[index].unbind(-1)

    def _index(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        places, scale = [], 1.0 / self.terrain.horizontal_scale
        for value, low, cells in zip((x, y), self.terrain.low, self._cells, strict=True):
            place = ((value - low) * scale).clamp_(0.0, cells)
            cell = place.int().clamp_(max=cells - 1)
            places.append((place - cell, cell))
        (x, row), (y, column) = places
        return x, y, row * self._cells[1] + column
