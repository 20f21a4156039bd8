"""Many cost terms become one cost."""

from typing import Any, cast

import numpy as np
from array_api_compat import array_namespace

from legged_envs.checks import check_choice
from legged_envs.wrappers.plumbing.arrays import Array, NumPyArray, Tree, as_kind_of
from legged_envs.wrappers.plumbing.base import StatefulWrapper
from legged_envs.wrappers.plumbing.layers import Step, cost_attribute, name_of


class CostReduce(StatefulWrapper):
    """Makes ``info["cost"]`` (num_envs,) of the terms c_k in ``info["costs"]`` (num_envs, K).

    ``how`` is ``sum``: Σ c_k; ``weighted``: Σ c_k / limit_k, by positive ``cost_limits`` of ``env.unwrapped`` or of the
    single environments of a ``SyncVectorEnv``; ``max``: max c_k; or ``any``: 1 if any c_k > 0, else 0. Above
    :class:`CostNormalize`, ``weighted`` and ``any`` take the raw ``info["original_costs"]``, which limits are of,
    ``sum`` and ``max`` the normalised ones; ``CostNormalize(CostReduce(env, "weighted"))`` normalises the weighted
    cost. Another ``how``, no costs and limits that do not fit are a ValueError.

    >>> import gymnasium as gym, legged_envs, numpy as np
    >>> env = gym.make_vec("Legged/Go2-Flat-v0", num_envs=2)
    >>> _ = env.reset(seed=0)
    >>> info = env.step(np.ones((2, 12), np.float32))[4]
    >>> info["costs"].shape, bool(np.allclose(info["cost"], info["costs"].sum(1)))
    ((2, 6), True)
    >>> info = CostReduce(env, "max").step(np.ones((2, 12), np.float32))[4]
    >>> bool((info["cost"] == info["costs"].max(1)).all())
    True
    """

    STATE = {"seen": None}  # noqa: RUF012

    def __init__(self, env: Any, how: str):
        super().__init__(env)
        check_choice("how", how, ("sum", "weighted", "max", "any"))
        self.how = how
        self._key = "original_costs" if how in ("weighted", "any") else "costs"
        names = cost_attribute(self.env, "cost_names")
        if names is not None and len(names) == 0:
            raise ValueError(
                f"CostReduce needs an environment with costs, {name_of(self)} has no cost terms"
            )
        self._limits: Any = _check_limits(self.env, names) if how == "weighted" else None
        self._weights: Any = None  # 1 / limits, of the kind of the costs once these are known
        self._seen = False

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        costs = info.get(self._key, info.get("costs"))
        if costs is None and not self._seen:
            needed = 'an environment whose steps report info["costs"] (num_envs, K)'
            raise ValueError(f"CostReduce needs {needed}; this one reports {sorted(info)}")
        self._seen = True
        # No costs in a step in which every environment of a SyncVectorEnv only resets.
        cost = array_namespace(reward).zeros_like(reward) if costs is None else self._reduce(costs)
        info = {**info, "cost": cost}
        if "costs" in info.get("final_info", ()):
            info["final_info"] = {**info["final_info"], "cost": cost}
        return observation, reward, terminated, truncated, info

    def _reduce(self, costs: Array) -> Array:
        xp = array_namespace(costs)
        if self.how == "any":
            return cast(Array, xp.astype(xp.any(costs > 0, axis=1), costs.dtype))
        if self.how == "weighted":
            if self._weights is None or type(self._weights) is not type(costs):
                self._weights = self._weights_for(costs)
            costs = xp.astype(costs, self._weights.dtype, copy=False) * self._weights
        return cast(Array, (xp.max if self.how == "max" else xp.sum)(costs, axis=1))

    def _weights_for(self, costs: Array) -> Array:
        xp, limits = array_namespace(costs), self._limits
        if costs.shape[1] != len(limits):
            raise ValueError(
                f"the environment reports {costs.shape[1]} costs and has {len(limits)} cost_limits"
            )
        floating = costs.dtype if xp.isdtype(costs.dtype, "real floating") else xp.float32
        return cast(Array, xp.astype(as_kind_of(1.0 / limits, costs), floating))


def _check_limits(env: Any, names: Any) -> NumPyArray:
    limits = cost_attribute(env, "cost_limits")
    if limits is None:
        raise ValueError(
            f"CostReduce(env, 'weighted') needs cost_limits, which {name_of(env)} does not have"
        )
    if names is not None and len(limits) != len(names):
        raise ValueError(
            f"the environment has {len(names)} cost_names and {len(limits)} cost_limits"
        )
    for i, limit in enumerate(limits):
        if not limit > 0.0:
            name = i if names is None else repr(names[i])
            wrong = f"divides by the limits, and that of cost {name} is {limit}"
            how = "it must be positive. Reduce by 'sum', 'max' or 'any', or give the term a positive limit"
            raise ValueError(f"CostReduce(env, 'weighted') {wrong}: {how}")
    return np.asarray(limits, np.float64)
