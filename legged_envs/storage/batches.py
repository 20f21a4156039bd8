"""Batches of a full rollout: transitions or whole trajectories, in random order."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from legged_envs.storage.amp import AmpExtractors
from legged_envs.storage.fields import BATCH_BUFFERS
from legged_envs.storage.hidden_states import HiddenStateBuffers
from legged_envs.storage.rows import has_previous, take, trajectory_indices
from legged_envs.storage.transition import MiniBatch


class RolloutBatches:
    """Draws batches from the buffers of a full rollout.

    Args:
        buffers: Buffers that the storage keeps, by name.
        hidden_states: Recurrent states of the rollout.
        amp: Functions of the adversarial motion prior, or None.
    """

    def __init__(
        self,
        buffers: Mapping[str, torch.Tensor],
        hidden_states: HiddenStateBuffers,
        amp: AmpExtractors | None,
    ):
        self._buffers = buffers
        self._hidden_states = hidden_states
        self._amp = amp
        self._continues = has_previous(buffers["dones"].squeeze(-1) != 0)

    def transitions(self, num_mini_batches: int, num_epochs: int) -> Iterator[MiniBatch]:
        """Yield each transition exactly once per epoch."""
        num_transitions = self._continues.numel()
        for _ in range(num_epochs):
            # Drawn only when the epoch starts.
            order = torch.randperm(num_transitions, device=self._continues.device)
            # tensor_split, unlike chunk, gives exactly as many batches as asked for.
            for indices in order.tensor_split(num_mini_batches):
                yield self._batch(indices, None)

    def trajectories(self, num_mini_batches: int, num_epochs: int) -> Iterator[MiniBatch]:
        """Yield the trajectories of each environment exactly once per epoch."""
        num_envs = self._continues.shape[1]
        for _ in range(num_epochs):
            order = torch.randperm(num_envs, device=self._continues.device)
            for envs in order.tensor_split(num_mini_batches):
                indices, masks = trajectory_indices(self._continues, envs)
                yield self._batch(indices, masks)

    def _batch(self, indices: torch.Tensor, masks: torch.Tensor | None) -> MiniBatch:
        """Return the transitions at ``indices``; with ``masks`` these are whole trajectories."""
        items: dict[str, Any] = {}
        for name, buffer_name in BATCH_BUFFERS.items():
            buffer = self._buffers.get(buffer_name)
            if buffer is not None:
                items[name] = take(buffer, indices)
            elif name.startswith("critic_"):  # the critic sees what the actor sees
                items[name] = items.get(name.removeprefix("critic_"))
        if self._amp is not None:
            items.update(self._previous_amp_states(self._amp, indices))
        # A recurrent network runs over a trajectory from the state before its first step.
        starts = indices if masks is None else indices[0]
        hidden_states = self._hidden_states.take(starts)
        return MiniBatch(indices=indices, masks=masks, hidden_states=hidden_states, **items)

    def _previous_amp_states(
        self, amp: AmpExtractors, indices: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Return the AMP states one step before ``indices``, by their names in a batch."""
        # Where there is no step before, the present one stands in, and the mask is False.
        has_one = self._continues.flatten()[indices]
        num_envs = self._continues.shape[1]
        previous = torch.where(has_one, indices - num_envs, indices)
        observations = take(self._buffers["observations"], previous)
        items = {"has_previous": has_one, "obs_prev_state": amp.states(observations)}
        if "reference_observations" in self._buffers:
            references = take(self._buffers["reference_observations"], previous)
            mask = take(self._buffers["reference_observations_mask"], previous) & has_one
            states, state_mask = amp.reference_states(references, mask)
            items["ref_obs_prev_state"] = states
            items["ref_obs_prev_mask"] = state_mask
        return items
