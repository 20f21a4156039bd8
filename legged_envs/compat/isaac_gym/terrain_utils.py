"""``isaacgym.terrain_utils``: tiles of integer heights, and meshes of them.

Each function writes to ``height_field_raw`` of a :class:`SubTerrain` and returns it; sizes are m, random numbers are of
NumPy's global generator. Platforms are squares in the middle."""

import math
from typing import Any, NoReturn

import numpy as np

from legged_envs.compat.isaac_gym.missing import make_missing_name_error

Array = np.ndarray[Any, Any]


class SubTerrain:
    """A tile of ``width`` × ``length`` heights in units of ``vertical_scale``, each ``horizontal_scale`` apart."""

    def __init__(
        self,
        terrain_name: str,
        width: int,
        length: int,
        vertical_scale: float,
        horizontal_scale: float,
    ):
        self.terrain_name, self.width, self.length = terrain_name, width, length
        self.vertical_scale, self.horizontal_scale = vertical_scale, horizontal_scale
        self.height_field_raw = np.zeros((width, length), dtype=np.int16)

    def points(self, distance: float) -> int:
        return int(distance / self.horizontal_scale)

    def units(self, height: float) -> int:
        return int(height / self.vertical_scale)

    def flatten_middle(self, platform_size: float, height: int = 0) -> None:
        (x, y), half = (self.width // 2, self.length // 2), self.points(platform_size) // 2
        self.height_field_raw[x - half : x + half, y - half : y + half] = height


def random_uniform_terrain(
    terrain: SubTerrain,
    min_height: float,
    max_height: float,
    step: float = 1,
    downsampled_scale: float | None = None,
) -> SubTerrain:
    """Add heights of [min_height, max_height] in multiples of ``step``, drawn every ``downsampled_scale`` and straight
    between."""
    low, high, unit = terrain.units(min_height), terrain.units(max_height), terrain.units(step)
    part = terrain.horizontal_scale / (downsampled_scale or terrain.horizontal_scale)
    counts = [int(points * part) for points in (terrain.width, terrain.length)]
    heights = np.random.choice(np.arange(low, high + unit, unit), counts)
    for coarse, fine in zip(
        counts, (terrain.width, terrain.length), strict=True
    ):  # along x, then along y
        lines = [
            np.interp(np.linspace(0, 1, fine), np.linspace(0, 1, coarse), line)
            for line in heights.T
        ]
        heights = np.array(lines)
    terrain.height_field_raw += np.rint(heights).astype(np.int16)
    return terrain


def pyramid_sloped_terrain(
    terrain: SubTerrain, slope: float = 1.0, platform_size: float = 1.0
) -> SubTerrain:
    """Add a pyramid whose sides climb, or fall, by ``slope`` in the middle of each, cut off at the platform."""
    half = (terrain.width // 2, terrain.length // 2)
    lines = [
        1 - abs(np.arange(n) - c) / c
        for n, c in zip((terrain.width, terrain.length), half, strict=True)
    ]
    top = slope * terrain.horizontal_scale / terrain.vertical_scale * half[0]
    heights = terrain.height_field_raw + (top * lines[0][:, None] * lines[1]).astype(np.int16)
    edge = heights[tuple(max(c - terrain.points(platform_size) // 2, 0) for c in half)]
    terrain.height_field_raw[:] = np.clip(heights, min(edge, 0), max(edge, 0))
    return terrain


def pyramid_stairs_terrain(
    terrain: SubTerrain, step_width: float, step_height: float, platform_size: float = 1.0
) -> SubTerrain:
    """Square steps towards the middle, up, or down where ``step_height`` is negative."""
    width, rise, least = (
        terrain.points(step_width),
        terrain.units(step_height),
        terrain.points(platform_size),
    )
    for i in range(
        1, math.ceil((min(terrain.width, terrain.length) - least) / (2 * max(width, 1))) + 1
    ):
        inner = (
            slice(i * width, terrain.width - i * width),
            slice(i * width, terrain.length - i * width),
        )
        terrain.height_field_raw[inner] = i * rise
    return terrain


def discrete_obstacles_terrain(
    terrain: SubTerrain,
    max_height: float,
    min_size: float,
    max_size: float,
    num_rects: int,
    platform_size: float = 1.0,
) -> SubTerrain:
    """Rectangles of random sizes and places, ±max_height or ±max_height/2 high, and a flat platform."""
    top, sizes = terrain.units(max_height), [terrain.points(size) for size in (min_size, max_size)]
    for _ in range(num_rects):
        x_size, y_size = (np.random.choice(range(sizes[0], sizes[1], 4)) for _ in range(2))
        x = np.random.choice(range(0, terrain.width - x_size, 4))
        y = np.random.choice(range(0, terrain.length - y_size, 4))
        height = np.random.choice([-top, -top // 2, top // 2, top])
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
    """Square stones of ±max_height in rows, each row begun at a random place, with holes of ``depth`` between."""
    size, gap, top = (
        terrain.points(stone_size),
        terrain.points(stone_distance),
        terrain.units(max_height),
    )
    choices = np.arange(-top - 1, top) if top else np.zeros(1, int)
    terrain.height_field_raw[:] = terrain.units(depth)
    for y in range(0, terrain.length, size + gap):
        first = np.random.randint(0, size)
        for x in (first - gap - size, *range(first, terrain.width, size + gap)):
            stone = slice(max(x, 0), max(x + size, 0)), slice(y, y + size)
            terrain.height_field_raw[stone] = np.random.choice(choices)
    terrain.flatten_middle(platform_size)
    return terrain


def convert_heightfield_to_trimesh(
    height_field_raw: Array,
    horizontal_scale: float,
    vertical_scale: float,
    slope_threshold: float | None = None,
) -> tuple[Array, Array]:
    """Vertices, m, (rows · columns, 3) float32, y fastest, and two triangles per cell, uint32. Points at the foot of a
    rise steeper than ``slope_threshold`` move by one cell towards it, which makes the wall vertical."""
    rows, columns = height_field_raw.shape
    x, y = (
        np.repeat(np.arange(rows)[:, None], columns, 1),
        np.repeat(np.arange(columns)[None], rows, 0),
    )
    shift_x, shift_y, corner = (np.zeros((rows, columns), int) for _ in range(3))
    if slope_threshold is not None:
        steep = slope_threshold * horizontal_scale / vertical_scale
        heights = height_field_raw.astype(np.int64)
        for shift, rise in (
            (shift_x, heights[1:] - heights[:-1]),
            (shift_y.T, (heights[:, 1:] - heights[:, :-1]).T),
        ):
            shift[:-1] += rise > steep
            shift[1:] -= -rise > steep
        across = heights[1:, 1:] - heights[:-1, :-1]
        corner[:-1, :-1] += across > steep
        corner[1:, 1:] -= -across > steep
    vertices = np.zeros((rows, columns, 3), np.float32)
    vertices[..., 0] = (
        x + np.where(shift_x, shift_x, np.where(shift_y == 0, corner, 0))
    ) * horizontal_scale
    vertices[..., 1] = (
        y + np.where(shift_y, shift_y, np.where(shift_x == 0, corner, 0))
    ) * horizontal_scale
    vertices[..., 2] = height_field_raw * vertical_scale
    first = (x[:-1, :-1] * columns + y[:-1, :-1]).ravel()
    cells = [(first, first + columns + 1, first + 1), (first, first + columns, first + columns + 1)]
    triangles = (
        np.stack([np.stack(cell, axis=1) for cell in cells], axis=1)
        .reshape(-1, 3)
        .astype(np.uint32)
    )
    return vertices.reshape(-1, 3), triangles


def __getattr__(name: str) -> NoReturn:
    raise make_missing_name_error(f"terrain_utils.{name}")
