"""Rows of a rollout for a batch: single transitions, whole trajectories, and the recurrent states before them."""

import copy
from collections.abc import Sequence
from typing import Any

import torch

from legged_envs.storage.fields import HiddenState, check_device, fitting

_NAME = "transition.hidden_states"
_NAMES = (f"{_NAME}[0] (actor)", f"{_NAME}[1] (critic)")


def take(buffer: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """The entries step · num_envs + env of a buffer (num_steps, num_envs, …). Shape: (``*indices.shape``, …)."""
    # index_select copies whole rows: on a CPU it is several times as fast as buffer[indices].
    return buffer.flatten(0, 1).index_select(0, indices.flatten()).unflatten(0, indices.shape)


def has_previous(dones: torch.Tensor) -> torch.Tensor:
    """Where the step before is of the same episode. Shape, bool, of ``dones`` and result: (num_steps, num_envs)."""
    return torch.cat((torch.zeros_like(dones[:1]), ~dones[:-1]))


def trajectory_indices(
    continues: torch.Tensor, envs: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The transitions of environments ``envs`` (n,) as padded trajectories, one environment after another: one begins
    where ``continues``, see :func:`has_previous`, is false, and is filled up with its last transition. Returns indices
    step · num_envs + env, int64, and which count, bool, both (num_steps, num_trajectories)."""
    num_steps, num_envs = continues.shape
    rows, begins = continues[:, envs].logical_not().T.nonzero(as_tuple=True)
    places = rows * num_steps + begins
    ends = torch.cat((places[1:], places.new_tensor([len(envs) * num_steps])))
    lengths = ends - places
    steps = torch.arange(num_steps, device=continues.device).unsqueeze(1)
    indices = (begins + torch.minimum(steps, lengths - 1)) * num_envs + envs[rows]
    return indices, steps < lengths


class HiddenStates:
    """Recurrent states before each step, kept (num_steps, num_envs, num_layers, size); the first say which exist."""

    def __init__(self, num_steps: int, num_envs: int, device: torch.device):
        self._num_steps, self._num_envs, self._device = num_steps, num_envs, device
        self._networks: list[tuple[bool, list[torch.Tensor]]] = []
        """Of actor and critic: whether a state is a tuple, and a buffer for each tensor of it; empty without memory."""

    def copies(self, step: int, given: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """What to copy for a step: pairs of (row of a buffer, part of a state). TypeError or ValueError if ``given`` is
        not (actor's state, critic's) or None, or one is not of the kind, shape, dtype and device of the first ones."""
        given = (None, None) if given is None else given
        if not isinstance(given, tuple) or len(given) != 2:
            raise TypeError(
                f"{_NAME} must be (actor's, critic's) with None where there is none, got {given!r}"
            )
        if given[0] is None and given[1] is None and not self._networks:
            return []
        states = [self._parts(name, state) for name, state in zip(_NAMES, given, strict=True)]
        if not self._networks:
            if step:
                raise ValueError(
                    f"{_NAME}: given in transition {step}, but not in those before: call clear()"
                )
            with torch.inference_mode(False):
                zeros = [
                    [p.new_zeros(self._num_steps, *p.transpose(0, 1).shape) for p in parts]
                    for parts in states
                ]
            self._networks = [
                (isinstance(state, tuple), z) for state, z in zip(given, zeros, strict=True)
            ]
        copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        for name, state, parts, (is_tuple, buffers) in zip(
            _NAMES, given, states, self._networks, strict=True
        ):
            first, got = _kind(is_tuple, len(buffers)), _kind(isinstance(state, tuple), len(parts))
            if first != got:
                raise ValueError(f"{name}: expected {first} as in the first transition, got {got}")
            name += ", which must be like that of the first transition"
            rows = [buffer[step].transpose(0, 1) for buffer in buffers]
            copies += [
                (row, fitting(name, part, row).detach())
                for row, part in zip(rows, parts, strict=True)
            ]
        return copies

    def _parts(self, name: str, state: Any) -> tuple[torch.Tensor, ...]:
        parts = () if state is None else state if isinstance(state, tuple) else (state,)
        for part in parts:
            if not isinstance(part, torch.Tensor):
                raise TypeError(
                    f"{name} must be a tensor, a tuple of tensors or None, got {type(part).__name__}"
                )
            if part.ndim != 3 or part.shape[1] != self._num_envs:
                expected, got = f"(num_layers, {self._num_envs}, size)", tuple(part.shape)
                raise ValueError(f"{name}: expected shape {expected}, got {got}")
            check_device(name, part, self._device)
        return parts

    def take(self, indices: torch.Tensor) -> tuple[HiddenState, HiddenState]:
        """The states of actor and critic before the n transitions step · num_envs + env."""
        states: list[HiddenState] = [None, None]
        for i, (is_tuple, buffers) in enumerate(self._networks):
            parts = tuple(take(buffer, indices).transpose(0, 1).contiguous() for buffer in buffers)
            states[i] = parts if is_tuple else parts[0] if parts else None
        return states[0], states[1]

    def state_dict(self) -> list[tuple[bool, list[torch.Tensor]]]:
        return copy.deepcopy(self._networks)

    def check_state(self, state: Sequence[tuple[bool, Sequence[torch.Tensor]]]) -> None:
        """Raise a ValueError unless the states are of as many steps and environments."""
        own = self._num_steps, self._num_envs
        for part in (part for _, buffers in state for part in buffers):
            if part.ndim != 4 or tuple(part.shape[:2]) != own:
                expected, got = f"({own[0]}, {own[1]}, num_layers, size)", tuple(part.shape)
                raise ValueError(
                    f"hidden_states: expected {expected}, the state's is {got}: it is of another storage"
                )

    def load_state_dict(self, state: Sequence[tuple[bool, Sequence[torch.Tensor]]]) -> None:
        with torch.inference_mode(False):
            self._networks = [
                (i, [part.to(self._device, copy=True) for part in buffers]) for i, buffers in state
            ]


def _kind(is_tuple: bool, num_tensors: int) -> str:
    return (
        f"a tuple of {num_tensors} tensors" if is_tuple else "a tensor" if num_tensors else "None"
    )
