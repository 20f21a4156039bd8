"""One step of a rollout, and the transitions of a rollout that a batch consists of."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

HiddenState = torch.Tensor | tuple[torch.Tensor, ...] | None
"""State of a recurrent network: (num_layers, num_envs, size), a tuple of them (LSTM), or None."""
HiddenStates = tuple[HiddenState, HiddenState]
"""Recurrent states of actor and critic."""

Items: TypeAlias = tuple[Any, ...]
"""Tensors, pairs of tensors, recurrent states or None, in an order that the function documents."""


@dataclass(eq=False, slots=True, kw_only=True)
class Transition:
    """One step of every environment, which a training fills during a rollout.

    Shapes start with (num_envs,); a column (num_envs, 1) may be (num_envs,) as well. Fields that
    the storage does not keep are ignored.
    """

    observations: torch.Tensor | None = None
    """Observations of the actor before the step. Shape: (num_envs, *obs_shape)."""

    reference_observations: torch.Tensor | None = None
    """Reference observations of the actor. Shape: (num_envs, *ref_obs_shape)."""

    reference_observations_mask: torch.Tensor | None = None
    """True where there was a reference motion. Shape: (num_envs,), bool."""

    critic_observations: torch.Tensor | None = None
    """Observations of the critic, or of the teacher. Shape: (num_envs, *privileged_obs_shape)."""

    critic_reference_observations: torch.Tensor | None = None
    """Reference observations of the critic. Shape: (num_envs, *privileged_ref_obs_shape)."""

    critic_reference_observations_mask: torch.Tensor | None = None
    """True where the critic had a reference motion. Shape: (num_envs,), bool."""

    actions: torch.Tensor | None = None
    """Actions that were taken. Shape: (num_envs, *actions_shape)."""

    dagger_actions: torch.Tensor | None = None
    """Actions that the DAgger network would have taken. Shape: (num_envs, *actions_shape)."""

    privileged_actions: torch.Tensor | None = None
    """Actions that the teacher would have taken, in distillation. Shape: (num_envs,
    *actions_shape)."""

    rewards: torch.Tensor | None = None
    """Rewards of the step. Shape: (num_envs, 1)."""

    dones: torch.Tensor | None = None
    """True where the step ended an episode, for any reason. Shape: (num_envs, 1), bool or
    integer."""

    values: torch.Tensor | None = None
    """Values that the critic gave to the observations before the step. Shape: (num_envs, 1)."""

    actions_log_prob: torch.Tensor | None = None
    """Log probability of the actions under the policy that took them. Shape: (num_envs, 1)."""

    action_mean: torch.Tensor | None = None
    """Means of the policy's distribution. Shape: (num_envs, *actions_shape)."""

    action_sigma: torch.Tensor | None = None
    """Standard deviations of the policy's distribution. Shape: (num_envs, *actions_shape)."""

    cost_rewards: torch.Tensor | None = None
    """Costs of the step. Shape: (num_envs, num_costs)."""

    cost_values: torch.Tensor | None = None
    """Values that the cost critics gave. Shape: (num_envs, num_costs)."""

    rnd_state: torch.Tensor | None = None
    """Input of random network distillation. Shape: (num_envs, *rnd_state_shape)."""

    hidden_states: HiddenStates | None = None
    """Recurrent states of actor and critic before the step. Shape: (num_layers, num_envs, size)."""

    def clear(self) -> None:
        """Set every field to None."""
        self.__init__()  # type: ignore[misc]


