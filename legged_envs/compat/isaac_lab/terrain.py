"""Rough ground in Isaac Lab's words, and its sensor of heights."""

from dataclasses import MISSING
from typing import Any

import torch
from torch import Tensor

from legged_envs.checks import check_choice, did_you_mean
from legged_envs.compat.isaac_lab.entities import find_robot
from legged_envs.compat.isaac_lab.scene_setup import scene_of
from legged_envs.configuration import ConfigClass, configclass
from legged_envs.mdp.scan import lookup_heights
from legged_envs.terrains import KindCfg, TerrainCfg


@configclass
class SubTerrainBaseCfg(ConfigClass):
    """A kind of tile. Each tile ends at height 0."""

    proportion: float = 1.0
    """Share of the columns, relative to the shares of the other kinds."""
    platform_width: float = 1.0
    """Side of the platform in the middle, m. Not read of boxes and noise."""
    border_width: float = 0.0
    """This setting has no effect, m."""
    noise_step: float = 0.0
    """This setting has no effect, m: heights are multiples of the generator's
    ``vertical_scale``."""
    holes: bool = False
    """False: tiles have no holes."""

    def kind(self, tiles: "TerrainGeneratorCfg") -> KindCfg:
        """Return the kind of tile of this package, for a field of ``tiles``."""
        raise NotImplementedError


@configclass
class MeshPyramidStairsTerrainCfg(SubTerrainBaseCfg):
    """Stairs that lead down from the middle."""

    step_height_range: Any = MISSING
    """Heights of a step at difficulties 0 and 1, m."""
    step_width: Any = MISSING
    """Width of a step, m."""

    def kind(self, tiles: "TerrainGeneratorCfg") -> KindCfg:
        """Return the kind of tile of this package, for a field of ``tiles``."""
        return self._stairs("stairs_down", tiles)

    def _stairs(self, generator: str, tiles: "TerrainGeneratorCfg") -> KindCfg:
        params = {
            "height": self.step_height_range,
            "width": self.step_width,
            "platform": self.platform_width / tiles.size[0],
        }
        return KindCfg(proportion=self.proportion, params=params, generator=generator)


@configclass
class MeshInvertedPyramidStairsTerrainCfg(MeshPyramidStairsTerrainCfg):
    """Stairs that lead up from the middle."""

    def kind(self, tiles: "TerrainGeneratorCfg") -> KindCfg:
        """Return the kind of tile of this package, for a field of ``tiles``."""
        return self._stairs("stairs_up", tiles)


@configclass
class MeshRandomGridTerrainCfg(SubTerrainBaseCfg):
    """Boxes of random heights."""

    grid_height_range: Any = MISSING
    """Largest distance of a box's top from height 0 at difficulties 0 and 1, m."""
    grid_width: Any = MISSING
    """Side of a box, m."""

    def kind(self, tiles: "TerrainGeneratorCfg") -> KindCfg:
        """Return the kind of tile of this package, for a field of ``tiles``."""
        params = {"height": self.grid_height_range, "width": self.grid_width}
        return KindCfg(proportion=self.proportion, params=params, generator="boxes")


@configclass
class HfRandomUniformTerrainCfg(SubTerrainBaseCfg):
    """Noise. At every difficulty it reaches half of the width of its range up and down."""

    noise_range: Any = MISSING
    """Lowest and highest noise, m."""

    def kind(self, tiles: "TerrainGeneratorCfg") -> KindCfg:
        """Return the kind of tile of this package, for a field of ``tiles``."""
        low, high = self.noise_range
        spread = high - low
        params = {"spread": (spread, spread), "spacing": tiles.horizontal_scale}
        return KindCfg(proportion=self.proportion, params=params, generator="rough")


