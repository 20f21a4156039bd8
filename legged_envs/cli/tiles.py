"""The options `--terrain` and `--level`: the tiles of rough ground that robots start on."""

from typing import Any

from legged_envs.checks import check_known, whole_number
from legged_envs.tasks import make_task_cfg
from legged_envs.terrains import GENERATORS, KindCfg, TerrainCfg


def terrain_of_task(task_id: str, option: str) -> TerrainCfg:
    """Return the terrain of a task.

    Args:
        task_id: Registered id.
        option: Name of the option that needs a terrain, for the error.

    Raises:
        ValueError: If the task is on flat ground, or on ground without tiles.
    """
    terrain = make_task_cfg(task_id).scene.terrain
    if terrain is None:
        raise ValueError(f"{task_id!r} is on flat ground: it takes no {option}")
    if terrain.source is not None:
        raise ValueError(
            f"{task_id!r} is on the ground of TerrainCfg.source, which has no tiles: it takes no "
            f"{option}"
        )
    return terrain


def choose_tiles(task_id: str, kind: str | None, level: int | None) -> dict[str, Any]:
    """Return the changes to a task that let all robots start on tiles of one kind and level.

    Args:
        task_id: Registered id.
        kind: Kind of tiles. None: all kinds of the task.
        level: Level of the tiles. The first is 0. None: all levels.

    Raises:
        ValueError: If the task has no tiles, no such level, or there is no such kind.
    """
    changes: dict[str, Any] = {}
    if kind is not None:
        kinds = terrain_of_task(task_id, "--terrain").kinds
        check_known("unknown kind of terrain", [kind], {**GENERATORS, **kinds}, "kinds")
        # The kind need not be one of the task, so a policy can be tried on new ground.
        changes["scene.terrain.kinds"] = {kind: kinds.get(kind, KindCfg())}
    if level is not None:
        rows = terrain_of_task(task_id, "--level").rows
        whole_number("--level", level, least=0, most=rows - 1)
        # The range from which the level at the start is drawn.
        changes["scene.terrain.first_levels"] = (level, level)
    return changes
