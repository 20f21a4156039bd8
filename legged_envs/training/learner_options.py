"""Options that all algorithms share: of learning, and of the parts that join PPO.

Every field is an option of ``legged-envs train``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from tyro.conf import arg

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
"""Names of the activation functions of a network, as in rsl_rl."""


@dataclass
class AmpCfg(Configuration):
    """Options of the adversarial motion prior (AMP): a reward for moving in the style of the clips.

    A discriminator learns to distinguish transitions of the robots from transitions of the clips. A
    transition that it takes for one of the clips earns the reward.
    """

    amp_reward_weight: Annotated[
        float, arg(name="weight", aliases=("--amp.amp-reward-weight",))
    ] = 0.0
    """Weight of the style reward, which is 0 to 1 per control step. 0 switches AMP off."""

    task_reward_weight: float = 1.0
    """Weight of the environment's reward if AMP is on."""

    group: str = "amp"
    """Name of the observation group of the discriminator, for robots and clips."""

    hidden: tuple[int, ...] = (256, 128)
    """Widths of the hidden layers of the discriminator."""

    activation: Activation = "elu"
    """Activation of the discriminator's hidden layers."""

    learning_rate: float = 1e-4
    """Learning rate of the discriminator, constant. The discriminator has its own optimizer."""

    gradient_penalty: float = 10.0
    """Weight w of the gradient penalty w/2 · E‖∇D‖² in the discriminator's loss.

    D is the discriminator. The mean is over transitions of the clips (Peng et al. 2021).
    """


@dataclass
class RndCfg(Configuration):
    """Options of random network distillation (RND): a reward for observations that are new.

    A predictor learns the output of a fixed random network. Its error is large where few
    observations were seen before, and is the reward (Burda et al. 2018).
    """

    weight: float = 0.0
    """Weight of the reward for novelty per control step. 0 switches RND off."""

    group: str = "critic"
    """Name of the observation group of predictor and random network."""

    hidden: tuple[int, ...] = (64,)
    """Widths of the hidden layers of the predictor and of the random network."""

    outputs: int = 16
    """Size of the random network's output, which the predictor learns."""

    learning_rate: float = 1e-3
    """Learning rate of the predictor, constant. The predictor has its own optimizer."""


@dataclass
class LagrangeCfg(Configuration):
    """Options of the Lagrange multipliers that keep each cost term under its limit.

    A multiplier weighs a cost against the reward. A PID controller sets it, once per update, from
    the relative excess (mean cost − limit) / limit, clipped at 1 (Stooke et al. 2020).
    """

    enabled: bool = False
    """True: the policy learns to keep costs under their limits. False: costs have no influence."""

    costs: tuple[str, ...] = ()
    """Names of the cost terms to keep under their limits. Empty: all cost terms of the task."""

    integral: float = 0.02
    """Integral gain: increase of a multiplier in one update if the mean cost is twice the limit or
    more."""

    proportional: float = 0.5
    """Proportional gain: amount added to a multiplier while the mean cost is twice the limit or
    more."""

    derivative: float = 0.0
    """Derivative gain: amount added to a multiplier in an update in which the mean cost rose by the
    limit."""

    initial: float = 0.0
    """Value of all multipliers at the start of the training."""

    calm_fraction: float = 1 / 16
    """Share of the environments that act without exploration noise, from 0 to below 1.

    The limits are for a policy without noise. The multipliers therefore follow the costs of these
    environments only, and the policy learns from the remaining ones. 0: all environments act with
    noise, and the multipliers follow the costs of all.
    """

    maximum: float = 1.0
    """Upper bound of the multipliers. At 1 a cost weighs as much as the reward. Far above 1, robots
    learn to fall."""


ConstraintMethodName = Literal[
    "none", "fixed", "lagrange", "p3o", "np3o", "ipo", "crpo", "focops", "cat"
]
"""Names of the constraint methods."""


