"""A batch of transitions by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from legged_envs.storage.transition import HiddenState


@dataclass(eq=False, slots=True, kw_only=True)
class MiniBatch:
    """Transitions for one step of the optimiser; what the storage does not keep is None.

    Shapes start with (batch,). In a batch of whole trajectories they start with (num_transitions_per_env,
    num_trajectories), where a trajectory that is shorter repeats its last transition and ``masks`` tells which count.
    """

    indices: torch.Tensor
    """Which transitions these are: step · num_envs + env, int64."""
    observations: torch.Tensor
    """What the actor saw."""
    reference_observations: torch.Tensor | None
    """What the actor saw of the reference motion."""
    reference_observations_mask: torch.Tensor | None
    """Where there was a reference, bool."""
    critic_observations: torch.Tensor
    """What the critic saw; the same tensor as ``observations`` if it has none of its own."""
    critic_reference_observations: torch.Tensor | None
    """What the critic saw of the reference motion; the actor's tensor if it has none of its own."""
    critic_reference_observations_mask: torch.Tensor | None
    """Where there was a reference for the critic, bool."""
    actions: torch.Tensor
    """What was done."""
    values: torch.Tensor
    """The critic's values at the time. Shape: (…, 1)."""
    advantages: torch.Tensor
    """Generalised advantage estimates. Shape: (…, 1)."""
    returns: torch.Tensor
    """What the critic is to learn. Shape: (…, 1)."""
    actions_log_prob: torch.Tensor
    """Log-probabilities of the actions at the time. Shape: (…, 1)."""
    action_mean: torch.Tensor
    """Means of the policy's distribution at the time."""
    action_sigma: torch.Tensor
    """Standard deviations of the policy's distribution at the time."""
    dagger_actions: torch.Tensor | None
    """What the DAgger network would have done."""
    hidden_states: tuple[HiddenState, HiddenState]
    """Recurrent states of actor and critic before each transition, or before each trajectory.

    Shape: (num_layers, batch or num_trajectories, size)."""
    masks: torch.Tensor | None
    """Which transitions of a batch of trajectories count, bool; None in a batch of single transitions."""
    rnd_state: torch.Tensor | None
    """What random network distillation looks at."""
    has_previous: torch.Tensor | None
    """With AMP: where the transition before is in the rollout and in the same episode, bool."""
    obs_prev_state: torch.Tensor | None
    """With AMP: the AMP state one step earlier; the present one where there is no previous one."""
    ref_obs_prev_state: torch.Tensor | None
    """With AMP: the reference's AMP state one step earlier; the present one where there is no previous one."""
    ref_obs_prev_mask: torch.Tensor | None
    """With AMP: where ``ref_obs_prev_state`` is that of an earlier step with a reference, bool."""
    cost_values: torch.Tensor | None
    """The cost critics' values at the time. Shape: (…, num_costs)."""
    cost_returns: torch.Tensor | None
    """What the cost critics are to learn. Shape: (…, num_costs)."""
    cost_advantages: torch.Tensor | None
    """Advantages of each cost term. Shape: (…, num_costs)."""

    def as_tuple(self) -> tuple[Any, ...]:
        """The 18 items of :meth:`RolloutStorageMM.mini_batch_generator`, references as (observations, mask) or None."""
        reference = (self.reference_observations, self.reference_observations_mask)
        critic_reference = (self.critic_reference_observations, self.critic_reference_observations_mask)
        return (
            self.observations,
            None if self.reference_observations is None else reference,
            self.critic_observations,
            None if self.critic_reference_observations is None else critic_reference,
            self.actions,
            self.values,
            self.advantages,
            self.returns,
            self.actions_log_prob,
            self.action_mean,
            self.action_sigma,
            self.dagger_actions,
            self.hidden_states,
            self.masks,
            self.rnd_state,
            self.obs_prev_state,
            self.ref_obs_prev_state,
            self.ref_obs_prev_mask,
        )
