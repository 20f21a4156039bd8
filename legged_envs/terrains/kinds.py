"""The register of the kinds of tiles, and the making of a tile of one kind with its boxes.

The generators of this package are in :mod:`legged_envs.terrains.generators`.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from legged_envs.checks import check_known, check_number
from legged_envs.terrains.cfg import TerrainCfg
from legged_envs.terrains.grid import CELL_TOLERANCE, Array, Grid, check_heights

Random = np.random.Generator
"""Type of the random stream of a tile."""
Generator = Callable[..., Array]
"""Type of a generator of tiles: ``function(difficulty, random, grid, **parameters)``.

It returns the heights of the tile's points, m. Shape: (n, n).
"""
GENERATORS: dict[str, Generator] = {}
"""Generators of tiles by the names of their kinds, as :func:`register_kind` adds them.

``GENERATORS[name](difficulty, random, grid, **parameters)`` checks its arguments and returns the
heights of the tile's points, m. Shape: (n, n), float32.
"""

BoxGenerator = Callable[..., Array]
"""Type of a function that returns boxes on a tile: ``function(difficulty, grid, **parameters)``.

The boxes are relative to the middle of the tile. Shape: (count, 6), see ``Terrain.boxes``.
"""
BOXES: dict[str, BoxGenerator] = {}
"""Functions that return the boxes of kinds of tiles, by kind. Other kinds have no boxes."""


def register_kind(name: str, function: Generator, boxes: BoxGenerator | None = None) -> None:
    """Add a kind of tile to ``GENERATORS``, for use in ``TerrainCfg.kinds``, or replace one.

    The heights of ``function`` are rounded to multiples of ``vertical_scale``, and the heights of
    the outermost points are set to 0. A parameter with a number or a tuple of numbers as its
    default only accepts values of the same form that are not negative.

    The function in ``GENERATORS`` raises a ValueError for a difficulty outside of [0, 1), for
    unknown parameters, and for heights that are not finite, have another shape, or differ by more
    than 10 m between neighbouring points.

    Args:
        name: Name of the kind.
        function: ``function(difficulty, random, grid, **parameters)``. It returns the heights of
            the points of ``grid``, a :class:`Grid`, m. Shape: (n, n).
        boxes: ``boxes(difficulty, grid, **parameters)`` returns the boxes that robots collide with
            if ``TerrainCfg.vertical_risers`` is True. Their tops must have the heights of
            ``function``, and ``boxes`` the parameters of ``function``. None: there are no boxes.
    """
    parameters = list(inspect.signature(function).parameters.values())
    # The first three are difficulty, random and grid.
    defaults = {parameter.name: parameter.default for parameter in parameters[3:]}

    @wraps(function)
    def kind(difficulty: float, random: Random, grid: Grid, **params: Any) -> Array:
        check_number("difficulty", difficulty, 0.0, below=1.0)
        check_known(f"{name!r} has no parameter", params, defaults, "it has")
        _check_params(params, defaults)
        raw = np.asarray(function(difficulty, random, grid, **params))
        check_heights(f"heights of {name!r}", raw, grid.x.shape)
        # Adding 0 turns −0 into 0, so that equal tiles have equal bytes.
        rounded = grid.rounded(raw) + 0.0
        is_outermost = grid.beyond(grid.half - grid.horizontal_scale / 2)
        heights = np.where(is_outermost, 0.0, rounded)
        # Checked again, because setting the outermost points to 0 can make a high wall.
        check_heights(f"heights of {name!r}", heights)
        return heights.astype(np.float32)

    GENERATORS[name] = kind
    BOXES.pop(name, None)
    if boxes is not None:
        BOXES[name] = boxes


def _check_params(params: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    for name, value in params.items():
        default = np.asarray(defaults[name])
        # Strings, None and other defaults are for the function itself to check.
        if default.dtype.kind not in "if":
            continue
        given = np.asarray(value)
        # A count (default 20) must be whole, a length (default 0.4) may be.
        allowed_kinds = "iu" if default.dtype.kind == "i" else "iuf"
        fits = given.shape == default.shape and given.dtype.kind in allowed_kinds
        if not fits or not np.isfinite(given).all() or (given < 0).any():
            raise ValueError(
                f"{name} must be like {defaults[name]!r}, finite and not negative, got {value!r}"
            )


def make_tile(cfg: TerrainCfg, grid: Grid, kind: str, row: int, column: int) -> Array:
    """Return the heights of one tile of a terrain.

    Args:
        cfg: Configuration of the terrain.
        grid: Points of the tile.
        kind: Kind of the tile, a key of ``cfg.kinds``.
        row: Row of the tile, its level. The difficulty is ``row / cfg.rows``.
        column: Column of the tile. Together with the row it selects the random stream. The kind
            does not depend on it.

    Returns:
        Heights of the points, m. Shape: (n, n), float32.

    Raises:
        ValueError: The tile cannot be made. The message names the kind.
    """
    # A kind without a generator has the name of its generator.
    generator = cfg.kinds[kind].generator or kind
    check_known("TerrainCfg.kinds has no kind", [generator], GENERATORS, "there are")
    difficulty = row / cfg.rows
    try:
        # A stream for each tile: a tile does not depend on the size of the field.
        random = np.random.default_rng((cfg.seed, row, column))
        return GENERATORS[generator](difficulty, random, grid, **cfg.kinds[kind].params)
    except ValueError as error:
        # The error of the generator names its parameter. The field of the configuration is added.
        raise ValueError(f"TerrainCfg.kinds[{kind!r}]: {error}") from error


def make_boxes(cfg: TerrainCfg, grid: Grid, kind: str, row: int) -> Array:
    """Return the boxes on one tile of a terrain, relative to the middle of the tile.

    Args:
        cfg: Configuration of the terrain, which :func:`make_tile` has checked.
        grid: Points of the tile.
        kind: Kind of the tile, a key of ``cfg.kinds``.
        row: Row of the tile, its level. The difficulty is ``row / cfg.rows``.

    Returns:
        Boxes. Shape: (count, 6), see ``Terrain.boxes``; (0, 6) for kinds without boxes.
    """
    kind_cfg = cfg.kinds[kind]
    function = BOXES.get(kind_cfg.generator or kind)
    if function is None or not cfg.vertical_risers:
        return np.zeros((0, 6))
    difficulty = row / cfg.rows
    all_boxes = function(difficulty, grid, **kind_cfg.params)
    # The engines refuse boxes without size, such as the last step of stairs without a platform.
    has_size = (all_boxes[:, 3:] > CELL_TOLERANCE).all(axis=1)
    return all_boxes[has_size]
