"""Translation of the ground of a configuration in LeggedGym-Ex's words.

A section of an instance is a namespace with the fields of a nested class. Annotations here name the
class, where the fields are described.
"""

from collections.abc import Sequence
from typing import Any

from legged_envs.checks import check_choice
from legged_envs.compat.legged_gym.cfg import LeggedRobotCfg
from legged_envs.sim.cfg import check_vector
from legged_envs.terrains import KindCfg, TerrainCfg

MESH_TYPES = ("plane", "heightfield", "trimesh")
"""Values of ``cfg.terrain.mesh_type``."""
MAX_MEASURED_POINTS = 1000
"""Largest number of measured points along x, and along y."""
MAX_PROPORTIONS = 8
"""Largest number of entries of ``cfg.terrain.terrain_proportions``."""
TILE_PARAMS: dict[str, dict[str, Any] | None] = {
    "slope_up": None,
    "slope_down": None,
    "rough": {"spread": (0.1, 0.1)},
    "stairs_up": None,
    "stairs_down": None,
    "obstacles": {},
    "stones": {},
    "gap": None,
    "pit": None,
}
"""Kinds of tiles in LeggedGym-Ex's order, mapped to the parameters of their generators.

None: the size of the platform.
"""


def terrain_of(section: type[LeggedRobotCfg.terrain]) -> TerrainCfg | None:
    """Translate the ground.

    Args:
        section: The section ``cfg.terrain``.

    Returns:
        A field of tiles; None for a plane.

    Raises:
        ValueError: If a field is not valid, also on a plane.
    """
    check_choice("cfg.terrain.mesh_type", section.mesh_type, MESH_TYPES)
    check_choice("cfg.terrain.terrain_width", section.terrain_width, (section.terrain_length,))
    _check_length("measured_points_x", section.measured_points_x, MAX_MEASURED_POINTS)
    _check_length("measured_points_y", section.measured_points_y, MAX_MEASURED_POINTS)
    _check_length("terrain_proportions", section.terrain_proportions, MAX_PROPORTIONS)
    if section.mesh_type == "plane":
        return None
    # Without a curriculum, robots start on any level and stay there.
    highest = section.max_init_terrain_level if section.curriculum else section.num_rows - 1
    return TerrainCfg(
        kinds=_kinds_of_tiles(section),
        rows=section.num_rows,
        columns=section.num_cols,
        size=section.terrain_length,
        border=section.border_size,
        horizontal_scale=section.horizontal_scale,
        vertical_scale=section.vertical_scale,
        slope_threshold=section.slope_treshold,
        first_levels=(0, highest),
    )


def _check_length(name: str, values: Sequence[float], most: int) -> None:
    """Check that a field of the ground has 1 to ``most`` finite numbers."""
    expected = min(max(1, len(values)), most)
    check_vector(f"cfg.terrain.{name}", values, expected)


def _kinds_of_tiles(section: type[LeggedRobotCfg.terrain]) -> dict[str, KindCfg]:
    slopes, *others = section.terrain_proportions
    # The first share belongs to all slopes, which are two kinds here.
    shares = [slopes / 2, slopes / 2, *others]
    platform = section.platform_size / section.terrain_length
    # Later kinds get no columns: LeggedGym-Ex's lists may be shorter than its list of kinds.
    kinds = {}
    for name, share in zip(list(TILE_PARAMS)[: len(shares)], shares, strict=True):
        params = TILE_PARAMS[name]
        if params is None:
            params = {"platform": platform}
        kinds[name] = KindCfg(proportion=share, params=dict(params))
    return kinds
