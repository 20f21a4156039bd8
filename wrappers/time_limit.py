"""The wrapper that truncates episodes after a number of steps."""

from typing import Any, cast

from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from legged_envs.checks import whole_number
from legged_envs.wrappers.auto_reset import reset_in_step, step_and_reset
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import StatefulWrapper, not_reset
from legged_envs.wrappers.plumbing.device import Device, split_device
from legged_envs.wrappers.plumbing.episodes import Episodes
from legged_envs.wrappers.plumbing.layers import (
    AnyEnv,
    Env,
    Step,
    autoreset_mode,
    end_episodes,
    whole_keys,
)


class TimeLimit(StatefulWrapper):
    """Truncates each environment's episode after a number of steps.

    The environment's own truncation is kept. The wrapper goes below ``AutoReset``. Around an
    environment that resets by itself it also starts the next episodes after the episodes that it
    ended, in the autoreset mode of this environment, by ``reset(options={"reset_mask": mask})``.

    Args:
        env: The environment.
        time_limit: Number of steps of an episode.
        is_finite_horizon_or_device: ``is_finite_horizon``, or the device in OmniSafe's order
            ``TimeLimit(env, time_limit, device)``.
        is_finite_horizon: True if the limit is part of the task, so that reaching the limit is a
            termination and not a truncation.
        device: Device on which the environment's arrays must be. None: any device.

    Raises:
        TypeError: ``is_finite_horizon`` is not a bool, or is given twice.
        ValueError: ``time_limit`` is not a positive integer, or ``env`` is an ``AsyncVectorEnv``
            without shared memory that resets in the next step: it might reset twice.

    Examples:
        >>> import gymnasium as gym, numpy as np
        >>> env = gym.make_vec("Pendulum-v1", 2, vectorization_mode="sync", max_episode_steps=500)
        >>> for env in (env, TimeLimit(env, 3)):
        ...     _ = env.reset(seed=0)
        ...     [env.step(np.zeros((2, 1), np.float32))[3].tolist() for _ in range(3)]
        [[False, False], [False, False], [False, False]]
        [[False, False], [False, False], [True, True]]
    """

    STATE = {  # noqa: RUF012
        "elapsed_steps": ("num_envs",),
        "over": ("num_envs",),
        "cut": ("num_envs",),
    }
    _over: Episodes

    def __init__(
        self,
        env: AnyEnv,
        time_limit: int,
        is_finite_horizon_or_device: bool | Device | None = None,
        *,
        is_finite_horizon: bool = False,
        device: Device | None = None,
    ):
        third, device = split_device("TimeLimit", is_finite_horizon_or_device, device)
        if third is not None:
            if not isinstance(third, bool):
                raise TypeError(f"is_finite_horizon must be a bool, got {third!r}")
            is_finite_horizon = third
        super().__init__(env, device)
        self.is_finite_horizon = is_finite_horizon
        """True if reaching the time limit is a termination, False if it is a truncation."""
        self.time_limit = whole_number("time_limit", time_limit)
        """Largest number of steps of an episode."""
        self._steps = 0
        # Step at which each environment's episode began, (num_envs,) int64. None before a reset.
        self._begun: Array | None = None
        # Until this step no limit is reached. It stays 0 over an environment that resets by itself.
        self._due = 0
        self._mode = autoreset_mode(self.env)
        _check_parallel(self.env, self._mode)
        self._over = Episodes(self._mode)
        # Environments that the limit ended and that the next step has to reset.
        self._cut = Episodes(AutoresetMode.NEXT_STEP)
        self._whole_keys = whole_keys(self.env)

    @property
    def elapsed_steps(self) -> Any:
        """Number of steps of each environment's episode so far, int64. Shape: (num_envs,).

        None before the first reset. Assign a new array to change the numbers.
        """
        if self._begun is None:
            return None
        return self._steps - self._begun

    @elapsed_steps.setter
    def elapsed_steps(self, elapsed: Array | None) -> None:
        self._begun = None if elapsed is None else self._steps - elapsed
        self._update_due()

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        if partial and self._begun is not None:
            self._begin_count(begun)
        else:
            self.elapsed_steps = arrays.zeros_per_env(observation, self.num_envs, "int64")
        self._cut.begin(begun)
        return observation, info

    def step(self, actions: Tree) -> Step:
        step: Step
        if self._cut.some_over:
            step = step_and_reset(self.env, self._cut, actions, self._whole_keys)
        else:
            step = self.env.step(actions)
        self._steps += 1
        # Most steps end here: there is nothing to compare before the first limit is due.
        if self._steps < self._due and not self._over.some_over:
            return step
        observation, reward, terminated, truncated, info = step
        reached = self._reached(reward)
        ended_below = terminated | truncated
        if self.is_finite_horizon:
            terminated = terminated | reached
        else:
            truncated = truncated | reached
        step = (observation, reward, terminated, truncated, info)
        if self._mode is AutoresetMode.DISABLED:
            return step
        return self._start_next(ended_below, reached, step)

    def _reached(self, reward: Array) -> Array:
        """Return the environments that have reached the limit. Shape: (num_envs,), bool."""
        if self._begun is None:
            raise not_reset(self)
        begun = arrays.as_kind_of(self._begun, reward)
        if self._over.some_over:
            # A step that only resets does not count.
            begun = arrays.where_rows(self._over.over(reward), begun + 1, begun)
        self._begun = begun
        return begun <= self._steps - self.time_limit

    def _begin_count(self, rows: Array) -> None:
        """Set the count of a mask (num_envs,) to 0."""
        begun = arrays.as_kind_of(cast("Array", self._begun), rows)
        self._begun = arrays.where_rows(rows, self._steps, begun)
        self._update_due()

    def _update_due(self) -> None:
        """Find the step at which the first limit is due."""
        if self._begun is not None and self._mode is AutoresetMode.DISABLED:
            first = int(arrays.namespace(self._begun).min(self._begun))
            self._due = self.time_limit + first

    def _start_next(self, ended_below: Array, reached: Array, step: Step) -> Step:
        """Start the next episodes of the environments that only the limit ended.

        The environment below starts the next episodes of the others itself.
        """
        ended = arrays.union_rows(ended_below, reached)
        # What also ended below is reset below. A second reset would skip an episode.
        cut = reached & ~ended_below
        some_cut = ended is not None and arrays.any_row(cut)
        if ended is not None:
            self._begin_count(ended)
        self._over.step(ended)
        if self._mode is AutoresetMode.SAME_STEP:
            return reset_in_step(self.env, cut, step, self._whole_keys) if some_cut else step
        self._cut.step(cut if some_cut else None)
        if some_cut:
            end_episodes(self.env, cut)
        return step


def _check_parallel(env: Env, mode: AutoresetMode) -> None:
    core = env.unwrapped
    if not isinstance(core, AsyncVectorEnv) or core.shared_memory:
        return
    if mode is AutoresetMode.NEXT_STEP:
        raise ValueError(
            "TimeLimit cannot start the next episodes of an AsyncVectorEnv with autoreset "
            "NEXT_STEP and shared_memory=False, which may reset them twice. Make it with "
            "shared_memory=True, or with autoreset_mode=AutoresetMode.DISABLED and "
            "AutoReset(TimeLimit(env, time_limit), 'NextStep')."
        )
