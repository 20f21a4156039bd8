"""Configuration of a terrain: generated tiles of rough ground, or heights from an array or file."""

from dataclasses import dataclass, field
from typing import Any

from legged_envs.checks import check_number, check_range, whole_number
from legged_envs.configuration import Configuration

MIN_TILE_SIZE = 2.0
"""Smallest side of a tile of ground, m. There is room for a robot and a short path on it."""
MAX_POINTS = 2**26
"""Largest number of points of a height field. They need a quarter of a gigabyte of memory."""
MIXTURE = {
    "slope_up": 0.1,
    "slope_down": 0.1,
    "rough": 0.1,
    "stairs_up": 0.25,
    "stairs_down": 0.25,
    "obstacles": 0.2,
}
"""Default kinds of tiles, and the share of the columns of each.

They are the same as for LeggedGym-Ex's ``go2``. Its share of slopes is divided between up and down.
"""


@dataclass
class KindCfg(Configuration):
    """Configuration of one kind of ground, such as stairs: its share of the terrain and its shape.

    The terrain is a field of square tiles. All tiles of a column have the same kind.
    """

    proportion: float = 1.0
    """Share of the columns with this kind, relative to the shares of the other kinds."""
    params: dict[str, Any] = field(default_factory=dict)
    """Parameters of the generator function by name, such as ``{"width": 0.3}``.

    Parameters that are not given have their defaults (:mod:`legged_envs.terrains.generators`).
    """
    generator: str = ""
    """Name of the generator function, a key of ``GENERATORS``. Empty: the name of the kind.

    With it, several kinds can have the same generator with different parameters.
    """


@dataclass
class TerrainCfg(Configuration):
    """Configuration of a terrain: a field of square tiles, or the heights of a ``source``.

    Rows of tiles, which follow one another along x, are levels of difficulty. Columns of tiles,
    which follow one another along y, have a kind each, such as stairs or slopes.
    """

    kinds: dict[str, Any] = field(default_factory=MIXTURE.copy)
    """Kinds of tiles by name, in the order of their columns: a :class:`KindCfg` each.

    A number is short for ``KindCfg(proportion)``. Each kind has a share of the total width of the
    columns, and a column has the kind at its middle. A kind with less than half of the width of a
    column may have no column.
    """
    rows: int = 10
    """Number of levels of difficulty. The difficulty of level i is i / ``rows``."""
    columns: int = 20
    """Number of tiles in each level."""
    size: float = 8.0
    """Side of a square tile, m. It is at least 2 m and a multiple of ``horizontal_scale``."""
    border: float = 20.0
    """Width of the margin around the field of tiles, m, a multiple of ``horizontal_scale``.

    The margin is flat, at height 0. Around a ``source`` each of its points has the height of the
    nearest point of the source.
    """
    horizontal_scale: float = 0.1
    """Distance between neighbouring points of the height field along x and y, m."""
    vertical_scale: float = 0.005
    """Resolution of heights, m. Heights of generated tiles are multiples of it; heights of a
    ``source`` are not rounded."""
    vertical_risers: bool = False
    """True: robots collide with the steps of stairs as boxes, whose faces are vertical. False: a
    riser falls over the distance ``horizontal_scale``.

    Observed heights are the same in both cases. Because each box makes physics slower, columns with
    equal tiles are then one column of the field, on which all their robots start.
    """
    slope_threshold: float = 0.75
    """Slope between two neighbouring points above which there is an edge, such as the edge of a
    stair.

    Observations of the distance to an edge use it.
    """
    seed: int = 0
    """Seed of the generated tiles. A tile's random numbers depend on (``seed``, row, column)."""
    first_levels: tuple[int, int] = (0, 5)
    """Lowest and highest level on which robots start at first. A level above the last one is
    replaced by the last one."""
    source: Any = None
    """Heights to use instead of generated tiles. They are one tile, centred on (0, 0). One of:

    - a NumPy array of heights, m, indexed [x, y], or the path of one (.npy);
    - the path of an image (.png, .tif, .tiff): one point per pixel, x to the right and y upwards;
    - the path of a mesh (.stl, .obj, .ply), m, with z upwards.
    """
    source_height: float = 1.0
    """Height of white above black in an image that is the ``source``, m.

    Floating-point pixels, as in elevation files, are heights in m and are not scaled.
    """

    def __post_init__(self) -> None:
        self._complete_kinds()

    def check(self) -> None:
        """Check that all fields are in their ranges, without making a tile.

        :func:`~legged_envs.terrains.check_terrain` also checks that the tiles can be made.

        Raises:
            ValueError: A field is wrong. The message names it.
        """
        # The kinds may have been replaced since the configuration was made.
        self._complete_kinds()
        self._check_counts()
        check_number("TerrainCfg.horizontal_scale", self.horizontal_scale, above=0.0, most=1.0)
        check_number("TerrainCfg.vertical_scale", self.vertical_scale, above=0.0, most=1.0)
        check_number("TerrainCfg.slope_threshold", self.slope_threshold, above=0.0)
        check_number("TerrainCfg.source_height", self.source_height, above=0.0)
        self._check_length("border", self.border, shortest=0.0)
        # A source has its own size, and no kinds.
        if self.source is None:
            self._check_length("size", self.size, shortest=MIN_TILE_SIZE)
            self._check_number_of_points()
            self._check_proportions()

    def _complete_kinds(self) -> None:
        complete = {}
        for name, kind in self.kinds.items():
            complete[name] = kind if isinstance(kind, KindCfg) else KindCfg(kind)
        self.kinds = complete

    def _check_counts(self) -> None:
        whole_number("TerrainCfg.rows", self.rows)
        whole_number("TerrainCfg.columns", self.columns)
        whole_number("TerrainCfg.seed", self.seed, least=0)
        check_range("TerrainCfg.first_levels", self.first_levels, above=-1)
        for level in self.first_levels:
            whole_number("each of TerrainCfg.first_levels", level, least=0)

    def _check_length(self, name: str, length: float, shortest: float) -> None:
        check_number(f"TerrainCfg.{name}", length, shortest)
        # The tolerance admits decimal lengths, which floating point does not hold exactly.
        cells = length / self.horizontal_scale
        if abs(cells - round(cells)) > 1e-4:
            raise ValueError(
                f"TerrainCfg.{name} must be a multiple of horizontal_scale, got {length!r}"
            )

    def _check_number_of_points(self) -> None:
        x_cells = (self.rows * self.size + 2 * self.border) / self.horizontal_scale
        y_cells = (self.columns * self.size + 2 * self.border) / self.horizontal_scale
        check_number(
            "TerrainCfg.rows × columns: points of the field", x_cells * y_cells, most=MAX_POINTS
        )

    def _check_proportions(self) -> None:
        total = 0.0
        for name, kind in self.kinds.items():
            check_number(f"TerrainCfg.kinds[{name!r}].proportion", kind.proportion, 0.0)
            total += kind.proportion
        check_number("TerrainCfg.kinds: sum of proportions", total, above=0.0)
