"""Heights from an array, an image or a mesh."""

from pathlib import Path

import numpy as np

from legged_envs.checks import check_inputs, check_installed, check_known, check_number
from legged_envs.terrains.cfg import LEAST_SIZE, MOST_POINTS, TerrainCfg
from legged_envs.terrains.generators import Array, check_heights


def load_source(cfg: TerrainCfg) -> Array:
    """The heights of ``cfg.source``, m. Shape: (nx, ny), float32. ValueError if it is none, cannot be read or does not
    fit, FileNotFoundError if there is no such file, ModuleNotFoundError if what reads it is not installed."""
    where, heights = "TerrainCfg.source", np.asarray(cfg.source)
    if isinstance(cfg.source, (str, Path)):
        path, where = Path(cfg.source), f"TerrainCfg.source {str(cfg.source)!r}"
        check_known(f"{where} cannot end in", [path.suffix.lower()], READERS, "it can be")
        check_inputs("TerrainCfg.source", [path])
        module, read = READERS[path.suffix.lower()]
        check_installed(module, extra="terrain")
        try:
            heights = read(path, cfg)
        except (
            Exception
        ) as error:  # of other people's readers, whatever their files make them raise
            raise ValueError(f"{where} cannot be read: {error}") from error
    check_heights(where, heights)
    check_number(
        f"{where}: its shorter side, m,",
        (min(heights.shape) - 1) * cfg.horizontal_scale,
        LEAST_SIZE - 1e-6,
    )
    return heights.astype(np.float32)


def _image(path: Path, cfg: TerrainCfg) -> Array:
    """A pixel is a point; 8 or 16 bit of grey are from 0 to ``source_height``, numbers of 32 bit are m as they are."""
    from PIL import Image

    with Image.open(path) as image:
        white = {
            "F": cfg.source_height,
            "I": 65535 if image.format == "PNG" else cfg.source_height,
            "I;16": 65535,
        }
        pixels = np.asarray(image if image.mode[0] in "FI" else image.convert("L"))
        return pixels[::-1].T * (cfg.source_height / white.get(image.mode, 255))


def _mesh(path: Path, cfg: TerrainCfg) -> Array:
    """The highest surface of a mesh at points from its lowest x and y on; beside it the height of its lowest point."""
    import trimesh

    triangles = np.asarray(trimesh.load_mesh(path, process=False).triangles, dtype=np.float64)
    cells = (triangles[..., :2] - triangles[..., :2].min((0, 1))) / cfg.horizontal_scale
    shape = np.floor(cells.max((0, 1)) + 1e-6).astype(int) + 1
    if shape.prod() > MOST_POINTS:
        raise ValueError(
            f"it has {shape.prod():,} points, at most {MOST_POINTS:,} are possible; is it in m?"
        )
    heights = np.full(shape, triangles[..., 2].min())
    first, last = (
        np.ceil(cells.min(1) - 1e-6).astype(int),
        np.minimum(cells.max(1) + 1e-6, shape - 1).astype(int),
    )
    corners = np.concatenate((cells, np.ones((*cells.shape[:2], 1))), axis=2)
    # A wall has no area from above: what stands on it has its points.
    for k in np.flatnonzero((first <= last).all(1) & (abs(np.linalg.det(corners)) > 1e-9)):
        x, y = np.meshgrid(*map(np.arange, first[k], last[k] + 1), indexing="ij")
        weights = np.stack((x, y, np.ones_like(x)), axis=-1) @ np.linalg.inv(
            corners[k]
        )  # of the three corners
        surface = np.where(weights.min(-1) > -1e-6, weights @ triangles[k, :, 2], -np.inf)
        heights[x, y] = np.maximum(heights[x, y], surface)
    return heights


READERS = {".npy": ("numpy", lambda path, _: np.load(path, allow_pickle=False))}
READERS |= dict.fromkeys((".png", ".tif", ".tiff"), ("PIL", _image))
READERS |= dict.fromkeys((".stl", ".obj", ".ply"), ("trimesh", _mesh))
"""Ending of a file → the module that it takes, and what reads it."""
