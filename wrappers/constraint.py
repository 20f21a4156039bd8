"""What the wrappers that train a policy to keep costs below limits share."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs.wrappers.array_kinds import detached
from legged_envs.wrappers.base import StatefulWrapper, autoreset_mode, kept, name_of, reset_mask
from legged_envs.wrappers.cost_reduce import cost_attribute, transition_cost


class ConstraintWrapper(StatefulWrapper, ABC):
    """Measures each cost's mean per step against its limit, and adapts to it every ``interval`` steps.

    What an environment does between the end of its episode and its reset belongs to no episode and enters no mean:
    without autoreset until the reset, with autoreset in the next step on the step that resets. Where an environment
    below reports normalised costs beside ``info["original_costs"]``, the latter count. The new reward has the dtype of
    the environment's, or float32 if that is no real floating one.

    Args:
        env: A vector environment with costs.
        limits: What each cost may be on average per step, K numbers; None takes ``cost_limits`` of
            ``env.unwrapped``, or of the single environments of a ``SyncVectorEnv``.
        interval: Steps over which a mean is taken before it is adapted to.
        warmup: Steps before the first adaptation.

    Raises:
        ValueError: If there are no costs, if the limits are not K finite numbers of at least 0, or if another argument
            is not valid; from ``step``, if the environment reports no costs or another number of them than limits.
    """

    log_name: ClassVar[str]
    """What the adapted numbers are called in ``info["log"]``."""

    def __init__(self, env: VectorEnv, limits: Sequence[float] | None, interval: int, warmup: int):
        super().__init__(env)
        for name, value, least in (("interval", interval, 1), ("warmup", warmup, 0)):
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        self.limits = self._check_limits(limits)
        """What each cost may be on average per step. Shape: (K,), float64."""
        names = tuple(cost_attribute(env, "cost_names") or ())
        counted = tuple(f"cost_{k}" for k in range(len(self.limits)))
        self.cost_names: tuple[str, ...] = names if len(names) == len(self.limits) else counted
        self.interval = interval
        self.warmup = warmup
        self.steps = 0
        """Steps so far."""
        self._mode = autoreset_mode(env)
        self._over: Any = None  # (N,) bool: whose episode is over; None if nobody's is
        self._cost_sums: Any = None  # (K,): of the present interval
        self._count: Any = 0  # transitions of the present interval
        self._xp: Any = None  # namespace and device of the environment's arrays
        self._device: Any = None

    def _check_limits(self, limits: Sequence[float] | None) -> np.ndarray:
        name, own = type(self).__name__, cost_attribute(self.env, "cost_limits")
        if own is not None and len(own) == 0:
            raise ValueError(f"{name} needs an environment with costs, and {name_of(self)} has no cost terms")
        if limits is None and own is None:
            raise ValueError(
                f"{name} needs limits: {name_of(self)} has no cost_limits, so pass limits=, one number for each cost "
                "of its info"
            )
        array = np.asarray(own if limits is None else limits, np.float64)
        if array.ndim != 1 or len(array) == 0 or (own is not None and len(array) != len(own)):
            costs = "" if own is None else f" ({', '.join(cost_attribute(self.env, 'cost_names') or ())})"
            expected = "one number for each cost" if own is None else f"{len(own)} numbers{costs}"
            raise ValueError(f"{name}'s limits must be {expected}, got {limits!r}")
        if not (np.isfinite(array).all() and (array >= 0.0).all()):
            raise ValueError(f"{name}'s limits must be finite and at least 0, got {array.tolist()}")
        return array

    # --- the costs of the transitions that count ---------------------------------------------------------------------

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=kept(options))
        mask = reset_mask(options)
        if mask is None:
            self._over = None
        elif self._over is not None:
            over = self._over & ~mask
            self._over = over if array_namespace(over).any(over) else None
        return observation, self._with_log(info)

    def end_episodes(self, mask: Any) -> None:
        """Count nothing of the rows of ``mask`` until their reset. Shape: (num_envs,), bool."""
        self._over = copy.deepcopy(mask) if self._over is None else self._over | mask

    def _take_step(self, reward: Any, info: dict[str, Any]) -> tuple[Any, Any]:
        """This step's reward (num_envs,) and costs (num_envs, K), both of the same floating dtype.

        The costs are 0 where no episode runs, and added to the interval's sums.
        """
        if self._xp is None:
            self._xp, self._device = array_namespace(reward), device(reward)
            self._start()
        xp = self._xp
        if not xp.isdtype(reward.dtype, "real floating"):
            reward = xp.astype(reward, xp.float32)
        costs = self._read_costs(reward, info)
        if self._over is None:
            self._count = self._count + self.num_envs
        else:
            running = xp.astype(~self._over, costs.dtype)
            costs = costs * running[:, None]
            self._count = self._count + xp.sum(running, dtype=xp.float64)
        self._cost_sums = self._cost_sums + xp.sum(detached(costs), axis=0, dtype=xp.float64)
        return reward, costs

    def _start(self) -> None:
        """Make what depends on the kind of the environment's arrays, unless it was loaded."""
        if self._cost_sums is None:
            self._cost_sums = self._vector(0.0)

    def _read_costs(self, reward: Any, info: dict[str, Any]) -> Any:
        """The costs of every row, also of those that ended. Shape: (num_envs, K).

        A step in which every environment only resets has none, whatever the resets report.
        """
        xp = self._xp
        keys = ("original_costs", "costs", "original_cost", "cost")
        costs = next((found for key in keys if (found := transition_cost(info, key)) is not None), None)
        if costs is not None and costs.ndim != 2:
            costs = costs[:, None]
        shape = (self.num_envs, len(self.limits))
        if costs is None or costs.shape != shape:
            name = type(self).__name__
            if self._over is not None and xp.all(self._over):
                return xp.zeros(shape, dtype=reward.dtype, device=device(reward))
            if costs is None:
                raise ValueError(f"{name} needs costs: info has neither 'costs' nor 'cost', got {[*info]}")
            raise ValueError(
                f"{name} has {len(self.limits)} limits, so costs must have shape {shape}, got {tuple(costs.shape)}"
            )
        return costs if costs.dtype == reward.dtype else xp.astype(costs, reward.dtype)

    # --- adapting ----------------------------------------------------------------------------------------------------

    def _end_of_step(self, ended: Any) -> None:
        """Note whose episode this step has ended, shape (num_envs,), bool, and adapt if an interval is over."""
        if self._mode is AutoresetMode.NEXT_STEP:
            self._over = ended if self._xp.any(ended) else None
        elif self._mode is AutoresetMode.DISABLED and (self._over is not None or self._xp.any(ended)):
            self._over = ended if self._over is None else self._over | ended
        self.steps += 1
        if self.steps % self.interval:
            return
        if (count := int(self._count)) > 0:
            self._end_of_interval(self._excess(self._cost_sums / count), count, self.steps > self.warmup)
        self._cost_sums, self._count = self._vector(0.0), 0

    def _excess(self, means: Any) -> Any:
        """By how much of its limit each cost exceeds it, at most 1: mean / limit − 1. Shape: (K,).

        The bound keeps the first, clumsy steps of a training from winding up what is adapted. With a limit of 0 it is
        the mean itself: never negative.
        """
        return self._xp.clip((means - self._vector(self.limits)) / self._vector(self._scales), max=1.0)

    @property
    def _scales(self) -> np.ndarray:
        """What costs are measured in: their limits, and 1 in place of 0. Shape: (K,)."""
        return np.where(self.limits > 0.0, self.limits, 1.0)

    @abstractmethod
    def _end_of_interval(self, excess: Any, count: int, adapt: bool) -> None:
        """Adapt.

        Args:
            excess: Of each cost. Shape: (K,).
            count: Transitions of the interval.
            adapt: False during the warm-up.
        """

    # --- arrays, log, state ------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def adapted(self) -> Any:
        """The number that is adapted for each cost; None before the first step. Shape: (K,)."""

    def _vector(self, values: Any) -> Any:
        """K numbers of the kind and on the device of the environment's arrays. Shape: (K,), float64."""
        return self._xp.asarray(np.array(np.broadcast_to(values, self.limits.shape), np.float64), device=self._device)

    def _with_log(self, info: dict[str, Any]) -> dict[str, Any]:
        """``info`` with the adapted numbers in its log, if it has one."""
        values = self.adapted
        if "log" not in info or values is None:
            return info
        values = copy.deepcopy(values)
        own = {f"{self.log_name}/{name}": values[k] for k, name in enumerate(self.cost_names)}
        return {**info, "log": {**info["log"], **own}}

    def state_dict(self) -> dict[str, Any]:
        state = {"steps": self.steps, "over": self._over, "cost_sums": self._cost_sums, "count": self._count}
        return copy.deepcopy(state)

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"over": (self.num_envs,), "cost_sums": self.limits.shape}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._check_state(state)
        state = copy.deepcopy(state)
        self.steps, self._over = state["steps"], state["over"]
        self._cost_sums, self._count = state["cost_sums"], state["count"]
        self._xp = None  # a state from before the first step lacks what that step makes

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_xp": None}  # modules cannot be pickled; the next step finds it again
