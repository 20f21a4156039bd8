"""The numbers of PPO, all given: options of a training that are None are replaced before."""

from dataclasses import dataclass
from typing import Literal

from legged_envs.training.learner_options import OnPolicyCfg


@dataclass(frozen=True, kw_only=True)
class PPOSettings:
    """Numeric settings of :class:`~legged_envs.training.learner.ppo.PPO`."""

    steps_per_env: int = 24
    """Number of control steps of each environment between two updates: length of a rollout."""
    epochs: int = 5
    """Number of passes over a rollout in an update."""
    mini_batches: int = 4
    """Number of mini-batches per pass. Each gives one step of the optimizer."""
    learning_rate: float = 1e-3
    """Learning rate of the optimizer (Adam) at the start."""
    max_grad_norm: float = 1.0
    """Largest L2 norm of each network's gradient. A larger gradient is scaled down to it."""
    gamma: float = 0.99
    """Discount factor per control step at the start."""
    gae_lambda: float = 0.95
    """Factor λ of the generalized advantage estimate, per control step (Schulman et al. 2016)."""
    clip: float = 0.2
    """Clipping range ε of the probability ratio."""
    clip_value: bool = False
    """True to count a value estimate only within ± ``clip`` of that during the rollout, as rsl_rl
    does."""
    value_loss: float = 1.0
    """Weight of the value function's loss in the total loss."""
    cost_stride: int = 1
    """Number n: the critic of the costs learns from every n-th control step."""
    entropy: float = 0.0
    """Weight of the policy's entropy in the loss."""
    schedule: Literal["fixed", "adaptive"] = "fixed"
    """Schedule of the learning rate. ``adaptive``: it follows the KL divergence. ``fixed``: the
    trainer moves it."""
    desired_kl: float = 0.01
    """Target of the KL divergence with the adaptive schedule."""


def settings_of(cfg: OnPolicyCfg, gamma: float, entropy: float, clip_value: bool) -> PPOSettings:
    """Return the numbers of PPO from options.

    Args:
        cfg: Options that all tasks share.
        gamma: Discount factor per control step at the start.
        entropy: Weight of the policy's entropy in the loss.
        clip_value: True to clip the change of value estimates.
    """
    return PPOSettings(
        steps_per_env=cfg.steps_per_env,
        epochs=cfg.epochs,
        mini_batches=cfg.mini_batches,
        learning_rate=cfg.learning_rate,
        max_grad_norm=cfg.max_grad_norm,
        gamma=gamma,
        gae_lambda=cfg.gae_lambda,
        clip=cfg.clip,
        clip_value=clip_value,
        value_loss=cfg.value_loss,
        cost_stride=cfg.constraint.critic_stride,
        entropy=entropy,
        schedule=cfg.schedule,
        desired_kl=cfg.desired_kl,
    )
