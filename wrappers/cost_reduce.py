"""Many cost terms become one cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from gymnasium.vector import SyncVectorEnv, VectorEnv

from legged_envs.wrappers.array_kinds import as_kind_of
from legged_envs.wrappers.base import StatefulWrapper, name_of
from legged_envs.wrappers.rows import blank_rows, choose_rows

HOW = ("sum", "weighted", "max", "any")
"""Ways to reduce the terms c_k to one cost."""


def transition_cost(info: dict[str, Any], key: str) -> Any:
    """``info["cost"]`` or ``info["costs"]`` of a step's transition, or None without such costs.

    Gymnasium's ``SyncVectorEnv`` and ``AsyncVectorEnv`` in the mode SAME_STEP report the costs of steps that end
    episodes in ``final_info`` alone, with a mask of these rows.
    """
    costs, final_info = info.get(key), info.get("final_info")
    if not isinstance(final_info, dict) or f"_{key}" not in final_info:
        return costs
    rows, final_costs = final_info[f"_{key}"], final_info[key]
    return blank_rows(~rows, final_costs) if costs is None else choose_rows(rows, final_costs, costs)


def transition_costs(info: dict[str, Any]) -> tuple[Any, Any]:
    """``info["cost"]`` and ``info["costs"]`` of a step's transition, each as :func:`transition_cost` finds it."""
    if "final_info" not in info:
        return info.get("cost"), info.get("costs")
    return transition_cost(info, "cost"), transition_cost(info, "costs")


def reported_costs(info: dict[str, Any]) -> dict[str, Any]:
    """Those of ``"cost"`` and ``"costs"`` that a step's transition has, as :func:`transition_cost` finds them."""
    pairs = zip(("cost", "costs"), transition_costs(info), strict=True)
    return {key: value for key, value in pairs if value is not None}


def cost_attribute(env: VectorEnv, name: str) -> Any:
    """``cost_names`` or ``cost_limits`` of an environment, or None.

    Of a ``SyncVectorEnv`` they are those of its first environment.
    """
    core = env.unwrapped
    if isinstance(core, SyncVectorEnv):
        single = core.envs[0]
        return single.get_wrapper_attr(name) if single.has_wrapper_attr(name) else None
    return getattr(core, name, None)


class CostReduce(StatefulWrapper):
    """Makes ``info["cost"]`` (num_envs,) of the terms c_k in ``info["costs"]`` (num_envs, K).

    ``sum``: Σ c_k. ``weighted``: Σ c_k / limit_k, so that each term counts in units of what it may be on average.
    ``max``: max c_k. ``any``: 1 if any c_k > 0, else 0.

    Above :class:`CostNormalize`, ``weighted`` and ``any`` take the raw ``info["original_costs"]``, which limits are of,
    ``sum`` and ``max`` the normalised ones. To normalise what ``weighted`` gives, the order is
    ``CostNormalize(CostReduce(env, "weighted"))``.

    Args:
        env: A vector environment with costs; for ``weighted`` its ``unwrapped``, or the single environments of a
            ``SyncVectorEnv``, have ``cost_limits``.
        how: One of the four.

    Raises:
        ValueError: If ``how`` is another, the environment has no costs (if it only reports them while it runs: at the
            first step), or has limits by which ``weighted`` cannot divide.
    """

    def __init__(self, env: VectorEnv, how: str):
        super().__init__(env)
        if how not in HOW:
            raise ValueError(f"how must be one of {HOW}, got {how!r}")
        self.how = how
        self._keys = ("original_costs", "costs") if how in ("weighted", "any") else ("costs",)
        names = cost_attribute(env, "cost_names")
        if names is not None and len(names) == 0:
            raise ValueError(f"CostReduce needs an environment with costs, {name_of(self)} has no cost terms")
        self._limits = _check_limits(env, names) if how == "weighted" else None
        self._weights: Any = None  # 1 / limits, of the kind of the costs once these are known
        self._seen = False

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        costs = next((found for key in self._keys if (found := transition_cost(info, key)) is not None), None)
        if costs is None and not self._seen:
            raise ValueError(
                'CostReduce needs an environment whose steps report info["costs"] (num_envs, K); this one reports '
                f"{sorted(info)}"
            )
        self._seen = True
        # No costs in a step in which every environment of a SyncVectorEnv only resets.
        cost = array_namespace(reward).zeros_like(reward) if costs is None else self._reduce(costs)
        info = {**info, "cost": cost}
        final_info = info.get("final_info")
        if isinstance(final_info, dict) and "costs" in final_info:
            final_costs = next(final_info[key] for key in self._keys if key in final_info)
            info["final_info"] = {**final_info, "cost": self._reduce(final_costs)}
        return observation, reward, terminated, truncated, info

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self._seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._seen = state["seen"]

    def _reduce(self, costs: Any) -> Any:
        xp = array_namespace(costs)
        if self.how == "sum":
            return xp.sum(costs, axis=1)
        if self.how == "max":
            return xp.max(costs, axis=1)
        if self.how == "any":
            return xp.astype(xp.any(costs > 0, axis=1), costs.dtype)
        if self._weights is None:
            self._weights = self._weights_for(costs)
        if costs.dtype != self._weights.dtype:
            costs = xp.astype(costs, self._weights.dtype)
        return xp.sum(costs * self._weights, axis=1)

    def _weights_for(self, costs: Any) -> Any:
        assert self._limits is not None
        if costs.shape[1] != len(self._limits):
            raise ValueError(f"the environment reports {costs.shape[1]} costs and has {len(self._limits)} cost_limits")
        xp = array_namespace(costs)
        floating = costs.dtype if xp.isdtype(costs.dtype, "real floating") else xp.float32
        return xp.astype(as_kind_of(1.0 / self._limits, costs), floating)


def _check_limits(env: VectorEnv, names: Any) -> np.ndarray:
    limits = cost_attribute(env, "cost_limits")
    if limits is None:
        raise ValueError(f"CostReduce(env, 'weighted') needs cost_limits, which {name_of(env)} does not have")
    if names is not None and len(limits) != len(names):
        raise ValueError(f"the environment has {len(names)} cost_names and {len(limits)} cost_limits")
    for i, limit in enumerate(limits):
        if not limit > 0.0:
            name = i if names is None else repr(names[i])
            raise ValueError(
                f"CostReduce(env, 'weighted') divides by the limits, and that of cost {name} is {limit}: it must be "
                "positive. Reduce by 'sum', 'max' or 'any', or give the term a positive limit"
            )
    return np.asarray(limits, np.float64)
