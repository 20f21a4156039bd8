"""Loads the heights of a terrain from an array, an image or a mesh."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from legged_envs.checks import check_known, check_number
from legged_envs.system_checks import check_inputs, check_installed
from legged_envs.terrains.cfg import MAX_POINTS, MIN_TILE_SIZE, TerrainCfg
from legged_envs.terrains.grid import Array, check_heights

LARGEST_MESH = 2**29
"""Largest size of a mesh file, bytes."""


def load_source(cfg: TerrainCfg) -> Array:
    """Load the heights of the array or file in ``TerrainCfg.source``.

    Args:
        cfg: Configuration of the terrain, with a source.

    Returns:
        Heights of the points, m, ``cfg.horizontal_scale`` apart. Shape: (nx, ny), float32.

    Raises:
        ValueError: The source is not an array or a file of heights, or cannot be read.
        FileNotFoundError: The file does not exist.
        ModuleNotFoundError: The module that reads the file is not installed.
    """
    where = "TerrainCfg.source"
    if isinstance(cfg.source, (str, Path)):
        where = f"TerrainCfg.source {str(cfg.source)!r}"
        heights = _read_file(Path(cfg.source), cfg, where)
    else:
        heights = np.asarray(cfg.source)
    check_heights(where, heights)
    # The tolerance admits 21 points that are 0.1 m apart.
    shorter_side = (min(heights.shape) - 1) * cfg.horizontal_scale
    check_number(f"{where}: its shorter side, m,", shorter_side, MIN_TILE_SIZE - 1e-6)
    return heights.astype(np.float32)


def _read_file(path: Path, cfg: TerrainCfg, where: str) -> Array:
    ending = path.suffix.lower()
    check_known(f"{where} cannot end in", [ending], READERS, "it can be")
    check_inputs("TerrainCfg.source", [path])
    reader = READERS[ending]
    check_installed(reader.module, extra="terrain")
    try:
        return reader.read(path, cfg)
    # Readers of other packages raise anything for a damaged file.
    except Exception as error:
        raise ValueError(f"{where} cannot be read: {error}") from error


def _check_points(points: int) -> None:
    """Raise a ValueError if a file declares more points than a field can have.

    It is called before memory is taken for them: a small file may claim or unpack to any size.
    """
    if points > MAX_POINTS:
        raise ValueError(
            f"it has {points:,} points, at most {MAX_POINTS:,} are possible: make it coarser"
        )


def _read_array(path: Path, cfg: TerrainCfg) -> Array:
    # A pickle could run code. A map of the file takes no memory, and refuses a file that is too
    # short.
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    _check_points(mapped.size)
    return np.array(mapped)


def _read_image(path: Path, cfg: TerrainCfg) -> Array:
    """Read an image with one point per pixel.

    Grey of 8 or 16 bit is scaled to 0 … ``source_height``. Numbers of 32 bit are heights in m.
    """
    from PIL import Image

    with Image.open(path) as image:
        # The size follows from the header: the pixels are unpacked later.
        _check_points(image.width * image.height)
        white: float = 255
        if image.mode == "F":
            white = cfg.source_height
        elif image.mode == "I":
            # Pillow reads a PNG of 16 bit in the mode of 32 bit.
            white = 65535 if image.format == "PNG" else cfg.source_height
        elif image.mode.startswith("I;16"):
            white = 65535
        has_grey_only = image.mode[0] in "FI"
        pixels = np.asarray(image if has_grey_only else image.convert("L"))
        # Rows of an image go down, y goes up.
        return pixels[::-1].T * (cfg.source_height / white)


def _read_mesh(path: Path, cfg: TerrainCfg) -> Array:
    """Read the highest surface of a mesh at points from its lowest x and y on.

    Points without a surface get the height of the mesh's lowest point.
    """
    import trimesh

    size = path.stat().st_size
    if size > LARGEST_MESH:
        raise ValueError(f"it has {size:,} bytes, at most {LARGEST_MESH:,} are read")
    # Materials may name pictures of any size.
    mesh = trimesh.load_mesh(path, process=False, skip_materials=True)
    triangles = np.asarray(mesh.triangles, dtype=np.float64)
    lowest_xy = triangles[..., :2].min((0, 1))
    # From here on in cells from the corner of the field.
    cells = (triangles[..., :2] - lowest_xy) / cfg.horizontal_scale
    shape = np.floor(cells.max((0, 1)) + 1e-6).astype(int) + 1
    # Before memory is taken: CAD files are often in mm.
    if shape.prod() > MAX_POINTS:
        raise ValueError(
            f"it has {shape.prod():,} points, at most {MAX_POINTS:,} are possible; is it in m?"
        )
    heights = np.full(shape, triangles[..., 2].min())
    first = np.ceil(cells.min(1) - 1e-6).astype(int)
    last = np.minimum(cells.max(1) + 1e-6, shape - 1).astype(int)
    corners = np.concatenate((cells, np.ones((*cells.shape[:2], 1))), axis=2)
    covers_a_point = (first <= last).all(1)
    # A wall has no area seen from above. The surfaces on top of it cover its points.
    has_area = abs(np.linalg.det(corners)) > 1e-9
    for k in np.flatnonzero(covers_a_point & has_area):
        x, y = np.meshgrid(
            np.arange(first[k, 0], last[k, 0] + 1),
            np.arange(first[k, 1], last[k, 1] + 1),
            indexing="ij",
        )
        points = np.stack((x, y, np.ones_like(x)), axis=-1)
        # Barycentric coordinates: the weights of the three corners at each point.
        # Small matrices, one at a time: triangles cover different numbers of points.
        weights = points @ np.linalg.inv(corners[k])
        is_inside = weights.min(-1) > -1e-6
        surface = np.where(is_inside, weights @ triangles[k, :, 2], -np.inf)
        heights[x, y] = np.maximum(heights[x, y], surface)
    return heights


@dataclass(frozen=True)
class _Reader:
    module: str
    """Module that the reader imports."""
    read: Callable[[Path, TerrainCfg], Array]
    """Function that reads a file."""


READERS = {
    ".npy": _Reader("numpy", _read_array),
    ".png": _Reader("PIL", _read_image),
    ".tif": _Reader("PIL", _read_image),
    ".tiff": _Reader("PIL", _read_image),
    ".stl": _Reader("trimesh", _read_mesh),
    ".obj": _Reader("trimesh", _read_mesh),
    ".ply": _Reader("trimesh", _read_mesh),
}
"""Endings of files that can be the source of a terrain, and the reader of each."""
