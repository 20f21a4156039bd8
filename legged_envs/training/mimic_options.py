"""Options of motion-mimic learning. Every field is an option of ``legged-envs train``."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from legged_envs.configuration import Configuration

Activation = Literal[
    "elu",
    "selu",
    "relu",
    "crelu",
    "lrelu",
    "tanh",
    "sigmoid",
    "softplus",
    "gelu",
    "swish",
    "mish",
    "identity",
]
"""Activations, by rsl_rl's names."""


@dataclass
class MimicNetworkCfg(Configuration):
    """Networks of actor, critic and cost critic: an encoder of the reference, then an MLP."""

    hidden: tuple[int, ...] = (256, 128)
    """Hidden layers behind observation and encoded reference."""

    activation: Activation = "elu"
    """Activation of the hidden layers."""

    encoder: Literal["mlp", "transformer"] = "mlp"
    """Encoder of the window of reference frames; the transformer takes each frame as a token."""

    encoder_hidden: tuple[int, ...] = (128,)
    """Hidden layers of the MLP encoder, or of the MLP in each layer of the transformer."""

    encoder_size: int = 64
    """Size of an encoded window; also the width of the transformer."""

    encoder_layers: int = 1
    """Attention layers of the transformer."""

    encoder_heads: int = 4
    """Attention heads of the transformer; a divisor of ``encoder_size``."""

    init_std: float = 0.3
    """Standard deviation of the first actions with a reference; 1 is the whole action range."""

    init_free_std: float = 0.5
    """Standard deviation of the first actions without a reference."""


@dataclass
class DaggerCfg(Configuration):
    """A loss that pulls the policy's mean to a teacher's action in every visited state."""

    coefficient: float = 0.0
    """Weight of the mean squared error at the start; 0 is off."""

    decay_iterations: int = 0
    """Number of iterations over which the weight falls linearly to 0; 0 keeps the weight."""

    teacher: Path | None = None
    """A run folder or policy file trained with ``--privileged-actor``."""


@dataclass
class AmpCfg(Configuration):
    """Adversarial motion prior: a reward for moving as the motions do."""

    amp_reward_weight: float = 0.0
    """Weight of the style reward, which is from 0 to 1 each control step; 0 is off."""

    task_reward_weight: float = 1.0
    """Weight of the environment's reward while AMP is on."""

    group: str = "amp"
    """Observation group of the states by which robots and motions are compared."""

    hidden: tuple[int, ...] = (256, 128)
    """Hidden layers of the discriminator."""

    activation: Activation = "elu"
    """Activation of the discriminator's hidden layers."""

    learning_rate: float = 1e-4
    """Learning rate of the discriminator's own optimiser, constant."""

    gradient_penalty: float = 10.0
    """Weight w of the loss's term w/2 · E‖∇D‖² at the expert's pairs (Peng et al. 2021)."""


@dataclass
class RndCfg(Configuration):
    """Random network distillation: a reward for observations that are new."""

    weight: float = 0.0
    """Weight of the intrinsic reward each control step; 0 is off."""

    group: str = "critic"
    """Observation group by which novelty is judged."""

    hidden: tuple[int, ...] = (64,)
    """Hidden layers of predictor and target."""

    outputs: int = 16
    """Size of the output that the predictor learns to predict."""

    learning_rate: float = 1e-3
    """Learning rate of the predictor's own optimiser, constant."""


