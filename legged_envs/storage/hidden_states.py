"""Recurrent states of actor and critic before each step of a rollout."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from legged_envs.storage.fields import check_device, fitting
from legged_envs.storage.rows import take
from legged_envs.storage.transition import HiddenState, HiddenStates

FIELD = "transition.hidden_states"
"""Name of the field, for errors."""
NETWORKS = (f"{FIELD}[0] (actor)", f"{FIELD}[1] (critic)")
"""Names of the recurrent states of actor and critic in error messages."""

SavedState = list[tuple[bool, list[torch.Tensor]]]
"""For each network: True if its state is a tuple, and a buffer for each tensor of the state."""


@dataclass(frozen=True, slots=True)
class _Network:
    """The states of one network."""

    is_tuple: bool
    """True if a state is a tuple of tensors, as an LSTM's is."""
    buffers: list[torch.Tensor]
    """Each (num_steps, num_envs, num_layers, size); empty for a network without memory."""

    @property
    def kind(self) -> str:
        """Description of a state, for errors."""
        return _kind(self.is_tuple, len(self.buffers))


class HiddenStateBuffers:
    """Recurrent states before each step. The states of the first step decide which buffers exist.

    Args:
        num_steps: Steps of a rollout.
        num_envs: Number of environments.
        device: Device of the buffers.
    """

    def __init__(self, num_steps: int, num_envs: int, device: torch.device):
        self._num_steps = num_steps
        self._num_envs = num_envs
        self._device = device
        self._networks: list[_Network] = []  # actor and critic; empty without recurrent states

    def copies(self, step: int, states: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return the pairs of tensors to copy for a step.

        Args:
            step: Index of the step.
            states: (actor's state, critic's state), or None without recurrent networks.

        Returns:
            Pairs of a row of a buffer and the part of a state that belongs to the row.

        Raises:
            TypeError: If ``states`` is not a pair of recurrent states, or a dtype differs from the
                first states.
            ValueError: If a shape, a device or the kind of a state differs from the first states.
        """
        if states is None:
            states = (None, None)
        if not isinstance(states, tuple) or len(states) != 2:
            raise TypeError(
                f"{FIELD} must be (actor's, critic's) with None for a network without memory, "
                f"got {states!r}"
            )
        has_state = states[0] is not None or states[1] is not None
        if not has_state and not self._networks:
            return []
        parts = [self._parts(NETWORKS[i], states[i]) for i in range(2)]
        if not self._networks:
            if step > 0:
                raise ValueError(
                    f"{FIELD}: given in transition {step}, but not in earlier transitions: call "
                    "clear()"
                )
            self._allocate(states, parts)
        copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        for i, network in enumerate(self._networks):
            kind = _kind(isinstance(states[i], tuple), len(parts[i]))
            if kind != network.kind:
                raise ValueError(
                    f"{NETWORKS[i]}: expected {network.kind} as in the first transition, got {kind}"
                )
            name = f"{NETWORKS[i]}, which must have the shape of the first transition"
            # Buffers have the environment first, so that a transition is one row.
            for buffer, part in zip(network.buffers, parts[i], strict=True):
                row = buffer[step].transpose(0, 1)
                copies.append((row, fitting(name, part, row).detach()))
        return copies

    def _parts(self, name: str, state: Any) -> tuple[torch.Tensor, ...]:
        """Return the tensors of a state, after a look at their shapes and devices."""
        parts: tuple[Any, ...] = state if isinstance(state, tuple) else (state,)
        if state is None:
            parts = ()
        for part in parts:
            if not isinstance(part, torch.Tensor):
                raise TypeError(
                    f"{name} must be a tensor, a tuple of tensors or None, "
                    f"got {type(part).__name__}"
                )
            if part.ndim != 3 or part.shape[1] != self._num_envs:
                raise ValueError(
                    f"{name}: expected shape (num_layers, {self._num_envs}, size), "
                    f"got {tuple(part.shape)}"
                )
            check_device(name, part, self._device)
        return parts

    def _allocate(self, states: HiddenStates, parts: list[tuple[torch.Tensor, ...]]) -> None:
        """Make the buffers of states like the first ones."""
        networks = []
        # A tensor made in inference mode could not be written outside of it.
        with torch.inference_mode(False):
            for state, tensors in zip(states, parts, strict=True):
                buffers = []
                for tensor in tensors:
                    env_first = tensor.transpose(0, 1).shape
                    buffers.append(tensor.new_zeros(self._num_steps, *env_first))
                networks.append(_Network(isinstance(state, tuple), buffers))
        self._networks = networks

    def take(self, indices: torch.Tensor) -> HiddenStates:
        """Return the states of actor and critic before some transitions.

        Args:
            indices: step · num_envs + env of each transition. Shape: (n,).

        Returns:
            States of tensors (num_layers, n, size).
        """
        states: list[HiddenState] = [None, None]
        for i, network in enumerate(self._networks):
            parts = []
            for buffer in network.buffers:
                # cuDNN needs contiguous states.
                parts.append(take(buffer, indices).transpose(0, 1).contiguous())
            if network.is_tuple:
                states[i] = tuple(parts)
            elif parts:
                states[i] = parts[0]
        return states[0], states[1]

    def state_dict(self) -> SavedState:
        """Return copies of the buffers."""
        saved = []
        for network in self._networks:
            saved.append((network.is_tuple, [buffer.clone() for buffer in network.buffers]))
        return saved

    def check_state(self, state: Sequence[tuple[bool, Sequence[torch.Tensor]]]) -> None:
        """Raise a ValueError unless a saved state is of as many steps and environments."""
        size = (self._num_steps, self._num_envs)
        for _, buffers in state:
            for buffer in buffers:
                if buffer.ndim != 4 or tuple(buffer.shape[:2]) != size:
                    raise ValueError(
                        f"hidden_states: expected ({size[0]}, {size[1]}, num_layers, size), "
                        f"but the state has {tuple(buffer.shape)}: it belongs to another storage"
                    )

    def load_state_dict(self, state: Sequence[tuple[bool, Sequence[torch.Tensor]]]) -> None:
        """Return to a state from :meth:`state_dict`, of any device."""
        networks = []
        with torch.inference_mode(False):
            for is_tuple, buffers in state:
                copies = [buffer.to(self._device, copy=True) for buffer in buffers]
                networks.append(_Network(is_tuple, copies))
        self._networks = networks


def _kind(is_tuple: bool, num_tensors: int) -> str:
    """Return a description of a recurrent state, for errors."""
    if is_tuple:
        return f"a tuple of {num_tensors} tensors"
    return "a tensor" if num_tensors else "None"
