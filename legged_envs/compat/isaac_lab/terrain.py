"""Rough ground in Isaac Lab's words, and its sensor of heights."""

from typing import Any

import torch

from legged_envs.checks import check_choice, check_known
from legged_envs.compat.isaac_lab.scene_setup import scene_of
from legged_envs.configuration import configclass
from legged_envs.mdp.scan import lookup_heights
from legged_envs.terrains import KindCfg, TerrainCfg

COMMON = {
    "proportion": 1.0,
    "platform_width": 1.0,
    "border_width": 0.0,
    "noise_step": 0.0,
    "holes": False,
}
"""Fields of the configurations of all kinds of tiles. ``platform_width``, m, is not read of noise and boxes, the next
two of none: each tile ends at height 0, and heights are multiples of the generator's ``vertical_scale``; ``holes`` can
be nothing else."""
SLOPE = {"slope_range": "slope", "platform_width": "platform"}
STAIRS = {"step_height_range": "height", "step_width": "width", "platform_width": "platform"}
TILES: dict[str, tuple[str, dict[str, str]]] = {
    "MeshPyramidStairsTerrainCfg": ("stairs_down", STAIRS),
    "MeshInvertedPyramidStairsTerrainCfg": ("stairs_up", STAIRS),
    "MeshRandomGridTerrainCfg": ("boxes", {"grid_height_range": "height", "grid_width": "width"}),
    "HfRandomUniformTerrainCfg": ("rough", {"noise_range": "spread"}),
    "HfPyramidSlopedTerrainCfg": ("slope_down", SLOPE),
    "HfInvertedPyramidSlopedTerrainCfg": ("slope_up", SLOPE),
}
"""Their classes → our generator, and fields → its parameters."""
FIELDS = {
    "slope_range": "slopes, rise / run, at difficulties 0 and 1",
    "step_height_range": "heights of a step at difficulties 0 and 1, m",
    "step_width": "width of a step, m",
    "platform_width": "side of the platform in the middle, m",
    "grid_height_range": "how far boxes reach up and down at difficulties 0 and 1, m",
    "grid_width": "side of a box, m",
    "noise_range": "(low, high) of noise that reaches (high − low) / 2 up and down at every difficulty, m",
}
"""Fields of these classes → what they say."""
for _name, (_kind, _words) in TILES.items():
    _told = (
        f"Tiles of our kind ``{_kind}``. "
        + "; ".join(f"``{field}``: {FIELDS[field]}" for field in _words)
        + "."
    )
    _body = COMMON | {"__annotations__": dict.fromkeys(_words, Any), "__doc__": _told}
    globals()[_name] = configclass(type(_name, (), _body))


@configclass
class TerrainGeneratorCfg:
    """Tiles, whose rows are levels and always the same, ``curriculum`` or not."""

    size, sub_terrains, seed, difficulty_range = (8.0, 8.0), dict[str, Any](), 0, (0.0, 1.0)
    """Of a tile along x and y, m, the same twice; name → object of a class of :data:`TILES`; can be nothing else."""
    num_rows, num_cols, border_width, slope_threshold, horizontal_scale, vertical_scale = (
        1,
        1,
        0.0,
        0.75,
        0.1,
        0.005,
    )
    curriculum, border_height, color_scheme, use_cache, cache_dir = False, 1.0, "none", False, ""
    """Are accepted."""

    def terrain(self, last: int | None) -> TerrainCfg:
        """Where robots begin up to the level ``last``, None: at any; ValueError, which names the field, if it cannot
        be."""
        where, kinds, side = "TerrainGeneratorCfg", {}, self.size[0]
        check_choice(
            f"{where}.size, difficulty_range",
            (*self.size, *self.difficulty_range),
            ((side, side, 0.0, 1.0),),
        )
        for name, cfg in self.sub_terrains.items():
            check_known(
                f"{where}.sub_terrains[{name!r}] cannot be a",
                [type(cfg).__name__],
                TILES,
                "it can be",
            )
            check_choice(f"{where}.sub_terrains[{name!r}].holes", cfg.holes, (False,))
            generator, words = TILES[type(cfg).__name__]
            params = {ours: getattr(cfg, theirs) for theirs, ours in words.items()}
            params |= {"platform": cfg.platform_width / side} if "platform" in params else {}
            if generator == "rough":
                params = {
                    "spread": (cfg.noise_range[1] - cfg.noise_range[0],) * 2,
                    "spacing": self.horizontal_scale,
                }
            kinds[name] = KindCfg(cfg.proportion, params, generator)
        rest = (
            side,
            self.border_width,
            self.horizontal_scale,
            self.vertical_scale,
            self.slope_threshold,
            self.seed or 0,
        )
        return TerrainCfg(
            kinds,
            self.num_rows,
            self.num_cols,
            *rest,
            (0, self.num_rows - 1 if last is None else last),
        )


class patterns:
    """Isaac Lab's module of this name."""

    @configclass
    class GridPatternCfg:
        """Vertical rays ``resolution`` m apart in a rectangle of ``size`` m, along x and y. Those of one y stand
        together, with ``ordering="yx"`` those of one x."""

        resolution, size, ordering = 0.1, (1.6, 1.0), "xy"


@configclass
class RayCasterCfg:
    """Heights under a pattern that turns with the heading alone of the robot in ``prim_path``, which
    ``ray_alignment="yaw"`` or ``attach_yaw_only=True`` must say; rays come from above, whatever height it is at."""

    @configclass
    class OffsetCfg:
        """Where the middle of the pattern is from the base, x ahead and y to the left, m; z is not read."""

        pos = (0.0, 0.0, 0.0)

    prim_path, offset, pattern_cfg, ray_alignment = (
        "",
        OffsetCfg(),
        patterns.GridPatternCfg(),
        "base",
    )
    attach_yaw_only, mesh_prim_paths, update_period, max_distance, debug_vis = (
        False,
        (),
        0.0,
        1e6,
        False,
    )
    """From the second on they are accepted: what is there is the ground, looked up when it is asked for."""


class RayCaster:
    """The heights of the ground around a robot, as they are when they are asked for. ValueError for an alignment that
    does not turn with the heading alone."""

    def __init__(self, cfg: Any):
        core, size, step = scene_of(self).core, cfg.pattern_cfg.size, cfg.pattern_cfg.resolution
        name = next(
            (part for part in cfg.prim_path.lower().split("/") if part in core.robots), "robot"
        )
        self.cfg, self.data, self._robot = cfg, self, core.robots[name]
        check_choice(
            "RayCasterCfg.ray_alignment",
            "yaw" if cfg.attach_yaw_only else cfg.ray_alignment,
            ("yaw",),
        )
        lines = [
            torch.arange(-a / 2, a / 2 + 1e-9, step) + by
            for a, by in zip(size, cfg.offset.pos, strict=False)
        ]
        grid = torch.meshgrid(lines, indexing=cfg.pattern_cfg.ordering.replace("yx", "ij"))
        self._points = self._robot.table(
            self, lambda: [part.flatten().to(core.device) for part in grid]
        )

    pos_w = property(lambda self: self._robot.root_pos_w)
    """Where the base is in the world, m. Shape: (num_envs, 3)."""
    ray_hits_w = property(
        lambda self: torch.stack(lookup_heights(self._robot, "height", *self._points), dim=-1)
    )
    """Where the rays end in the world, m. Shape: (num_envs, rays, 3)."""
    heights = property(lambda self: self.pos_w[:, 2:] - self.ray_hits_w[..., 2])
    """Height of the base above the end of each ray, m. Shape: (num_envs, rays)."""