@configclass
class HfPyramidSlopedTerrainCfg(SubTerrainBaseCfg):
    """Slopes that lead down from the middle."""

    slope_range: Any = MISSING
    """Slopes, rise / run, at difficulties 0 and 1."""

    def kind(self, tiles: "TerrainGeneratorCfg") -> KindCfg:
        """Return the kind of tile of this package, for a field of ``tiles``."""
        return self._slope("slope_down", tiles)

    def _slope(self, generator: str, tiles: "TerrainGeneratorCfg") -> KindCfg:
        params = {
            "slope": self.slope_range,
            "platform": self.platform_width / tiles.size[0],
        }
        return KindCfg(proportion=self.proportion, params=params, generator=generator)


@configclass
class HfInvertedPyramidSlopedTerrainCfg(HfPyramidSlopedTerrainCfg):
    """Slopes that lead up from the middle."""

    def kind(self, tiles: "TerrainGeneratorCfg") -> KindCfg:
        """Return the kind of tile of this package, for a field of ``tiles``."""
        return self._slope("slope_up", tiles)


TILE_CLASSES = (
    MeshPyramidStairsTerrainCfg,
    MeshInvertedPyramidStairsTerrainCfg,
    MeshRandomGridTerrainCfg,
    HfRandomUniformTerrainCfg,
    HfPyramidSlopedTerrainCfg,
    HfInvertedPyramidSlopedTerrainCfg,
)
"""Classes of the kinds of tiles that ``TerrainGeneratorCfg.sub_terrains`` may have."""


@configclass
class TerrainGeneratorCfg:
    """A field of tiles. Its rows are levels of difficulty."""

    size: tuple[float, float] = (8.0, 8.0)
    """Sides of a tile along x and y, m, which must be equal."""
    sub_terrains: dict[str, Any] = {}  # noqa: RUF012 (configclass copies it)
    """Kinds of tiles by name, each an object of one of :data:`TILE_CLASSES`."""
    seed: int | None = 0
    """Seed of the tiles; None is 0."""
    difficulty_range: tuple[float, float] = (0.0, 1.0)
    """Difficulties, from 0 to 1, of the first level and of the one after the last. Only 0 and 1 are
    accepted."""
    num_rows: int = 1
    """Number of levels."""
    num_cols: int = 1
    """Number of tiles in each level."""
    border_width: float = 0.0
    """Width of the flat margin around all tiles, m."""
    slope_threshold: float = 0.75
    """Slope between two neighbouring points above which there is an edge."""
    horizontal_scale: float = 0.1
    """Distance between neighbouring points, m."""
    vertical_scale: float = 0.005
    """Step of the heights, m."""
    curriculum: bool = False
    """This setting has no effect: rows are always levels."""
    border_height: float = 1.0
    """This setting has no effect, m."""
    color_scheme: str = "none"
    """This setting has no effect."""
    use_cache: bool = False
    """This setting has no effect."""
    cache_dir: str = ""
    """This setting has no effect."""

    def terrain(self, last_level: int | None) -> TerrainCfg:
        """Return the terrain of this package.

        Args:
            last_level: Last level at which robots start. None: they start at any level.

        Raises:
            ValueError: If a field is not valid; the error names it.
        """
        side = self.size[0]
        check_choice(
            "TerrainGeneratorCfg.size, difficulty_range",
            (*self.size, *self.difficulty_range),
            ((side, side, 0.0, 1.0),),
        )
        kinds = {}
        for name, cfg in self.sub_terrains.items():
            _check_tile(f"TerrainGeneratorCfg.sub_terrains[{name!r}]", cfg)
            kinds[name] = cfg.kind(self)
        if last_level is None:
            last_level = self.num_rows - 1
        return TerrainCfg(
            kinds=kinds,
            rows=self.num_rows,
            columns=self.num_cols,
            size=side,
            border=self.border_width,
            horizontal_scale=self.horizontal_scale,
            vertical_scale=self.vertical_scale,
            slope_threshold=self.slope_threshold,
            seed=self.seed or 0,
            first_levels=(0, last_level),
        )


def _check_tile(where: str, cfg: Any) -> None:
    if not isinstance(cfg, TILE_CLASSES):
        name = type(cfg).__name__
        known = [tile_class.__name__ for tile_class in TILE_CLASSES]
        raise ValueError(
            f"{where} cannot be a {name!r}; {did_you_mean(name, known)}"
            f"it can be: {', '.join(known)}"
        )
    check_choice(f"{where}.holes", cfg.holes, (False,))


