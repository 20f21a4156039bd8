"""Return, length, duration and cost of the episodes that end."""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_torch_array
from gymnasium.vector import VectorEnv

from legged_envs.wrappers.base import StatefulWrapper, reset_mask, zeros_like_batch


class EpisodeStatistics(StatefulWrapper):
    """Adds ``info["episode"]`` on the steps that end episodes, with Gymnasium's keys and one more.

    ``r`` return, ``l`` length in steps, ``t`` wall-clock seconds since the episode began, ``c`` summed cost, each
    (num_envs,) and 0 in rows that go on, and ``info["_episode"]`` (num_envs,), which marks the rows that ended. It
    goes below :class:`AutoReset`.
    """

    def __init__(self, env: VectorEnv):
        super().__init__(env)
        self._returns: Any = None
        self._costs: Any = None
        self._lengths: Any = None
        self._running: Any = None
        self._start_times = np.zeros(self.num_envs)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        mask = reset_mask(options)
        if self._running is not None:
            self._running = None if mask is None or (self._running | mask).all() else self._running | mask
        now = time.perf_counter()
        if mask is None or self._returns is None:
            self._returns = zeros_like_batch(observation, self.num_envs, "float32")
            self._costs = zeros_like_batch(observation, self.num_envs, "float32")
            self._lengths = zeros_like_batch(observation, self.num_envs, "int64")
            self._start_times[:] = now
        else:
            going = ~mask
            self._returns = self._returns * going
            self._costs = self._costs * going
            self._lengths = self._lengths * going
            self._start_times[np.asarray(mask.cpu() if is_torch_array(mask) else mask)] = now
        return observation, info

    def end_episodes(self, mask: Any) -> None:
        """Count nothing more of the episodes of ``mask`` until their reset."""
        self._running = ~mask if self._running is None else self._running & ~mask

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        running = 1 if self._running is None else self._running
        self._returns = self._returns + reward * running
        self._lengths = self._lengths + running
        if "cost" in info:
            self._costs = self._costs + info["cost"] * running
        ended = (terminated | truncated) & (True if self._running is None else self._running)
        if ended.any():
            elapsed = (time.perf_counter() - self._start_times).astype(np.float32)
            xp = array_namespace(self._returns)
            seconds = xp.asarray(elapsed, device=device(self._returns))
            episode = {"r": self._returns, "l": self._lengths, "t": seconds, "c": self._costs}
            info["episode"] = {key: value * ended for key, value in episode.items()}
            info["_episode"] = copy.deepcopy(ended)
        return observation, reward, terminated, truncated, info

    def state_dict(self) -> dict[str, Any]:
        arrays = {
            "returns": self._returns,
            "costs": self._costs,
            "lengths": self._lengths,
            "running": self._running,
        }
        return {**copy.deepcopy(arrays), "ages": time.perf_counter() - self._start_times}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        state = copy.deepcopy(state)
        self._returns, self._costs, self._lengths = state["returns"], state["costs"], state["lengths"]
        self._running = state["running"]
        self._start_times = time.perf_counter() - state["ages"]
