"""Policies with a memory: an LSTM or a GRU learns what to keep of the past.

Hochreiter and Schmidhuber 1997, "Long short-term memory"; Cho et al. 2014, "Learning phrase
representations using RNN encoder-decoder". The cell turns the normalized observation o and its
state s into the next state s′. The MLP of the policy receives o and the output h′ of the cell,

    s′ = cell(o, s),    π(o, h′).

A mini-batch contains the whole rollouts of some robots. Backpropagation stops at the start of an
episode or of the rollout (truncated backpropagation through time). At the start of an episode the
state is zero. At the start of the rollout it is the state that was stored when the rollout was
collected. The critic has no memory, because it receives privileged observations.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import torch
from tensordict import TensorDict

from legged_envs.storage import MiniBatch
from legged_envs.training.learner.ppo import PPO
from legged_envs.training.schemes.recurrent import MemoryActor


class RecurrentPPO(PPO):
    """PPO for a :class:`MemoryActor`: mini-batches are whole rollouts of some environments."""

    actor: MemoryActor

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample actions, and store them with the memory before the step."""
        state = tuple(part.unsqueeze(0) for part in self.actor.state)
        is_lstm = len(state) > 1
        self.transition.hidden_states = (state if is_lstm else state[0], None)
        return super().act(obs)

    @torch.no_grad()
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Mapping[str, Any]
    ) -> None:
        """Store the outcome of a step, and reset the memory of environments with an ended
        episode."""
        super().process_env_step(obs, rewards, dones, extras)
        self.actor.forget(dones.bool())

    def _draw(self) -> list[MiniBatch]:
        batches = self.storage.trajectory_batches(self.cfg.mini_batches, 1)
        return [without_padding(batch) for batch in batches]

    def _normalized(self, batch: MiniBatch) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        actor_seen, critic_seen = super()._normalized(batch)
        assert batch.masks is not None and batch.hidden_states is not None
        state = batch.hidden_states[0]
        assert state is not None
        parts = state if isinstance(state, tuple) else (state,)
        return [*actor_seen, batch.masks, *parts], critic_seen


def without_padding(batch: MiniBatch) -> MiniBatch:
    """Flatten padded trajectories into one row for each valid step.

    ``masks`` and ``hidden_states`` stay as they are: with them the rows become trajectories again.
    """
    masks = batch.masks
    assert masks is not None
    rows: dict[str, Any] = {}
    for field in fields(batch):
        value = getattr(batch, field.name)
        if field.name not in ("masks", "hidden_states") and isinstance(value, torch.Tensor):
            rows[field.name] = value[masks]
    return replace(batch, **rows)
