"""Options of PPO. Every field is an option of ``legged-envs train``."""

from dataclasses import dataclass
from typing import Literal

from legged_envs.training.learner_options import Activation, OnPolicyCfg

Symmetry = Literal["networks", "batches", "off"]
"""How learning treats left and right equally."""


@dataclass
class PPOCfg(OnPolicyCfg):
    """Options of PPO, for all tasks except motion-mimic tasks.

    A field that is None takes the task's training default, from
    :class:`~legged_envs.tasks.training_defaults.TrainingDefaults`.
    """

    mini_batches: int = 3
    """Number of mini-batches per pass over a rollout. Each gives one step of the optimizer."""

    gamma: float | None = None
    """Discount factor per control step at the start of the training. None: the task's."""

    final_gamma: float | None = None
    """Discount factor per control step at the end of the training, linear in between. None:
    ``gamma`` if given, otherwise the task's value."""

    hidden: tuple[int, ...] | None = None
    """Widths of the hidden layers of actor and critic. None: the task's."""

    activation: Activation = "elu"
    """Activation function of the hidden layers."""

    init_std: float | None = None
    """Initial standard deviation of the actions, which are in −1 to 1. None: the task's. Arms and
    heads of bipeds start with 0.4 times this value, because their swings turn the trunk."""

    entropy: float | None = None
    """Weight of the policy's entropy in the loss. A larger weight keeps more exploration noise.
    None: the task's."""

    noise_kept: float = 1.0
    """With --warm-start: factor on the standard deviation of actions at the end of the earlier run.
    Values below 1 reduce exploration."""

    symmetry: Symmetry | None = None
    """How learning uses that a robot looks the same in a mirror. ``networks``: actions and values
    of a mirrored observation are the mirrored actions and the same values, by the structure of the
    networks; hidden layers need even widths. ``batches``: half of each mini-batch is mirrored.
    ``off``: not at all. None: the task's training default, or as the run of ``--warm-start``.
    ``networks`` is for ``ppo`` with ``--learner legged_envs``. Schemes have ``batches`` or ``off``.
    A memory (``lstm``) has no mirror image, and neither has a task with a term that does not define
    its own: these learn as with ``off``."""
