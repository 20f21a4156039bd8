"""`isaacgym.torch_utils`: quaternions (x, y, z, w) and tensors.

The functions of tensors can be compiled by ``torch.jit.script``, as codebases do. Therefore they
have no keyword-only arguments, and only types that it knows.
"""

import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from legged_envs.compat.isaac_gym.missing import make_missing_name_error

# A star import brings NumPy and PyTorch too, as in Isaac Gym. Codebases count on it.
__all__ = [
    "copysign",
    "get_axis_params",
    "get_basis_vector",
    "get_euler_xyz",
    "normalize",
    "normalize_angle",
    "np",
    "quat_apply",
    "quat_conjugate",
    "quat_from_angle_axis",
    "quat_from_euler_xyz",
    "quat_mul",
    "quat_rotate",
    "quat_rotate_inverse",
    "quat_unit",
    "scale",
    "tensor_clamp",
    "tf_apply",
    "tf_combine",
    "tf_inverse",
    "tf_vector",
    "to_torch",
    "torch",
    "torch_rand_float",
    "torch_random_dir_2",
    "unscale",
    "unscale_np",
]


def present_device(device: str) -> str:
    """Return a device, or ``"cpu"`` for a device of CUDA on a machine without CUDA."""
    return "cpu" if device.startswith("cuda") and not torch.cuda.is_available() else device


def to_torch(
    x: float | Sequence[object] | np.ndarray | Tensor,
    dtype: torch.dtype = torch.float,
    device: str | torch.device = "cuda:0",
    requires_grad: bool = False,
) -> Tensor:
    """Return a new tensor with the values of ``x``.

    Args:
        x: A number, list, array or tensor.
        dtype: Type of the elements.
        device: Device of the tensor. On a machine without CUDA a device of CUDA is the CPU.
        requires_grad: True if gradients of the tensor are needed.
    """
    return torch.tensor(
        x, dtype=dtype, device=present_device(str(device)), requires_grad=requires_grad
    )


def get_axis_params(
    value: float,
    axis_idx: int,
    x_value: float = 0.0,
    dtype: type[float] | type[int] = float,
    n_dims: int = 3,
) -> list[float]:
    """Return a vector with one value along an axis, such as gravity.

    Args:
        value: Value at ``axis_idx``.
        axis_idx: Index of the axis.
        x_value: Value at index 0, which replaces ``value`` there.
        dtype: Type of the elements.
        n_dims: Number of elements.
    """
    vector = np.zeros(n_dims)
    vector[axis_idx] = value
    # After the axis, as in Isaac Gym: with the axis 0 the value is lost there too.
    vector[0] = x_value
    return list(vector.astype(dtype))


def torch_rand_float(lower: float, upper: float, shape: tuple[int, int], device: str) -> Tensor:
    """Return random numbers in [lower, upper) from PyTorch's global generator.

    Args:
        lower: Least value.
        upper: Value below which all are.
        shape: Numbers of rows and columns.
        device: Device of the tensor.
    """
    return (upper - lower) * torch.rand(shape[0], shape[1], device=device) + lower


def normalize(x: Tensor, eps: float = 1e-9) -> Tensor:
    """Return vectors divided by their lengths.

    Args:
        x: Vectors along the last dimension. Shape: (…, n).
        eps: Least length that is divided by, so that a vector of zeros stays one.
    """
    return x / x.norm(p=2, dim=-1).clamp(min=eps).unsqueeze(-1)


