"""Checks of the tensors that scripts give to the functions of a simulation."""

from collections.abc import Mapping

import torch
from torch import Tensor

from legged_envs.compat.isaac_gym.gymtorch import Descriptor


class TensorArguments:
    """Reads tensors from descriptors and checks that they fit a simulation.

    Args:
        num_envs: Number of environments.
        sizes: Number of ``"actors"``, ``"dofs"`` and ``"bodies"`` per environment.
        device: Device on which tensors must be.
    """

    def __init__(self, num_envs: int, sizes: Mapping[str, int], device: torch.device):
        self.num_envs = num_envs
        """Number of environments."""
        self.sizes = sizes
        """Number of ``"actors"``, ``"dofs"`` and ``"bodies"`` per environment."""
        self.device = device
        """Device on which tensors must be."""

    def read_values(self, function: str, given: object, kind: str, columns: int) -> Tensor:
        """Return the tensor of a descriptor, which has values of all actors, DOFs or bodies.

        Args:
            function: Name of the function that was called, for the error.
            given: The descriptor, of a float32 tensor.
            kind: ``"actors"``, ``"dofs"`` or ``"bodies"``.
            columns: Number of values of each of them.

        Returns:
            The tensor in the shape in which it was given.

        Raises:
            TypeError: If it is not a descriptor of a float32 tensor.
            ValueError: If its shape or device does not fit.
        """
        tensor = _unwrap(function, given, torch.float32)
        shape = tuple(tensor.shape)
        num_rows = self.num_envs * self.sizes[kind]
        if columns > 1:
            expected = (num_rows, columns)
            has_rows = shape[-1:] == (columns,)
        else:
            # Codebases write forces and targets in one row or in one row per environment.
            expected = (self.num_envs, self.sizes[kind])
            has_rows = shape[:1] in ((num_rows,), (self.num_envs,))
        has_size = tensor.numel() == num_rows * columns
        if not has_rows or not has_size or tensor.device != self.device:
            raise ValueError(
                f"gym.{function}: got {shape} on {tensor.device}, "
                f"expected {expected} on {self.device}, for the {kind} of all environments"
            )
        return tensor

    def read_actors(self, function: str, given: object, count: int) -> Tensor:
        """Return indices of actors from a descriptor.

        Args:
            function: Name of the function that was called, for the error.
            given: The descriptor, of an int32 tensor.
            count: Number of indices that are read from its start.

        Returns:
            The indices on the CPU. Shape: (count,), int64.

        Raises:
            TypeError: If it is not a descriptor of an int32 tensor.
            ValueError: If there are too few indices, or an index of no actor.
        """
        if count < 0:
            raise ValueError(f"gym.{function} takes a number of indices of at least 0, got {count}")
        indices = _unwrap(function, given, torch.int32).flatten()[:count].to("cpu", torch.int64)
        num_actors = self.num_envs * self.sizes["actors"]
        if len(indices) < count:
            raise ValueError(
                f"gym.{function} takes {count} indices of actors, "
                f"which are 0 to {num_actors - 1}, got {len(indices)} of them"
            )
        wrong = indices[(indices < 0) | (indices >= num_actors)]
        if len(wrong):
            raise ValueError(
                f"gym.{function} takes {count} indices of actors, "
                f"which are 0 to {num_actors - 1}, got one of actor {int(wrong[0])}"
            )
        return indices


def _unwrap(function: str, given: object, dtype: torch.dtype) -> Tensor:
    if not isinstance(given, Descriptor):
        raise TypeError(
            f"gym.{function} takes gymtorch.unwrap_tensor(tensor) of a {dtype} tensor, "
            f"got {type(given).__name__}"
        )
    if given.tensor.dtype != dtype:
        raise TypeError(
            f"gym.{function} takes gymtorch.unwrap_tensor(tensor) of a {dtype} tensor, "
            f"got {given.tensor.dtype}"
        )
    # Tensors of a policy may have gradients. The state must not keep the graph alive.
    return given.tensor.detach()
