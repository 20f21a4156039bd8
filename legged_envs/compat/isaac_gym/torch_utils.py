"""``isaacgym.torch_utils``: quaternions (x, y, z, w) and tensors, in functions that ``torch.jit.script`` takes."""

from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from legged_envs.compat.isaac_gym.missing import make_missing_name_error


def present_device(device: str) -> str:
    """``device``, or ``"cpu"`` where it is one of CUDA and there is no CUDA."""
    return "cpu" if device.startswith("cuda") and not torch.cuda.is_available() else device


def to_torch(
    x: Any, dtype: torch.dtype = torch.float, device: Any = "cuda:0", requires_grad: bool = False
) -> Tensor:
    """``x`` as a tensor, on the CPU where there is no CUDA."""
    return torch.tensor(
        x, dtype=dtype, device=present_device(str(device)), requires_grad=requires_grad
    )


def get_axis_params(
    value: float, axis_idx: int, x_value: float = 0.0, dtype: Any = float, n_dims: int = 3
) -> list[float]:
    """A vector with ``value`` at ``axis_idx``, zeros elsewhere, and ``x_value`` at first."""
    vector = np.zeros(n_dims)
    vector[axis_idx] = value
    vector[0] = x_value
    return list(vector.astype(dtype))


def torch_rand_float(lower: float, upper: float, shape: tuple[int, int], device: str) -> Tensor:
    """Random numbers of [lower, upper) from PyTorch's generator."""
    return (upper - lower) * torch.rand(shape[0], shape[1], device=device) + lower


def normalize(x: Tensor, eps: float = 1e-9) -> Tensor:
    """``x`` by its length along the last dimension, of at least ``eps``."""
    return x / x.norm(p=2, dim=-1).clamp(min=eps).unsqueeze(-1)


def quat_mul(a: Tensor, b: Tensor) -> Tensor:
    """The rotation b, then a. Shapes: (…, 4) twice → (…, 4)."""
    w = a[..., 3:] * b[..., 3:] - (a[..., :3] * b[..., :3]).sum(-1, keepdim=True)
    cross = torch.cross(a[..., :3], b[..., :3], dim=-1)
    return torch.cat((a[..., 3:] * b[..., :3] + b[..., 3:] * a[..., :3] + cross, w), dim=-1)


def quat_conjugate(a: Tensor) -> Tensor:
    """The inverse of unit quaternions. Shape: (…, 4)."""
    return torch.cat((-a[..., :3], a[..., 3:]), dim=-1)


def quat_apply(a: Tensor, b: Tensor) -> Tensor:
    """Vectors b turned by a, v + 2 u × (u × v + w v) with a = (u, w); the shape is that of b, whatever a's is."""
    quat, vector = a.reshape(-1, 4), b.reshape(-1, 3)
    axis = quat[:, :3]
    turn = torch.cross(axis, vector, dim=-1) * 2
    return (vector + quat[:, 3:] * turn + torch.cross(axis, turn, dim=-1)).view(b.shape)


def quat_rotate_inverse(q: Tensor, v: Tensor) -> Tensor:
    """Vectors v of the world in the frame that q turns. Shapes: (n, 4), (n, 3) → (n, 3)."""
    return quat_apply(quat_conjugate(q), v)


def quat_from_angle_axis(angle: Tensor, axis: Tensor) -> Tensor:
    """The rotation by ``angle``, rad, about ``axis``. Shapes: (n,), (n, 3) → (n, 4)."""
    half = (angle / 2).unsqueeze(-1)
    return normalize(torch.cat((normalize(axis) * half.sin(), half.cos()), dim=-1))


def __getattr__(name: str) -> NoReturn:
    raise make_missing_name_error(f"torch_utils.{name}")
