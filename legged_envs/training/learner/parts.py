"""Parts that options switch on, for tasks with and without reference motions."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from tensordict import TensorDict

from legged_envs.checks import check_choice, check_number
from legged_envs.training.learner.bonus import Novelty
from legged_envs.training.learner.constraint_methods import METHODS
from legged_envs.training.learner.constraints import Constraints, CostPart
from legged_envs.training.learner.lagrange import Lagrange
from legged_envs.training.learner.method_constraints import MethodConstraints
from legged_envs.training.learner.part import Part
from legged_envs.training.learner.style_prior import Expert, StylePrior
from legged_envs.training.learner_options import (
    AmpCfg,
    ConstraintCfg,
    OnPolicyCfg,
    RndCfg,
)


def make_cost_part(
    algo: OnPolicyCfg,
    cost_names: Sequence[str],
    cost_limits: Sequence[float],
    *,
    discount: float,
    num_envs: int,
    device: torch.device,
    with_reference: bool,
) -> CostPart | None:
    """Make the part that constrains costs, or None if no option switches it on.

    Args:
        algo: Options of the algorithm.
        cost_names: Names of the task's cost terms.
        cost_limits: Limit of each cost term: its largest mean per control step.
        discount: The product of the discount γ and the factor λ of the advantage estimate.
        num_envs: Number of environments.
        device: Device to learn on.
        with_reference: True for tasks with reference motions.

    Raises:
        ValueError: If an option is out of its range or names no cost of the task.
    """
    method = algo.constraint.method
    if method != "none":
        cost_limits = tuple(limit * algo.constraint.aim for limit in cost_limits)
    if method not in ("none", "lagrange"):
        return make_method_constraints(
            algo.constraint,
            cost_names,
            cost_limits,
            discount=discount,
            num_envs=num_envs,
            device=device,
        )
    lagrange = algo.lagrange
    if method == "lagrange":
        costs = algo.constrained_costs(cost_names)
        lagrange = replace(lagrange, enabled=True, costs=costs)
    if not lagrange.enabled:
        return None
    return Constraints(
        Lagrange(cost_names, cost_limits, discount, lagrange, device, with_reference),
        _number_of_calm_envs("lagrange", lagrange.calm_fraction, num_envs),
    )


def make_method_constraints(
    cfg: ConstraintCfg,
    cost_names: Sequence[str],
    cost_limits: Sequence[float],
    *,
    discount: float,
    num_envs: int,
    device: torch.device,
) -> MethodConstraints:
    """Make the part that keeps limits by one of :data:`METHODS`.

    Args:
        cfg: Options of the constraints.
        cost_names: Names of the task's cost terms.
        cost_limits: Limit of each cost term: its largest mean per control step.
        discount: The product of the discount γ and the factor λ of the advantage estimate.
        num_envs: Number of environments.
        device: Device to learn on.

    Raises:
        ValueError: If there is no such method or cost, a limit is not above 0, or a number is out
            of its range.
    """
    check_choice("constraint.method", cfg.method, tuple(METHODS))
    check_number("gamma · gae_lambda with a constraint.method", discount, below=1.0)
    chosen = cfg.costs or tuple(cost_names)
    if not chosen:
        raise ValueError(
            f"constraint.method = {cfg.method!r} needs cost terms, but the task has none; add one "
            "to its configuration"
        )
    columns = []
    limits = []
    for name in chosen:
        check_choice("each of constraint.costs", name, tuple(cost_names))
        column = list(cost_names).index(name)
        limit = cost_limits[column]
        check_number(f"the limit of the cost {name!r} with a constraint.method", limit, above=0.0)
        columns.append(column)
        limits.append(limit)
    method = METHODS[cfg.method](len(chosen), cfg, device)
    return MethodConstraints(
        method,
        chosen,
        columns,
        torch.tensor(limits, dtype=torch.float32, device=device),
        discount,
        _number_of_calm_envs("constraint", cfg.calm_fraction, num_envs),
    )


def _number_of_calm_envs(option: str, fraction: float, num_envs: int) -> int:
    """Return the number of environments that act without exploration noise."""
    check_number(f"{option}.calm_fraction", fraction, 0.0, below=1.0)
    # At least one environment explores.
    return min(math.ceil(fraction * num_envs), num_envs - 1)


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
