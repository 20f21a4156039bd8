"""`isaacgym.terrain_utils`: tiles of integer heights, and meshes of them.

Each function writes into ``height_field_raw`` of a :class:`SubTerrain` and returns the tile. Sizes
are in m. Random numbers come from NumPy's global generator. Platforms are squares in the middle.
"""

import math
from importlib import import_module
from importlib.util import find_spec
from math import sqrt
from typing import NoReturn

import numpy as np
from numpy.random import choice

from legged_envs.compat.isaac_gym.missing import make_missing_name_error

# A star import brings these modules too, as in Isaac Gym.
__all__ = [
    "SubTerrain",
    "choice",
    "convert_heightfield_to_trimesh",
    "discrete_obstacles_terrain",
    "np",
    "pyramid_sloped_terrain",
    "pyramid_stairs_terrain",
    "random_uniform_terrain",
    "sloped_terrain",
    "sqrt",
    "stairs_terrain",
    "stepping_stones_terrain",
    "wave_terrain",
]
if find_spec("scipy"):
    # This package does not need SciPy, and codebases that do have it.
    interpolate = import_module("scipy.interpolate")
    __all__ += ["interpolate"]

RECTANGLE_STEP = 4
"""Step of the sizes and places of obstacles, points, as in Isaac Gym."""


