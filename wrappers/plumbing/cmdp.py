"""The cost as a return value of ``step``: the 6-tuple of Safety-Gymnasium, for code that was written for it."""

from typing import Any

import gymnasium as gym
from array_api_compat import array_namespace
from gymnasium.vector import VectorEnv

from legged_envs.wrappers.from_cmdp import FINAL_NAMES
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import StatefulWrapper
from legged_envs.wrappers.plumbing.layers import name_of

_NO_COST = (
    "{env} reports no info['cost'], so there is no cost to return. The environments of legged_envs report one "
    "(gymnasium.make_vec('Legged/Go2-Flat-v0', num_envs=…)); to another environment add a wrapper below this one that "
    "writes it: CostReduce, if it reports info['costs']"
)


class VectorCMDP(StatefulWrapper):
    """``step`` of a batch returns ``(observation, reward, cost, terminated, truncated, info)``; it goes outermost.

    ``cost`` has shape (num_envs,) and belongs to this transition, also in environments whose episode it ended. In mode
    SAME_STEP the true last observations are ``info["final_observation"]``, marked by ``info["_final_observation"]``:
    Safety-Gymnasium's names of ``final_obs``. The first step of an environment that reports no cost is a
    ValueError, one that is no vector environment a TypeError."""

    outermost = True
    STATE = {"reports_costs": None}  # noqa: RUF012

    def __init__(self, env: Any):
        if not isinstance(env, VectorEnv):
            raise TypeError(
                f"VectorCMDP needs a VectorEnv, got {type(env).__name__}: CMDP takes a plain gymnasium.Env"
            )
        super().__init__(env)
        self._reports_costs = False

    def step(self, actions: Tree) -> tuple[Tree, Array, Array, Array, Array, Info]:  # type: ignore[override]
        observation, reward, terminated, truncated, info = self.env.step(actions)
        cost = info.get("cost")
        if cost is None:
            if not self._reports_costs:
                raise ValueError(_NO_COST.format(env=name_of(self)))
            cost = array_namespace(reward).zeros_like(
                reward
            )  # Gymnasium leaves the key out of a step that only resets
        self._reports_costs = True
        info = {FINAL_NAMES.get(key, key): value for key, value in info.items()}
        return observation, reward, cost, terminated, truncated, info


class CMDP(gym.Wrapper[Any, Any, Any, Any]):
    """``step`` of a plain ``gymnasium.Env`` returns ``(observation, reward, cost, terminated, truncated, info)``;
    ValueError if the environment reports no cost."""

    outermost = True

    def step(self, action: Any) -> tuple[Any, Any, float, bool, bool, Info]:  # type: ignore[override]
        observation, reward, terminated, truncated, info = self.env.step(action)
        if "cost" not in info:
            raise ValueError(_NO_COST.format(env=name_of(self)))
        return observation, reward, float(info["cost"]), terminated, truncated, info
