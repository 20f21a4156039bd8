"""Makes the height field of a terrain from many tiles, or from one source of heights."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from legged_envs.terrains.boxes import lowered
from legged_envs.terrains.cfg import TerrainCfg
from legged_envs.terrains.generators import make_tile
from legged_envs.terrains.grid import Array, Grid
from legged_envs.terrains.kinds import make_boxes
from legged_envs.terrains.sources import load_source


@dataclass(frozen=True, eq=False, repr=False)
class Terrain:
    """A height field centred on (0, 0) of the world, with the places on it where robots start.

    The field consists of rows × columns square tiles and a margin around them. A field from a
    source of heights has one tile.
    """

    heights: Array
    """Heights of all points, m. Shape: (nx, ny), float32.

    Point [i, j] is at x = ``low[0]`` + i · ``horizontal_scale`` and
    y = ``low[1]`` + j · ``horizontal_scale``.
    """
    horizontal_scale: float
    """Distance between neighbouring points, m."""
    low: tuple[float, float]
    """x and y of the first point, [0, 0], m. It is the corner of the field with the smallest x and
    y."""
    origins: Array
    """Place on each tile where robots start: (x, y, z), m. Shape: (rows, columns, 3), float32.

    x and y are the middle of the tile. z is the largest height in the square of 2 × 2 m around it,
    or of 1 × 1 m for tiles with a side below 4 m.
    """
    kinds: tuple[str, ...]
    """Kind of the tiles in each column, such as ``"stairs_up"``. ``("source",)`` for a source."""
    size: float
    """Side of a square tile, m. For a source of heights it is the shorter side."""
    slope_threshold: float = 0.75
    """Slope between two neighbouring points above which there is an edge, such as the edge of a
    stair."""
    first_levels: tuple[int, int] = (0, 0)
    """Lowest and highest level (row of tiles) on which robots start at first."""
    boxes: Array | None = None
    """Boxes that robots collide with, in addition to the height field: x, y and z of the middle,
    then half of the side along x, y and z, m. Shape: (count, 6). None: there are none."""
    collision_heights: Array | None = None
    """Heights of the height field that robots collide with, lower than ``heights`` where boxes
    are, m. Shape: (nx, ny), float32. None: they are equal to ``heights``."""

    @property
    def env_length(self) -> float:
        """Side of a tile along x, m. It equals ``size``; legged_gym has this name."""
        return self.size

    @property
    def env_width(self) -> float:
        """Side of a tile along y, m. It equals ``size``; legged_gym has this name."""
        return self.size


def check_terrain(cfg: TerrainCfg) -> None:
    """Check that a terrain can be made from a configuration.

    All fields are checked. For each kind, the tiles of the first and the last level are made. A
    source is loaded instead.

    Raises:
        ValueError: A field is wrong, a kind cannot be made or a source cannot be read. The message
            names the field.
        FileNotFoundError: There is no file at the path of the source.
        ModuleNotFoundError: The module that reads the source is not installed.
    """
    cfg.check()
    if cfg.source is not None:
        load_source(cfg)
        return
    # Levels between the first and the last have parameters between theirs.
    grid = _make_grid(cfg)
    for kind in cfg.kinds:
        make_tile(cfg, grid, kind, row=0, column=0)
        if cfg.rows > 1:
            make_tile(cfg, grid, kind, row=cfg.rows - 1, column=0)


def make_terrain(cfg: TerrainCfg) -> Terrain:
    """Make the height field of a configuration. Equal configurations give equal fields.

    The heights of a tile depend only on its kind, its difficulty and (seed, row, column).

    Raises:
        ValueError: A field is wrong, a kind cannot be made or a source cannot be read.
        FileNotFoundError: There is no file at the path of the source.
        ModuleNotFoundError: The module that reads the source is not installed.
    """
    check_terrain(cfg)
    if cfg.source is None:
        kinds = column_kinds(cfg)
        tiles = _make_tiles(cfg, kinds)
    else:
        kinds = ("source",)
        tiles = [[load_source(cfg)]]
    spacing = cfg.horizontal_scale
    has_boxes = cfg.source is None and cfg.vertical_risers
    places = shown = list(range(len(kinds)))
    if has_boxes:
        # Every box makes physics slower, and stairs of one level are all equal.
        shown, places = _distinct_columns(tiles)
        tiles = [[level[column] for column in shown] for level in tiles]
    field = _with_border(cfg, _join_tiles(tiles))
    boxes = collision_heights = None
    if has_boxes:
        boxes, lowered_tiles = _add_boxes(cfg, [kinds[column] for column in shown], tiles)
        collision_heights = _with_border(cfg, _join_tiles(lowered_tiles))
    x, y = (1 - np.array(field.shape)) / 2 * spacing
    # ``first_levels`` may lie above the last level, and then mean the last one.
    last_level = len(tiles) - 1
    low_level, high_level = cfg.first_levels
    shorter_side = min(tiles[0][0].shape) - 1
    return Terrain(
        heights=field,
        horizontal_scale=spacing,
        low=(float(x), float(y)),
        origins=_tile_origins(tiles, spacing)[:, places],
        kinds=kinds,
        size=float(shorter_side * spacing),
        slope_threshold=cfg.slope_threshold,
        first_levels=(min(low_level, last_level), min(high_level, last_level)),
        boxes=boxes,
        collision_heights=collision_heights,
    )


def column_kinds(cfg: TerrainCfg) -> tuple[str, ...]:
    """Return the kind of the tiles in each column of a terrain.

    Each kind has a share of the total width of the columns. A column has the kind at its middle. If
    the middle is exactly between two kinds, the column has the earlier one.
    """
    names = list(cfg.kinds)
    ends = np.cumsum([kind.proportion for kind in cfg.kinds.values()])
    # A middle exactly on an end must not depend on rounding: it is moved slightly down.
    middles = (np.arange(cfg.columns) + 0.5 - 1e-6) / cfg.columns * ends[-1]
    indices = np.searchsorted(ends, middles, side="right")
    return tuple(names[index] for index in indices)


def _make_grid(cfg: TerrainCfg) -> Grid:
    return Grid(cfg.size, cfg.horizontal_scale, cfg.vertical_scale)


def _make_tiles(cfg: TerrainCfg, kinds: Sequence[str]) -> list[list[Array]]:
    grid = _make_grid(cfg)
    tiles = []
    for row in range(cfg.rows):
        level = [make_tile(cfg, grid, kind, row, column) for column, kind in enumerate(kinds)]
        tiles.append(level)
    return tiles


def _distinct_columns(tiles: list[list[Array]]) -> tuple[list[int], list[int]]:
    """Return the first of all columns with equal tiles, and the place of each column among them."""
    shown: dict[bytes, int] = {}
    columns = []
    places = []
    for column in range(len(tiles[0])):
        content = b"".join(level[column].tobytes() for level in tiles)
        if content not in shown:
            shown[content] = len(shown)
            columns.append(column)
        places.append(shown[content])
    return columns, places


def _add_boxes(
    cfg: TerrainCfg, kinds: Sequence[str], tiles: list[list[Array]]
) -> tuple[Array, list[list[Array]]]:
    """Return the boxes of all tiles in the world, and the tiles lowered where boxes are."""
    grid = _make_grid(cfg)
    spacing = cfg.horizontal_scale
    middles = _tile_origins(tiles, spacing)
    all_boxes = []
    lowered_tiles = []
    for row, level in enumerate(tiles):
        lowered_level = []
        for column, tile in enumerate(level):
            boxes = make_boxes(cfg, grid, kinds[column], row)
            lowered_level.append(lowered(tile, boxes, grid.x, grid.y))
            boxes[:, :2] += middles[row, column, :2]
            all_boxes.append(boxes)
        lowered_tiles.append(lowered_level)
    return np.concatenate(all_boxes), lowered_tiles


def _with_border(cfg: TerrainCfg, field: Array) -> Array:
    """Return a field of tiles with the margin around it."""
    # A source is continued outwards at the height of its edge; tiles end at 0.
    return np.pad(field, round(cfg.border / cfg.horizontal_scale), mode="edge")


def _join_tiles(tiles: list[list[Array]]) -> Array:
    """Join tiles, which share the points at their edges, to one field."""
    rows = len(tiles)
    columns = len(tiles[0])
    x_cells = tiles[0][0].shape[0] - 1
    y_cells = tiles[0][0].shape[1] - 1
    field = np.zeros((rows * x_cells + 1, columns * y_cells + 1), np.float32)
    for row in range(rows):
        for column in range(columns):
            # The shared points are written twice, with 0 both times.
            i = row * x_cells
            j = column * y_cells
            field[i : i + x_cells + 1, j : j + y_cells + 1] = tiles[row][column]
    return field


def _tile_origins(tiles: list[list[Array]], spacing: float) -> Array:
    rows = len(tiles)
    columns = len(tiles[0])
    x_cells = tiles[0][0].shape[0] - 1
    y_cells = tiles[0][0].shape[1] - 1
    origins = np.zeros((rows, columns, 3), np.float32)
    for row in range(rows):
        for column in range(columns):
            x = (row * x_cells + (1 - rows) * x_cells / 2) * spacing
            y = (column * y_cells + (1 - columns) * y_cells / 2) * spacing
            origins[row, column] = (x, y, _highest_point(tiles[row][column], spacing))
    return origins


def _highest_point(tile: Array, spacing: float) -> float:
    """Return the largest height near the middle of a tile, m."""
    is_wide = (min(tile.shape) - 1) * spacing > 4.0 - 1e-6
    radius = 1.0 if is_wide else 0.5
    near_x = _is_near_middle(tile.shape[0], spacing, radius)
    near_y = _is_near_middle(tile.shape[1], spacing, radius)
    return float(tile[np.ix_(near_x, near_y)].max())


def _is_near_middle(count: int, spacing: float, radius: float) -> Array:
    from_middle = np.arange(count) - (count - 1) / 2
    return abs(from_middle) * spacing < radius + 1e-6
