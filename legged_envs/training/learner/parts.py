"""Parts that options switch on, for tasks with and without reference motions."""

import math
from collections.abc import Sequence

import torch
from tensordict import TensorDict

from legged_envs.checks import check_number
from legged_envs.training.learner.bonus import Novelty
from legged_envs.training.learner.constraints import Constraints
from legged_envs.training.learner.lagrange import Lagrange
from legged_envs.training.learner.part import Part
from legged_envs.training.learner.style_prior import Expert, StylePrior
from legged_envs.training.learner_options import AmpCfg, LagrangeCfg, RndCfg


def make_constraints(
    cfg: LagrangeCfg,
    cost_names: Sequence[str],
    cost_limits: Sequence[float],
    *,
    discount: float,
    num_envs: int,
    device: torch.device,
    with_reference: bool,
) -> Constraints:
    """Make the constraints on costs.

    Args:
        cfg: Options of the constraints.
        cost_names: Names of the task's cost terms.
        cost_limits: Limit of each cost term: its largest mean per control step.
        discount: The product of the discount γ and the factor λ of the advantage estimate.
        num_envs: Number of environments.
        device: Device to learn on.
        with_reference: True for tasks with reference motions.

    Raises:
        ValueError: If an option is out of its range or names no cost of the task.
    """
    check_number("lagrange.calm_fraction", cfg.calm_fraction, 0.0, below=1.0)
    calm_envs = math.ceil(cfg.calm_fraction * num_envs)
    # At least one environment explores.
    calm_envs = min(calm_envs, num_envs - 1)
    lagrange = Lagrange(cost_names, cost_limits, discount, cfg, device, with_reference)
    return Constraints(lagrange, calm_envs)


def make_bonuses(
    observation: TensorDict,
    steps_per_env: int,
    activation: str,
    amp: AmpCfg,
    rnd: RndCfg,
    expert: Expert | None,
) -> list[Part]:
    """Make the reward bonuses that are switched on.

    Args:
        observation: Example observation of all environments.
        steps_per_env: Number of control steps in a rollout.
        activation: Name of the activation of the networks of ``rnd``.
        amp: Options of the adversarial motion prior.
        rnd: Options of random network distillation.
        expert: Function that draws transitions from the clips. Required for ``amp``.

    Raises:
        ValueError: If ``expert`` is missing, or the observation lacks a group.
    """
    bonuses: list[Part] = []
    if amp.amp_reward_weight:
        if expert is None:
            raise ValueError(
                f"amp.amp_reward_weight = {amp.amp_reward_weight} needs an expert, got None"
            )
        bonuses.append(StylePrior(amp, expert, observation, steps_per_env))
    if rnd.weight:
        bonuses.append(Novelty(rnd, activation, observation, steps_per_env))
    return bonuses
