"""Perception of the ground: height scans at points around the robot, and distances along rays."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import normalize

from legged_envs import rotation
from legged_envs.checks import check_choice, whole_number
from legged_envs.mdp.context import Env

if TYPE_CHECKING:
    from legged_envs.sim import RobotState

Direction = tuple[float, float, float]
"""Direction (x, y, z) of a ray in the base frame, of any length."""
SCAN_X = tuple(i / 10.0 for i in range(-8, 9))
"""Default x (ahead of the base) of the points of a height scan, m: −0.8 to 0.8 every 0.1.

Source: legged_gym and Isaac Lab.
"""
SCAN_Y = tuple(i / 10.0 for i in range(-5, 6))
"""Default y (left of the base) of the points of a height scan, m: −0.5 to 0.5 every 0.1.

Source: legged_gym and Isaac Lab.
"""
LOOKUPS = ("lowest", "bilinear", "height")
"""Ways to read the ground's height: methods of :class:`~legged_envs.sim.ground.Ground`."""


def grid(
    env: Env,
    x: Sequence[float],
    y: Sequence[float],
) -> Tensor:
    """Return the coordinates of all points of a grid as one row for x and one for y, m.

    Points with the same x are neighbours.

    Args:
        env: Environment, on the device of which the tensor is made once for each grid.
        x: Grid lines along x, m.
        y: Grid lines along y, m.

    Returns:
        Row 0 has x and row 1 has y. Shape: (2, len(x) · len(y)).
    """
    # Made once for each grid: a scan reads it in every step.
    key = ("scan_grid", tuple(x), tuple(y))
    return env.robot.table(key, lambda: _make_grid(x, y, env.device))


def _make_grid(
    x: Sequence[float],
    y: Sequence[float],
    device: torch.device,
) -> Tensor:
    ahead = [each for each in x for _ in y]
    left = list(y) * len(x)
    return torch.tensor([ahead, left], dtype=torch.float32, device=device)


def points_around(
    env: Env,
    centres: Tensor,
    x: Sequence[float],
    y: Sequence[float],
) -> tuple[Tensor, Tensor]:
    """Return the points of a grid around each of some positions, turned with the robot's heading.

    Args:
        env: Environment with n robots.
        centres: World x and y of the grids' centres, m, m for each robot. Shape: (n, m, 2).
        x: Distances of the points ahead of a centre, m.
        y: Distances of the points to the left of a centre, m.

    Returns:
        World x and y, m. Shapes: (n, m, len(x) · len(y)).
    """
    ahead, left = grid(env, x, y)
    yaw = env.robot.heading()[:, None, None]
    return turn_points(yaw, centres, ahead, left)


def turn_points(
    yaw: Tensor,
    centres: Tensor,
    ahead: Tensor,
    left: Tensor,
) -> tuple[Tensor, Tensor]:
    """Convert points in frames with a position and a heading to world coordinates.

    Args:
        yaw: Heading of each frame, rad. Shape: (…, 1).
        centres: World position of each frame's origin, m. Shape: (…, 2 or 3).
        ahead: x of each point in its frame, m. Shape: (…, k).
        left: y of each point in its frame, m. Shape: (…, k).

    Returns:
        World x and y, m. Shapes: (…, k).
    """
    cos = yaw.cos()
    sin = yaw.sin()
    # One expression for each: the order of additions decides the rounding.
    centre_x = centres[..., :1]
    centre_y = centres[..., 1:2]
    x = centre_x + cos * ahead - sin * left
    y = centre_y + sin * ahead + cos * left
    return x, y


