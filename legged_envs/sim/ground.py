"""Height look-ups on rough ground, and the tile of ground on which each environment starts."""

import math
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, normalize, pad

from legged_envs.rng import Stream
from legged_envs.state import Stateful, check_indices
from legged_envs.terrains import Terrain

FARTHEST_EDGE = 1.0
"""Largest distance that `Ground.edge_distance` returns, m."""


class Places(NamedTuple):
    """Positions of points within the cells of a height field.

    A cell is the square between four neighbouring points of the field. All tensors have the shape
    of the points.
    """

    u: Tensor
    """Position within the cell along x, from 0 to 1."""
    v: Tensor
    """Position within the cell along y, from 0 to 1."""
    cell: Tensor
    """Index of the cell, int32. Cells are numbered along y first, then along x."""


class Ground(Stateful):
    """Rough ground that all environments have in common: a :class:`~legged_envs.terrains.Terrain`.

    It returns heights, normals and distances at any points, and it holds the tile of the ground on
    which each environment starts. Look-ups have as arguments world coordinates x and y, m, of the
    same shape, and return tensors of that shape. Outside of the height field the ground is as high
    as at the nearest point of the field.

    Args:
        terrain: Height field with its tiles.
        num_envs: Number of environments.
        device: Device of all tensors.
    """

    STATE = ("levels", "columns")

    def __init__(self, terrain: Terrain, num_envs: int, device: torch.device):
        self.terrain = terrain
        """Height field with its tiles."""
        self.num_envs = num_envs
        """Number of environments."""
        heights = torch.from_numpy(terrain.heights).to(device)
        num_x, num_y = terrain.heights.shape
        self._scale = terrain.horizontal_scale
        self._cells_per_metre = 1.0 / self._scale
        self._cells_x = num_x - 1
        self._cells_y = num_y - 1
        # A batch and a channel in front, as grid_sample expects them.
        self._heights = heights[None, None].contiguous()
        # The corners of a cell lie side by side in memory: a look-up reads one row.
        self._corners = _corners_of_cells(heights)
        # legged_gym's look-up leaves out the corner (1, 1).
        three_corners = self._corners[:, :3]
        self._lowest = three_corners.amin(1)

        half_x = 0.5 * self._cells_x * self._scale
        half_y = 0.5 * self._cells_y * self._scale

        self.half_extent = (half_x, half_y)
        """Half of the side lengths of the height field along x and y, m."""
        self.tile_origins = torch.from_numpy(terrain.origins).to(device)
        """Place on each tile where robots start, in the world, m. Shape: (rows, columns, 3)."""
        self.levels = torch.zeros(num_envs, dtype=torch.int64, device=device)
        """Row, the level of difficulty, of the tile on which each environment starts its episodes.
        Shape: (num_envs,), int64."""
        self.columns = torch.zeros(num_envs, dtype=torch.int64, device=device)
        """Column of the tile on which each environment starts its episodes. Shape: (num_envs,),
        int64."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the tiles of a state from ``state_dict``.

        Raises:
            ValueError: A tile does not exist.
        """
        num_levels, num_columns, _ = self.tile_origins.shape
        check_indices("levels", state["levels"], num_levels)
        check_indices("columns", state["columns"], num_columns)
        super().load_state_dict(state)

    @cached_property
    def _edges(self) -> Tensor:
        """Distance of each cell to the nearest edge, m, at most `FARTHEST_EDGE`. (cells,)."""
        # A cell is an edge if its corners differ by more than a slope does.
        steep = self.terrain.slope_threshold * self._scale
        highest = self._corners.amax(1)
        lowest = self._corners.amin(1)
        is_edge = (highest - lowest > steep).view(self._cells_x, self._cells_y)
        # The squared distance to the nearest edge is the least of dx² + dy². It is found along x
        # for each row, and then along y from these results (Felzenszwalb and Huttenlocher 2012).
        squared = torch.where(is_edge, 0.0, torch.inf)
        reach = math.ceil(FARTHEST_EDGE / self._scale)
        padded = pad(squared, (0, 0, reach, reach), value=torch.inf)
        squared = _spread_along(0, padded, reach)
        padded = pad(squared, (reach, reach), value=torch.inf)
        squared = _spread_along(1, padded, reach)
        distance = squared.sqrt() * self._scale
        return distance.clamp(max=FARTHEST_EDGE).flatten()

    @property
    def origins(self) -> Tensor:
        """Place in the world where each environment starts its episodes, m. Shape: (num_envs, 3).

        It is the start on the tile in row ``levels`` and column ``columns``.
        """
        return self.tile_origins[self.levels, self.columns]

    def height(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the height of the ground at points (x, y), m.

        It is the surface with which robots collide, except at the vertical faces of boxes
        (``TerrainCfg.vertical_risers``), where it falls over a cell. Each cell has two triangles,
        which are divided by the diagonal from the corner with the smallest x and y.
        """
        u, v, cell = self._place(x, y)
        h00, h10, h01, h11 = self._corner_heights(cell)
        is_first = u >= v
        # The first triangle has the corners 00, 10 and 11, the second one 00, 01 and 11.
        first_x = h10 - h00
        first_y = h11 - h10
        second_x = h11 - h01
        second_y = h01 - h00
        slope_x = torch.where(is_first, first_x, second_x)
        slope_y = torch.where(is_first, first_y, second_y)
        return h00 + u * slope_x + v * slope_y

    def normal(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the unit normal of the ground at points (x, y) in the world. Shape: (…, 3)."""
        u, v, cell = self._place(x, y)
        h00, h10, h01, h11 = self._corner_heights(cell)
        is_first = u >= v
        # The normal of z = h(x, y) is (−∂h/∂x, −∂h/∂y, 1), here times the side of a cell.
        first_x = h00 - h10
        first_y = h10 - h11
        second_x = h01 - h11
        second_y = h00 - h01
        down_x = torch.where(is_first, first_x, second_x)
        down_y = torch.where(is_first, first_y, second_y)
        up = torch.full_like(u, self._scale)
        normal = torch.stack((down_x, down_y, up), dim=-1)
        return normalize(normal, dim=-1)

    def cast(self, origins: Tensor, directions: Tensor, farthest: float) -> Tensor:
        """Return the distances along rays to the ground.

        The height of the ground is looked up every half cell along a ray, and is interpolated
        linearly in between.

        Args:
            origins: Starts of the rays in the world, m. Shape: (…, 3).
            directions: Unit vectors along the rays in the world. Shape: (…, 3).
            farthest: Largest distance that is returned, m, also for rays that do not hit.

        Returns:
            Distances, m. Shape: (…,).
        """
        step = 0.5 * self._scale
        shape = origins.shape[:-1]
        distance = torch.full(shape, farthest, device=origins.device)
        has_hit = torch.zeros_like(distance, dtype=torch.bool)
        above = torch.zeros_like(distance)
        for i in range(math.ceil(farthest / step) + 1):
            points = origins + directions * (i * step)
            x, y, z = points.unbind(-1)
            before = above
            above = z - self.height(x, y)
            hits_now = ~has_hit & (above < 0.0)
            # Between the last point above the surface and the first one below it.
            crossing = step * (i - above / (above - before))
            distance = torch.where(hits_now, crossing, distance)
            has_hit |= hits_now
            # Further steps would change nothing.
            if has_hit.all():
                break
        return distance.clamp(0.0, farthest)

    def bilinear(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the height at points (x, y), bilinear between the four corners of a cell, m."""
        low_x, low_y = self.terrain.low
        # grid_sample takes coordinates from −1 to 1 over the field, first for the columns, y.
        per_metre_x = 2.0 / (self._cells_x * self._scale)
        per_metre_y = 2.0 / (self._cells_y * self._scale)
        grid_x = (x - low_x) * per_metre_x - 1.0
        grid_y = (y - low_y) * per_metre_y - 1.0
        grid = torch.stack((grid_y, grid_x), dim=-1)
        grid = grid.reshape(1, 1, -1, 2)
        heights = grid_sample(self._heights, grid, align_corners=True, padding_mode="border")
        return heights.view(x.shape)

    def lowest(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the lowest of three corners of the cell at points (x, y), m.

        The corners are (0, 0), (1, 0) and (0, 1), as in legged_gym's ``_get_heights``.
        """
        return self._lowest[self._place(x, y).cell]

    def edge_distance(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the distance from points (x, y) to the nearest edge, at most 1 m.

        An edge is a cell steeper than ``Terrain.slope_threshold``, such as at a stair.
        """
        return self._edges[self._place(x, y).cell]

    def choose_tiles(self, env_ids: Tensor, random: Stream) -> None:
        """Draw the tile on which each of some environments starts.

        The column is any one, the row is one of ``Terrain.first_levels``.

        Args:
            env_ids: Indices of the environments. Shape: (n,).
            random: Random stream. Each environment uses its own numbers of it.
        """
        low, high = self.terrain.first_levels
        num_columns = self.tile_origins.shape[1]
        num_levels = high + 1 - low
        # Two numbers per environment, whatever the size of the ground, so that later draws from the
        # stream do not depend on it.
        draw = random.uniform(0.0, 1.0, 2, env_ids)
        level_draw, column_draw = draw.unbind(1)
        level = (level_draw * num_levels).long()
        column = (column_draw * num_columns).long()
        self.levels[env_ids] = low + level
        self.columns[env_ids] = column

    def _corner_heights(self, cell: Tensor) -> tuple[Tensor, ...]:
        """Return the heights of a cell's corners (0, 0), (1, 0), (0, 1) and (1, 1), m."""
        return self._corners[cell].unbind(-1)

    def _place(self, x: Tensor, y: Tensor) -> Places:
        low_x, low_y = self.terrain.low
        u, row = self._split(x - low_x, self._cells_x)
        v, column = self._split(y - low_y, self._cells_y)
        return Places(u, v, row * self._cells_y + column)

    def _split(self, from_edge: Tensor, num_cells: int) -> tuple[Tensor, Tensor]:
        """Return the position in a cell, from 0 to 1, and the cell's number, along one axis.

        Args:
            from_edge: Distances from the edge of the field, m.
            num_cells: Cells along the axis.
        """
        # Clamped, so that the ground beyond the border is that at its nearest point.
        along = (from_edge * self._cells_per_metre).clamp_(0.0, num_cells)
        # The last point of the field belongs to the last cell.
        cell = along.int().clamp_(max=num_cells - 1)
        return along - cell, cell


def _corners_of_cells(heights: Tensor) -> Tensor:
    """Return the heights of the corners (0, 0), (1, 0), (0, 1) and (1, 1) of each cell.

    Shape: (cells, 4).
    """
    h00 = heights[:-1, :-1]
    h10 = heights[1:, :-1]
    h01 = heights[:-1, 1:]
    h11 = heights[1:, 1:]
    corners = torch.stack((h00, h10, h01, h11), dim=-1)
    return corners.flatten(0, 1)


def _spread_along(axis: int, padded: Tensor, reach: int) -> Tensor:
    """Return the least of d² + k² over all cells at a distance of k cells along an axis.

    Args:
        axis: Axis along which distances spread.
        padded: Squared distances d², in cells, with ``reach`` infinite cells on both sides.
        reach: Largest k.
    """
    size = padded.shape[axis] - 2 * reach
    candidates = []
    for offset in range(-reach, reach + 1):
        shifted = padded.narrow(axis, reach + offset, size)
        candidates.append(shifted + offset * offset)
    return torch.stack(candidates).amin(0)