class patterns:
    """Patterns of rays. A module of this name in Isaac Lab."""

    @configclass
    class GridPatternCfg:
        """Vertical rays in a rectangle."""

        resolution: float = 0.1
        """Distance between neighbouring rays, m."""
        size: tuple[float, float] = (1.6, 1.0)
        """Sides of the rectangle along x and y, m."""
        ordering: str = "xy"
        """``"xy"``: rays of the same y follow each other; ``"yx"``: rays of the same x."""


@configclass
class RayCasterCfg:
    """Settings of a sensor of heights under a pattern, which turns with the robot's heading."""

    @configclass
    class OffsetCfg:
        """Place of the sensor relative to the base."""

        pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
        """Middle of the pattern, x ahead and y to the left, m. z is ignored: rays come from above,
        whatever height the sensor is at."""

    prim_path: str = ""
    """Path with the name of the robot in it."""
    offset: OffsetCfg = OffsetCfg()
    """Place of the sensor relative to the base."""
    pattern_cfg: patterns.GridPatternCfg = patterns.GridPatternCfg()
    """Pattern of the rays."""
    ray_alignment: str = "base"
    """Must be ``"yaw"``, unless ``attach_yaw_only`` is True."""
    attach_yaw_only: bool = False
    """True as ``ray_alignment="yaw"``."""
    mesh_prim_paths: tuple[str, ...] = ()
    """This setting has no effect: rays end on the ground."""
    update_period: float = 0.0
    """This setting has no effect, s: heights are looked up when they are read."""
    max_distance: float = 1e6
    """This setting has no effect, m."""
    debug_vis: bool = False
    """This setting has no effect."""


class RayCaster:
    """The heights of the ground around a robot, looked up when they are read.

    Args:
        cfg: Settings.

    Raises:
        ValueError: If the pattern does not turn only with the heading.
        RuntimeError: If no scene is being set up.
    """

    def __init__(self, cfg: RayCasterCfg):
        core = scene_of(self).core
        alignment = "yaw" if cfg.attach_yaw_only else cfg.ray_alignment
        check_choice("RayCasterCfg.ray_alignment", alignment, ("yaw",))

        self.cfg = cfg
        """Settings."""
        self._robot = core.robots[find_robot(cfg.prim_path.split("/"), core.robots)]
        pattern = cfg.pattern_cfg
        x_middle, y_middle = cfg.offset.pos[:2]
        x = _grid_line(pattern.size[0], pattern.resolution) + x_middle
        y = _grid_line(pattern.size[1], pattern.resolution) + y_middle
        # torch's "ij" is the order in which y changes fastest.
        indexing = "ij" if pattern.ordering == "yx" else pattern.ordering
        x_of_rays, y_of_rays = torch.meshgrid(x, y, indexing=indexing)
        self._ahead = x_of_rays.flatten().to(core.device)
        self._left = y_of_rays.flatten().to(core.device)

    @property
    def data(self) -> "RayCaster":
        """The sensor itself, which has its readings as attributes."""
        return self

    @property
    def pos_w(self) -> Tensor:
        """Position of the base in the world, m. Shape: (num_envs, 3)."""
        return self._robot.root_pos_w

    @property
    def ray_hits_w(self) -> Tensor:
        """Ends of the rays in the world, m. Shape: (num_envs, rays, 3)."""
        points = lookup_heights(self._robot, "height", self._ahead, self._left)
        return torch.stack(points, dim=-1)

    @property
    def heights(self) -> Tensor:
        """Height of the base above the end of each ray, m. Shape: (num_envs, rays)."""
        return self.pos_w[:, 2:] - self.ray_hits_w[..., 2]


def _grid_line(length: float, step: float) -> Tensor:
    """Return points of a line of some length, m, with its middle at 0. Shape: (n,)."""
    # The last point counts in spite of rounding.
    return torch.arange(-length / 2, length / 2 + 1e-9, step)
