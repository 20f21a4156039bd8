"""What a terrain is made of: kinds of tiles with their shares, sizes and levels, or a source of heights."""

from dataclasses import dataclass, field
from math import inf
from typing import Any

from legged_envs.checks import check_number, check_range, whole_number
from legged_envs.configuration import Configuration

LEAST_SIZE = 2.0
"""Least side of a tile, m: a robot, and a way to go."""
MOST_POINTS = 2**26
"""Most points of a field, a quarter of a gigabyte."""
MIXTURE = {
    "slope_up": 0.1,
    "slope_down": 0.1,
    "rough": 0.1,
    "stairs_up": 0.25,
    "stairs_down": 0.25,
    "obstacles": 0.2,
}
"""Shares of LeggedGym-Ex's ``go2``, its slopes shared out between up and down."""


@dataclass
class KindCfg(Configuration):
    """A kind of tile."""

    proportion: float = 1.0
    """Its share of the columns, relative to those of the other kinds."""
    params: dict[str, Any] = field(default_factory=dict)
    """Parameters of its generator (:mod:`legged_envs.terrains.generators`); the others have their defaults."""
    generator: str = ""
    """Name of its generator, where it is not the name of the kind: one generator can make several kinds."""


@dataclass
class TerrainCfg(Configuration):
    """A field of square tiles: its rows, along x, are levels of difficulty, its columns, along y, kinds. Or, with a
    ``source``, the heights of that."""

    kinds: dict[str, Any] = field(default_factory=MIXTURE.copy)
    """Name of each kind → :class:`KindCfg`, in the order of their columns; a number stands for ``KindCfg(proportion)``.
    A column has the kind in whose share its middle is: one with less than half a column's share may get none."""
    rows: int = 10
    """Levels; the difficulty of level i is i / ``rows``."""
    columns: int = 20
    size: float = 8.0
    """Side of a tile, m, at least 2 m."""
    border: float = 20.0
    """Width of the margin around all tiles, m: flat, or, around a ``source``, as high as the points at its edge."""
    horizontal_scale: float = 0.1
    """Distance of neighbouring points, m; ``size`` and ``border`` are multiples of it."""
    vertical_scale: float = 0.005
    """Heights are multiples of this, m; those of a ``source`` are kept as they are."""
    slope_threshold: float = 0.75
    """Slope above which the way from a point to its neighbour is an edge, such as that of a stair."""
    seed: int = 0
    """Each tile draws its random numbers from a stream of (``seed``, row, column)."""
    first_levels: tuple[int, int] = (0, 5)
    """Robots begin at levels from the first to the second, at most the last."""
    source: Any = None
    """In place of kinds, one tile: a NumPy array of heights, m, [x, y]; or the path of such an array (.npy), of an
    image (.png, .tif, .tiff), a pixel a point, x to the right and y upwards, or of a mesh (.stl, .obj, .ply) in m
    with z upwards. The middle of the field is above (0, 0)."""
    source_height: float = 1.0
    """Height of white above black in an image, m. Floating-point numbers, as elevations come, are m as they are."""

    def __post_init__(self) -> None:
        self.kinds = {
            name: kind if isinstance(kind, KindCfg) else KindCfg(kind)
            for name, kind in self.kinds.items()
        }

    def check(self) -> None:
        """Raise a ``ValueError`` that names the field that is wrong: each kind is made at the first and the last level,
        a ``source`` is read. A missing file is a FileNotFoundError."""
        self.__post_init__()
        for name, least in {"rows": 1, "columns": 1, "seed": 0}.items():
            whole_number(f"TerrainCfg.{name}", getattr(self, name), least)
        check_range("TerrainCfg.first_levels", self.first_levels, above=-1)
        for level in self.first_levels:
            whole_number("each of TerrainCfg.first_levels", level, least=0)
        for name in ("horizontal_scale", "vertical_scale", "slope_threshold", "source_height"):
            check_number(
                f"TerrainCfg.{name}",
                getattr(self, name),
                above=0.0,
                most=1.0 if "scale" in name else inf,
            )
        lengths = (
            {"border": 0.0} if self.source is not None else {"border": 0.0, "size": LEAST_SIZE}
        )
        for name, shortest in lengths.items():
            check_number(f"TerrainCfg.{name}", length := getattr(self, name), shortest)
            if abs((cells := length / self.horizontal_scale) - round(cells)) > 1e-4:
                raise ValueError(
                    f"TerrainCfg.{name} must be a multiple of horizontal_scale, got {length!r}"
                )
        from legged_envs.terrains.generators import Grid, make_tile
        from legged_envs.terrains.sources import load_source

        if self.source is not None:
            load_source(self)
            return
        x, y = (
            (count * self.size + 2 * self.border) / self.horizontal_scale
            for count in (self.rows, self.columns)
        )
        check_number("TerrainCfg.rows × columns: points of the field", x * y, most=MOST_POINTS)
        grid = Grid(self.size, self.horizontal_scale, self.vertical_scale)
        for name, kind in self.kinds.items():
            check_number(f"TerrainCfg.kinds[{name!r}].proportion", kind.proportion, 0.0)
            for row in {0, self.rows - 1}:
                make_tile(self, grid, name, row, 0)
        check_number(
            "TerrainCfg.kinds: sum of proportions",
            sum(k.proportion for k in self.kinds.values()),
            above=0.0,
        )
