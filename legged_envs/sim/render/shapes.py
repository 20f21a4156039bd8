"""Adds shapes to a picture: points, and a transparent robot in another pose."""

import mujoco
import numpy as np
import torch

from legged_envs.sim.cfg import Pose
from legged_envs.sim.robot_view import RobotView

GHOST_RGBA = (0.1, 0.55, 0.35, 0.35)
"""Red, green, blue and opacity of a ghost, the transparent robot, each from 0 to 1."""
POINT_RGBA = (0.95, 0.35, 0.1, 1.0)
"""Red, green, blue and opacity of points, each from 0 to 1."""
NO_SHADOW = mujoco.mjtCatBit.mjCAT_DECOR.value
"""MuJoCo's category of decorations. Shapes of this category have no shadow."""


def draw_points(scene: mujoco.MjvScene, points: torch.Tensor, radius: float = 0.012) -> None:
    """Add a small ball at each of some points to a picture.

    When the scene has the largest number of shapes, the other points are left out.

    Args:
        scene: Scene of the picture.
        points: Centres of the balls in the world, m. Shape: (n, 3).
        radius: Radius of the balls, m.
    """
    room = scene.maxgeom - scene.ngeom
    size = np.full(3, radius)
    rotation = np.eye(3).ravel()
    rgba = np.array(POINT_RGBA, np.float32)
    # mjv_initGeom takes float64 numbers.
    for point in points.double().cpu().numpy()[:room]:
        geom = scene.geoms[scene.ngeom]
        mujoco.mjv_initGeom(geom, mujoco.mjtGeom.mjGEOM_SPHERE, size, point, rotation, rgba)
        geom.category = NO_SHADOW
        scene.ngeom += 1


def draw_ghost(
    scene: mujoco.MjvScene,
    model: mujoco.MjModel,
    data: mujoco.MjData,
    view: RobotView,
    pose: Pose,
) -> None:
    """Add a ghost, a transparent robot in another pose, to a picture.

    Args:
        scene: Scene of the picture.
        model: Model that is drawn.
        data: Data of the model. It is overwritten with the pose of the ghost.
        view: Indices of the robot's parts in the arrays of the model.
        pose: Pose of the ghost.
    """
    if view.root_qpos is not None:
        root = torch.cat((pose.root_pos_w, pose.root_quat_w))
        data.qpos[view.root_qpos] = root.cpu().numpy()
    data.qpos[view.joint_qpos] = pose.joint_pos.cpu().numpy()
    mujoco.mj_kinematics(model, data)
    first = scene.ngeom
    # The robots are dynamic; the ground is static.
    dynamic = mujoco.mjtCatBit.mjCAT_DYNAMIC.value
    mujoco.mjv_addGeoms(model, data, mujoco.MjvOption(), mujoco.MjvPerturb(), dynamic, scene)
    # Appended to the scene, so the shapes of the robot itself stay as they are.
    for geom in scene.geoms[first : scene.ngeom]:
        geom.rgba = GHOST_RGBA
        geom.emission = 0.0
        geom.category = NO_SHADOW