@dataclass(eq=False, slots=True, kw_only=True)
class MiniBatch:
    """Transitions for one step of the optimizer. Fields that the storage does not keep are None.

    Shapes start with (batch,), or with (num_transitions_per_env, num_trajectories) in a batch of
    whole trajectories, where a shorter trajectory repeats its last transition.
    """

    observations: torch.Tensor
    """Observations of the actor before the step. Shape: (batch, *obs_shape)."""

    reference_observations: torch.Tensor | None = None
    """Reference observations of the actor. Shape: (batch, *ref_obs_shape)."""

    reference_observations_mask: torch.Tensor | None = None
    """True where there was a reference motion. Shape: (batch,), bool."""

    critic_observations: torch.Tensor
    """Observations of the critic; the actor's observations if the critic has no separate ones.
    Shape: (batch, *privileged_obs_shape)."""

    critic_reference_observations: torch.Tensor | None = None
    """Reference observations of the critic; the actor's observations if the critic has no separate
    ones.
    Shape: (batch, *privileged_ref_obs_shape)."""

    critic_reference_observations_mask: torch.Tensor | None = None
    """True where the critic had a reference motion. Shape: (batch,), bool."""

    actions: torch.Tensor
    """Actions that were taken. Shape: (batch, *actions_shape)."""

    dagger_actions: torch.Tensor | None = None
    """Actions that the DAgger network would have taken. Shape: (batch, *actions_shape)."""

    values: torch.Tensor
    """Values that the critic gave during the rollout. Shape: (batch, 1)."""

    advantages: torch.Tensor
    """Advantages of the actions. Shape: (batch, 1)."""

    returns: torch.Tensor
    """Returns, the targets of the critic. Shape: (batch, 1)."""

    actions_log_prob: torch.Tensor
    """Log probability of the actions under the policy that took them. Shape: (batch, 1)."""

    action_mean: torch.Tensor
    """Means of the policy's distribution during the rollout. Shape: (batch, *actions_shape)."""

    action_sigma: torch.Tensor
    """Standard deviations of the policy's distribution during the rollout. Shape: (batch,
    *actions_shape)."""

    cost_values: torch.Tensor | None = None
    """Values that the cost critics gave during the rollout. Shape: (batch, num_costs)."""

    cost_advantages: torch.Tensor | None = None
    """Advantages with respect to each cost. Shape: (batch, num_costs)."""

    cost_returns: torch.Tensor | None = None
    """Returns of each cost, the targets of its critic. Shape: (batch, num_costs)."""

    rnd_state: torch.Tensor | None = None
    """Input of random network distillation. Shape: (batch, *rnd_state_shape)."""

    hidden_states: HiddenStates | None = None
    """Recurrent states of actor and critic before each transition, or before each trajectory.
    Shape: (num_layers, batch or num_trajectories, size)."""

    indices: torch.Tensor
    """Places of the transitions in the rollout: step · num_envs + env. Shape: (batch,), int64."""

    masks: torch.Tensor | None = None
    """True for the transitions of trajectories that count, False for their repetitions; None in a
    batch of single transitions. Shape: (num_transitions_per_env, num_trajectories), bool."""

    has_previous: torch.Tensor | None = None
    """With AMP: True where the previous transition is in the rollout and in the same episode.
    Shape: (batch,), bool."""

    obs_prev_state: torch.Tensor | None = None
    """With AMP: AMP state one step earlier; the present state where ``has_previous`` is False.
    Shape: (batch, …)."""

    ref_obs_prev_state: torch.Tensor | None = None
    """With AMP: AMP state of the reference one step earlier. Shape: (batch, …)."""

    ref_obs_prev_mask: torch.Tensor | None = None
    """With AMP: True where ``ref_obs_prev_state`` holds the reference of the previous step. False
    where the previous step had no reference. Shape: (batch,), bool."""

    def as_tuple(self) -> Items:
        """Return the 18 items that :meth:`RolloutStorageMM.mini_batch_generator` documents.

        References are (observations, mask); entries that the storage does not keep are None.
        """
        reference = None
        if self.reference_observations is not None:
            reference = (self.reference_observations, self.reference_observations_mask)
        critic_reference = None
        if self.critic_reference_observations is not None:
            critic_reference = (
                self.critic_reference_observations,
                self.critic_reference_observations_mask,
            )
        return (
            self.observations,
            reference,
            self.critic_observations,
            critic_reference,
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
