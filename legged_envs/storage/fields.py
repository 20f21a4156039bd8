"""The fields of a rollout, declared once in one of three dataclasses; :data:`FIELDS` is the table that follows."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

import torch

from legged_envs.checks import whole_number

HiddenState = torch.Tensor | tuple[torch.Tensor, ...] | None
"""State of a recurrent network: (num_layers, num_envs, size), a tuple of them (LSTM), or None without memory."""
Item = TypeVar("Item")
"""A tensor in a batch; a tensor or None in a transition, which is filled bit by bit."""
OptionalTensor = torch.Tensor | None
Shape = Sequence[int] | Sequence[None] | None
"""Shape of one environment's entry; None or [None] where there is none."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of transitions or of batches that has a buffer in the storage."""

    name: str
    shape: str
    """Which of the storage's shapes one environment's entry has; a mask, of dtype bool, is one number beside it."""
    buffer: str
    dtype: torch.dtype | None = None
    only: str | None = None
    """None is torch's default dtype; and the training type whose storage has the buffer, None is each."""


def _stored(shape: str, **options: Any) -> Any:
    return field(default=None, metadata={"shape": shape, **options})


@dataclass(eq=False, slots=True, kw_only=True)
class _Recorded(Generic[Item]):
    """What a transition brings and a batch gives back, by entry shape; ``column`` is (1,), ``costs`` (num_costs,)."""

    observations: Item = _stored("obs_shape")
    reference_observations: OptionalTensor = _stored("ref_obs_shape")
    reference_observations_mask: OptionalTensor = _stored("ref_obs_shape", dtype=torch.bool)
    """What the actor saw of the reference motion, and where there was one."""
    critic_observations: Item = _stored("privileged_obs_shape", buffer="privileged_observations")
    """What the critic, or the teacher, saw; in a batch the actor's without one."""
    critic_reference_observations: OptionalTensor = _stored(
        "privileged_ref_obs_shape", buffer="privileged_reference_observations"
    )
    """What the critic saw of the reference; in a batch, as its mask, the actor's without one."""
    critic_reference_observations_mask: OptionalTensor = _stored(
        "privileged_ref_obs_shape",
        buffer="privileged_reference_observations_mask",
        dtype=torch.bool,
    )
    actions: Item = _stored("actions_shape")
    dagger_actions: OptionalTensor = _stored("dagger_actions_shape")
    """What the DAgger network would have done."""
    values: Item = _stored("column", only="rl")
    """The critic's values of the observations before the step."""
    actions_log_prob: Item = _stored("column", only="rl")
    action_mean: Item = _stored("actions_shape", buffer="mu", only="rl")
    action_sigma: Item = _stored("actions_shape", buffer="sigma", only="rl")
    """Standard deviations of the policy's distribution at the time; ``action_mean`` are its means."""
    hidden_states: tuple[HiddenState, HiddenState] | None = None
    """Recurrent states of actor and critic before the step, or before each trajectory of a batch. Shape: (num_layers,
    num_envs, size); in a batch (num_layers, batch or num_trajectories, size)."""
    rnd_state: OptionalTensor = _stored("rnd_state_shape")
    """What random network distillation looks at."""
    cost_values: OptionalTensor = _stored("costs")


@dataclass(eq=False, slots=True, kw_only=True)
class Transition(_Recorded[OptionalTensor]):
    """One step of every environment, shapes (num_envs, …); a column may be (num_envs,). Fields not kept are ignored."""

    privileged_actions: OptionalTensor = _stored("actions_shape", only="distillation")
    """What the teacher would have done."""
    rewards: OptionalTensor = _stored("column")
    dones: OptionalTensor = _stored("column", dtype=torch.uint8)
    """Whether an episode ended with the step, whatever the reason, bool or integer."""
    cost_rewards: OptionalTensor = _stored("costs")

    def clear(self) -> None:
        """Forget every field."""
        for each in fields(self):
            setattr(self, each.name, None)


