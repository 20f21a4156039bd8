"""Truncate episodes after a number of steps."""

from typing import Any

from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from legged_envs.checks import whole_number
from legged_envs.wrappers.auto_reset import reset_in_step, step_and_reset
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import Episodes, StatefulWrapper, not_reset
from legged_envs.wrappers.plumbing.layers import Step, autoreset_mode, end_episodes, whole_keys


class TimeLimit(StatefulWrapper):
    """Truncates each environment's episode at ``time_limit`` steps. The environment's own truncation is kept.

    It goes below :class:`AutoReset`. Around an environment that resets by itself it also starts the next episode of
    those that it has cut off, in that environment's autoreset mode and by ``reset(options={"reset_mask": mask})``; an
    ``AsyncVectorEnv`` without shared memory that resets in the next step would do so twice and is a ValueError. With
    ``is_finite_horizon`` the limit is part of the task: its end is a termination and no truncation.

    >>> import gymnasium as gym, numpy as np
    >>> env = gym.make_vec("Pendulum-v1", num_envs=2, vectorization_mode="sync", max_episode_steps=500)
    >>> for env in (env, TimeLimit(env, 3)):
    ...     _ = env.reset(seed=0)
    ...     [env.step(np.zeros((2, 1), np.float32))[3].tolist() for _ in range(3)]
    [[False, False], [False, False], [False, False]]
    [[False, False], [False, False], [True, True]]
    """

    STATE = {"elapsed_steps": ("num_envs",), "over": ("num_envs",), "cut": ("num_envs",)}  # noqa: RUF012

    def __init__(self, env: Any, time_limit: int, is_finite_horizon: bool = False):
        super().__init__(env)
        self.is_finite_horizon = is_finite_horizon
        self.time_limit = whole_number("time_limit", time_limit)
        self._steps = 0
        self._begun: Any = (
            None  # (num_envs,) int64: at how many steps each environment's present episode began
        )
        self._due = 0  # no limit is reached before this many steps; 0 with an autoreset below
        self._mode = autoreset_mode(self.env)
        core = self.env.unwrapped
        if (
            self._mode is AutoresetMode.NEXT_STEP
            and isinstance(core, AsyncVectorEnv)
            and not core.shared_memory
        ):
            wrong = "an AsyncVectorEnv with autoreset NEXT_STEP and shared_memory=False, which may reset them twice"
            how = "autoreset_mode=AutoresetMode.DISABLED and AutoReset(TimeLimit(env, time_limit), 'NextStep')"
            how = f"make it with shared_memory=True, or with {how}"
            raise ValueError(f"TimeLimit cannot start the next episodes of {wrong}: {how}")
        self._over = Episodes(self._mode)
        self._cut = Episodes(
            AutoresetMode.NEXT_STEP
        )  # rows that the limit ended and that the next step has to reset
        self._whole = whole_keys(self.env)

    @property
    def elapsed_steps(self) -> Any:
        """Steps of each environment's present episode, to be replaced as a whole. Shape: (num_envs,), int64."""
        return None if self._begun is None else self._steps - self._begun

    @elapsed_steps.setter
    def elapsed_steps(self, elapsed: Any) -> None:
        self._begun = None if elapsed is None else self._steps - elapsed
        self._update_due()

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        if partial and self._begun is not None:
            self._begin_count(begun)
        else:
            self.elapsed_steps = arrays.zeros_like_rows(observation, self.num_envs, "int64")
        self._cut.begin(begun)
        return observation, info

    def step(self, actions: Tree) -> Step:
        if self._cut.some_over:
            step = step_and_reset(self.env, self._cut, actions, self._whole)
        else:
            step = self.env.step(actions)
        self._steps += 1
        if self._steps < self._due and not self._over.some_over:
            return step
        observation, reward, terminated, truncated, info = step
        if self._over.some_over:
            begun = arrays.as_kind_of(self._begun, reward)
            self._begun = arrays.where_rows(self._over.over(reward), begun + 1, begun)
        if self._begun is None:
            raise not_reset(self)
        self._begun = arrays.as_kind_of(self._begun, reward)
        reached = self._begun <= self._steps - self.time_limit
        ended_below = terminated | truncated
        if self.is_finite_horizon:
            terminated = terminated | reached
        else:
            truncated = truncated | reached
        step = observation, reward, terminated, truncated, info
        return (
            step
            if self._mode is AutoresetMode.DISABLED
            else self._start_next(ended_below, reached, step)
        )

    def _begin_count(self, rows: Array) -> None:
        self._begun = arrays.where_rows(rows, self._steps, arrays.as_kind_of(self._begun, rows))
        self._update_due()

    def _update_due(self) -> None:
        """Find when the first limit is due: until then a step has nothing to compare."""
        if self._begun is not None and self._mode is AutoresetMode.DISABLED:
            self._due = self.time_limit + int(arrays.namespace(self._begun).min(self._begun))

    def _start_next(self, ended_below: Array, reached: Array, step: Step) -> Step:
        """Start the next episodes of the rows that the environment below does not: those that only the limit ended."""
        ended, cut = arrays.either(ended_below, reached), reached & ~ended_below
        some_cut = ended is not None and arrays.any_row(cut)
        if ended is not None:
            self._begin_count(ended)
        self._over.step(ended)
        if self._mode is AutoresetMode.SAME_STEP:
            return reset_in_step(self.env, cut, step, self._whole) if some_cut else step
        self._cut.step(cut if some_cut else None)
        if some_cut:
            end_episodes(self.env, cut)
        return step
