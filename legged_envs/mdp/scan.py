"""What a robot sees of the ground: points around it, and distances along rays."""

import math
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from legged_envs import rotation
from legged_envs.checks import check_choice, whole_number
from legged_envs.mdp.context import Env

SCAN_X, SCAN_Y = (tuple(i / 10.0 for i in range(-n, n + 1)) for n in (8, 5))
"""Points of a height scan: 1.7 × 1.1 m about the base every 0.1 m (legged_gym, Isaac Lab)."""


def grid(env: Env, x: tuple[float, ...], y: tuple[float, ...]) -> Any:
    """x and y of the points (x, y) of a grid, those of one x together. Shape: (2, len(x) · len(y))."""
    return env.robot.table(
        (grid, x, y), lambda: torch.tensor([*zip(*product(x, y), strict=True)], device=env.device)
    )


def around(
    env: Env, centres: Tensor, x: tuple[float, ...], y: tuple[float, ...]
) -> tuple[Tensor, Tensor]:
    """World x and y of the points (x, y) about each of ``centres`` (n, m, 2). Shapes: (n, m, len(x) · len(y))."""
    return turned(env.robot.heading()[:, None, None], centres, *grid(env, x, y))


def turned(yaw: Tensor, centres: Tensor, ahead: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
    """World x and y of points ``ahead`` and to the ``left`` of ``centres``, (…, 2 or 3), that look along ``yaw``."""
    cos, sin = yaw.cos(), yaw.sin()
    return centres[..., :1] + cos * ahead - sin * left, centres[..., 1:2] + sin * ahead + cos * left


def looked_up(
    robot: Any, lookup: str, ahead: Tensor, left: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """World x, y and height of the ground at k points around each base. Shapes: (k,) or (n, k) → (n, k)."""
    x, y = turned(robot.heading()[:, None], robot.root_pos_w, ahead, left)
    ground = robot.sim.ground
    return x, y, torch.zeros_like(x) if ground is None else getattr(ground, lookup)(x, y)


def scan_points(
    env: Env, x: tuple[float, ...] = SCAN_X, y: tuple[float, ...] = SCAN_Y, lookup: str = "lowest"
) -> Tensor:
    """Where the points of :func:`height_scan` are, m in the world. Shape: (num_envs, len(x) · len(y), 3)."""
    return torch.stack(scanned(env, x, y, lookup), dim=-1)


def scanned(
    env: Env, x: tuple[float, ...], y: tuple[float, ...], lookup: str
) -> tuple[Tensor, Tensor, Tensor]:
    """World x, y and height of the points of a scan, (num_envs, k) each; ValueError for another ``lookup``."""
    check_choice("height_scan: lookup", lookup, ("lowest", "bilinear", "height"))
    return looked_up(env.robot, lookup, *grid(env, x, y))


def ray_distances(
    env: Env,
    directions: tuple[tuple[float, float, float], ...],
    position: tuple[float, float, float] = (0.3, 0.0, 0.1),
    farthest: float = 5.0,
) -> Tensor:
    """How far the ground or an object is from ``position`` in the base frame along each of ``directions`` there, at
    most ``farthest``, m. :func:`lidar` and :func:`depth_camera` give directions. Not recorded: rays cost what
    docs/physics.md says. Shape: (num_envs, len(directions))."""

    def unit() -> Tensor:
        return normalize(torch.tensor(directions, device=env.device), dim=1)

    turn = env.robot.root_quat_w.unsqueeze(1)
    place = torch.tensor(position, device=env.device).expand(env.num_envs, 1, 3)
    start = env.robot.root_pos_w.unsqueeze(1) + rotation.rotate(turn, place)
    ways = env.robot.table(("directions", directions), unit).expand(env.num_envs, -1, 3)
    ways = rotation.rotate(turn, ways)
    return env.sim.cast_rays(start.expand_as(ways), ways, farthest)


def lidar(beams: int = 16, pitch: float = 0.0) -> tuple[tuple[float, float, float], ...]:
    """Directions of ``beams`` all around, from ahead to the left, ``pitch`` rad below the horizontal; ValueError
    for less than one."""
    whole_number("lidar: beams", beams)
    angles = [2.0 * math.pi * i / beams for i in range(beams)]
    level, down = math.cos(pitch), -math.sin(pitch)
    return tuple((level * math.cos(angle), level * math.sin(angle), down) for angle in angles)


def depth_camera(
    width: int = 16, height: int = 12, view: float = 1.5, pitch: float = 0.5
) -> tuple[tuple[float, float, float], ...]:
    """Directions of the pixels of a camera, rows from top left to bottom right, whose horizontal angle of view is
    ``view`` rad and which looks ``pitch`` rad below ahead; ValueError for less than one."""
    whole_number("depth_camera: width", width)
    whole_number("depth_camera: height", height)
    size = 2.0 * math.tan(0.5 * view) / width
    cos, sin = math.cos(pitch), math.sin(pitch)
    across = [size * ((width - 1) / 2.0 - i) for i in range(width)]
    up = [size * ((height - 1) / 2.0 - i) for i in range(height)]
    return tuple((cos + sin * rise, left, cos * rise - sin) for rise in up for left in across)
