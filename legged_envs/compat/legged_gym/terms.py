"""Terms of :mod:`legged_envs.mdp` by the names that LeggedGym-Ex gives them."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

import torch
from torch import Tensor

from legged_envs.envs import CoreVectorEnv
from legged_envs.mdp import costs, rewards


def _public_functions(module: ModuleType) -> dict[str, Callable[..., Tensor]]:
    functions: dict[str, Callable[..., Tensor]] = {}
    for name, function in inspect.getmembers(module, inspect.isfunction):
        # Modules also hold functions that they import.
        if function.__module__ == module.__name__ and not name.startswith("_"):
            functions[name] = function
    return functions


STILL_COMMAND = 0.1
"""Speed of the command below which :func:`stand_still` counts, m/s."""


def stand_still(env: CoreVectorEnv) -> Tensor:
    """Return Σ |q − q0|, rad, where the commanded velocity is below 0.1 m/s, otherwise 0.

    The formula is that of legged_gym's ``LeggedRobot``: ωz of the command does not count.

    Returns:
        Distances of the joints from the default pose q0, shape (num_envs,).
    """
    distance = env.robot.joint_offset.abs().sum(1)
    return distance * (env.commands["velocity"][:, :2].norm(dim=1) < STILL_COMMAND)


BUILTIN_COSTS = _public_functions(costs)
"""Name of each built-in cost mapped to its term."""
LEGGED_GYM_REWARDS: dict[str, Callable[..., Tensor]] = {
    "dof_acc": rewards.joint_acc,
    "dof_close_to_default": rewards.joint_deviation,
    "dof_pos_limits": rewards.joint_pos_limits,
    "dof_pos_stand_still": rewards.joint_pos_stand_still,
    "dof_power": rewards.joint_power,
    "dof_vel": rewards.joint_vel,
    "dof_vel_stand_still": rewards.joint_vel_stand_still,
    "feet_air_time": rewards.foot_air_time,
    "feet_contact_stand_still": rewards.foot_contact_stand_still,
    "feet_slip": rewards.foot_slip,
    "keep_balance": rewards.alive,
    "stand_still": stand_still,
    "torques": rewards.joint_torque,
}
"""Rewards to which LeggedGym-Ex gives another name than :mod:`legged_envs.mdp.rewards`."""
BUILTIN_REWARDS: dict[str, Callable[..., Tensor]] = {
    **_public_functions(rewards),
    **LEGGED_GYM_REWARDS,
}
"""Name of each built-in reward mapped to its term."""


class RewardMethod:
    """The method ``_reward_<name>`` of a user's object as a reward term.

    Args:
        cls: Class of the object.
        name: Name of the reward.
    """

    def __init__(self, cls: type, name: str):
        self.method = f"_reward_{name}"
        """Name of the method."""
        # Errors of the reward manager name the function of a term.
        self.__name__ = f"{cls.__name__}.{self.method}"

    def __call__(self, env: Any) -> Any:
        value = getattr(env.task.user, self.method)()
        # LeggedGym-Ex multiplies by a scale, so methods may return bools, and one number for all.
        if isinstance(value, (bool, int, float)):
            return torch.full((env.num_envs,), float(value), device=env.device)
        if getattr(value, "dtype", None) == torch.bool:
            return value.float()
        return value


def own_cost(env: CoreVectorEnv, name: str) -> Tensor:
    """Return the cost ``name`` that ``_get_costs`` returned in this step, (num_envs,)."""
    task: Any = env.task
    return cast(Tensor, task.own_costs[name])
