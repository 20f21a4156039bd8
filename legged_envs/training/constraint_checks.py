"""Checks and completion of the constraint options of a training."""

from collections.abc import Collection
from dataclasses import fields, replace

from legged_envs.checks import check_choice, check_known, check_number
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.cost_suites import suite_name
from legged_envs.training.learner.constraint_methods import METHODS
from legged_envs.training.learner_options import ConstraintCfg, LagrangeCfg, OnPolicyCfg
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
    _check_effect(algo)
    if method != "none" and algo.lagrange.enabled:
        raise ValueError(
            f"--lagrange.enabled is --constraint.method lagrange, got {method} too; leave one out"
        )
    option = "--lagrange.enabled" if method == "none" else f"--constraint.method {method}"
    for name in algo.constrained_costs(tuple(task.costs)):
        check_number(f"costs.{name}.limit with {option}", task.costs[name].limit, above=0.0)


def _check_effect(algo: OnPolicyCfg) -> None:
    """Raise a ValueError if an option was given that has no effect.

    Options of other constraint methods, and the stride of the critic of costs, are not checked.
    """
    uses_lagrange = algo.lagrange.enabled or algo.constraint.method == "lagrange"
    if algo.constraint.method == "none":
        _check_default("constraint", algo.constraint, "a --constraint.method", ("critic_stride",))
    if not uses_lagrange:
        _check_default("lagrange", algo.lagrange, "--lagrange.enabled")
    if algo.constraint.method != "lagrange":
        return
    if algo.constraint.calm_fraction != ConstraintCfg().calm_fraction:
        raise ValueError(
            f"--constraint.calm-fraction {algo.constraint.calm_fraction:g} has no effect on "
            "--constraint.method lagrange: give --lagrange.calm-fraction"
        )
    if algo.constraint.costs and algo.lagrange.costs:
        raise ValueError(
            f"--constraint.costs {' '.join(algo.constraint.costs)} and --lagrange.costs "
            f"{' '.join(algo.lagrange.costs)} both name the constrained costs: leave one out"
        )


def _check_default(
    prefix: str,
    options: ConstraintCfg | LagrangeCfg,
    needed: str,
    free: Collection[str] = (),
) -> None:
    """Raise a ValueError if an option has another value than the default.

    Args:
        prefix: Prefix of the options on the command line.
        options: The options.
        needed: The option without which they have no effect.
        free: Names of the options that have an effect nevertheless.
    """
    default = type(options)()
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name not in free and value != getattr(default, field.name):
            name = field.name.replace("_", "-")
            raise ValueError(f"--{prefix}.{name} needs {needed}, got {value!r} without it")


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
