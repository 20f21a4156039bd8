"""Checks of what a user hands to a storage. They name the argument, what was given and what is expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from legged_envs.checks import whole_number

Shape = Sequence[int] | Sequence[None] | None
"""Shape of one environment's entry; None or [None] where there is none."""


def fitting(name: str, tensor: Any, like: torch.Tensor) -> torch.Tensor:
    """``tensor``, after a look whether it can be copied to ``like`` as it is. A column may lack its last dimension.

    Raises:
        ValueError: If it is None, or of another shape or device.
        TypeError: If it is no tensor or of another dtype.
    """
    if tensor is None:
        raise ValueError(f"{name} is missing: expected a tensor of shape {tuple(like.shape)}")
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(tensor).__name__}")
    if tensor.shape != like.shape:
        if like.shape[-1] != 1 or like.ndim < 2 or tensor.shape != like.shape[:-1]:
            raise ValueError(f"{name}: expected shape {tuple(like.shape)}, got {tuple(tensor.shape)}")
        tensor = tensor.unsqueeze(-1)
    if tensor.device != like.device:
        where = str(like.device)
        raise ValueError(f"{name}: expected device {where}, got {tensor.device}: move it with .to({where!r})")
    if tensor.dtype is like.dtype:
        return tensor
    if like.dtype is torch.uint8 and not tensor.is_floating_point() and not tensor.is_complex():
        return tensor if tensor.dtype is torch.bool else tensor != 0  # flags
    raise TypeError(f"{name}: expected {like.dtype}, got {tensor.dtype}: convert it with .to({like.dtype})")


def entry_shape(name: str, shape: Shape) -> tuple[int, ...] | None:
    """The shape of one environment's entry as a tuple, or None if ``shape`` is None or [None]: there is no entry.

    Raises:
        ValueError: If it is empty or a size is no positive integer; TypeError if it is no sequence.
    """
    if shape is not None and not isinstance(shape, Sequence):
        raise TypeError(f"{name} must be None or a sequence of integers such as (48,), got {shape!r}")
    if shape is None or (len(shape) == 1 and shape[0] is None):
        return None
    if not len(shape):
        raise ValueError(f"{name} must be None or the shape of one environment's entry such as (48,), got {shape!r}")
    return tuple(whole_number(f"{name}[{i}]", size) for i, size in enumerate(shape))
