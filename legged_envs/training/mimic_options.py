"""Options of motion-mimic learning. Every field is an option of ``legged-envs train``."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from legged_envs.configuration import Configuration
from legged_envs.training.learner_options import Activation, LearningCfg, OnPolicyCfg


@dataclass
class MimicNetworkCfg(Configuration):
    """Layout of the networks of actor, critic and cost critic.

    An encoder reduces the window of reference frames to a vector. An MLP maps the observation and
    this vector to the output.
    """

    hidden: tuple[int, ...] = (256, 128)
    """Widths of the hidden layers of the MLP over observation and encoded reference."""

    activation: Activation = "elu"
    """Activation of the hidden layers."""

    encoder: Literal["mlp", "transformer"] = "mlp"
    """Encoder of the window of reference frames. The transformer has one token per frame."""

    encoder_hidden: tuple[int, ...] = (128,)
    """Widths of the hidden layers of the MLP encoder, or of the MLP in each transformer layer."""

    encoder_size: int = 64
    """Size of an encoded window, which is also the width of the transformer."""

    encoder_layers: int = 1
    """Number of attention layers of the transformer."""

    encoder_heads: int = 4
    """Number of attention heads of the transformer. It must divide ``encoder_size``."""

    init_std: float = 0.3
    """Initial standard deviation of the actions of robots with a reference. 1 is half of the
    action range −1 to 1."""

    init_free_std: float = 0.5
    """Initial standard deviation of the actions of robots without a reference, which follow only a
    command."""


@dataclass
class DaggerCfg(Configuration):
    """Options of DAgger: a loss that pulls the mean action towards a teacher's action.

    The teacher is a trained policy with privileged observations. It labels every visited state.
    """

    coefficient: float = 0.0
    """Weight of the mean squared error between the actions, at the start of the training. 0
    switches DAgger off."""

    decay_iterations: int = 0
    """Number of updates over which the weight falls linearly to 0. 0 keeps the weight constant."""

    teacher: Path | None = None
    """Run folder or policy file of the teacher, which was trained with ``--privileged-actor``."""


@dataclass
class MimicPPOCfg(OnPolicyCfg, MimicNetworkCfg):
    """Options of motion-mimic PPO, which trains an actor that sees upcoming reference frames."""

    gamma: float = 0.99
    """Discount factor per control step."""

    entropy: float = 0.002
    """Weight of the policy's entropy in the loss. A larger weight keeps more exploration noise."""

    noise_kept: float = 1.0
    """With --warm-start: factor on the standard deviation of actions at the end of the earlier run.
    Values below 1 reduce exploration."""

    privileged_actor: bool = False
    """True: the actor sees the privileged groups ``critic`` and ``critic_reference`` instead of
    ``policy`` and ``reference``. A policy trained so can teach a student."""

    dagger: DaggerCfg = field(default_factory=DaggerCfg)
    """Options of DAgger, a loss for imitating a teacher."""


@dataclass
class MimicDistillationCfg(LearningCfg, MimicNetworkCfg):
    """Options of distillation: a student learns the actions of a teacher.

    The student sees the groups ``policy`` and ``reference``, the teacher the privileged groups.
    """

    teacher: Path | None = None
    """Run folder or policy file of the teacher. Required.

    It is a policy that sees the privileged groups: train it with ``legged-envs train <id> mmppo
    --privileged-actor``."""

    init_std: float = 0.1
    """Standard deviation of the student's actions in rollouts with a reference, constant."""

    init_free_std: float = 0.1
    """Standard deviation of the student's actions in rollouts without a reference, constant."""

    epochs: int = 2
    """Number of passes over a rollout in an update. A pass makes one step of the optimizer for each
    control step of the rollout."""


MimicLearningCfg = MimicPPOCfg | MimicDistillationCfg
"""Options of an algorithm that learns a motion-mimic task."""


def teacher_path(algo: MimicPPOCfg | MimicDistillationCfg) -> Path:
    """Return the run folder or policy file of the teacher that an algorithm needs.

    Raises:
        ValueError: If no teacher is given.
    """
    path = algo.dagger.teacher if isinstance(algo, MimicPPOCfg) else algo.teacher
    if path is None:
        raise ValueError(
            "distillation and DAgger need a --teacher, a run trained with mmppo --privileged-actor"
        )
    return path