def quat_mul(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of quaternions: the rotation b, then the rotation a.

    Args:
        a: Quaternions. Shape: (…, 4).
        b: Quaternions. Shape: (…, 4).

    Returns:
        Quaternions ``(w_a v_b + w_b v_a + v_a × v_b, w_a w_b − v_a · v_b)``. Shape: (…, 4).
    """
    v_a = a[..., :3]
    w_a = a[..., 3:]
    v_b = b[..., :3]
    w_b = b[..., 3:]
    w = w_a * w_b - (v_a * v_b).sum(-1, keepdim=True)
    v = w_a * v_b + w_b * v_a + torch.cross(v_a, v_b, dim=-1)
    return torch.cat((v, w), dim=-1)


def quat_conjugate(a: Tensor) -> Tensor:
    """Return the inverse rotations of unit quaternions. Shape: (…, 4)."""
    return torch.cat((-a[..., :3], a[..., 3:]), dim=-1)


def quat_apply(a: Tensor, b: Tensor) -> Tensor:
    """Rotate vectors.

    Args:
        a: Unit quaternions (u, w), as many as there are vectors. Shape: (…, 4).
        b: Vectors v. Shape: (…, 3).

    Returns:
        Vectors ``v + 2 u × (u × v + w v)`` in the shape of ``b``.
    """
    # Codebases give quaternions and vectors in different shapes of the same number of rows.
    quat = a.reshape(-1, 4)
    vector = b.reshape(-1, 3)
    u = quat[:, :3]
    w = quat[:, 3:]
    turn = torch.cross(u, vector, dim=-1) * 2
    rotated = vector + w * turn + torch.cross(u, turn, dim=-1)
    return rotated.view(b.shape)


def quat_rotate_inverse(q: Tensor, v: Tensor) -> Tensor:
    """Return vectors of the world in the frames of bodies.

    Args:
        q: Orientations of the bodies in the world, unit quaternions. Shape: (n, 4).
        v: Vectors in the frame of the world. Shape: (n, 3).

    Returns:
        The vectors in the frames of the bodies. Shape: (n, 3).
    """
    return quat_apply(quat_conjugate(q), v)


def quat_from_angle_axis(angle: Tensor, axis: Tensor) -> Tensor:
    """Return the rotations by angles about axes.

    Args:
        angle: Angles, rad. Shape: (n,).
        axis: Axes of any length above 0. Shape: (n, 3).

    Returns:
        Unit quaternions. Shape: (n, 4).
    """
    half = (angle / 2).unsqueeze(-1)
    v = normalize(axis) * half.sin()
    # Rounding makes lengths differ from 1 in the last digits.
    return normalize(torch.cat((v, half.cos()), dim=-1))


def quat_rotate(q: Tensor, v: Tensor) -> Tensor:
    """Return vectors in the frames of bodies as vectors of the world.

    Args:
        q: Orientations of the bodies in the world, unit quaternions. Shape: (n, 4).
        v: Vectors in the frames of the bodies. Shape: (n, 3).

    Returns:
        The vectors in the frame of the world. Shape: (n, 3).
    """
    return quat_apply(q, v)


def quat_unit(a: Tensor) -> Tensor:
    """Return quaternions divided by their lengths. Shape: (…, 4)."""
    return normalize(a)


def quat_from_euler_xyz(roll: Tensor, pitch: Tensor, yaw: Tensor) -> Tensor:
    """Return the rotations by roll about x, then pitch about y, then yaw about z of the world.

    Args:
        roll: Angles, rad. Shape: (…).
        pitch: Angles in the same shape, rad.
        yaw: Angles in the same shape, rad.

    Returns:
        Unit quaternions. Shape: (…, 4).
    """
    cos_r = torch.cos(roll * 0.5)
    sin_r = torch.sin(roll * 0.5)
    cos_p = torch.cos(pitch * 0.5)
    sin_p = torch.sin(pitch * 0.5)
    cos_y = torch.cos(yaw * 0.5)
    sin_y = torch.sin(yaw * 0.5)
    x = sin_r * cos_p * cos_y - cos_r * sin_p * sin_y
    y = cos_r * sin_p * cos_y + sin_r * cos_p * sin_y
    z = cos_r * cos_p * sin_y - sin_r * sin_p * cos_y
    w = cos_r * cos_p * cos_y + sin_r * sin_p * sin_y
    return torch.stack([x, y, z, w], dim=-1)


def get_euler_xyz(q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the angles roll, pitch and yaw of rotations, rad, each in [0, 2π).

    Args:
        q: Unit quaternions. Shape: (n, 4).

    Returns:
        Three tensors of angles, of which ``quat_from_euler_xyz`` makes the rotations.
        Shape of each: (n,).
    """
    x = q[:, 0]
    y = q[:, 1]
    z = q[:, 2]
    w = q[:, 3]
    roll = torch.atan2(2.0 * (w * x + y * z), w * w - x * x - y * y + z * z)
    sin_pitch = 2.0 * (w * y - z * x)
    # Rounding may lead slightly beyond 1, where there is no arcsine.
    pitch = torch.asin(torch.clamp(sin_pitch, -1.0, 1.0))
    yaw = torch.atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z)
    turn = 2.0 * math.pi
    return roll % turn, pitch % turn, yaw % turn


