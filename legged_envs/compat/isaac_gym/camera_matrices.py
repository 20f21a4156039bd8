"""Matrices of a camera, for points as rows, as in Isaac Gym."""

import math

import numpy as np

from legged_envs.compat.isaac_gym.records import CameraProperties
from legged_envs.compat.isaac_gym.vectors import Transform, Vec3


def view_matrix(pose: Transform) -> np.ndarray:
    """Return the matrix from the world to a camera that looks along its axis −z, with y up.

    Args:
        pose: Pose of the camera, which looks along its axis x, with z up.

    Returns:
        Matrix for points as rows (x, y, z, 1). Shape: (4, 4), float32.
    """
    right = pose.r.rotate(Vec3(0.0, -1.0, 0.0))
    up = pose.r.rotate(Vec3(0.0, 0.0, 1.0))
    back = pose.r.rotate(Vec3(-1.0, 0.0, 0.0))
    axes = np.array([right.values, up.values, back.values])
    matrix = np.eye(4)
    matrix[:3, :3] = axes.T
    matrix[3, :3] = -axes @ np.array(pose.p.values)
    return matrix.astype(np.float32)


def projection_matrix(properties: CameraProperties) -> np.ndarray:
    """Return the matrix of a camera's projection, with depths from −1 to 1 (OpenGL).

    Args:
        properties: Size of the picture, horizontal field of view and range of distances.

    Returns:
        Matrix for points as rows. Shape: (4, 4), float32.
    """
    near = properties.near_plane
    far = properties.far_plane
    focal = 1.0 / math.tan(math.radians(properties.horizontal_fov) / 2)
    matrix = np.zeros((4, 4))
    matrix[0, 0] = focal
    matrix[1, 1] = focal * int(properties.width) / int(properties.height)
    matrix[2, 2] = (near + far) / (near - far)
    matrix[2, 3] = -1.0
    matrix[3, 2] = 2.0 * near * far / (near - far)
    return matrix.astype(np.float32)
