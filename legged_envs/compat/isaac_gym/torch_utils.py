"""`isaacgym.torch_utils`: quaternions (x, y, z, w) and tensors.

The functions of tensors can be compiled by ``torch.jit.script``, as codebases do. So they have no
keyword-only arguments, and their types are those that it knows.
"""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from legged_envs.compat.isaac_gym.missing import make_missing_name_error


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


def __getattr__(name: str) -> NoReturn:
    raise make_missing_name_error(f"torch_utils.{name}")