def lookup_heights(
    robot: "RobotState",
    lookup: str,
    ahead: Tensor,
    left: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the ground's height at points around the base of each robot.

    Args:
        robot: State of the n robots.
        lookup: Way to read the ground's height, one of ``LOOKUPS``.
        ahead: Distance of each point ahead of the base, m. Shape: (k,) or (n, k).
        left: Distance of each point to the left of the base, m. Shape: (k,) or (n, k).

    Returns:
        World x, y and height of each point, m. Shapes: (n, k).
    """
    yaw = robot.heading()[:, None]
    x, y = turn_points(yaw, robot.root_pos_w, ahead, left)
    ground = robot.sim.ground
    if ground is None:
        return x, y, torch.zeros_like(x)
    heights = getattr(ground, lookup)(x, y)
    return x, y, heights


def scan_points(
    env: Env,
    x: Sequence[float] = SCAN_X,
    y: Sequence[float] = SCAN_Y,
    lookup: str = "lowest",
) -> Tensor:
    """Return the world positions of a height scan's points on the ground, for example to draw them.

    The points are those of :func:`~legged_envs.mdp.observations.height_scan` with equal arguments.

    Args:
        env: Environment with the robots.
        x: Distances of the points ahead of the base, m.
        y: Distances of the points to the left of the base, m.
        lookup: Way to read the ground's height, one of ``LOOKUPS``.

    Returns:
        Positions, m. Shape: (num_envs, len(x) · len(y), 3).
    """
    return torch.stack(scan_heights(env, x, y, lookup), dim=-1)


def scan_heights(
    env: Env,
    x: Sequence[float],
    y: Sequence[float],
    lookup: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return world x, world y and ground height of the points of a height scan.

    Args:
        env: Environment with the robots.
        x: Distances of the points ahead of the base, m.
        y: Distances of the points to the left of the base, m.
        lookup: Way to read the ground's height, one of ``LOOKUPS``.

    Returns:
        x, y and height, m. Shapes: (num_envs, len(x) · len(y)).

    Raises:
        ValueError: ``lookup`` is not one of ``LOOKUPS``.
    """
    check_choice("height_scan: lookup", lookup, LOOKUPS)
    ahead, left = grid(env, x, y)
    return lookup_heights(env.robot, lookup, ahead, left)


def ray_distances(
    env: Env,
    directions: Sequence[Direction],
    position: tuple[float, float, float] = (0.3, 0.0, 0.1),
    farthest: float = 5.0,
) -> Tensor:
    """Return the distance along rays from the robot to the ground or to an object, m.

    The simulation casts each ray, which is slow; docs/physics.md has measured times.

    Args:
        env: Environment with the robots.
        directions: Directions of the rays in the base frame, for example from :func:`lidar` or
            :func:`depth_camera`.
        position: Start of the rays in the base frame, m.
        farthest: Largest distance, m. Rays that hit nothing have this distance.

    Returns:
        Distances, m. Shape: (num_envs, len(directions)).
    """
    turn = env.robot.root_quat_w.unsqueeze(1)
    in_base = torch.tensor(position, dtype=torch.float32, device=env.device)
    offset = rotation.rotate(turn, in_base.expand(env.num_envs, 1, 3))
    start = env.robot.root_pos_w.unsqueeze(1) + offset
    # Made once for each set of directions.
    key = ("directions", *map(tuple, directions))
    unit = env.robot.table(key, lambda: _unit_vectors(directions, env.device))
    unit = unit.expand(env.num_envs, -1, 3)
    ways = rotation.rotate(turn, unit)
    return env.sim.cast_rays(start.expand_as(ways), ways, farthest)


def _unit_vectors(directions: Sequence[Direction], device: torch.device) -> Tensor:
    return normalize(torch.tensor(directions, dtype=torch.float32, device=device), dim=1)


def lidar(beams: int = 16, pitch: float = 0.0) -> tuple[Direction, ...]:
    """Return the directions of a lidar's beams: a full turn, starting ahead and turning left.

    Args:
        beams: Number of beams, at least 1.
        pitch: Angle of the beams below the horizontal, rad.

    Raises:
        ValueError: ``beams`` is below 1.
    """
    whole_number("lidar: beams", beams)
    level = math.cos(pitch)
    down = -math.sin(pitch)
    directions = []
    for i in range(beams):
        angle = 2.0 * math.pi * i / beams
        x = level * math.cos(angle)
        y = level * math.sin(angle)
        directions.append((x, y, down))
    return tuple(directions)


def depth_camera(
    width: int = 16,
    height: int = 12,
    view: float = 1.5,
    pitch: float = 0.5,
) -> tuple[Direction, ...]:
    """Return the directions of a depth camera's pixels, row by row from the top left.

    Args:
        width: Number of pixels in a row, at least 1.
        height: Number of rows, at least 1.
        view: Horizontal angle of view, rad.
        pitch: Angle of the camera below the horizontal, rad.

    Raises:
        ValueError: ``width`` or ``height`` is below 1.
    """
    whole_number("depth_camera: width", width)
    whole_number("depth_camera: height", height)
    # Side of a pixel in the picture plane, at a distance of 1.
    size = 2.0 * math.tan(0.5 * view) / width
    cos = math.cos(pitch)
    sin = math.sin(pitch)
    directions = []
    for row in range(height):
        up = size * ((height - 1) / 2.0 - row)
        for column in range(width):
            left = size * ((width - 1) / 2.0 - column)
            # The camera's axes turned down by the pitch.
            x = cos + sin * up
            z = cos * up - sin
            directions.append((x, left, z))
    return tuple(directions)
