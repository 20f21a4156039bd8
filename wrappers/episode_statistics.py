"""Return, length, duration and costs of the episodes that end."""

import time
from collections import deque
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from legged_envs.checks import whole_number
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import Episodes, StatefulWrapper, not_reset
from legged_envs.wrappers.plumbing.layers import COSTS, Step, autoreset_mode, cost_attribute

KEYS = {
    "return": "r",
    "length": "l",
    "seconds": "t",
    "cost": "c",
    "costs": "costs",
}  # keys of info["episode"]


class EpisodeStatistics(StatefulWrapper):
    """Adds ``info["episode"]`` on the steps that end episodes, with Gymnasium's keys and two more.

    ``r`` return, ``l`` length in steps, ``t`` wall-clock seconds since the episode began, ``c`` summed cost, each
    (num_envs,), and ``costs`` (num_envs, K), the sums of the cost terms if there are such; all are 0 in rows that go
    on. ``info["_episode"]`` (num_envs,) marks the rows that ended, which count nothing until their reset. Sums are
    float64, what is reported float32 and int64. It goes below :class:`AutoReset` or around an environment that resets
    by itself. ``means`` and the windows cover the last ``window`` episodes; ValueError for less than one.

    >>> import gymnasium as gym
    >>> env = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync", max_episode_steps=5)
    >>> _ = env.reset(seed=0)
    >>> [sorted(env.step(env.action_space.sample())[4]) for _ in range(5)][-1]
    []
    >>> env = EpisodeStatistics(env)
    >>> _ = env.reset(seed=0)
    >>> info = [env.step(env.action_space.sample())[4] for _ in range(5)][-1]
    >>> info["episode"]["r"], info["episode"]["l"], info["_episode"], env.means()["return"]
    (array([5., 5.], dtype=float32), array([5, 5]), array([ True,  True]), 5.0)
    """

    reports_episodes = True
    STATE = {  # noqa: RUF012
        **dict.fromkeys(("returns", "cost_sums", "over", "lengths", "ages"), ("num_envs",)),
        "costs_sums": ("num_envs", "num_costs"),
        "episode_count": None,
        **dict.fromkeys((f"{name}_window" for name in KEYS), None),
    }
    return_window: deque[float]
    length_window: deque[int]
    seconds_window: deque[float]
    cost_window: deque[float]
    costs_window: deque[list[float]]
    """Returns, lengths in steps, durations, summed costs and sums of each cost term of the last episodes."""

    def __init__(self, env: Any, window: int = 100):
        super().__init__(env)
        window = whole_number("window", window)
        for name in KEYS:
            setattr(self, f"{name}_window", deque(maxlen=window))
        self.episode_count = 0
        self._steps, self._start_steps = 0, np.zeros(self.num_envs, np.int64)
        self._start_times = np.full(self.num_envs, time.perf_counter())
        self._returns: Any = None
        self._cost_sums: Any = None
        self._costs_sums: Any = None  # (num_envs, K) once the terms are known
        self._over = Episodes(autoreset_mode(self.env))

    @property
    def num_costs(self) -> int | None:
        """How many costs a step reports; None as long as that is not known, or without costs."""
        names = cost_attribute(self.env, "cost_names")
        if names is None and self._costs_sums is not None:
            return int(self._costs_sums.shape[1])
        return None if names is None else len(names)

    @property
    def lengths(self) -> Any:
        """Steps of each environment's present episode, int64. Shape: (num_envs,)."""
        return self._steps - self._start_steps

    @lengths.setter
    def lengths(self, lengths: Array) -> None:
        self._start_steps = self._steps - np.array(arrays.as_numpy(lengths))

    @property
    def ages(self) -> Any:
        """Seconds since each environment's present episode began. Shape: (num_envs,), float64."""
        return time.perf_counter() - self._start_times

    @ages.setter
    def ages(self, ages: Array) -> None:
        self._start_times = time.perf_counter() - np.array(arrays.as_numpy(ages))

    def means(self) -> dict[str, float]:
        """Means of the last episodes: ``return``, ``length``, ``seconds``, ``cost`` and ``cost/<term>``; {} without."""
        if not self.return_window:
            return {}
        means = {
            name: float(np.mean(getattr(self, f"{name}_window")))
            for name in KEYS
            if name != "costs"
        }
        if self.costs_window:
            terms = np.mean(self.costs_window, axis=0)
            names = cost_attribute(self.env, "cost_names") or range(len(terms))
            means |= {
                f"cost/{name}": float(value) for name, value in zip(names, terms, strict=True)
            }
        return means

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        if not partial or self._returns is None:
            self._returns = self._cost_sums = arrays.zeros_like_rows(
                observation, self.num_envs, "float64"
            )
            self._costs_sums = None
        self._begin_sums(begun)
        return observation, info

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        if self._returns is None:
            raise not_reset(self)
        self._steps += 1
        over, ended = self._over, arrays.either(terminated, truncated)
        counted, costs = reward, info
        if over.some_over:
            rows, running = over.over(reward), over.running(reward)
            ended = arrays.either(terminated & running, truncated & running)
            counted = arrays.blank_rows(rows, reward)
            costs = {key: arrays.blank_rows(rows, info[key]) for key in COSTS if key in info}
        # Not in place: tensors made in inference mode must not be written to outside of it.
        self._returns = arrays.accumulate(self._returns, counted)
        if "cost" in costs:
            self._cost_sums = arrays.accumulate(self._cost_sums, costs["cost"])
        if "costs" in costs:
            self._costs_sums = arrays.accumulate(self._costs_sums, costs["costs"])
        if (
            over.some_over and over.mode is not AutoresetMode.DISABLED
        ):  # the environment has reset them in this step
            self._begin_sums(rows)
        over.step(ended)
        if ended is not None:
            info = {**info, "episode": self._report(ended), "_episode": arrays.copied(ended)}
            if over.mode is AutoresetMode.SAME_STEP:
                self._begin_sums(ended)
        return observation, reward, terminated, truncated, info

    def _begin_sums(self, rows: Array) -> None:
        for name in ("_returns", "_cost_sums", "_costs_sums"):
            if getattr(self, name) is not None:
                setattr(self, name, arrays.blank_rows(rows, getattr(self, name)))
        ids = arrays.as_numpy(rows)
        self._start_steps[ids], self._start_times[ids] = self._steps, time.perf_counter()

    def _report(self, ended: Array) -> dict[str, Array]:
        ids = np.flatnonzero(arrays.as_numpy(ended))
        measured = (self._returns, self.lengths, self.ages, self._cost_sums, self._costs_sums)
        self.episode_count += len(ids)
        episode = {}
        for name, values in zip(KEYS, measured, strict=True):
            if values is not None:
                rows = arrays.as_numpy(values)[ids]
                getattr(self, f"{name}_window").extend(rows.tolist())
                reported = np.zeros(
                    (self.num_envs, *rows.shape[1:]), np.int64 if name == "length" else np.float32
                )
                reported[ids] = rows
                episode[KEYS[name]] = arrays.as_kind_of(reported, self._returns)
        return episode
