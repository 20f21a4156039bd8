"""Truncate episodes after a number of steps."""

from __future__ import annotations

import copy
from typing import Any

from gymnasium.vector import VectorEnv

from legged_envs.wrappers.base import StatefulWrapper, reset_mask, zeros_like_batch


class TimeLimit(StatefulWrapper):
    """Truncates each environment's episode at ``time_limit`` steps. The environment's own truncation is kept.

    It goes below :class:`AutoReset`, around an environment that does not reset by itself.

    Args:
        env: A vector environment.
        time_limit: Steps after which an episode is truncated.

    Raises:
        ValueError: If ``time_limit`` is not a positive integer.
    """

    def __init__(self, env: VectorEnv, time_limit: int):
        super().__init__(env)
        if not isinstance(time_limit, int) or time_limit < 1:
            raise ValueError(f"time_limit must be a positive integer, got {time_limit!r}")
        self.time_limit = time_limit
        self.elapsed_steps: Any = None
        """Steps of each environment's present episode. Shape: (num_envs,), int64."""

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        mask = reset_mask(options)
        if mask is None or self.elapsed_steps is None:
            self.elapsed_steps = zeros_like_batch(observation, self.num_envs, "int64")
        else:
            self.elapsed_steps = self.elapsed_steps * ~mask
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        self.elapsed_steps = self.elapsed_steps + 1
        return observation, reward, terminated, truncated | (self.elapsed_steps >= self.time_limit), info

    def state_dict(self) -> dict[str, Any]:
        return {"elapsed_steps": copy.deepcopy(self.elapsed_steps)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.elapsed_steps = copy.deepcopy(state["elapsed_steps"])
