"""Return, length, duration and costs of the episodes that end."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs.wrappers.array_kinds import accumulate, any_row, as_kind_of, as_numpy, copied, detached, float64
from legged_envs.wrappers.base import StatefulWrapper, autoreset_mode, kept, not_reset, reset_mask, zeros_like_batch
from legged_envs.wrappers.cost_reduce import cost_attribute, transition_costs
from legged_envs.wrappers.rows import blank_rows, without_rows

KEYS = {"return": "r", "length": "l", "seconds": "t", "cost": "c", "costs": "costs"}
"""What is measured, and its key in ``info["episode"]``."""


class EpisodeStatistics(StatefulWrapper):
    """Adds ``info["episode"]`` on the steps that end episodes, with Gymnasium's keys and two more.

    ``r`` return, ``l`` length in steps, ``t`` wall-clock seconds since the episode began, ``c`` summed cost, each
    (num_envs,), and ``costs`` (num_envs, K), the sums of the cost terms if there are such; all are 0 in rows that go
    on. ``info["_episode"]`` (num_envs,) marks the rows that ended. Sums are float64, what is reported float32 and
    int64. It goes below :class:`AutoReset` or around an environment that resets by itself. An environment that ended
    and is not reset yet counts nothing.

    Args:
        env: A vector environment.
        window: How many of the last episodes ``means`` and the windows cover.

    Raises:
        ValueError: If ``window`` is not a positive integer.
    """

    def __init__(self, env: VectorEnv, window: int = 100):
        super().__init__(env)
        if not isinstance(window, int) or isinstance(window, bool) or window < 1:
            raise ValueError(f"window must be a positive integer, got {window!r}")
        self.episode_count = 0
        """Number of episodes that ended."""
        self.return_window: deque[float] = deque(maxlen=window)
        """Returns of the last episodes."""
        self.length_window: deque[int] = deque(maxlen=window)
        """Their lengths in steps."""
        self.seconds_window: deque[float] = deque(maxlen=window)
        """Their durations."""
        self.cost_window: deque[float] = deque(maxlen=window)
        """Their summed costs."""
        self.costs_window: deque[list[float]] = deque(maxlen=window)
        """Their sums of each cost term, if there are such."""
        self._mode = autoreset_mode(env)
        self._steps = 0
        self._start_steps = np.zeros(self.num_envs, np.int64)
        self._start_times = np.zeros(self.num_envs)
        self._returns: Any = None
        self._cost_sums: Any = None
        self._costs_sums: Any = None  # (num_envs, K) once the terms are known
        self._over: Any = None  # rows that count nothing until they begin again, None if there are none

    def means(self) -> dict[str, float]:
        """Means over the last episodes: ``return``, ``length``, ``seconds``, ``cost`` and ``cost/<term>``.

        Empty before an episode has ended.
        """
        if not self.return_window:
            return {}
        means = {name: float(np.mean(getattr(self, f"{name}_window"))) for name in KEYS if name != "costs"}
        if self.costs_window:
            terms = np.mean(self.costs_window, axis=0)
            names = cost_attribute(self.env, "cost_names") or range(len(terms))
            means |= {f"cost/{name}": float(value) for name, value in zip(names, terms, strict=True)}
        return means

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        mask = reset_mask(options)
        observation, info = self.env.reset(seed=seed, options=kept(options))
        if mask is None or self._returns is None:
            self._returns = zeros_like_batch(observation, self.num_envs, "float64")
            self._cost_sums = zeros_like_batch(observation, self.num_envs, "float64")
            self._costs_sums = None
            self._start_steps[:], self._start_times[:] = self._steps, time.perf_counter()
        else:
            self._begin(mask)
        self._over = without_rows(self._over, mask)
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        self._steps += 1
        over = self._over
        self._add(reward, *transition_costs(info))
        ended = terminated | truncated
        if over is not None:
            ended = ended & ~over
            if self._mode is not AutoresetMode.DISABLED:  # the environment has reset them in this step
                self._begin(over)
                self._over = None
        if any_row(ended):
            info = {**info, "episode": self._report(ended), "_episode": copied(ended)}
            if self._mode is AutoresetMode.SAME_STEP:
                self._begin(ended)
            else:
                self._over = ended if self._over is None else self._over | ended
        return observation, reward, terminated, truncated, info

    def end_episodes(self, mask: Any) -> None:
        """Count nothing more of the episodes of ``mask`` (num_envs,) until their reset."""
        mask = as_kind_of(mask, self._returns)
        self._over = mask if self._over is None else self._over | mask

    def _add(self, reward: Any, cost: Any, costs: Any) -> None:
        if self._returns is None:
            raise not_reset(self)
        if self._over is not None:
            reward, cost, costs = (x if x is None else blank_rows(self._over, x) for x in (reward, cost, costs))
        # Not in place: tensors made in inference mode must not be written to outside of it.
        self._returns = accumulate(self._returns, reward)
        if cost is not None:
            self._cost_sums = accumulate(self._cost_sums, cost)
        if costs is not None:
            first = self._costs_sums is None
            self._costs_sums = float64(detached(costs)) if first else accumulate(self._costs_sums, costs)

    def _begin(self, rows: Any) -> None:
        """New episodes of the rows."""
        self._returns = blank_rows(rows, self._returns)
        self._cost_sums = blank_rows(rows, self._cost_sums)
        if self._costs_sums is not None:
            self._costs_sums = blank_rows(rows, self._costs_sums)
        rows = as_numpy(rows)
        self._start_steps[rows], self._start_times[rows] = self._steps, time.perf_counter()

    def _report(self, ended: Any) -> dict[str, Any]:
        """What ``info["episode"]`` holds; the windows get the rows that ended."""
        ids = np.flatnonzero(as_numpy(ended))
        measured = {
            "return": as_numpy(self._returns)[ids],
            "length": self._steps - self._start_steps[ids],
            "seconds": time.perf_counter() - self._start_times[ids],
            "cost": as_numpy(self._cost_sums)[ids],
        }
        if self._costs_sums is not None:
            measured["costs"] = as_numpy(self._costs_sums)[ids]
        self.episode_count += len(ids)
        episode = {}
        for name, rows in measured.items():
            getattr(self, f"{name}_window").extend(rows.tolist())
            reported = np.zeros((self.num_envs, *rows.shape[1:]), np.int64 if name == "length" else np.float32)
            reported[ids] = rows
            episode[KEYS[name]] = as_kind_of(reported, self._returns)
        return episode

    def state_dict(self) -> dict[str, Any]:
        return {
            "returns": copied(self._returns),
            "cost_sums": copied(self._cost_sums),
            "costs_sums": copied(self._costs_sums),
            "over": copied(self._over),
            "lengths": self._steps - self._start_steps,
            "ages": time.perf_counter() - self._start_times,
            "episode_count": self.episode_count,
            **{name: list(getattr(self, f"{name}_window")) for name in KEYS},
        }

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        keys = ("returns", "cost_sums", "over", "lengths", "ages")
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(keys, (self.num_envs,))
        names = cost_attribute(self.env, "cost_names")
        if names is not None:
            shapes["costs_sums"] = (self.num_envs, len(names))
        elif self._costs_sums is not None:
            shapes["costs_sums"] = tuple(self._costs_sums.shape)
        return shapes

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._check_state(state)
        self._returns, self._over = copied(state["returns"]), copied(state["over"])
        self._cost_sums, self._costs_sums = copied(state["cost_sums"]), copied(state["costs_sums"])
        self._steps, self._start_steps = 0, -state["lengths"]
        self._start_times = time.perf_counter() - state["ages"]
        self.episode_count = state["episode_count"]
        for name in KEYS:
            window = getattr(self, f"{name}_window")
            window.clear()
            window.extend(state[name])
