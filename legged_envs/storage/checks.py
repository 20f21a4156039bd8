"""Checks of what a user hands to a storage. They name the argument, what was given and what is expected."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

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


def checked_time_outs(time_outs: torch.Tensor | None, dones: torch.Tensor) -> torch.Tensor | None:
    """``time_outs`` as a bool tensor of the shape of ``dones``, of which it must be a part."""
    if time_outs is None:
        return None
    time_outs = fitting("time_outs", time_outs, dones)
    running = time_outs & ~dones
    if running.any():
        step, env, _ = running.nonzero()[0].tolist()
        raise ValueError(
            f"time_outs says that an episode ended at step {step} in environment {env}, dones that it did not"
        )
    return time_outs


def check_finite(name: str, tensor: torch.Tensor) -> None:
    """Raise ValueError at the first number of ``tensor`` (num_steps, num_envs, K) that is NaN or infinite."""
    bad = torch.isfinite(tensor).logical_not_().nonzero()
    if len(bad):
        step, env, term = bad[0].tolist()
        column = f", column {term}" if tensor.shape[-1] > 1 else ""
        got = tensor[step, env, term].item()
        raise ValueError(f"{name} must be finite, got {got} at step {step} in environment {env}{column}")


def count(name: str, value: Any, least: int, most: int | None = None) -> int:
    """``value`` as an integer from ``least`` to ``most``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if number < least or (most is not None and number > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be {bounds}, got {number}")
    return number


def entry_shape(name: str, shape: Shape) -> tuple[int, ...] | None:
    """The shape of one environment's entry as a tuple, or None if ``shape`` is None or [None]: there is no entry.

    Raises:
        ValueError: If it is empty or a size is not positive.
        TypeError: If it is no sequence or a size is no integer.
    """
    if shape is not None and not isinstance(shape, Sequence):
        raise TypeError(f"{name} must be None or a sequence of integers such as (48,), got {shape!r}")
    if shape is None or (len(shape) == 1 and shape[0] is None):
        return None
    if not len(shape):
        raise ValueError(f"{name} must be None or the shape of one environment's entry such as (48,), got {shape!r}")
    return tuple(count(f"{name}[{i}]", size, least=1) for i, size in enumerate(shape))
