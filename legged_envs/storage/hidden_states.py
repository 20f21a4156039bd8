"""The recurrent states of a rollout."""

from __future__ import annotations

from typing import Any

import torch

from legged_envs.storage.transition import HiddenState


def check_hidden_state(name: str, state: HiddenState, num_envs: int, device: torch.device) -> None:
    """Raise unless ``state`` is None, (num_layers, num_envs, size) or a tuple of such tensors, on ``device``.

    Raises:
        TypeError: If it is something else than a tensor or a tuple of them.
        ValueError: If a tensor has another shape or is on another device.
    """
    for part in _parts(state):
        if not isinstance(part, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, a tuple of tensors or None, got {type(part).__name__}")
        if part.ndim != 3 or part.shape[1] != num_envs:
            raise ValueError(f"{name}: expected shape (num_layers, {num_envs}, size), got {tuple(part.shape)}")
        if part.device != device:
            raise ValueError(f"{name}: expected device {device}, got {part.device}: move it with .to({str(device)!r})")


def _parts(state: HiddenState) -> tuple[torch.Tensor, ...]:
    if state is None:
        return ()
    return state if isinstance(state, tuple) else (state,)


class HiddenStateBuffer:
    """The states that one recurrent network went into each step with.

    Kept as (num_steps, num_envs, num_layers, size), so that a transition is a row; given out as the network takes them.

    Args:
        name: Of the field, for messages.
        example: A state, which decides kind, shapes, dtypes and device.
        num_steps: Of the rollout.
    """

    def __init__(self, name: str, example: HiddenState, num_steps: int):
        self.name = name
        self.is_tuple = isinstance(example, tuple)
        """Whether the network's state is a tuple of tensors (LSTM) or one tensor (GRU)."""
        with torch.inference_mode(False):
            self.buffers = [_row(part).new_zeros(num_steps, *_row(part).shape) for part in _parts(example)]
            """Each (num_steps, num_envs, num_layers, size); none at all if the network is not recurrent."""

    def rows(self, step: int, state: HiddenState) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """What to copy for a step: pairs of (row of a buffer, part of ``state``).

        Raises:
            ValueError: If the state differs in kind or in shape from the first one.
            TypeError: If it differs in dtype.
        """
        parts = _parts(state)
        if isinstance(state, tuple) != self.is_tuple or len(parts) != len(self.buffers):
            kind = (
                f"a tuple of {len(self.buffers)} tensors" if self.is_tuple else "a tensor" if self.buffers else "None"
            )
            got = f"a tuple of {len(parts)}" if isinstance(state, tuple) else "None" if state is None else "a tensor"
            raise ValueError(f"{self.name}: expected {kind} as in the first transition, got {got}")
        pairs = [(buffer[step], _row(part).detach()) for buffer, part in zip(self.buffers, parts, strict=True)]
        for row, part in pairs:
            if row.shape != part.shape:
                expected, got_shape = tuple(_row(row).shape), tuple(_row(part).shape)
                raise ValueError(f"{self.name}: expected shape {expected} as in the first transition, got {got_shape}")
            if row.dtype is not part.dtype:
                raise TypeError(f"{self.name}: expected {row.dtype} as in the first transition, got {part.dtype}")
        return pairs

    def take(self, indices: torch.Tensor) -> HiddenState:
        """The states before the transitions step · num_envs + env. Shape of each part: (num_layers, n, size)."""
        parts = tuple(_row(buffer.flatten(0, 1).index_select(0, indices)).contiguous() for buffer in self.buffers)
        if self.is_tuple:
            return parts
        return parts[0] if parts else None

    def state_dict(self) -> dict[str, Any]:
        """Copies of the buffers."""
        return {"is_tuple": self.is_tuple, "buffers": [buffer.clone() for buffer in self.buffers]}

    @classmethod
    def from_state_dict(cls, name: str, state: dict[str, Any], device: torch.device) -> HiddenStateBuffer:
        """The buffer that ``state`` is of, on ``device``."""
        made = cls(name, None, 0)
        made.is_tuple = state["is_tuple"]
        with torch.inference_mode(False):
            made.buffers = [buffer.to(device, copy=True) for buffer in state["buffers"]]
        return made


def _row(part: torch.Tensor) -> torch.Tensor:
    """Swap (num_layers, num_envs, size) and (num_envs, num_layers, size)."""
    return part.transpose(0, 1)
