"""The base class of the wrappers that make a policy keep its costs below limits."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.vector import AutoresetMode

from legged_envs.checks import whole_number
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, NumPyArray, Tree
from legged_envs.wrappers.plumbing.base import Shape, StatefulWrapper
from legged_envs.wrappers.plumbing.episodes import Episodes
from legged_envs.wrappers.plumbing.layers import (
    AnyEnv,
    State,
    Step,
    autoreset_mode,
    cost_attribute,
    has_info_rows,
    name_of,
)
from legged_envs.wrappers.plumbing.multipliers import relative_excess

RAW_COST_KEYS = ("original_costs", "costs", "original_cost", "cost")
"""Keys of costs in ``info``. The first existing one has the unit of the limits."""
PER_ENV = ("num_envs",)
"""Shape of an array with a number for each environment."""
PER_COST = ("num_costs",)
"""Shape of an array with a number for each cost."""


class ConstraintWrapper(StatefulWrapper, ABC):
    """A wrapper that adapts numbers, one for each cost, to keep mean costs below limits.

    The wrapper measures the mean of each cost per step, and adapts every ``interval`` steps. Steps
    of an environment between the end of its episode and its reset enter no mean. Where costs are
    normalized, the wrapper reads ``info["original_costs"]``.

    The returned reward has the dtype of the environment's reward, or float32 if this dtype is not a
    real floating dtype. ``info["original_reward"]`` (num_envs,) is the reward of the layer below,
    and the key in ``whole_keys`` holds the adapted numbers (K,) that this step used.

    Args:
        env: The environment, as for :class:`StatefulWrapper`.
        limits: Limit of the mean of each cost per step, K > 0 finite numbers of at least 0. None:
            ``cost_limits`` of ``env.unwrapped``, or of the environments of a ``SyncVectorEnv``.
        interval: Number of steps between two adaptations.
        warmup: Number of steps before the first adaptation.

    Raises:
        ValueError: The limits are missing or wrong, or a step reports another number of costs.
    """

    log_name: ClassVar[str]
    """Name of the adapted numbers in ``info["log"]``."""
    STATE: ClassVar[dict[str, Shape | None]] = {
        "over": PER_ENV,
        "steps": None,
        "cost_sums": PER_COST,
        "count": None,
    }
    REQUIRED: ClassVar[frozenset[str]] = frozenset({"cost_sums"})
    _over: Episodes

    def __init__(self, env: AnyEnv, limits: Sequence[float] | None, interval: int, warmup: int):
        super().__init__(env)
        self._has_info_rows = has_info_rows(self)
        names = tuple(cost_attribute(self, "cost_names") or ())

        self.limits = self._check_limits(limits, names)
        """Limit of the mean of each cost per step. Shape: (K,), float64."""
        self.num_costs = len(self.limits)
        """Number of costs K."""
        if len(names) != self.num_costs:
            names = tuple(f"cost_{k}" for k in range(self.num_costs))
        self.cost_names: tuple[str, ...] = names
        """Name of each cost."""
        self.interval = whole_number("interval", interval)
        """Number of steps between two adaptations."""
        self.warmup = whole_number("warmup", warmup, least=0)
        """Number of steps before the first adaptation."""
        self.steps = 0
        """Number of steps so far."""
        self._over = Episodes(autoreset_mode(self))
        # Sums of the costs, and number of transitions, of the present interval.
        self._cost_sums: Array = np.zeros(self.num_costs)
        self._count: Any = 0.0
        # Functions of the library of the environment's arrays, known after the first step.
        self._namespace: ModuleType | None = None

    def _check_limits(self, limits: Sequence[float] | None, names: tuple[str, ...]) -> NumPyArray:
        owner = type(self).__name__
        own = cost_attribute(self, "cost_limits")
        if own is not None and len(own) == 0:
            raise ValueError(
                f"{owner} needs an environment with costs, and {name_of(self)} has no cost terms"
            )
        if limits is None:
            if own is None:
                raise ValueError(
                    f"{owner} finds no cost_limits in {name_of(self)}: "
                    "pass limits=, one number for each cost"
                )
            return _check_numbers(owner, own)
        array = np.asarray(limits, np.float64)
        if own is not None and array.shape != (len(own),):
            raise ValueError(
                f"{owner}'s limits must be {len(own)} numbers ({', '.join(names)}), got {limits!r}"
            )
        return _check_numbers(owner, limits)

    # --- steps ------------------------------------------------------------------------------------

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        return observation, self._with_log(info)

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        if self._namespace is None:
            self._start(reward)
        original_reward = reward
        reward = self._as_floats(reward)
        costs = self._counted(self._read_costs(reward, info))
        info = {**info, "original_reward": original_reward}
        for key in self.whole_keys:
            info[key] = self._reported(self.adapted)
        self._add_to_interval(reward, costs)
        step = (observation, reward, terminated, truncated, self._with_log(info))
        shaped = self._shape(step, costs)
        _, _, terminated, truncated, _ = shaped
        if self._over.mode is not AutoresetMode.SAME_STEP:
            self._over.step(arrays.union_rows(terminated, truncated))
        # Adapted after the step, so that info has the numbers that the step used.
        self.steps += 1
        if self.steps % self.interval == 0:
            self._close_interval()
        return shaped

    def _start(self, example: Array) -> None:
        """Convert what is adapted to the kind and device of the environment's arrays.

        Until now it is an array of NumPy, or of the state that was loaded.
        """
        state = self.state_dict()
        for key, shape in self.STATE.items():
            # What belongs to the environments stays: masks convert themselves, and random streams
            # are NumPy's.
            if shape != PER_ENV:
                state[key] = arrays.map_arrays(
                    lambda array: arrays.as_kind_of(array, example), state[key]
                )
        super().load_state_dict(state)
        self._namespace = array_namespace(example)

    @property
    def _xp(self) -> ModuleType:
        """Functions of the library of the environment's arrays, from the first step on."""
        assert self._namespace is not None
        return self._namespace

    def _as_floats(self, reward: Array) -> Array:
        if self._xp.isdtype(reward.dtype, "real floating"):
            return reward
        converted: Array = self._xp.astype(reward, self._xp.float32)
        return converted

    def _read_costs(self, reward: Array, info: Info) -> Array:
        """Return the costs of all environments. Shape: (num_envs, K).

        They are 0 in a step in which every environment only resets.
        """
        xp = self._xp
        shape = (self.num_envs, self.num_costs)
        costs: Array | None = None
        if self._all_over(reward):
            costs = xp.zeros(shape, dtype=reward.dtype, device=device(reward))
            return costs
        for key in RAW_COST_KEYS:
            if info.get(key) is not None:
                costs = info[key]
                break
        owner = type(self).__name__
        if costs is None:
            raise ValueError(
                f"{owner} needs costs: info has neither 'costs' nor 'cost', got {list(info)}"
            )
        if costs.ndim != 2:
            costs = costs[:, None]
        if costs.shape != shape:
            raise ValueError(
                f"{owner} has {self.num_costs} limits, so costs must have shape {shape}, "
                f"got {tuple(costs.shape)}"
            )
        if costs.dtype != reward.dtype:
            costs = xp.astype(costs, reward.dtype)
        return costs

    def _all_over(self, example: Array) -> bool:
        """Return True if no environment has a running episode."""
        return self._over.some_over and bool(self._xp.all(self._over.over(example)))

    def _counted(self, values: Array) -> Array:
        """Return ``values`` (num_envs, …) with 0 in the rows without a running episode."""
        if not self._over.some_over:
            return values
        return arrays.blank_rows(self._over.over(values), values)

    @abstractmethod
    def _shape(self, step: Step, costs: Array) -> Step:
        """Return the step that the wrapper returns.

        Args:
            step: The step of the environment, with a floating reward.
            costs: The costs, 0 without a running episode. Shape: (num_envs, K).
        """

    # --- intervals --------------------------------------------------------------------------------

    def _add_to_interval(self, reward: Array, costs: Array) -> None:
        xp = self._xp
        # In float64, because an interval sums over all its steps and environments.
        sums = xp.sum(arrays.detached(costs), axis=0, dtype=xp.float64)
        self._cost_sums = self._cost_sums + sums
        if self._over.some_over:
            running = xp.astype(self._over.running(reward), xp.float64)
            self._count = self._count + xp.sum(running)
        else:
            self._count = self._count + self.num_envs

    def _close_interval(self) -> None:
        count = int(self._count)
        if count > 0:
            limits = self._like_costs(self.limits)
            excess = relative_excess(self._cost_sums / count, limits)
            self._end_of_interval(excess, count, self.steps > self.warmup)
        self._cost_sums = self._xp.zeros_like(self._cost_sums)
        self._count = 0.0

    @abstractmethod
    def _end_of_interval(self, excess: Array, count: int, adapt: bool) -> None:
        """Adapt to an interval.

        Args:
            excess: Excess of the mean costs, see ``relative_excess``. Shape: (K,).
            count: Number of transitions of the interval.
            adapt: False during the warm-up: only note the excess.
        """

    @property
    @abstractmethod
    def adapted(self) -> Array:
        """The number that is adapted for each cost. Shape: (K,)."""

    def _like_costs(self, values: NumPyArray) -> Array:
        return arrays.as_kind_of(values, self._cost_sums)

    def _reported(self, values: Array) -> Array:
        """Return a copy of numbers, in a row for each environment where all of info has rows."""
        if not self._has_info_rows:
            return arrays.copied(values)
        return np.tile(arrays.as_numpy(values), (self.num_envs, 1))

    def _with_log(self, info: Info) -> Info:
        if "log" not in info or self.steps == 0:
            return info
        log = dict(info["log"])
        values = self._reported(self.adapted)
        for k, name in enumerate(self.cost_names):
            column = values[:, k] if self._has_info_rows else values[k]
            log[f"{self.log_name}/{name}"] = column
        return {**info, "log": log}

    # --- state ------------------------------------------------------------------------------------

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        # The next step converts what was loaded to the kind of the environment's arrays.
        self._namespace = None

    def __getstate__(self) -> State:
        # Modules cannot be pickled. The next step finds it again.
        return {**self.__dict__, "_namespace": None}


def _check_numbers(owner: str, limits: Sequence[float]) -> NumPyArray:
    array = np.asarray(limits, np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"{owner}'s limits must be one number for each cost, got {limits!r}")
    if not (np.isfinite(array).all() and (array >= 0.0).all()):
        raise ValueError(f"{owner}'s limits must be finite and at least 0, got {array.tolist()}")
    return array
