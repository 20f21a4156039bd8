"""What the wrappers that train a policy to keep costs below limits share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.vector import AutoresetMode

from legged_envs.wrappers.arrays import Array, Info, NumPyArray, Tree, any_row, as_kind_of, copied, detached
from legged_envs.wrappers.base import Episodes, Shape, StatefulWrapper, whole_number
from legged_envs.wrappers.layers import Env, autoreset_mode, cost_attribute, name_of
from legged_envs.wrappers.multipliers import relative_excess

RAW_COSTS = ("original_costs", "costs", "original_cost", "cost")
"""Keys of ``info`` for costs in the unit of their limits; the first one that is there counts."""


class ConstraintWrapper(StatefulWrapper):
    """Measures each cost's mean per step against its limit, and adapts to it every ``interval`` steps.

    What an environment does between the end of its episode and its reset belongs to no episode and enters no mean:
    without autoreset until the reset, with autoreset in the next step on the step that resets. Where an environment
    below reports normalised costs beside ``info["original_costs"]``, the latter count. The reward that leaves the
    wrapper has the dtype of the environment's, or float32 if that is no real floating one.

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

    STATE: ClassVar[dict[str, Shape | None]] = {
        "over": ("num_envs",),
        "steps": None,
        "cost_sums": ("num_costs",),
        "count": None,
    }

    def __init__(self, env: Env, limits: Sequence[float] | None, interval: int, warmup: int):
        super().__init__(env)
        names = tuple(cost_attribute(self, "cost_names") or ())
        self.limits = self._check_limits(limits, names)
        """What each cost may be on average per step. Shape: (K,), float64."""
        self.num_costs = len(self.limits)
        """K."""
        counted = tuple(f"cost_{k}" for k in range(self.num_costs))
        self.cost_names: tuple[str, ...] = names if len(names) == self.num_costs else counted
        self.interval = whole_number("interval", interval)
        self.warmup = whole_number("warmup", warmup, least=0)
        self.steps = 0
        """Steps so far."""
        self._over = Episodes(autoreset_mode(self))
        self._cost_sums: Any = np.zeros(self.num_costs)  # of the present interval
        self._count: Any = 0.0  # transitions of the present interval
        self._xp: Any = None  # namespace of the environment's arrays

    def _check_limits(self, limits: Sequence[float] | None, names: tuple[str, ...]) -> NumPyArray:
        name, own = type(self).__name__, cost_attribute(self, "cost_limits")
        if own is not None and len(own) == 0:
            raise ValueError(f"{name} needs an environment with costs, and {name_of(self)} has no cost terms")
        if limits is None and own is None:
            how = "pass limits=, one number for each cost of its info"
            raise ValueError(f"{name} needs limits, and {name_of(self)} has no cost_limits: {how}")
        array = np.asarray(own if limits is None else limits, np.float64)
        if array.ndim != 1 or len(array) == 0 or (own is not None and len(array) != len(own)):
            expected = "one number for each cost" if own is None else f"{len(own)} numbers ({', '.join(names)})"
            raise ValueError(f"{name}'s limits must be {expected}, got {limits!r}")
        if not (np.isfinite(array).all() and (array >= 0.0).all()):
            raise ValueError(f"{name}'s limits must be finite and at least 0, got {array.tolist()}")
        return array

    # --- the costs of the transitions that count ---------------------------------------------------------------------

    def _begin(self, observation: Tree, info: Info, begun: Array, *, partial: bool) -> tuple[Tree, Info]:
        self._over.begin(begun)
        return observation, self._with_log(info)

    def end_episodes(self, mask: Array) -> None:
        """Count nothing of the rows of ``mask`` until their reset. Shape: (num_envs,), bool."""
        self._over.end(mask)

    def _take_step(self, reward: Any, info: Info) -> tuple[Any, Any]:
        """This step's reward (num_envs,) and costs (num_envs, K), both of the same floating dtype.

        The costs are 0 where no episode runs, and added to the interval's sums.
        """
        if self._xp is None:
            self._start(reward)
        xp = self._xp
        if not xp.isdtype(reward.dtype, "real floating"):
            reward = xp.astype(reward, xp.float32)
        costs = self._read_costs(reward, info)
        if self._over.some_over:
            running = xp.astype(self._over.running(reward), costs.dtype)
            costs = costs * running[:, None]
            self._count = self._count + xp.sum(running, dtype=xp.float64)
        else:
            self._count = self._count + self.num_envs
        self._cost_sums = self._cost_sums + xp.sum(detached(costs), axis=0, dtype=xp.float64)
        return reward, costs

    def _start(self, example: Array) -> None:
        """Turn the sums, of NumPy or loaded, into arrays of the kind and on the device of the environment's."""
        self._xp = array_namespace(example)
        for name in (self._attribute(key) for key, shape in self.STATE.items() if shape != ("num_envs",)):
            value = getattr(self, name)
            if hasattr(value, "dtype"):
                setattr(self, name, as_kind_of(value, example))

    def _read_costs(self, reward: Any, info: Info) -> Any:
        """The costs of every row, also of those that ended. Shape: (num_envs, K).

        A step in which every environment only resets has none, whatever the resets report.
        """
        name, shape = type(self).__name__, (self.num_envs, self.num_costs)
        costs = next((info[key] for key in RAW_COSTS if info.get(key) is not None), None)
        if costs is not None and costs.ndim != 2:
            costs = costs[:, None]
        if costs is None or costs.shape != shape:
            if self._over.some_over and self._xp.all(self._over.over(reward)):
                return self._xp.zeros(shape, dtype=reward.dtype, device=device(reward))
            if costs is None:
                raise ValueError(f"{name} needs costs: info has neither 'costs' nor 'cost', got {[*info]}")
            raise ValueError(
                f"{name} has {shape[1]} limits, so costs must have shape {shape}, got {tuple(costs.shape)}"
            )
        return costs if costs.dtype == reward.dtype else self._xp.astype(costs, reward.dtype)

    # --- adapting ----------------------------------------------------------------------------------------------------

    def _end_of_step(self, ended: Array) -> None:
        """Note whose episode this step has ended, shape (num_envs,), bool, and adapt if an interval is over."""
        if self._over.mode is not AutoresetMode.SAME_STEP:
            self._over.step(ended, any_row(ended))
        self.steps += 1
        if self.steps % self.interval:
            return
        if (count := int(self._count)) > 0:
            excess = relative_excess(self._cost_sums / count, self._vector(self.limits))
            self._end_of_interval(excess, count, self.steps > self.warmup)
        self._cost_sums, self._count = self._vector(np.zeros(self.num_costs)), 0.0

    @abstractmethod
    def _end_of_interval(self, excess: Any, count: int, adapt: bool) -> None:
        """Adapt.

        Args:
            excess: Of each cost over its limit, as :func:`~legged_envs.wrappers.multipliers.relative_excess` measures
                it. Shape: (K,).
            count: Transitions of the interval.
            adapt: False during the warm-up.
        """

    @property
    @abstractmethod
    def adapted(self) -> Any:
        """The number that is adapted for each cost. Shape: (K,)."""

    def _vector(self, values: NumPyArray) -> Any:
        """K numbers as an array of the kind and on the device of the environment's. Shape: (K,), float64."""
        return as_kind_of(values, self._cost_sums)

    def _with_log(self, info: Info) -> Info:
        """``info`` with the adapted numbers in its log, if it has one."""
        if "log" not in info or self.steps == 0:
            return info
        values = copied(self.adapted)
        own = {f"{self.log_name}/{name}": values[k] for k, name in enumerate(self.cost_names)}
        return {**info, "log": {**info["log"], **own}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._xp = None  # the next step makes the arrays those of the environment

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_xp": None}  # modules cannot be pickled; the next step finds it again
