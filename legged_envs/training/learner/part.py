"""What joins PPO: rewards, constraints, losses and encoders, each a class with three methods."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDict

from legged_envs.storage import MiniBatch, RolloutStorageMM, Transition

Loss = tuple[torch.Tensor | None, dict[str, torch.Tensor]]
"""A term of the loss of actor and critic, or None, and numbers to report by name."""


Teacher = Callable[..., torch.Tensor]
"""Function of a trained policy that labels states with actions.

It takes the observation groups that the teacher reads, in their order, and returns actions of shape
(num_envs, num_actions).
"""


@dataclass
class Step:
    """One control step of all environments, as the parts of an algorithm receive it."""

    index: int
    """Number of the step in the rollout, from 0."""
    iteration: int
    """Number of updates before this rollout."""
    before: TensorDict
    """Observation before the step."""
    after: TensorDict
    """Observation after the step, in the same episodes: the final one where an episode ended."""
    transition: Transition
    """Transition that the storage will keep. A part may fill the fields that are its own."""
    extras: Mapping[str, Any]
    """Additional outcomes of the step, with ``time_outs`` and ``costs``."""
    dones: torch.Tensor
    """True where the step ended an episode. Shape: (num_envs,)."""


@dataclass
class Pass:
    """One pass of actor and critic over a mini-batch, as parts see it."""

    iteration: int
    """Number of updates before this one."""
    epoch: int
    """Number of passes over the rollout before this one, in this update."""
    batch: MiniBatch
    """The mini-batch."""
    actor_inputs: list[torch.Tensor]
    """Normalized arguments of the actor."""
    mean: torch.Tensor
    """Mean actions of the actor, with their graph. Shape: (batch, num_actions)."""


class Part:
    """Something that joins PPO. Each of the three methods does nothing unless it is overridden.

    PPO calls :meth:`collect` after each control step, :meth:`prepare` once before the passes of an
    update, and :meth:`learn` for each mini-batch of each pass.
    """

    name: str = ""
    """Name of the part in options, checkpoints and logs."""

    labels_actions: bool = False
    """True if the part fills ``Transition.dagger_actions``, which the rollout then keeps."""

    def collect(self, step: Step, rewards: torch.Tensor) -> torch.Tensor:
        """Return the rewards of a step, with what the part adds. Shape: (num_envs,)."""
        return rewards

    def prepare(self, storage: RolloutStorageMM, batches: Sequence[MiniBatch]) -> dict[str, float]:
        """Change the full rollout or its mini-batches, and return numbers to report by name."""
        return {}

    def learn(self, done: Pass) -> Loss:
        """Return a term of the loss, or make a step of the part's own optimizer."""
        return None, {}

    def state(self) -> dict[str, Any]:
        """Return the objects of the part that have a ``state_dict``, by name, for checkpoints."""
        return {}
