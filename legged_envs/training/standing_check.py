"""Check of the limits of a constrained training against the costs of a robot that stands."""

from legged_envs.evaluation.standing import standing_costs
from legged_envs.training.learner_options import OnPolicyCfg
from legged_envs.training.prepare import Prepared


def check_standing(prepared: Prepared) -> None:
    """Check that a robot that stands keeps the limits that a training constrains.

    A method that must lower a cost below that of standing makes robots jump or fall.

    Args:
        prepared: Checked options and task of the training.

    Raises:
        ValueError: If a limit is below the cost of a robot that holds its default pose.
    """
    algo = prepared.algo
    if not isinstance(algo, OnPolicyCfg) or prepared.checkpoint is not None:
        return
    names = algo.constrained_costs(tuple(prepared.task.costs))
    if not names:
        return
    costs = standing_costs(prepared.cfg.task_id, prepared.task)
    has_method = algo.constraint.method != "none"
    # A method aims at less than the limit.
    share = algo.constraint.aim if has_method else 1.0
    option = "--constraint.costs" if has_method else "--lagrange.costs"
    for name in names:
        limit = prepared.task.costs[name].limit
        cost = costs.get(name, 0.0)
        if cost > share * limit:
            raise ValueError(
                f"costs.{name}.limit is {limit:g}, the training aims at {share:g} of it, and a "
                f"robot that stands already has {cost:.3g} per step: raise the limit with "
                f"--changes costs.{name}.limit, or name only other costs with {option}"
            )
