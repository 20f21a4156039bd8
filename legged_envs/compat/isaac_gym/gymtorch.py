"""``isaacgym.gymtorch``: tensors of PyTorch from and to what the functions of :class:`Gym` give and take."""

from dataclasses import dataclass

import torch

from legged_envs.compat.isaac_gym import refuse


@dataclass(frozen=True, eq=False)
class Descriptor:
    """A tensor on its way to or from the simulation."""

    tensor: torch.Tensor


def wrap_tensor(descriptor: Descriptor) -> torch.Tensor:
    """The tensor of a descriptor: it shares the memory that ``refresh_…`` fills."""
    return descriptor.tensor


def unwrap_tensor(tensor: torch.Tensor) -> Descriptor:
    """A descriptor of a contiguous tensor; ValueError for any other, TypeError for what is no tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"gymtorch.unwrap_tensor takes a torch.Tensor, got {type(tensor).__name__}")
    if not tensor.is_contiguous():
        wrong = f"gymtorch.unwrap_tensor takes a contiguous tensor, got strides {tensor.stride()}"
        raise ValueError(f"{wrong} of shape {tuple(tensor.shape)}: call .contiguous() on it")
    return Descriptor(tensor)


__getattr__ = refuse("gymtorch")