def normalize_angle(x: Tensor) -> Tensor:
    """Return angles in [−π, π], rad."""
    return torch.atan2(torch.sin(x), torch.cos(x))


def tf_inverse(q: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """Return the inverse of poses.

    Args:
        q: Orientations, unit quaternions. Shape: (n, 4).
        t: Positions, m. Shape: (n, 3).
    """
    inverse = quat_conjugate(q)
    return inverse, -quat_apply(inverse, t)


def tf_apply(q: Tensor, t: Tensor, v: Tensor) -> Tensor:
    """Return points of frames in the outer frame: rotated, then moved.

    Args:
        q: Orientations of the frames, unit quaternions. Shape: (n, 4).
        t: Origins of the frames, m. Shape: (n, 3).
        v: Points in the frames, m. Shape: (n, 3).
    """
    return quat_apply(q, v) + t


def tf_vector(q: Tensor, v: Tensor) -> Tensor:
    """Return vectors of frames in the outer frame: rotated.

    Args:
        q: Orientations of the frames, unit quaternions. Shape: (n, 4).
        v: Vectors in the frames. Shape: (n, 3).
    """
    return quat_apply(q, v)


def tf_combine(q1: Tensor, t1: Tensor, q2: Tensor, t2: Tensor) -> tuple[Tensor, Tensor]:
    """Return poses that are given in frames, in the outer frame.

    Args:
        q1: Orientations of the frames, unit quaternions. Shape: (n, 4).
        t1: Origins of the frames, m. Shape: (n, 3).
        q2: Orientations in the frames, unit quaternions. Shape: (n, 4).
        t2: Positions in the frames, m. Shape: (n, 3).
    """
    return quat_mul(q1, q2), quat_apply(q1, t2) + t1


def get_basis_vector(q: Tensor, v: Tensor) -> Tensor:
    """Return vectors ``v`` rotated by unit quaternions ``q``. Shapes: (n, 4) and (n, 3)."""
    return quat_rotate(q, v)


def copysign(a: float, b: Tensor) -> Tensor:
    """Return the magnitude of a number with the signs of a tensor. Zeros have the sign 0.

    Args:
        a: The number.
        b: The signs. Shape: (n,).
    """
    return abs(a) * torch.sign(b)


def torch_random_dir_2(shape: tuple[int, int], device: str) -> Tensor:
    """Return random unit vectors of the plane.

    Args:
        shape: Number of vectors, and 1.
        device: Device of the tensor.

    Returns:
        Vectors. Shape: (n, 2).
    """
    angle = torch_rand_float(-math.pi, math.pi, shape, device).squeeze(-1)
    return torch.stack([torch.cos(angle), torch.sin(angle)], dim=-1)


def tensor_clamp(t: Tensor, min_t: Tensor, max_t: Tensor) -> Tensor:
    """Return values clipped to limits, element by element. Where limits cross, the lower counts."""
    return torch.max(torch.min(t, max_t), min_t)


def scale(x: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return values of [−1, 1] in the range from ``lower`` to ``upper``."""
    return 0.5 * (x + 1.0) * (upper - lower) + lower


def unscale(x: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return values of the range from ``lower`` to ``upper`` in [−1, 1]."""
    return (2.0 * x - upper - lower) / (upper - lower)


def unscale_np(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return values of the range from ``lower`` to ``upper`` in [−1, 1], as an array."""
    return (2.0 * x - upper - lower) / (upper - lower)


def __getattr__(name: str) -> NoReturn:
    raise make_missing_name_error(f"torch_utils.{name}")
