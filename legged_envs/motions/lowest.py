"""Heights of the lowest points of a robot's collision shapes of every type."""

from typing import TYPE_CHECKING

import numpy as np
import torch

from legged_envs.motions.kinematics import posed, robot_model
from legged_envs.robots import RobotCfg

if TYPE_CHECKING:
    import mujoco


def lowest_point(robot: RobotCfg, qpos: torch.Tensor) -> torch.Tensor:
    """Return the height of the lowest point of a robot's collision shapes in each of T poses.

    A robot without collision shapes has the lowest origin of its bodies.

    Args:
        robot: The robot.
        qpos: Base position, base orientation (w, x, y, z) and joint positions. Shape: (T, 7 + J).

    Returns:
        Heights in the world, m. Shape: (T,), float64.
    """
    model = robot_model(robot)
    # Shapes without collisions are visual ones.
    shapes = np.flatnonzero(model.geom_contype | model.geom_conaffinity)
    lowest = []
    for data in posed(robot, qpos):
        heights = []
        for shape in shapes:
            rotation = data.geom_xmat[shape].reshape(3, 3)
            # The direction down in the frame of the shape.
            down = -rotation[2]
            extent = _extent(model, int(shape), down)
            heights.append(data.geom_xpos[shape, 2] - extent)
        if not heights:
            heights.append(data.xpos[1:, 2].min())
        lowest.append(min(heights))
    return torch.tensor(lowest, dtype=torch.float64)


def _extent(model: "mujoco.MjModel", shape: int, direction: np.ndarray) -> float:
    """Return how far a shape reaches from its origin along a direction, m.

    Args:
        model: Model with the shape.
        shape: Index of the shape.
        direction: Unit vector in the frame of the shape. Shape: (3,).
    """
    import mujoco

    kind = mujoco.mjtGeom(model.geom_type[shape])
    size = model.geom_size[shape]
    along_axis = abs(direction[2])
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return float(size[0])
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return float(size[0] + size[1] * along_axis)
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        radial = np.hypot(direction[0], direction[1])
        return float(size[0] * radial + size[1] * along_axis)
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        return float(np.linalg.norm(size * direction))
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return float(size @ abs(direction))
    return _extent_of_mesh(model, shape, direction)


def _extent_of_mesh(model: "mujoco.MjModel", shape: int, direction: np.ndarray) -> float:
    mesh = model.geom_dataid[shape]
    if mesh < 0:
        # Planes and signed distances have no vertices: the box around the shape holds it.
        centre = model.geom_aabb[shape, :3]
        half = model.geom_aabb[shape, 3:]
        return float(centre @ direction + half @ abs(direction))
    first = model.mesh_vertadr[mesh]
    vertices = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
    return float((vertices @ direction).max())
