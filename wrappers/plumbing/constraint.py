"""What the wrappers that train a policy to keep costs below limits share."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.vector import AutoresetMode

from legged_envs.checks import whole_number
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, NumPyArray, Tree
from legged_envs.wrappers.plumbing.base import Episodes, StatefulWrapper
from legged_envs.wrappers.plumbing.layers import Env, Step, autoreset_mode, cost_attribute, name_of
from legged_envs.wrappers.plumbing.multipliers import relative_excess

RAW_COSTS = (
    "original_costs",
    "costs",
    "original_cost",
    "cost",
)  # the first in info has the unit of the limits
PER_ENV, PER_COST = ("num_envs",), ("num_costs",)


class ConstraintWrapper(StatefulWrapper):
    """Measures each cost's mean per step against its limit; adapts to it every ``interval`` steps past ``warmup``.

    What an environment does between an episode's end and its reset enters no mean. Normalised costs give way to
    ``info["original_costs"]``. The reward that leaves has the dtype of the environment's, or float32 if that is no real
    floating one; ``info`` holds the environment's own as ``original_reward`` (num_envs,), and under the one key of
    ``whole_keys`` what is adapted, (K,), as of this step. The K ``limits`` are what each cost may be on average per
    step; None takes ``cost_limits`` of ``env.unwrapped``, or of the single environments of a ``SyncVectorEnv``. Steps
    without K costs, or limits that are not K > 0 finite numbers of at least 0, are a ValueError."""

    log_name: ClassVar[str]  # what the adapted numbers are called in info["log"]
    adapts: ClassVar[str]  # the attribute that holds the adapted numbers
    STATE = {"over": PER_ENV, "steps": None, "cost_sums": PER_COST, "count": None}  # noqa: RUF012

    def __init__(self, env: Env, limits: Sequence[float] | None, interval: int, warmup: int):
        super().__init__(env)
        names = tuple(cost_attribute(self, "cost_names") or ())
        self.limits = self._check_limits(
            limits, names
        )  # (K,) float64: what each cost may be on average per step
        self.num_costs = len(self.limits)
        counted = tuple(f"cost_{k}" for k in range(self.num_costs))
        self.cost_names: tuple[str, ...] = names if len(names) == self.num_costs else counted
        self.interval = whole_number("interval", interval)
        self.warmup = whole_number("warmup", warmup, least=0)
        self.steps = 0
        self._over = Episodes(autoreset_mode(self))
        self._cost_sums: Any = np.zeros(self.num_costs)  # of the present interval
        self._count: Any = 0.0  # transitions of the present interval
        self._xp: Any = None  # namespace of the environment's arrays

    def _check_limits(self, limits: Sequence[float] | None, names: tuple[str, ...]) -> NumPyArray:
        name, own = type(self).__name__, cost_attribute(self, "cost_limits")
        if own is not None and len(own) == 0:
            raise ValueError(
                f"{name} needs an environment with costs, and {name_of(self)} has no cost terms"
            )
        if limits is None and own is None:
            raise ValueError(
                f"{name} finds no cost_limits in {name_of(self)}: pass limits=, one number for each cost"
            )
        array = np.asarray(own if limits is None else limits, np.float64)
        if array.ndim != 1 or len(array) == 0 or (own is not None and len(array) != len(own)):
            expected = (
                "one number for each cost"
                if own is None
                else f"{len(own)} numbers ({', '.join(names)})"
            )
            raise ValueError(f"{name}'s limits must be {expected}, got {limits!r}")
        if not (np.isfinite(array).all() and (array >= 0.0).all()):
            raise ValueError(f"{name}'s limits must be finite and at least 0, got {array.tolist()}")
        return array

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        return observation, self._with_log(info)

    def step(self, actions: Any) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        if self._xp is None:
            self._start(reward)
        xp = self._xp
        own = {
            "original_reward": reward,
            **dict.fromkeys(self.whole_keys, arrays.copied(self.adapted)),
        }
        floating = (
            reward if xp.isdtype(reward.dtype, "real floating") else xp.astype(reward, xp.float32)
        )
        costs = self._counted(self._read_costs(floating, info))
        self._cost_sums = self._cost_sums + xp.sum(arrays.detached(costs), axis=0, dtype=xp.float64)
        if self._over.some_over:
            self._count = self._count + xp.sum(xp.astype(self._over.running(reward), xp.float64))
        else:
            self._count = self._count + self.num_envs
        step = observation, floating, terminated, truncated, self._with_log({**info, **own})
        step = _, _, terminated, truncated, _ = self._shape(step, costs)
        if self._over.mode is not AutoresetMode.SAME_STEP:
            self._over.step(arrays.either(terminated, truncated))
        self.steps += 1
        if self.steps % self.interval == 0:
            if (count := int(self._count)) > 0:
                excess = relative_excess(self._cost_sums / count, self._vector(self.limits))
                self._end_of_interval(excess, count, self.steps > self.warmup)
            self._cost_sums, self._count = xp.zeros_like(self._cost_sums), 0.0
        return step

    @abstractmethod
    def _shape(self, step: Step, costs: Any) -> Step:
        """The step to give, of which the reward is floating, for ``costs`` (num_envs, K), 0 without an episode."""

    def _start(self, example: Array) -> None:
        """Turn what is adapted, of NumPy or loaded, into arrays of the kind and on the device of the environment's."""
        state = self.state_dict()
        whole = {key: state[key] for key, shape in self.STATE.items() if shape != PER_ENV}
        super().load_state_dict(
            {**state, **arrays.map_arrays(lambda array: arrays.as_kind_of(array, example), whole)}
        )
        self._xp = array_namespace(example)

    def _counted(self, values: Any) -> Any:
        """``values`` (num_envs, …) with 0 in the rows where no episode runs."""
        if not self._over.some_over:
            return values
        running = self._xp.astype(self._over.running(values), values.dtype)
        return values * running[(slice(None), *(None,) * (values.ndim - 1))]

    def _read_costs(self, reward: Any, info: Info) -> Any:
        """The costs of every row, 0 of a step in which every environment only resets. Shape: (num_envs, K)."""
        shape = self.num_envs, self.num_costs
        if self._over.some_over and self._xp.all(self._over.over(reward)):
            return self._xp.zeros(shape, dtype=reward.dtype, device=device(reward))
        costs = next((info[key] for key in RAW_COSTS if info.get(key) is not None), None)
        if costs is None:
            raise ValueError(
                f"{type(self).__name__} needs costs: info has neither 'costs' nor 'cost', got {[*info]}"
            )
        costs = costs if costs.ndim == 2 else costs[:, None]
        if costs.shape != shape:
            wanted = (
                f"{type(self).__name__} has {shape[1]} limits, so costs must have shape {shape}"
            )
            raise ValueError(f"{wanted}, got {tuple(costs.shape)}")
        return costs if costs.dtype == reward.dtype else self._xp.astype(costs, reward.dtype)

    @abstractmethod
    def _end_of_interval(self, excess: Any, count: int, adapt: bool) -> None:
        """Adapt to the ``relative_excess`` (K,) of an interval of ``count`` transitions, or in warm-up only note it."""

    @property
    def adapted(self) -> Any:
        """The number that is adapted for each cost. Shape: (K,)."""
        return getattr(self, self.adapts)

    def _vector(self, values: NumPyArray) -> Any:
        return arrays.as_kind_of(values, self._cost_sums)

    def _with_log(self, info: Info) -> Info:
        if "log" not in info or self.steps == 0:
            return info
        values = arrays.copied(self.adapted)
        own = {f"{self.log_name}/{name}": values[k] for k, name in enumerate(self.cost_names)}
        return {**info, "log": {**info["log"], **own}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._xp = None  # the next step makes the arrays those of the environment

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_xp": None,
        }  # modules cannot be pickled; the next step finds it again
