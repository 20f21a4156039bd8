"""`isaacgym.gymtorch`: tensors of PyTorch as the functions of :class:`Gym` give and take them."""

from dataclasses import dataclass
from typing import NoReturn

import torch

from legged_envs.compat.isaac_gym.missing import make_missing_name_error


@dataclass(frozen=True, eq=False)
class Descriptor:
    """A tensor on its way to or from the simulation."""

    tensor: torch.Tensor
    """The tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions of the tensor."""
        return self.tensor.ndim


def wrap_tensor(descriptor: Descriptor) -> torch.Tensor:
    """Return the tensor of a descriptor. It shares the memory that ``refresh_…`` fills."""
    return descriptor.tensor


def unwrap_tensor(tensor: torch.Tensor) -> Descriptor:
    """Return a descriptor of a contiguous tensor.

    Raises:
        TypeError: If it is not a tensor.
        ValueError: If it is not contiguous.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"gymtorch.unwrap_tensor takes a torch.Tensor, got {type(tensor).__name__}")
    if not tensor.is_contiguous():
        raise ValueError(
            "gymtorch.unwrap_tensor takes a contiguous tensor, "
            f"got strides {tensor.stride()} of shape {tuple(tensor.shape)}: "
            "call .contiguous() on it"
        )
    return Descriptor(tensor)


def __getattr__(name: str) -> NoReturn:
    raise make_missing_name_error(f"gymtorch.{name}")