@dataclass
class ConstraintCfg(Configuration):
    """Options of the method that keeps the mean costs under their limits.

    Costs count in units of their limits, so that a number suits costs of any unit.
    """

    method: ConstraintMethodName = "none"
    """Constraint method: none, a fixed penalty, PPO-Lagrangian with PID control (configured by
    ``--lagrange``), P3O, N-P3O, IPO, CRPO, FOCOPS or CaT. In mimic tasks, lagrange has separate
    multipliers for robots with and without a reference. Other methods constrain the mean cost of
    both."""

    costs: tuple[str, ...] = ()
    """Names of the cost terms to keep under their limits. Empty: all cost terms of the task."""

    calm_fraction: float = 1 / 16
    """Share of the environments that act without exploration noise, from 0 to below 1. Mean costs
    are measured in these, because the limits are for a policy without noise. 0: in all."""

    aim: float = 0.75
    """Mean cost that the method aims at, as a share of the limit. An evaluation has higher costs,
    because no robot stands in it."""

    start: float = 0.3
    """Share of the training, from 0 to 1, after which the method acts. Until then the policy learns
    as without constraints, to the bit. 0: it acts from the first update, as in the papers."""

    critic_stride: int = 3
    """Number n: the critic of the costs learns from every n-th control step of a rollout, and from
    others in each pass. 1: from all steps, which takes n times as long. ``--lagrange.enabled``
    uses it too."""

    penalty: float = 0.5
    """Fixed penalty: constant weight of each cost. 1 is the weight of the reward."""

    kappa: float = 0.03
    """P3O: factor κ of the penalty on an excess, for a reward with standardized advantages."""

    kappa_initial: float = 0.1
    """N-P3O: factor κ of the penalty in the first update."""

    kappa_growth: float = 1.01
    """N-P3O: factor by which κ grows with each update. The paper has 1.0004 and longer runs."""

    kappa_maximum: float = 1.0
    """N-P3O: largest κ."""

    barrier: float = 500.0
    """IPO: sharpness t of the logarithmic barrier. The policy stays 1 / (t · multiplier) inside."""

    margin: float = 0.05
    """IPO: margin α that the threshold of a broken limit leaves, as a share of the limit."""

    tolerance: float = 0.0
    """CRPO: excess η, as a share of the limit, up to which a limit counts as kept."""

    temperature: float = 1.5
    """FOCOPS: temperature λ. A larger one keeps the policy nearer to the one of the rollout."""

    kl_limit: float = 0.1
    """FOCOPS: KL divergence δ above which a state no longer counts in an update."""

    nu_rate: float = 0.05
    """FOCOPS: increase of a multiplier in one update if the mean cost is twice the limit."""

    nu_maximum: float = 2.0
    """FOCOPS: upper bound of the multipliers."""

    initial_probability: float = 0.05
    """CaT: probability at the start that a cost at its maximum ends the return, as in the paper."""

    min_probability: float = 0.001
    """CaT: smallest such probability."""

    max_probability: float = 1.0
    """CaT: largest such probability."""

    probability_rate: float = 0.05
    """CaT: relative increase of a probability in one update if the mean cost is twice the limit."""

    probability_gain: float = 1.0
    """CaT: logarithm of the factor on a probability while the mean cost is twice the limit."""

    tau: float = 0.95
    """CaT: share τ of the running maximum of a cost that a control step keeps."""


@dataclass
class LearningCfg(Configuration):
    """Options that every learning algorithm has."""

    steps_per_env: int = 24
    """Number of control steps of each environment between two updates: length of a rollout."""

    epochs: int = 5
    """Number of passes over a rollout in an update."""

    learning_rate: float = 1e-3
    """Learning rate of the optimizer (Adam) at the start of the training."""

    final_learning_rate: float = 1e-4
    """Learning rate at the end of the training. It changes linearly in between."""

    max_grad_norm: float = 1.0
    """Largest L2 norm of each network's gradient. A larger gradient is scaled down to it."""


@dataclass
class OnPolicyCfg(LearningCfg):
    """Options that PPO and motion-mimic PPO share."""

    mini_batches: int = 4
    """Number of mini-batches per pass over a rollout. Each gives one step of the optimizer."""

    gae_lambda: float = 0.95
    """Factor λ of the generalized advantage estimate, per control step (Schulman et al. 2016)."""

    clip: float = 0.2
    """Clipping range ε of PPO: the probability ratio of new to old policy counts within 1 ± ε.

    Without motions, the change of a value estimate is clipped to ± ε too, as in rsl_rl.
    """

    value_loss: float = 1.0
    """Weight of the value function's loss in the total loss."""

    schedule: Literal["fixed", "adaptive"] = "fixed"
    """Schedule of the learning rate. ``fixed``: linear from ``learning_rate`` to
    ``final_learning_rate``. ``adaptive``: divided by 1.5 if the KL divergence of a mini-batch
    exceeds 2 · desired_kl, multiplied by 1.5 if it is below ½ · desired_kl."""

    desired_kl: float = 0.01
    """Target KL divergence between the policy and the policy that collected the rollout. Only the
    ``adaptive`` schedule uses it."""

    amp: AmpCfg = field(default_factory=AmpCfg)
    """Options of the adversarial motion prior, a reward for the style of the robot's clips."""

    rnd: RndCfg = field(default_factory=RndCfg)
    """Options of random network distillation, a reward for new observations."""

    lagrange: LagrangeCfg = field(default_factory=LagrangeCfg)
    """Options of the Lagrange multipliers that keep costs under their limits."""

    constraint: ConstraintCfg = field(default_factory=ConstraintCfg)
    """Options of the method that keeps costs under their limits."""

    def constrained_costs(self, cost_names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the cost terms that the training keeps under their limits.

        Args:
            cost_names: Names of all cost terms of the task.
        """
        method = self.constraint.method
        if method == "none" and not self.lagrange.enabled:
            return ()
        chosen = self.constraint.costs
        if method in ("none", "lagrange"):
            chosen = chosen or self.lagrange.costs
        return chosen or tuple(cost_names)
