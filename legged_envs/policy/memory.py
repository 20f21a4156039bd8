"""Memory of networks that remember the past of each robot, such as an LSTM."""

from typing import Protocol, runtime_checkable

import torch


@runtime_checkable
class HasMemory(Protocol):
    """A network that remembers the past of each robot."""

    def reset(self, ended: torch.Tensor | None) -> None:
        """Clear the memory of robots whose episode starts; see `clear_memory`."""


def clear_memory(network: object, ended: torch.Tensor | None) -> None:
    """Clear the memory of robots whose episode starts. Networks without a memory stay as they are.

    Args:
        network: The network.
        ended: True for these robots. None: all. Shape: (num_envs,), bool.
    """
    if isinstance(network, HasMemory):
        network.reset(ended)
