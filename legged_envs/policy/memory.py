"""Memory of networks that remember the past of each robot, such as an LSTM."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import torch

MEMORY_KEY = "memory"
"""Entry of a contract with the size of each part of a network's memory, by name."""


@runtime_checkable
class HasMemory(Protocol):
    """A network that remembers the past of each robot."""

    def reset(self, ended: torch.Tensor | None) -> None:
        """Clear the memory of robots at the start of their episodes; see `clear_memory`."""


def clear_memory(network: object, ended: torch.Tensor | None) -> None:
    """Clear the memory of robots at the start of their episodes. Networks without a memory stay as
    they are.

    Args:
        network: The network.
        ended: True for these robots. None: all. Shape: (num_envs,), bool.
    """
    if isinstance(network, HasMemory):
        network.reset(ended)


class RememberingNetwork:
    """Makes a policy with a memory from a network that takes the memory as arguments.

    It stores the state of each robot between calls.

    Args:
        network: Function of observations and of the parts of the memory, each (n, size). It returns
            the actions and the parts of the memory for the next step.
        sizes: Size of each part, by name, in the order of the arguments. Each part is 0 at the
            start of an episode.
    """

    def __init__(self, network: Callable[..., Any], sizes: Mapping[str, int]):
        self.network = network
        """Function of observations and memory."""
        self.sizes = dict(sizes)
        """Size of each part of the memory, by name."""
        self._memory: list[torch.Tensor] = []

    def __call__(self, *observations: torch.Tensor) -> torch.Tensor:
        """Return the actions, and remember this step. Shapes: (n, size) → (n, num_actions).

        If the number of robots changes, the memory of all robots is reset to zero.
        """
        first = observations[0]
        if not self._memory or len(self._memory[0]) != len(first):
            self._memory = [first.new_zeros(len(first), size) for size in self.sizes.values()]
        actions, *self._memory = self.network(*observations, *self._memory)
        return actions

    def reset(self, ended: torch.Tensor | None) -> None:
        """Clear the memory of robots at the start of their episodes; see `clear_memory`."""
        if ended is None:
            self._memory = []
            return
        # A new tensor: the memory of a step in inference mode cannot be changed outside of it.
        memory = []
        for part in self._memory:
            memory.append(part.masked_fill(ended.to(part.device).unsqueeze(1), 0.0))
        self._memory = memory


def remembering(network: Callable[..., Any], sizes: Mapping[str, int] | None) -> Callable[..., Any]:
    """Return a network that keeps its memory itself, if it has one.

    Args:
        network: The network.
        sizes: Size of each part of its memory, by name. None or empty: it has none.
    """
    return RememberingNetwork(network, sizes) if sizes else network
