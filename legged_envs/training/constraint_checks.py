"""Checks and completion of the constraint options of a training."""

from dataclasses import replace

from legged_envs.checks import check_choice, check_known, check_number
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.cost_suites import suite_name
from legged_envs.training.learner.constraint_methods import METHODS
from legged_envs.training.learner_options import OnPolicyCfg
from legged_envs.training.options import TrainCfg


def check_constraint(algo: OnPolicyCfg, task: TaskCfg) -> None:
    """Check the constraint method, its costs and their limits.

    Args:
        algo: Options of the algorithm.
        task: Configuration of the task, with all changes.

    Raises:
        ValueError: If there is no such method or cost, a limit is not above 0, or options
            contradict each other.
    """
    method = algo.constraint.method
    # The dict, because a benchmark may add a method of another package to it.
    check_choice("--constraint.method", method, ("none", "lagrange", *METHODS))
    costs = algo.constraint.costs
    check_known("--constraint.costs: there is no cost", costs, task.costs, "costs")
    for name in costs:
        if costs.count(name) > 1:
            raise ValueError(f"--constraint.costs has {name!r} twice; name each cost once")
    if costs and method == "none":
        raise ValueError(
            f"--constraint.costs {' '.join(costs)} need a --constraint.method, got none"
        )
    if method != "none" and algo.lagrange.enabled:
        raise ValueError(
            f"--lagrange.enabled is --constraint.method lagrange, got {method} too; leave one out"
        )
    option = "--lagrange.enabled" if method == "none" else f"--constraint.method {method}"
    for name in algo.constrained_costs(tuple(task.costs)):
        check_number(f"costs.{name}.limit with {option}", task.costs[name].limit, above=0.0)


def with_suite(cfg: TrainCfg) -> TrainCfg:
    """Return options with the costs of ``--constraints`` among their changes.

    Raises:
        ValueError: If the suite has no limits for the task, or ``--changes`` replace its costs.
    """
    if cfg.constraints is None:
        return cfg
    name = suite_name(cfg.task_id, cfg.constraints)
    given = cfg.changes.get("costs", name)
    if given != name:
        raise ValueError(
            f"--constraints {cfg.constraints} are the costs {name}, got --changes costs {given!r} "
            "too; leave one out"
        )
    # First, so that changes to a single limit come after it.
    return replace(cfg, changes={"costs": name, **cfg.changes})
