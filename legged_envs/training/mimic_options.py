"""What motion-mimic learning can be told; every field is a flag of the command that trains."""

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
"""Names of rsl_rl."""


@dataclass
class MimicNetworkCfg(Configuration):
    """The networks of actor, critic and cost critic: an encoder of the reference, then an MLP."""

    hidden: tuple[int, ...] = (256, 128)
    """Hidden layers behind observation and encoded reference."""
    activation: Activation = "elu"
    encoder: Literal["mlp", "transformer"] = "mlp"
    """What encodes the window of reference frames; the transformer takes each frame as a token."""
    encoder_hidden: tuple[int, ...] = (128,)
    """Hidden layers of the MLP encoder, or of the MLP in each layer of the transformer."""
    encoder_size: int = 64
    """Numbers that encode a window; the width of the transformer as well."""
    encoder_layers: int = 1
    """Attention layers of the transformer."""
    encoder_heads: int = 4
    """Attention heads of the transformer; they divide ``encoder_size``."""
    init_std: float = 0.3
    """Standard deviation of the first actions where there is a reference; 1 is the whole action range."""
    init_free_std: float = 0.5
    """Standard deviation of the first actions where there is no reference."""


@dataclass
class DaggerCfg(Configuration):
    """A loss beside PPO's that pulls the policy's mean to a teacher's action in every visited state."""

    coefficient: float = 0.0
    """Weight of the mean squared error at the start; 0 is off."""
    decay_iterations: int = 0
    """The weight falls linearly to 0 over so many iterations; 0 keeps it."""
    teacher: Path | None = None
    """A run folder or policy file trained with ``--privileged-actor``."""


@dataclass
class AmpCfg(Configuration):
    """Adversarial motion prior: a reward for moving as the motions do."""

    amp_reward_weight: float = 0.0
    """Weight of the style reward, which is from 0 to 1 each control step; 0 is off."""
    task_reward_weight: float = 1.0
    """Weight of the environment's own reward, where AMP is on."""
    group: str = "amp"
    """Observation group of the states that robots and motions are compared by."""
    hidden: tuple[int, ...] = (256, 128)
    """Hidden layers of the discriminator."""
    activation: Activation = "elu"
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
    """Observation group that novelty is judged by."""
    hidden: tuple[int, ...] = (64,)
    """Hidden layers of predictor and target."""
    outputs: int = 16
    """Numbers that the predictor guesses."""
    learning_rate: float = 1e-3
    """Of the predictor's own optimiser, constant."""


@dataclass
class LagrangeCfg(Configuration):
    """Keeps each cost term under its limit by a Lagrange multiplier."""

    enabled: bool = False
    costs: tuple[str, ...] = ()
    """Names of the cost terms to keep under their limits; empty for all of them."""
    integral: float = 0.02
    """What a multiplier rises by in an iteration whose mean cost is twice the limit or more."""
    proportional: float = 0.5
    """What a multiplier is higher by as long as the mean cost is twice the limit or more."""
    derivative: float = 0.0
    """What a multiplier is higher by in an iteration whose mean cost has risen by the limit."""
    initial: float = 0.0
    """Multipliers at the start."""
    calm_fraction: float = 1 / 16
    """Part of the environments that act without exploration noise. As the limits are for a policy without noise, their
    costs alone move the multipliers; the others alone move the policy. With 0 all act with noise and are measured."""
    maximum: float = 1.0
    """Upper bound of the multipliers: at 1 a cost weighs as much as the reward; far above 1, robots learn to fall."""


@dataclass
class LearningCfg(Configuration):
    """What every algorithm has. Whoever runs it moves the learning rate from the first value to the last."""

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
    """What rsl_rl's PPO and the motion-mimic one have in common."""

    mini_batches: int = 4
    """Parts of a pass over a rollout, one step of the optimiser for each."""
    gae_lambda: float = 0.95
    """λ of the advantages, a factor for each step."""
    clip: float = 0.2
    """How far the ratio of the new policy's probability to the old one's counts from 1, and a value from the old."""
    value_loss: float = 1.0
    """Weight of the value function's loss."""


@dataclass
class MimicPPOCfg(OnPolicyCfg, MimicNetworkCfg):
    """Motion-mimic PPO."""

    gamma: float = 0.99
    """Discount of a step."""
    entropy: float = 0.002
    """Weight of the entropy."""
    schedule: Literal["fixed", "adaptive"] = "fixed"
    """``adaptive`` divides or multiplies the learning rate by 1.5 where the KL divergence leaves [½, 2] desired_kl."""
    desired_kl: float = 0.01
    """KL divergence between the policies before and after an update, for the adaptive schedule."""
    privileged_actor: bool = False
    """Whether the actor sees ``critic`` and ``critic_reference``, as teachers do, not ``policy`` and ``reference``."""
    amp: AmpCfg = field(default_factory=AmpCfg)
    dagger: DaggerCfg = field(default_factory=DaggerCfg)
    rnd: RndCfg = field(default_factory=RndCfg)
    lagrange: LagrangeCfg = field(default_factory=LagrangeCfg)


@dataclass
class MimicDistillationCfg(LearningCfg, MimicNetworkCfg):
    """Distillation of a teacher into a student that sees ``policy`` and ``reference``."""

    teacher: Path | None = None
    """A run folder or policy file trained with ``mmppo --privileged-actor``; there must be one."""
    init_std: float = 0.1
    """Standard deviation of the student's actions while it collects; it stays as it is."""
    init_free_std: float = 0.1
    """Standard deviation of the student's actions where there is no reference."""
    epochs: int = 2
    """Passes over a rollout, one step of the optimiser for each of its control steps."""


MimicLearningCfg = MimicPPOCfg | MimicDistillationCfg
