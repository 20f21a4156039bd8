"""Subtract costs from the reward, at prices that rise until the costs keep their limits."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from gymnasium.vector import VectorEnv

from legged_envs.wrappers.array_kinds import detached
from legged_envs.wrappers.constraint import ConstraintWrapper

UNIT_TAU = 0.95
"""How much of the running mean reward an interval keeps."""


class LagrangianReward(ConstraintWrapper):
    """The reward becomes ``r − Σ_k Λ_k c_k``; the multipliers Λ follow the costs' excess over their limits d.

    Every ``interval`` steps, with c̄ the mean over its transitions::

        e_k = min(c̄_k / d_k − 1, 1)          the excess
        λ_k ← max(λ_k + lr · e_k, 0)         dual ascent
        Λ_k = λ_k · u / d_k                  u: running mean of |r|

    So λ_k is the share of the mean reward that a cost at its limit takes, and one ``lr`` serves costs and rewards of
    any scale. Where d_k is 0, e_k is min(c̄_k, 1) and Λ_k is λ_k · u. ``pid`` puts a controller in the place of dual
    ascent, which is its integral part (Stooke et al. 2020, "Responsive safety in reinforcement learning by PID
    Lagrangian methods", algorithm 2)::

        I_k ← max(I_k + k_i · e_k, 0),   λ_k = max(k_p · e_k + I_k + k_d · (e_k − e_k')⁺, 0),   e' of the last interval

    ``info`` holds on every step ``original_reward`` (num_envs,) and ``lagrange_multipliers`` (K,), the Λ of this step;
    ``info["log"]``, where there is one, ``lagrange_multiplier/<cost>``.

    It goes above or below :class:`AutoReset` and :class:`CostNormalize`, whose raw costs it reads. The sum is not
    floored at 0, also where the environment floors its own reward: a policy that pays more than it earns would gain
    from ending the episode, so let it first learn to earn (``warmup``).

    Args:
        env: A vector environment with costs.
        limits: What each cost may be on average per step; None takes the environment's ``cost_limits``. Shape: (K,).
        lr: Step of the dual ascent, per interval.
        pid: (k_p, k_i, k_d) in place of ``lr``.
        max_multiplier: Bound of every λ and I.
        unit: A fixed u in place of the running mean of |r|; with 1, λ is in units of the reward.
        interval: Steps over which means are taken.
        warmup: Steps before the multipliers first change.

    Raises:
        ValueError: If the environment has no costs, the limits are not one for each, or an argument is not valid.
    """

    log_name = "lagrange_multiplier"

    def __init__(
        self,
        env: VectorEnv,
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
            raise ValueError(f"lr must be at least 0, or pid three gains (k_p, k_i, k_d) of at least 0, got {given}")
        for name, value in (("max_multiplier", max_multiplier), ("unit", unit)):
            if value is not None and not value > 0.0:
                raise ValueError(f"{name} must be positive or None, got {value!r}")
        self.gains = gains
        """(k_p, k_i, k_d)."""
        self.max_multiplier = max_multiplier
        self.multipliers: Any = None
        """Λ: what a unit of each cost costs. Shape: (K,)."""
        self._fixed_unit = unit
        self._unit: Any = unit  # u; None until an interval has ended
        self._reward_sum: Any = 0.0  # of |r|, in the present interval
        self._lambda: Any = None  # (K,)
        self._integral: Any = None  # (K,)
        self._last_excess: Any = None  # (K,)

    @property
    def adapted(self) -> Any:
        return self.multipliers

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        floating, costs = self._take_step(reward, info)
        if self._fixed_unit is None:
            self._take_reward(floating)
        xp = self._xp
        penalised = floating - costs @ xp.astype(self.multipliers, floating.dtype)
        multipliers = xp.asarray(self.multipliers, copy=True)
        info = self._with_log({**info, "original_reward": reward, "lagrange_multipliers": multipliers})
        self._end_of_step(terminated | truncated)
        return observation, penalised, terminated, truncated, info

    def _start(self) -> None:
        super()._start()
        if self.multipliers is None:
            self.multipliers, self._lambda = self._vector(0.0), self._vector(0.0)
            self._integral, self._last_excess = self._vector(0.0), self._vector(0.0)

    def _take_reward(self, reward: Any) -> None:
        size = self._xp.abs(detached(reward))
        if self._over is not None:
            size = size * self._xp.astype(~self._over, size.dtype)
        self._reward_sum = self._reward_sum + self._xp.sum(size, dtype=self._xp.float64)

    def _end_of_interval(self, excess: Any, count: int, adapt: bool) -> None:
        if self._fixed_unit is None:
            mean = self._reward_sum / count
            self._unit = mean if self._unit is None else UNIT_TAU * self._unit + (1.0 - UNIT_TAU) * mean
            self._reward_sum = 0.0
        if adapt:
            k_p, k_i, k_d = self.gains
            rise = self._xp.clip(excess - self._last_excess, min=0.0)
            self._integral = self._bounded(self._integral + k_i * excess)
            self._lambda = self._bounded(k_p * excess + self._integral + k_d * rise)
        self._last_excess = excess
        self.multipliers = self._lambda * self._unit / self._vector(self._scales)

    def _bounded(self, value: Any) -> Any:
        return self._xp.clip(value, min=0.0, max=self.max_multiplier)

    def state_dict(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self._STATE}
        return {**super().state_dict(), **copy.deepcopy(own)}

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        shapes = dict.fromkeys(("multipliers", "_lambda", "_integral", "_last_excess"), self.limits.shape)
        return {**super()._state_shapes(), **shapes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        for name in self._STATE:
            setattr(self, name, copy.deepcopy(state[name]))

    _STATE = ("multipliers", "_unit", "_reward_sum", "_lambda", "_integral", "_last_excess")
