"""The wrapper that reduces many cost terms to one cost."""

from collections.abc import Sequence

import numpy as np
from array_api_compat import array_namespace

from legged_envs.checks import check_choice
from legged_envs.wrappers.plumbing.arrays import Array, NumPyArray, Tree, as_kind_of
from legged_envs.wrappers.plumbing.base import StatefulWrapper
from legged_envs.wrappers.plumbing.layers import AnyEnv, Env, Step, cost_attribute, name_of


class CostReduce(StatefulWrapper):
    """Makes ``info["cost"]`` (num_envs,) of the cost terms in ``info["costs"]`` (num_envs, K).

    With c_k the terms, ``how`` is one of:

    - ``"sum"``: Σ c_k
    - ``"weighted"``: Σ c_k / limit_k, by the positive ``cost_limits`` of ``env.unwrapped``, or of
      the environments of a ``SyncVectorEnv``
    - ``"max"``: max c_k
    - ``"any"``: 1 if any c_k > 0, otherwise 0

    Above ``CostNormalize``, ``"weighted"`` and ``"any"`` read the raw ``info["original_costs"]``,
    because limits apply to raw costs. ``"sum"`` and ``"max"`` read the normalized costs.
    ``CostNormalize(CostReduce(env, "weighted"))`` normalizes the weighted cost.

    Args:
        env: The environment.
        how: The reduction.

    Raises:
        ValueError: ``how`` is something else, the environment reports no costs, or its limits do
            not fit.

    Examples:
        >>> import gymnasium as gym, legged_envs, numpy as np
        >>> action = np.ones((2, 12), np.float32)
        >>> env = gym.make_vec("Legged/Go2-Flat-v0", num_envs=2)
        >>> _ = env.reset(seed=0)
        >>> info = env.step(action)[4]
        >>> info["costs"].shape, bool(np.allclose(info["cost"], info["costs"].sum(1)))
        ((2, 6), True)
        >>> info = CostReduce(env, "max").step(action)[4]
        >>> bool((info["cost"] == info["costs"].max(1)).all())
        True
    """

    STATE = {"seen": None}  # noqa: RUF012

    def __init__(self, env: AnyEnv, how: str):
        super().__init__(env)
        check_choice("how", how, ("sum", "weighted", "max", "any"))
        self.how = how
        """Reduction of the cost terms to one cost: "sum", "weighted", "max" or "any"."""
        # Limits, and the zero of "any", apply to raw costs.
        self._key = "original_costs" if how in ("weighted", "any") else "costs"
        names = cost_attribute(self.env, "cost_names")
        if names is not None and len(names) == 0:
            raise ValueError(
                f"CostReduce needs an environment with costs, {name_of(self)} has no cost terms"
            )
        self._limits: NumPyArray | None = None
        if how == "weighted":
            self._limits = _positive_limits(self.env, names)
        # 1 / limits, in the kind of the costs once these are known.
        self._weights: Array | None = None
        # True once a step has reported costs.
        self._seen = False

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        costs = info.get(self._key, info.get("costs"))
        if costs is None and not self._seen:
            raise ValueError(
                'CostReduce needs an environment that reports info["costs"] of shape '
                "(num_envs, K) in each step. "
                f"This one reports {sorted(info)}."
            )
        self._seen = True
        # Without costs, it is a step in which every environment of a SyncVectorEnv only resets.
        cost = self._no_cost(reward) if costs is None else self._reduce(costs)
        info = {**info, "cost": cost}
        if "costs" in info.get("final_info", ()):
            info["final_info"] = {**info["final_info"], "cost": cost}
        return observation, reward, terminated, truncated, info

    def _no_cost(self, reward: Array) -> Array:
        zeros: Array = array_namespace(reward).zeros_like(reward)
        return zeros

    def _reduce(self, costs: Array) -> Array:
        xp = array_namespace(costs)
        cost: Array
        if self.how == "any":
            cost = xp.astype(xp.any(costs > 0, axis=1), costs.dtype)
        elif self.how == "max":
            cost = xp.max(costs, axis=1)
        elif self._limits is None:
            cost = xp.sum(costs, axis=1)
        else:
            weights = self._weights_for(costs, self._limits)
            cost = xp.sum(xp.astype(costs, weights.dtype, copy=False) * weights, axis=1)
        return cost

    def _weights_for(self, costs: Array, limits: NumPyArray) -> Array:
        if self._weights is not None and type(self._weights) is type(costs):
            return self._weights
        if costs.shape[1] != len(limits):
            raise ValueError(
                f"the environment reports {costs.shape[1]} costs and has {len(limits)} cost_limits"
            )
        xp = array_namespace(costs)
        is_floating = xp.isdtype(costs.dtype, "real floating")
        # Weights of integer costs would be rounded to integers.
        dtype = costs.dtype if is_floating else xp.float32
        weights: Array = xp.astype(as_kind_of(1.0 / limits, costs), dtype)
        self._weights = weights
        return weights


def _positive_limits(env: Env, names: Sequence[str] | None) -> NumPyArray:
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
        # Written with "not", so that NaN is refused too.
        if not limit > 0.0:
            name = i if names is None else repr(names[i])
            raise ValueError(
                f"CostReduce(env, 'weighted') divides by the limits, "
                f"and the limit of cost {name} is {limit}: it must be positive. "
                "Reduce by 'sum', 'max' or 'any', or give the term a positive limit."
            )
    return np.asarray(limits, np.float64)