class SubTerrain:
    """A tile of ``width`` × ``length`` heights.

    Args:
        terrain_name: Name of the tile.
        width: Number of points along x.
        length: Number of points along y.
        vertical_scale: Unit of the heights, m.
        horizontal_scale: Distance of neighboring points, m.
    """

    def __init__(
        self,
        terrain_name: str = "terrain",
        width: int = 256,
        length: int = 256,
        vertical_scale: float = 1.0,
        horizontal_scale: float = 1.0,
    ):
        self.terrain_name = terrain_name
        """Name of the tile."""
        self.width = width
        """Number of points along x."""
        self.length = length
        """Number of points along y."""
        self.vertical_scale = vertical_scale
        """Unit of the heights, m."""
        self.horizontal_scale = horizontal_scale
        """Distance of neighboring points, m."""
        self.height_field_raw = np.zeros((width, length), dtype=np.int16)
        """Heights in units of ``vertical_scale``. Shape: (width, length), int16."""

    def points(self, distance: float) -> int:
        """Return the number of points of a distance, m."""
        return int(distance / self.horizontal_scale)

    def units(self, height: float) -> int:
        """Return a height, m, in units of ``vertical_scale``, rounded towards 0."""
        return int(height / self.vertical_scale)

    def flatten_middle(self, platform_size: float, height: int = 0) -> None:
        """Set the heights of the platform, in units of ``vertical_scale``."""
        side = self.points(platform_size)
        x = slice((self.width - side) // 2, (self.width + side) // 2)
        y = slice((self.length - side) // 2, (self.length + side) // 2)
        self.height_field_raw[x, y] = height


def random_uniform_terrain(
    terrain: SubTerrain,
    min_height: float,
    max_height: float,
    step: float = 1,
    downsampled_scale: float | None = None,
) -> SubTerrain:
    """Add random heights.

    Args:
        terrain: The tile.
        min_height: Least height, m.
        max_height: Largest height, m, exceeded by less than a step if the steps do not fit.
        step: Step of the heights, m.
        downsampled_scale: Distance of the random heights, m. Heights between them are interpolated
            linearly. None: every point has a random height.
    """
    low = terrain.units(min_height)
    high = terrain.units(max_height)
    unit = terrain.units(step)
    spacing = downsampled_scale or terrain.horizontal_scale
    # In Isaac Gym's order of operations, which decides the rounding.
    counts = (
        int(terrain.width * terrain.horizontal_scale / spacing),
        int(terrain.length * terrain.horizontal_scale / spacing),
    )
    heights = np.random.choice(np.arange(low, high + unit, unit), counts)
    # Each call interpolates along the first axis and swaps the axes, so two calls return them.
    heights = _interpolate_columns(heights, terrain.width)
    heights = _interpolate_columns(heights, terrain.length)
    terrain.height_field_raw += np.rint(heights).astype(np.int16)
    return terrain


def _interpolate_columns(heights: np.ndarray, count: int) -> np.ndarray:
    """Return each column with ``count`` values, as a row. Shape: (columns, count)."""
    coarse = np.linspace(0, 1, len(heights))
    fine = np.linspace(0, 1, count)
    return np.array([np.interp(fine, coarse, column) for column in heights.T])


def sloped_terrain(terrain: SubTerrain, slope: float = 1.0) -> SubTerrain:
    """Add a slope that rises along x.

    Args:
        terrain: The tile.
        slope: Rise divided by length. Negative: it falls.
    """
    top = int(slope * (terrain.horizontal_scale / terrain.vertical_scale) * terrain.width)
    x = np.arange(terrain.width)[:, None]
    terrain.height_field_raw += (top * x / terrain.width).astype(np.int16)
    return terrain


def wave_terrain(terrain: SubTerrain, num_waves: int = 1, amplitude: float = 1.0) -> SubTerrain:
    """Add waves along x and along y.

    Args:
        terrain: The tile.
        num_waves: Number of waves along y. 0: none are added.
        amplitude: Height of the waves of one direction from the lowest to the highest point, m.
    """
    if num_waves <= 0:
        return terrain
    half = int(0.5 * amplitude / terrain.vertical_scale)
    # Both directions have the wavelength that fits the length, as in Isaac Gym.
    wave_number = num_waves * 2 * np.pi / terrain.length
    x = np.arange(terrain.width)[:, None]
    y = np.arange(terrain.length)[None]
    waves = half * np.cos(y * wave_number) + half * np.sin(x * wave_number)
    terrain.height_field_raw += waves.astype(np.int16)
    return terrain


def stairs_terrain(terrain: SubTerrain, step_width: float, step_height: float) -> SubTerrain:
    """Add stairs that climb along x. The rest of the width behind the last step stays as it is.

    Args:
        terrain: The tile.
        step_width: Width of a step, m.
        step_height: Height of a step, m. Negative: the stairs lead down.

    Raises:
        ValueError: If a step is narrower than the distance of two points.
    """
    width = terrain.points(step_width)
    rise = terrain.units(step_height)
    if width < 1:
        raise ValueError(
            f"stairs_terrain: step_width={step_width} is less than the distance of two points, "
            f"{terrain.horizontal_scale}: give wider steps or a smaller horizontal_scale"
        )
    for i in range(terrain.width // width):
        terrain.height_field_raw[i * width : (i + 1) * width] += (i + 1) * rise
    return terrain


def pyramid_sloped_terrain(
    terrain: SubTerrain, slope: float = 1.0, platform_size: float = 1.0
) -> SubTerrain:
    """Add a pyramid that is cut off at the platform.

    Args:
        terrain: The tile.
        slope: Slope in the middle of each side. Negative: the sides fall towards the middle.
        platform_size: Side of the platform, m.
    """
    half_width = terrain.width // 2
    half_length = terrain.length // 2
    rise_x = (half_width - abs(np.arange(terrain.width) - half_width)) / half_width
    rise_y = (half_length - abs(np.arange(terrain.length) - half_length)) / half_length
    # Rounded towards 0, from the exact half of the width, as in Isaac Gym.
    units_per_point = terrain.horizontal_scale / terrain.vertical_scale
    top = int(slope * units_per_point * (terrain.width / 2))
    pyramid = (top * rise_x[:, None] * rise_y).astype(np.int16)
    heights = terrain.height_field_raw + pyramid
    half_platform = terrain.points(platform_size) // 2
    edge_x = max(half_width - half_platform, 0)
    edge_y = max(half_length - half_platform, 0)
    edge = heights[edge_x, edge_y]
    # The height at the platform's corner cuts the pyramid, also a falling pyramid.
    terrain.height_field_raw[:] = np.clip(heights, min(edge, 0), max(edge, 0))
    return terrain


def pyramid_stairs_terrain(
    terrain: SubTerrain, step_width: float, step_height: float, platform_size: float = 1.0
) -> SubTerrain:
    """Set square steps that climb towards the middle.

    Args:
        terrain: The tile.
        step_width: Width of a step, m.
        step_height: Height of a step, m. Negative: the steps lead down.
        platform_size: Least side of the platform, m.
    """
    width = terrain.points(step_width)
    rise = terrain.units(step_height)
    least = terrain.points(platform_size)
    # Steps are narrower than a point if the grid is coarse. Then all fall together.
    room = min(terrain.width, terrain.length) - least
    num_steps = math.ceil(room / (2 * max(width, 1)))
    for i in range(1, num_steps + 1):
        border = i * width
        inner_x = slice(border, terrain.width - border)
        inner_y = slice(border, terrain.length - border)
        terrain.height_field_raw[inner_x, inner_y] = i * rise
    return terrain


def discrete_obstacles_terrain(
    terrain: SubTerrain,
    max_height: float,
    min_size: float,
    max_size: float,
    num_rects: int,
    platform_size: float = 1.0,
) -> SubTerrain:
    """Set rectangles at random places, and a flat platform.

    Args:
        terrain: The tile.
        max_height: Height of the rectangles, m. Each has this height or half of it, up or down.
        min_size: Least side of a rectangle, m.
        max_size: Largest side of a rectangle, m.
        num_rects: Number of rectangles.
        platform_size: Side of the platform, m.
    """
    top = terrain.units(max_height)
    sizes = range(terrain.points(min_size), terrain.points(max_size), RECTANGLE_STEP)
    heights = [-top, -top // 2, top // 2, top]
    for _ in range(num_rects):
        # The order of the draws decides the terrain of a seed.
        x_size = np.random.choice(sizes)
        y_size = np.random.choice(sizes)
        x = np.random.choice(range(0, terrain.width - x_size, RECTANGLE_STEP))
        y = np.random.choice(range(0, terrain.length - y_size, RECTANGLE_STEP))
        height = np.random.choice(heights)
        terrain.height_field_raw[x : x + x_size, y : y + y_size] = height
    terrain.flatten_middle(platform_size)
    return terrain


def stepping_stones_terrain(
    terrain: SubTerrain,
    stone_size: float,
    stone_distance: float,
    max_height: float,
    platform_size: float = 1,
    depth: float = -10,
) -> SubTerrain:
    """Set square stones in rows, with holes between them, and a flat platform.

    Args:
        terrain: The tile.
        stone_size: Side of a stone, m.
        stone_distance: Gap between neighboring stones, m.
        max_height: Stones are from −``max_height`` to ``max_height`` high, minus one unit of
            height, m.
        platform_size: Side of the platform, m.
        depth: Height of the bottom of the holes, m.
    """
    size = terrain.points(stone_size)
    gap = terrain.points(stone_distance)
    top = terrain.units(max_height)
    # Isaac Gym has this range: it starts one unit lower and has no stone at the top.
    choices = np.arange(-top - 1, top)
    terrain.height_field_raw[:] = terrain.units(depth)
    # Isaac Gym lays the rows across the longer side of a tile.
    tile = terrain.height_field_raw
    across = tile if terrain.length >= terrain.width else tile.T
    row_length, num_rows = across.shape
    for row in range(0, num_rows, size + gap):
        # Each row starts at a random place, with a part of a stone at the border.
        first = np.random.randint(0, size)
        for stone in (first - gap - size, *range(first, row_length, size + gap)):
            begin = max(stone, 0)
            end = max(stone + size, 0)
            # A height is drawn also for a stone outside of the tile: the draws decide the others.
            across[begin:end, row : row + size] = np.random.choice(choices)
    terrain.flatten_middle(platform_size)
    return terrain


def convert_heightfield_to_trimesh(
    height_field_raw: np.ndarray,
    horizontal_scale: float,
    vertical_scale: float,
    slope_threshold: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a triangle mesh of heights.

    Args:
        height_field_raw: Heights in units of ``vertical_scale``. Shape: (rows, columns).
        horizontal_scale: Distance of neighboring points, m.
        vertical_scale: Unit of the heights, m.
        slope_threshold: Slope above which a rise becomes a vertical wall: the points at its foot
            are moved by one cell. None: no points are moved.

    Returns:
        Vertices, m, and triangles. Vertices have the shape (rows · columns, 3), float32, with y
        fastest. Triangles are three indices of vertices each, uint32, two triangles per cell.
    """
    rows, columns = height_field_raw.shape
    x = np.repeat(np.arange(rows)[:, None], columns, 1)
    y = np.repeat(np.arange(columns)[None], rows, 0)
    if slope_threshold is None:
        moved_x = x
        moved_y = y
    else:
        # A difference of two int16 does not always fit into an int16.
        heights = height_field_raw.astype(np.int64)
        steep = slope_threshold * horizontal_scale / vertical_scale
        shift_x, shift_y = _compute_shifts(heights, steep)
        moved_x = x + shift_x
        moved_y = y + shift_y
    vertices = np.zeros((rows, columns, 3), np.float32)
    vertices[..., 0] = moved_x * horizontal_scale
    vertices[..., 1] = moved_y * horizontal_scale
    vertices[..., 2] = height_field_raw * vertical_scale
    # Index of the vertex with the least x and y of each cell.
    vertex_ids = np.arange(rows * columns).reshape(rows, columns)
    first = vertex_ids[:-1, :-1].ravel()
    upper = np.stack((first, first + columns + 1, first + 1), axis=1)
    lower = np.stack((first, first + columns, first + columns + 1), axis=1)
    triangles = np.stack((upper, lower), axis=1).reshape(-1, 3).astype(np.uint32)
    return vertices.reshape(-1, 3), triangles


def _compute_shifts(heights: np.ndarray, steep: float) -> tuple[np.ndarray, np.ndarray]:
    """Return by how many cells each point is moved along x and y.

    A point is moved along the diagonal if only its diagonal neighbor is higher. A move along an
    axis comes first, because it closes the wall already.

    Args:
        heights: Heights of the points.
        steep: Difference of neighboring heights above which a rise becomes a wall.
    """
    shift_x = np.zeros(heights.shape, int)
    shift_y = np.zeros(heights.shape, int)
    diagonal = np.zeros(heights.shape, int)
    rise_x = np.diff(heights, axis=0)
    _add_shifts(shift_x[:-1], shift_x[1:], rise_x, steep)
    rise_y = np.diff(heights, axis=1)
    _add_shifts(shift_y[:, :-1], shift_y[:, 1:], rise_y, steep)
    rise_across = heights[1:, 1:] - heights[:-1, :-1]
    _add_shifts(diagonal[:-1, :-1], diagonal[1:, 1:], rise_across, steep)
    diagonal_x = np.where(shift_y == 0, diagonal, 0)
    diagonal_y = np.where(shift_x == 0, diagonal, 0)
    return np.where(shift_x, shift_x, diagonal_x), np.where(shift_y, shift_y, diagonal_y)


def _add_shifts(before: np.ndarray, after: np.ndarray, rise: np.ndarray, steep: float) -> None:
    """Move the lower one of each two points towards the higher one, in place.

    Args:
        before: Shifts of the first points.
        after: Shifts of the second points.
        rise: Height of the second points above the first ones.
        steep: Difference above which they are moved.
    """
    before += rise > steep
    after -= -rise > steep


def __getattr__(name: str) -> NoReturn:
    raise make_missing_name_error(f"terrain_utils.{name}")
