"""Subtract costs from the reward, at prices that rise until the costs keep their limits."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged_envs.wrappers.plumbing.arrays import detached
from legged_envs.wrappers.plumbing.constraint import PER_COST, ConstraintWrapper
from legged_envs.wrappers.plumbing.layers import Env, Step
from legged_envs.wrappers.plumbing.multipliers import PIDMultipliers

UNIT_TAU = 0.95  # how much of the running mean reward an interval keeps


class LagrangianReward(ConstraintWrapper):
    """The reward becomes ``r − Σ_k Λ_k c_k``; the multipliers Λ follow the costs' excess over their limits d.

    Every ``interval`` steps, with c̄ the mean over its transitions::

        e_k = min(c̄_k / d_k − 1, 1)          the excess; min(c̄_k, 1) where d_k is 0
        λ_k ← max(λ_k + lr · e_k, 0)         dual ascent, past ``warmup`` steps
        Λ_k = λ_k · u / d_k                  u: ``unit`` or the running mean of |r|; λ_k · u where d_k is 0

    So λ_k is the share of the mean reward that a cost at its limit takes, and one ``lr`` serves costs and rewards of
    any scale; with ``unit=1`` λ is in units of the reward. ``pid`` are (k_p, k_i, k_d) of :class:`PIDMultipliers` in
    place of ``lr``, which is k_i; ``max_multiplier`` bounds every λ and I. ``limits`` are d, (K,), by default the
    environment's ``cost_limits``. ``info`` holds ``original_reward`` (num_envs,) and ``lagrange_multipliers`` (K,), the
    Λ of this step; ``info["log"]``, where there is one, ``lagrange_multiplier/<cost>``. It goes above or below
    :class:`AutoReset` and :class:`CostNormalize`, whose raw costs it reads. The reward may fall below 0, and a policy
    that pays more than it earns gains from an early end: ``warmup`` helps. Negative gains, and bounds or a ``unit``
    that are not positive, are a ValueError.

    >>> import gymnasium as gym, numpy as np, legged_envs
    >>> env = LagrangianReward(gym.make_vec("Legged/Go2-Flat-v0", num_envs=2), lr=1.0, interval=1)
    >>> observation, info = env.reset(seed=0)
    >>> for _ in range(3):
    ...     observation, reward, terminated, truncated, info = env.step(np.full((2, 12), 0.5, np.float32))
    >>> [name for name, price in zip(env.cost_names, info["lagrange_multipliers"], strict=True) if price > 0.0]
    ['foot_slip']
    >>> bool(np.allclose(reward, info["original_reward"] - info["costs"] @ info["lagrange_multipliers"]))
    True
    """

    log_name = "lagrange_multiplier"
    adapts = "multipliers"
    whole_keys = frozenset({"lagrange_multipliers"})
    STATE = ConstraintWrapper.STATE | {
        "multipliers": PER_COST,
        "unit": None,
        "reward_sum": None,
        "controller": None,
    }

    def __init__(
        self,
        env: Env,
        limits: Sequence[float] | None = None,
        lr: float = 0.002,
        *,
        pid: tuple[float, float, float] | None = None,
        max_multiplier: float | None = None,
        unit: float | None = None,
        interval: int = 24,
        warmup: int = 0,
    ):
        super().__init__(env, limits, interval, warmup)
        gains = (0.0, lr, 0.0) if pid is None else tuple(pid)
        if len(gains) != 3 or not all(gain >= 0.0 for gain in gains):
            given = f"lr={lr!r}" if pid is None else f"pid={pid!r}"
            raise ValueError(
                f"lr must be at least 0, or pid three gains (k_p, k_i, k_d) of at least 0, got {given}"
            )
        for name, value in (("max_multiplier", max_multiplier), ("unit", unit)):
            if value is not None and not value > 0.0:
                raise ValueError(f"{name} must be positive or None, got {value!r}")
        zeros = np.zeros(self.num_costs)
        self.multipliers: Any = zeros  # Λ: what a unit of each cost costs, (K,)
        k_p, k_i, k_d = gains
        self._controller = PIDMultipliers(
            zeros, proportional=k_p, integral=k_i, derivative=k_d, maximum=max_multiplier
        )
        self._fixed_unit = unit
        self._unit: Any = unit  # u; None until an interval has ended
        self._reward_sum: Any = 0.0  # of |r|, in the present interval

    def _shape(self, step: Step, costs: Any) -> Step:
        observation, reward, terminated, truncated, info = step
        if self._fixed_unit is None:
            sizes = self._counted(self._xp.abs(detached(reward)))
            self._reward_sum = self._reward_sum + self._xp.sum(sizes, dtype=self._xp.float64)
        # In float64, so that rounded to float32 it is the same whatever library multiplies.
        price = self._xp.astype(costs, self._xp.float64) @ self._xp.astype(
            self.multipliers, self._xp.float64
        )
        penalised = reward - self._xp.astype(price, reward.dtype)
        return observation, penalised, terminated, truncated, info

    def _end_of_interval(self, excess: Any, count: int, adapt: bool) -> None:
        if self._fixed_unit is None:
            mean = self._reward_sum / count
            self._unit = (
                mean if self._unit is None else UNIT_TAU * self._unit + (1.0 - UNIT_TAU) * mean
            )
            self._reward_sum = 0.0
        self._controller.update(excess, follow=adapt)
        scales = np.where(self.limits > 0.0, self.limits, 1.0)
        self.multipliers = self._controller.values * self._unit / self._vector(scales)
