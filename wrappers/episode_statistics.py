"""The wrapper that reports return, length, duration and costs of the episodes that end."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from legged_envs.checks import whole_number
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, NumPyArray, Tree
from legged_envs.wrappers.plumbing.base import StatefulWrapper, not_reset
from legged_envs.wrappers.plumbing.episodes import Episodes
from legged_envs.wrappers.plumbing.layers import (
    COST_KEYS,
    AnyEnv,
    Step,
    autoreset_mode,
    cost_attribute,
)


class EpisodeStatistics(StatefulWrapper):
    """Adds ``info["episode"]`` on the steps that end episodes.

    ``info["episode"]`` has Gymnasium's keys and two more. All values are 0 in the rows that
    continue:

    =========  ===================================================================
    key        value
    =========  ===================================================================
    ``r``      return, (num_envs,) float32
    ``l``      length in steps, (num_envs,) int64
    ``t``      wall-clock seconds since the episode began, (num_envs,) float32
    ``c``      summed cost, (num_envs,) float32
    ``costs``  sums of the cost terms, if there are any, (num_envs, K) float32
    =========  ===================================================================

    ``info["_episode"]`` (num_envs,) marks the rows that ended, which count nothing until their
    reset. Sums are float64. The wrapper goes below ``AutoReset``, or around an environment that
    resets by itself.

    Gymnasium's ``RecordEpisodeStatistics`` uses the key ``episode`` too. Above this wrapper
    ``RecordEpisodeStatistics`` needs another key, ``stats_key="…"``: otherwise the next wrapper
    above it, or otherwise the end of the first episode, is a ``ValueError``.

    Args:
        env: The environment.
        window: Number of the last episodes that :meth:`means` and the windows cover.

    Raises:
        ValueError: ``window`` is not a positive integer.

    Examples:
        >>> import gymnasium as gym
        >>> env = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync", max_episode_steps=5)
        >>> _ = env.reset(seed=0)
        >>> [sorted(env.step(env.action_space.sample())[4]) for _ in range(5)][-1]
        []
        >>> env = EpisodeStatistics(env)
        >>> _ = env.reset(seed=0)
        >>> info = [env.step(env.action_space.sample())[4] for _ in range(5)][-1]
        >>> info["episode"]["r"], info["episode"]["l"]
        (array([5., 5.], dtype=float32), array([5, 5]))
        >>> info["_episode"], env.means()["return"]
        (array([ True,  True]), 5.0)
    """

    reports_episodes = True
    STATE = {  # noqa: RUF012
        "returns": ("num_envs",),
        "cost_sums": ("num_envs",),
        "over": ("num_envs",),
        "lengths": ("num_envs",),
        "ages": ("num_envs",),
        "costs_sums": ("num_envs", "num_costs"),
        "episode_count": None,
        "return_window": None,
        "length_window": None,
        "seconds_window": None,
        "cost_window": None,
        "costs_window": None,
    }
    _over: Episodes

    def __init__(self, env: AnyEnv, window: int = 100):
        super().__init__(env)
        window = whole_number("window", window)

        self.return_window: deque[float] = deque(maxlen=window)
        """Returns of the last episodes."""
        self.length_window: deque[int] = deque(maxlen=window)
        """Lengths of the last episodes in steps."""
        self.seconds_window: deque[float] = deque(maxlen=window)
        """Durations of the last episodes, s."""
        self.cost_window: deque[float] = deque(maxlen=window)
        """Summed costs of the last episodes."""
        self.costs_window: deque[list[float]] = deque(maxlen=window)
        """Sums of each cost term of the last episodes."""
        self.episode_count = 0
        """Number of episodes that have ended."""
        self._steps = 0
        # Step and time at which each environment's episode began.
        self._start_steps = np.zeros(self.num_envs, np.int64)
        self._start_times = np.full(self.num_envs, time.perf_counter())
        # Sums of each environment's episode so far, None before the first reset.
        self._returns: Array | None = None
        self._cost_sums: Array | None = None
        # (num_envs, K), None until a step reports the terms.
        self._costs_sums: Array | None = None
        self._over = Episodes(autoreset_mode(self.env))

    @property
    def num_costs(self) -> int | None:
        """Number of cost terms of a step. None if it is not known yet, or without cost terms."""
        names = cost_attribute(self.env, "cost_names")
        if names is not None:
            return len(names)
        if self._costs_sums is not None:
            return int(self._costs_sums.shape[1])
        return None

    @property
    def lengths(self) -> NumPyArray:
        """Number of steps since each environment's last reset, int64. Shape: (num_envs,)."""
        lengths: NumPyArray = self._steps - self._start_steps
        return lengths

    @lengths.setter
    def lengths(self, lengths: Array) -> None:
        self._start_steps = self._steps - np.array(arrays.as_numpy(lengths))

    @property
    def ages(self) -> NumPyArray:
        """Seconds since each environment's last reset, float64. Shape: (num_envs,)."""
        ages: NumPyArray = time.perf_counter() - self._start_times
        return ages

    @ages.setter
    def ages(self, ages: Array) -> None:
        self._start_times = time.perf_counter() - np.array(arrays.as_numpy(ages))

    def means(self) -> dict[str, float]:
        """Return means over the last episodes.

        Returns:
            ``return``, ``length``, ``seconds``, ``cost`` and ``cost/<term>`` for each cost term.
            The dict is empty before the first end of an episode.
        """
        if not self.return_window:
            return {}
        means = {
            "return": float(np.mean(self.return_window)),
            "length": float(np.mean(self.length_window)),
            "seconds": float(np.mean(self.seconds_window)),
            "cost": float(np.mean(self.cost_window)),
        }
        if self.costs_window:
            terms = np.mean(self.costs_window, axis=0)
            names: Iterable[object] = cost_attribute(self.env, "cost_names") or range(len(terms))
            for name, value in zip(names, terms, strict=True):
                means[f"cost/{name}"] = float(value)
        return means

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        if not partial or self._returns is None:
            zeros = arrays.zeros_per_env(observation, self.num_envs, "float64")
            self._returns = zeros
            self._cost_sums = zeros
            self._costs_sums = None
        self._begin_sums(begun)
        return observation, info

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        if self._returns is None:
            raise not_reset(self)
        self._steps += 1
        over = self._over
        if not over.some_over:
            ended = arrays.union_rows(terminated, truncated)
            self._add(reward, info)
        else:
            running = over.running(reward)
            # An episode that is over does not end a second time.
            ended = arrays.union_rows(terminated & running, truncated & running)
            self._add_running(over.over(reward), reward, info)
        over.step(ended)
        if ended is not None:
            info = {**info, "episode": self._report(ended), "_episode": arrays.copied(ended)}
            if over.mode is AutoresetMode.SAME_STEP:
                self._begin_sums(ended)
        return observation, reward, terminated, truncated, info

    def _add(self, reward: Array, costs: Info) -> None:
        """Add the reward and costs of a step to the sums."""
        # Not in place: tensors made in inference mode must not be written to outside of it.
        self._returns = arrays.accumulate(self._returns, reward)
        if "cost" in costs:
            self._cost_sums = arrays.accumulate(self._cost_sums, costs["cost"])
        if "costs" in costs:
            self._costs_sums = arrays.accumulate(self._costs_sums, costs["costs"])

    def _add_running(self, over: Array, reward: Array, info: Info) -> None:
        """Add the reward and costs of a step in the rows that are not ``over``."""
        costs = {}
        for key in COST_KEYS:
            if key in info:
                costs[key] = arrays.blank_rows(over, info[key])
        self._add(arrays.blank_rows(over, reward), costs)
        if self._over.mode is not AutoresetMode.DISABLED:
            # The environment has reset them in this step.
            self._begin_sums(over)

    def _begin_sums(self, rows: Array) -> None:
        """Set the sums of a mask (num_envs,) to 0."""
        self._returns = _blanked(rows, self._returns)
        self._cost_sums = _blanked(rows, self._cost_sums)
        self._costs_sums = _blanked(rows, self._costs_sums)
        mask = arrays.as_numpy(rows)
        self._start_steps[mask] = self._steps
        self._start_times[mask] = time.perf_counter()

    def _report(self, ended: Array) -> dict[str, Array]:
        """Return ``info["episode"]``, and add the ended episodes to the windows."""
        env_ids = np.flatnonzero(arrays.as_numpy(ended))
        self.episode_count += len(env_ids)
        floating = np.float32
        episode = {
            "r": self._rows(self._returns, env_ids, self.return_window, floating),
            "l": self._rows(self.lengths, env_ids, self.length_window, np.int64),
            "t": self._rows(self.ages, env_ids, self.seconds_window, floating),
            "c": self._rows(self._cost_sums, env_ids, self.cost_window, floating),
        }
        if self._costs_sums is not None:
            episode["costs"] = self._rows(self._costs_sums, env_ids, self.costs_window, floating)
        return episode

    def _rows(
        self, sums: Array | None, env_ids: NumPyArray, window: deque[Any], dtype: type
    ) -> Array:
        """Add rows of sums to a window, and return them with 0 in all other rows."""
        assert sums is not None and self._returns is not None
        rows = arrays.as_numpy(sums)[env_ids]
        window.extend(rows.tolist())
        # NumPy first, because only single rows are written.
        reported = np.zeros((self.num_envs, *rows.shape[1:]), dtype)
        reported[env_ids] = rows
        return arrays.as_kind_of(reported, self._returns)


def _blanked(rows: Array, sums: Array | None) -> Array | None:
    return None if sums is None else arrays.blank_rows(rows, sums)
