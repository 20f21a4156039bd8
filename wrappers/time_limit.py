"""Truncate episodes after a number of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv

from legged_envs.wrappers.array_kinds import any_row, as_kind_of, copied, namespace, where_rows
from legged_envs.wrappers.auto_reset import reset_in_step, step_and_reset
from legged_envs.wrappers.base import (
    StatefulWrapper,
    Step,
    autoreset_mode,
    end_episodes,
    kept,
    not_reset,
    reset_mask,
    zeros_like_batch,
)
from legged_envs.wrappers.rows import choose_rows, without_rows


class TimeLimit(StatefulWrapper):
    """Truncates each environment's episode at ``time_limit`` steps. The environment's own truncation is kept.

    It goes below :class:`AutoReset`. Around an environment that resets by itself it also starts the next episode of
    those that it has cut off, in that environment's autoreset mode and by ``reset(options={"reset_mask": mask})``, as
    if the limit were inside.

    Args:
        env: A vector environment.
        time_limit: Steps after which an episode is truncated.

    Raises:
        ValueError: If ``time_limit`` is not a positive integer, or ``env`` is an ``AsyncVectorEnv`` that resets in the
            next step without shared memory: Gymnasium's workers would then reset a second time.
    """

    def __init__(self, env: VectorEnv, time_limit: int):
        super().__init__(env)
        if not isinstance(time_limit, (int, np.integer)) or isinstance(time_limit, bool) or time_limit < 1:
            raise ValueError(f"time_limit must be a positive integer, got {time_limit!r}")
        self.time_limit = int(time_limit)
        self._steps = 0
        self._begun: Any = None  # (num_envs,) int64: at how many steps each environment's present episode began
        self._due = 0  # no limit is reached before this many steps; 0 with an autoreset below
        self._mode = autoreset_mode(env)
        core = env.unwrapped
        if self._mode is AutoresetMode.NEXT_STEP and isinstance(core, AsyncVectorEnv) and not core.shared_memory:
            raise ValueError(
                "TimeLimit cannot start the next episodes of an AsyncVectorEnv with autoreset NEXT_STEP and "
                "shared_memory=False, which may reset them twice: make it with shared_memory=True, or with "
                "autoreset_mode=AutoresetMode.DISABLED and AutoReset(TimeLimit(env, time_limit), 'NextStep')"
            )
        self._over: Any = None  # rows that count nothing, None if there are none
        self._cut: Any = None  # rows that the limit ended and that the next step has to reset, None if there are none

    @property
    def elapsed_steps(self) -> Any:
        """Steps of each environment's present episode, to be replaced as a whole. Shape: (num_envs,), int64."""
        return None if self._begun is None else self._steps - self._begun

    @elapsed_steps.setter
    def elapsed_steps(self, elapsed: Any) -> None:
        self._begun = None if elapsed is None else self._steps - elapsed
        self._update_due()

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        mask = reset_mask(options)
        observation, info = self.env.reset(seed=seed, options=kept(options))
        if mask is None or self._begun is None:
            self.elapsed_steps = zeros_like_batch(observation, self.num_envs, "int64")
        else:
            self._begin(mask)
        self._over, self._cut = without_rows(self._over, mask), without_rows(self._cut, mask)
        return observation, info

    def step(self, actions: Any) -> Step:
        if self._cut is None:
            observation, reward, terminated, truncated, info = self.env.step(actions)
        else:
            observation, reward, terminated, truncated, info = step_and_reset(self.env, self._cut, actions)
        self._steps += 1
        if self._over is not None:
            self._begun = choose_rows(self._over, self._begun + 1, self._begun)
        elif self._steps < self._due:
            return observation, reward, terminated, truncated, info
        if self._begun is None:
            raise not_reset(self)
        reached = self._begun <= self._steps - self.time_limit
        step = observation, reward, terminated, truncated | reached, info
        return step if self._mode is AutoresetMode.DISABLED else self._start_next(terminated | truncated, reached, step)

    def _begin(self, rows: Any) -> None:
        """New episodes of the rows."""
        self._begun = where_rows(as_kind_of(rows, self._begun), self._steps, self._begun)
        self._update_due()

    def _update_due(self) -> None:
        """Find when the first limit is due: until then a step has nothing to compare."""
        if self._begun is not None and self._mode is AutoresetMode.DISABLED:
            self._due = self.time_limit + int(namespace(self._begun).min(self._begun))

    def _start_next(self, ended_below: Any, reached: Any, step: Step) -> Step:
        """Start the next episodes of the rows that the environment below does not: those that only the limit ended."""
        ended = ended_below | reached
        self._over = self._cut = None
        if not any_row(ended):
            return step
        self._begin(ended)
        cut = reached & ~ended_below
        if self._mode is AutoresetMode.NEXT_STEP:
            self._over = ended
            if any_row(cut):
                self._cut = cut
                end_episodes(self.env, cut)
        elif any_row(cut):
            return reset_in_step(self.env, cut, step)
        return step

    def end_episodes(self, mask: Any) -> None:
        """Count nothing more of the episodes of ``mask`` (num_envs,) until their reset."""
        mask = as_kind_of(mask, self._begun)
        self._over = mask if self._over is None else self._over | mask

    def state_dict(self) -> dict[str, Any]:
        return {"elapsed_steps": copied(self.elapsed_steps), "over": copied(self._over), "cut": copied(self._cut)}

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("elapsed_steps", "over", "cut"), (self.num_envs,))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._check_state(state)
        self.elapsed_steps = copied(state["elapsed_steps"])
        self._over, self._cut = copied(state["over"]), copied(state["cut"])
