"""Configuration of a terrain: kinds of tiles with their shares, sizes and levels, or a source of
heights."""

from dataclasses import dataclass, field
from typing import Any

from legged_envs.checks import check_number, check_range, whole_number
from legged_envs.configuration import Configuration

MIN_TILE_SIZE = 2.0
"""Smallest side of a tile, m. A robot and a short path fit on it."""
MAX_POINTS = 2**26
"""Largest number of points of a field. They take a quarter of a gigabyte."""
MIXTURE = {
    "slope_up": 0.1,
    "slope_down": 0.1,
    "rough": 0.1,
    "stairs_up": 0.25,
    "stairs_down": 0.25,
    "obstacles": 0.2,
}
"""Shares of the kinds in LeggedGym-Ex's ``go2``. Its slopes are divided between up and down."""


@dataclass
class KindCfg(Configuration):
    """Configuration of one kind of tile: its share of the columns and its generator."""

    proportion: float = 1.0
    """Share of the columns, relative to the shares of the other kinds."""
    params: dict[str, Any] = field(default_factory=dict)
    """Parameters of the generator (:mod:`legged_envs.terrains.generators`). The others keep their
    defaults."""
    generator: str = ""
    """Name of the generator. Empty: the name of the kind. One generator can make several kinds."""


@dataclass
class TerrainCfg(Configuration):
    """Configuration of a terrain: a field of square tiles, or the heights of a ``source``.

    The rows of the field, along x, are levels of difficulty. Its columns, along y, are kinds.
    """

    kinds: dict[str, Any] = field(default_factory=MIXTURE.copy)
    """Name of each kind → :class:`KindCfg`, in the order of their columns.

    A number stands for ``KindCfg(proportion)``. Each column has the kind that covers its middle
    when the shares are laid side by side. A kind with less than half a column's share may get no
    column.
    """
    rows: int = 10
    """Number of levels. The difficulty of level i is i / ``rows``."""
    columns: int = 20
    """Number of tiles in each level."""
    size: float = 8.0
    """Side of a tile, m, at least 2 m."""
    border: float = 20.0
    """Width of the margin around all tiles, m. It is flat. Around a ``source`` it is as high as the
    nearest point at the edge."""
    horizontal_scale: float = 0.1
    """Distance between neighbouring points, m. ``size`` and ``border`` are multiples of it."""
    vertical_scale: float = 0.005
    """Step of the heights, m: they are multiples of it. Those of a ``source`` are not rounded."""
    slope_threshold: float = 0.75
    """Slope between two neighbouring points above which there is an edge, as on a stair."""
    seed: int = 0
    """Seed of the tiles. Each tile has a random stream of its (``seed``, row, column)."""
    first_levels: tuple[int, int] = (0, 5)
    """First and last level on which robots start. A level above the last one means the last one."""
    source: Any = None
    """Heights in place of kinds; they make one tile, with its middle above (0, 0). One of:

    - a NumPy array of heights, m, [x, y], or the path of one (.npy);
    - the path of an image (.png, .tif, .tiff): one point per pixel, x to the right and y upwards;
    - the path of a mesh (.stl, .obj, .ply), m, with z upwards.
    """
    source_height: float = 1.0
    """Height of white above black in an image, m. Floating-point pixels, as in elevation files, are
    heights in m and are not scaled."""

    def __post_init__(self) -> None:
        self._complete_kinds()

    def check(self) -> None:
        """Check each field by itself; :func:`~legged_envs.terrains.check_terrain` also makes tiles.

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
