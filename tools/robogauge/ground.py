"""Heights of the ground in a MuJoCo model, for a policy that sees the ground."""

from typing import Any

import mujoco
import numpy as np

RAY_START = 20.0
"""Height from which rays look down, m: above all walls of RoboGauge's worlds."""

EXTENT = 30.0
"""Half the side of the square around the origin that is known, m."""


class Ground:
    """Heights at the corners of a grid, each looked up with one ray when it is first asked for.

    Args:
        model: Model of the world.
        data: Its state, in which positions have been computed.
        cell: Side of a cell of the grid, m.
    """

    def __init__(self, model: Any, data: Any, cell: float):
        self._model = model
        self._data = data
        self._cell = cell
        corners = 2 * round(EXTENT / cell) + 1
        self._heights = np.full((corners, corners), np.nan)
        # Rays see geoms by their groups. Those of RoboGauge's worlds are not those of its robot.
        is_fixed = model.body_weldid[model.geom_bodyid] == 0
        self._groups = np.zeros(6, np.uint8)
        self._groups[model.geom_group[is_fixed]] = 1

    def __call__(self, points: np.ndarray, lookup: str) -> np.ndarray:
        """Return the heights of the ground.

        Args:
            points: Places in the world, m. Shape: (n, 2).
            lookup: `lowest`, `bilinear` or `height`, as in the entry `scan` of a contract.

        Returns:
            Heights, m. Shape: (n,).
        """
        cells = len(self._heights) - 1
        along = np.clip((points + EXTENT) / self._cell, 0.0, cells)
        corner = np.minimum(along.astype(int), cells - 1)
        i = corner[:, 0]
        j = corner[:, 1]
        u = along[:, 0] - i
        v = along[:, 1] - j
        h00 = self._at(i, j)
        h10 = self._at(i + 1, j)
        h01 = self._at(i, j + 1)
        if lookup == "lowest":
            return np.minimum(np.minimum(h00, h10), h01)
        h11 = self._at(i + 1, j + 1)
        if lookup == "bilinear":
            return (1.0 - v) * ((1.0 - u) * h00 + u * h10) + v * ((1.0 - u) * h01 + u * h11)
        # The surface: two triangles.
        upper = h00 + u * (h10 - h00) + v * (h11 - h10)
        lower = h00 + u * (h11 - h01) + v * (h01 - h00)
        return np.where(u >= v, upper, lower)

    def _at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the heights of corners. Shape: (n,)."""
        heights = self._heights[i, j]
        for n in np.flatnonzero(np.isnan(heights)):
            heights[n] = self._look(i[n], j[n])
        return heights

    def _look(self, i: int, j: int) -> float:
        known = self._heights[i, j]
        if not np.isnan(known):
            return float(known)
        place = np.array([i * self._cell - EXTENT, j * self._cell - EXTENT, RAY_START])
        down = np.array([0.0, 0.0, -1.0])
        hit = np.zeros(1, np.int32)
        far = mujoco.mj_ray(self._model, self._data, place, down, self._groups, True, -1, hit)
        height = RAY_START - far if far >= 0.0 else 0.0
        self._heights[i, j] = height
        return float(height)


def scan(
    ground: Ground, entry: dict[str, Any], position: np.ndarray, quat: np.ndarray
) -> np.ndarray:
    """Return how far the ground is below the base, at a grid that turns with the heading.

    Args:
        ground: Heights of the ground.
        entry: The entry `scan` of a contract.
        position: Position of the base, m. Shape: (3,).
        quat: Orientation of the base, w first. Shape: (4,).

    Returns:
        Distances less the offset, m. Shape: (num_points,).
    """
    w, x, y, z = quat
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    ahead = np.repeat(entry["x"], len(entry["y"]))
    left = np.tile(entry["y"], len(entry["x"]))
    east = np.cos(yaw) * ahead - np.sin(yaw) * left
    north = np.sin(yaw) * ahead + np.cos(yaw) * left
    points = position[:2] + np.stack([east, north], axis=1)
    below = position[2] - ground(points, entry["lookup"]) - entry["offset"]
    limit = entry["limit"]
    return np.clip(below, -limit, limit)