@dataclass(eq=False, slots=True, kw_only=True)
class MiniBatch(_Recorded[torch.Tensor]):
    """Transitions for one step of the optimiser, None where not kept. Shapes start with (batch,), or with
    (num_transitions_per_env, num_trajectories), where a shorter trajectory repeats its last transition."""

    indices: torch.Tensor
    """Which transitions these are: step · num_envs + env, int64. Shape: ()."""
    masks: OptionalTensor = None
    """Which transitions of a batch of trajectories count, bool; None in a batch of single transitions. Shape: ()."""
    advantages: torch.Tensor = _stored("column", only="rl")
    returns: torch.Tensor = _stored("column", only="rl")
    cost_advantages: OptionalTensor = _stored("costs")
    cost_returns: OptionalTensor = _stored("costs")
    has_previous: OptionalTensor = None
    """With AMP: where the transition before is in the rollout and in the same episode, bool. Shape: ()."""
    obs_prev_state: OptionalTensor = None
    ref_obs_prev_state: OptionalTensor = None
    """With AMP: the AMP states of policy and reference one step earlier; the present ones where there is none."""
    ref_obs_prev_mask: OptionalTensor = None
    """With AMP: where ``ref_obs_prev_state`` is that of an earlier step with a reference, bool. Shape: ()."""

    def as_tuple(self) -> tuple[Any, ...]:
        """The 18 items below in this order, references as (observations, mask); None where there is none."""
        actor = self.reference_observations, self.reference_observations_mask
        critic = self.critic_reference_observations, self.critic_reference_observations_mask
        reference, critic_reference = (
            None if pair[0] is None else pair for pair in (actor, critic)
        )
        return (
            *(
                self.observations,
                reference,
                self.critic_observations,
                critic_reference,
                self.actions,
                self.values,
            ),
            *(
                self.advantages,
                self.returns,
                self.actions_log_prob,
                self.action_mean,
                self.action_sigma,
            ),
            *(self.dagger_actions, self.hidden_states, self.masks, self.rnd_state),
            *(self.obs_prev_state, self.ref_obs_prev_state, self.ref_obs_prev_mask),
        )


def _fields_of(kind: type) -> tuple[Field, ...]:
    return tuple(
        Field(each.name, **{"buffer": each.name, **each.metadata})
        for each in fields(kind)
        if each.metadata
    )


TRANSITION_FIELDS, BATCH_FIELDS = _fields_of(Transition), _fields_of(MiniBatch)
FIELDS = tuple(dict.fromkeys(TRANSITION_FIELDS + BATCH_FIELDS))


def fitting(name: str, tensor: Any, like: torch.Tensor) -> torch.Tensor:
    """``tensor`` if it can be copied to ``like``, maybe without a last dimension of 1; else ValueError or TypeError."""
    if tensor is None:
        raise ValueError(f"{name} is missing: expected a tensor of shape {tuple(like.shape)}")
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(tensor).__name__}")
    if tensor.shape != like.shape:
        if like.shape[-1] != 1 or like.ndim < 2 or tensor.shape != like.shape[:-1]:
            raise ValueError(
                f"{name}: expected shape {tuple(like.shape)}, got {tuple(tensor.shape)}"
            )
        tensor = tensor.unsqueeze(-1)
    check_device(name, tensor, like.device)
    if tensor.dtype is like.dtype:
        return tensor
    if like.dtype is torch.uint8 and not tensor.is_floating_point() and not tensor.is_complex():
        return tensor if tensor.dtype is torch.bool else tensor != 0  # flags
    raise TypeError(
        f"{name}: expected {like.dtype}, got {tensor.dtype}: convert it with .to({like.dtype})"
    )


def check_device(name: str, tensor: torch.Tensor, device: torch.device) -> None:
    if tensor.device != device:
        raise ValueError(
            f"{name}: expected device {device}, got {tensor.device}: move it with .to({str(device)!r})"
        )


def entry_shape(name: str, shape: Shape) -> tuple[int, ...] | None:
    """The shape of one environment's entry, None if ``shape`` is None or [None]; ValueError or TypeError if bad."""
    if shape is not None and not isinstance(shape, Sequence):
        raise TypeError(
            f"{name} must be None or a sequence of integers such as (48,), got {shape!r}"
        )
    if shape is None or (len(shape) == 1 and shape[0] is None):
        return None
    if not len(shape):
        raise ValueError(
            f"{name} must be None or the shape of one environment's entry such as (48,), got {shape!r}"
        )
    return tuple(whole_number(f"{name}[{i}]", size) for i, size in enumerate(shape))