@dataclass
class LagrangeCfg(Configuration):
    """Lagrange multipliers that keep each cost term under its limit.

    A multiplier follows the relative excess of its mean cost over the limit, which counts at most
    as 1.
    """

    enabled: bool = False
    """True: costs are constrained."""

    costs: tuple[str, ...] = ()
    """Names of the cost terms to keep under their limits; empty for all of them."""

    integral: float = 0.02
    """Rise of a multiplier in an iteration with a mean cost of twice the limit or more."""

    proportional: float = 0.5
    """Addition to a multiplier as long as the mean cost is twice the limit or more."""

    derivative: float = 0.0
    """Addition to a multiplier in an iteration in which the mean cost rose by the limit."""

    initial: float = 0.0
    """Multipliers at the start."""

    calm_fraction: float = 1 / 16
    """Share of the environments that act without exploration noise. The limits are for a policy
    without noise, so only their costs move the multipliers, and only the others move the policy.
    With 0 all environments act with noise and are measured."""

    maximum: float = 1.0
    """Upper bound of the multipliers. At 1 a cost weighs as much as the reward; far above 1, robots
    learn to fall."""


@dataclass
class LearningCfg(Configuration):
    """Options that every algorithm has."""

    steps_per_env: int = 24
    """Control steps of each environment between two updates."""

    epochs: int = 5
    """Passes over a rollout."""

    learning_rate: float = 1e-3
    """Learning rate at the start."""

    final_learning_rate: float = 1e-4
    """Learning rate at the end."""

    max_grad_norm: float = 1.0
    """Largest norm of each network's gradient."""


@dataclass
class OnPolicyCfg(LearningCfg):
    """Options that rsl_rl's PPO and motion-mimic PPO share."""

    mini_batches: int = 4
    """Parts of a pass over a rollout, one step of the optimiser for each."""

    gae_lambda: float = 0.95
    """λ of the advantages, a factor for each step."""

    clip: float = 0.2
    """Bound of the change that counts: of the ratio of the new policy's probability to the old
    one's from 1, and of a value from the old value."""

    value_loss: float = 1.0
    """Weight of the value function's loss."""


@dataclass
class MimicPPOCfg(OnPolicyCfg, MimicNetworkCfg):
    """Options of motion-mimic PPO."""

    gamma: float = 0.99
    """Discount of a control step."""

    entropy: float = 0.002
    """Weight of the entropy."""

    schedule: Literal["fixed", "adaptive"] = "fixed"
    """``adaptive`` divides or multiplies the learning rate by 1.5 where the KL divergence leaves
    [½, 2] desired_kl."""

    desired_kl: float = 0.01
    """KL divergence between the policies before and after an update, for the adaptive schedule."""

    privileged_actor: bool = False
    """True: the actor sees ``critic`` and ``critic_reference``, as teachers do, in place of
    ``policy`` and ``reference``."""

    amp: AmpCfg = field(default_factory=AmpCfg)
    """Adversarial motion prior."""

    dagger: DaggerCfg = field(default_factory=DaggerCfg)
    """Imitation of a teacher."""

    rnd: RndCfg = field(default_factory=RndCfg)
    """Reward for novelty."""

    lagrange: LagrangeCfg = field(default_factory=LagrangeCfg)
    """Constraints on costs."""


@dataclass
class MimicDistillationCfg(LearningCfg, MimicNetworkCfg):
    """Options of distillation: a student, which sees ``policy`` and ``reference``, learns a
    teacher."""

    teacher: Path | None = None
    """A run folder or policy file trained with ``mmppo --privileged-actor``; required."""

    init_std: float = 0.1
    """Standard deviation of the student's actions while it collects, constant."""

    init_free_std: float = 0.1
    """Standard deviation of the student's actions without a reference, constant."""

    epochs: int = 2
    """Passes over a rollout, one step of the optimiser for each of its control steps."""


MimicLearningCfg = MimicPPOCfg | MimicDistillationCfg
"""Options of an algorithm of motion-mimic learning."""


def teacher_path(algo: MimicPPOCfg | MimicDistillationCfg) -> Path:
    """Return the place of the teacher of an algorithm that needs one.

    Raises:
        ValueError: If no teacher is given.
    """
    path = algo.dagger.teacher if isinstance(algo, MimicPPOCfg) else algo.teacher
    if path is None:
        raise ValueError(
            "distillation and DAgger need a --teacher, a run trained with mmppo --privileged-actor"
        )
    return path
