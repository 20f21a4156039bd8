"""The wrapper that subtracts costs from the reward, at prices that follow their limits."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from legged_envs.wrappers.plumbing.arrays import Array, detached
from legged_envs.wrappers.plumbing.base import Shape
from legged_envs.wrappers.plumbing.constraint import PER_COST, ConstraintWrapper
from legged_envs.wrappers.plumbing.layers import AnyEnv, Step
from legged_envs.wrappers.plumbing.multipliers import PIDMultipliers

UNIT_TAU = 0.95
"""Share of the running mean reward that an interval keeps."""


class LagrangianReward(ConstraintWrapper):
    """Makes the reward r - Σ_k Λ_k c_k, with prices Λ that rise until costs keep their limits d.

    Every ``interval`` steps, with c̄ the mean over its transitions::

        e_k = min(c̄_k / d_k - 1, 1)          the excess; min(c̄_k, 1) where d_k is 0
        λ_k ← max(λ_k + lr · e_k, 0)         dual ascent, past ``warmup`` steps
        Λ_k = λ_k · u / d_k                  λ_k · u where d_k is 0

    Here u is ``unit``, or the running mean of |r|. λ_k is the share of the mean reward that a cost
    at its limit takes, so one ``lr`` serves costs and rewards of any scale. With ``unit=1`` λ is in
    units of the reward.

    ``info`` holds ``original_reward`` (num_envs,) and ``lagrange_multipliers`` (K,), the Λ of this
    step, and ``info["log"]``, where there is one, ``lagrange_multiplier/<cost>``. The wrapper goes
    above or below ``AutoReset`` and ``CostNormalize``; it reads raw costs.

    The reward may fall below 0. A policy that pays more than it earns then gains from an early end
    of the episode: ``warmup`` helps.

    Args:
        env: The environment.
        limits: Limits d_k of the mean costs per step. Shape: (K,). None: ``cost_limits`` of
            ``env``.
        lr: Rate of the dual ascent.
        pid: Gains (k_p, k_i, k_d) of :class:`PIDMultipliers` instead of ``lr``, which is k_i.
        max_multiplier: Upper bound of every λ and I. None: no bound.
        unit: Unit u of the prices. None: the running mean of |r|.
        interval: Number of steps between two adaptations.
        warmup: Number of steps before the first adaptation.

    Raises:
        ValueError: A gain is negative, or ``max_multiplier`` or ``unit`` is not positive.

    Examples:
        >>> import gymnasium as gym, numpy as np, legged_envs
        >>> env = gym.make_vec("Legged/Go2-Flat-v0", num_envs=2)
        >>> env = LagrangianReward(env, lr=1.0, interval=1)
        >>> observation, info = env.reset(seed=0)
        >>> action = np.full((2, 12), 0.5, np.float32)
        >>> for _ in range(3):
        ...     observation, reward, terminated, truncated, info = env.step(action)
        >>> prices = info["lagrange_multipliers"]
        >>> [name for name, price in zip(env.cost_names, prices, strict=True) if price > 0.0]
        ['foot_slip']
        >>> bool(np.allclose(reward, info["original_reward"] - info["costs"] @ prices))
        True
    """

    log_name = "lagrange_multiplier"
    whole_keys = frozenset({"lagrange_multipliers"})
    STATE: ClassVar[dict[str, Shape | None]] = {
        **ConstraintWrapper.STATE,
        "multipliers": PER_COST,
        "unit": None,
        "reward_sum": None,
        "controller": None,
    }
    REQUIRED: ClassVar[frozenset[str]] = frozenset({"cost_sums", "multipliers"})

    def __init__(
        self,
        env: AnyEnv,
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
                "lr must be at least 0, or pid three gains (k_p, k_i, k_d) of at least 0, "
                f"got {given}"
            )
        _check_positive("max_multiplier", max_multiplier)
        _check_positive("unit", unit)
        zeros = np.zeros(self.num_costs)

        self.multipliers: Array = zeros
        """Price Λ of one unit of each cost. Shape: (K,)."""
        proportional, integral, derivative = gains
        self._controller = PIDMultipliers(
            zeros,
            proportional=proportional,
            integral=integral,
            derivative=derivative,
            maximum=max_multiplier,
        )
        self._fixed_unit = unit
        # The unit u, None until an interval has ended.
        self._unit: Any = unit
        # Sum of |r| over the present interval.
        self._reward_sum: Any = 0.0

    @property
    def adapted(self) -> Array:
        return self.multipliers

    def _shape(self, step: Step, costs: Array) -> Step:
        observation, reward, terminated, truncated, info = step
        xp = self._xp
        if self._fixed_unit is None:
            sizes = self._counted(xp.abs(detached(reward)))
            self._reward_sum = self._reward_sum + xp.sum(sizes, dtype=xp.float64)
        # In float64, so that it is the same, rounded to float32, whatever library multiplies.
        exact_costs = xp.astype(costs, xp.float64)
        price = exact_costs @ xp.astype(self.multipliers, xp.float64)
        penalized = reward - xp.astype(price, reward.dtype)
        return observation, penalized, terminated, truncated, info

    def _end_of_interval(self, excess: Array, count: int, adapt: bool) -> None:
        if self._fixed_unit is None:
            mean = self._reward_sum / count
            if self._unit is None:
                self._unit = mean
            else:
                self._unit = UNIT_TAU * self._unit + (1.0 - UNIT_TAU) * mean
            self._reward_sum = 0.0
        # In the warm-up too, so that the derivative part knows the last excess.
        self._controller.update(excess, follow=adapt)
        scales = np.where(self.limits > 0.0, self.limits, 1.0)
        self.multipliers = self._controller.values * self._unit / self._like_costs(scales)


def _check_positive(name: str, value: float | None) -> None:
    if value is not None and not value > 0.0:
        raise ValueError(f"{name} must be positive or None, got {value!r}")
