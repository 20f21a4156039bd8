"""What one control step of all environments leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

HiddenState = torch.Tensor | tuple[torch.Tensor, ...] | None
"""State of a recurrent network: (num_layers, num_envs, size), a tuple of them (LSTM), or None without one."""


@dataclass(eq=False, slots=True)
class Transition:
    """One step of every environment: filled while the step happens, then given to the storage.

    A storage reads the fields that it was configured to keep and ignores the others. A column may be (num_envs,) or
    (num_envs, 1).
    """

    observations: torch.Tensor | None = None
    """What the actor saw. Shape: (num_envs, ``*obs_shape``)."""
    reference_observations: torch.Tensor | None = None
    """What the actor saw of the reference motion. Shape: (num_envs, ``*ref_obs_shape``)."""
    reference_observations_mask: torch.Tensor | None = None
    """Where there was a reference. Shape: (num_envs,), bool."""
    critic_observations: torch.Tensor | None = None
    """What the critic, or the teacher, saw. Shape: (num_envs, ``*privileged_obs_shape``)."""
    critic_reference_observations: torch.Tensor | None = None
    """What the critic saw of the reference motion. Shape: (num_envs, ``*privileged_ref_obs_shape``)."""
    critic_reference_observations_mask: torch.Tensor | None = None
    """Where there was a reference for the critic. Shape: (num_envs,), bool."""
    actions: torch.Tensor | None = None
    """What was done. Shape: (num_envs, ``*actions_shape``)."""
    privileged_actions: torch.Tensor | None = None
    """What the teacher would have done; distillation only. Shape: (num_envs, ``*actions_shape``)."""
    dagger_actions: torch.Tensor | None = None
    """What the DAgger network would have done. Shape: (num_envs, ``*actions_shape``)."""
    rewards: torch.Tensor | None = None
    """Rewards of the step. A column."""
    dones: torch.Tensor | None = None
    """Whether an episode ended with the step, whatever the reason. A column, bool or integer."""
    values: torch.Tensor | None = None
    """The critic's values of the observations before the step. A column."""
    actions_log_prob: torch.Tensor | None = None
    """Log-probabilities of the actions. A column."""
    action_mean: torch.Tensor | None = None
    """Means of the policy's distribution. Shape: (num_envs, ``*actions_shape``)."""
    action_sigma: torch.Tensor | None = None
    """Standard deviations of the policy's distribution. Shape: (num_envs, ``*actions_shape``)."""
    hidden_states: tuple[HiddenState, HiddenState] | None = None
    """The recurrent states that actor and critic went into the step with."""
    rnd_state: torch.Tensor | None = None
    """What random network distillation looks at. Shape: (num_envs, ``*rnd_state_shape``)."""
    cost_rewards: torch.Tensor | None = None
    """Costs of the step, one per term. Shape: (num_envs, num_costs)."""
    cost_values: torch.Tensor | None = None
    """The cost critics' values of the observations before the step. Shape: (num_envs, num_costs)."""

    def clear(self) -> None:
        """Empty every field for the next step."""
        for field in fields(self):
            setattr(self, field.name, None)
