"""Checks of the constraint options of a training, before environments are made."""

from typing import get_args

from legged_envs.checks import check_choice, check_known, check_number
from legged_envs.envs.cfg import TaskCfg
from legged_envs.training.learner_options import ConstraintMethodName
from legged_envs.training.ppo_options import PPOCfg


def check_constraint(algo: PPOCfg, task: TaskCfg) -> None:
    """Check the constraint method, its costs and their limits.

    Args:
        algo: Options of PPO.
        task: Configuration of the task, with all changes.

    Raises:
        ValueError: If there is no such method or cost, a limit is not above 0, or options
            contradict each other.
    """
    method = algo.constraint.method
    check_choice("--constraint.method", method, get_args(ConstraintMethodName))
    costs = algo.constraint.costs
    check_known("--constraint.costs: there is no cost", costs, task.costs, "costs")
    if method == "none":
        if costs:
            raise ValueError(
                f"--constraint.costs {' '.join(costs)} need a --constraint.method, got none"
            )
        return
    if algo.lagrange.enabled:
        raise ValueError(
            f"--lagrange.enabled is --constraint.method lagrange, got {method} too; leave one out"
        )
    for name in costs or task.costs:
        limit = task.costs[name].limit
        check_number(f"costs.{name}.limit with --constraint.method {method}", limit, above=0.0)
