"""Each action for several steps."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs.wrappers.array_kinds import any_row, copied, map_arrays
from legged_envs.wrappers.auto_reset import held
from legged_envs.wrappers.base import StatefulWrapper, Step, autoreset_mode, end_episodes, zeros_like_batch
from legged_envs.wrappers.rows import blank_rows, choose_rows, info_rows

SUMMED = ("cost", "costs", "original_reward", "original_cost", "original_costs")
"""Keys of ``info`` that are summed over the steps, as the reward is."""

MASKS = tuple(f"_{key}" for key in SUMMED)
"""Their masks in Gymnasium's vector environments: the rows that reported a number in any of the steps."""


class ActionRepeat(StatefulWrapper):
    """Gives each action to the environment ``times`` times; rewards and costs are summed, all else is the last step's.

    A cost that a step does not report counts as 0. An environment whose episode ends on the way keeps what its last
    step returned, its rows of ``info`` included, and collects nothing after it, while the others go on.
    ``info["num_steps"]`` (num_envs,) int64 tells how many steps each has taken. ``cost_limits`` stay those of one step
    of the environment.

    It goes below :class:`AutoReset`. A time limit below it counts the environment's steps, one above it those of the
    wrapper.

    Args:
        env: A vector environment with ``metadata["autoreset_mode"]`` DISABLED.
        times: How many steps an action lasts.

    Raises:
        ValueError: If ``times`` is not a positive integer or ``env`` resets by itself.
    """

    def __init__(self, env: VectorEnv, times: int):
        super().__init__(env)
        if not isinstance(times, (int, np.integer)) or isinstance(times, bool) or times < 1:
            raise ValueError(f"times must be a positive integer, got {times!r}")
        mode = autoreset_mode(env)
        if mode is not AutoresetMode.DISABLED:
            raise ValueError(
                f"ActionRepeat needs an environment with autoreset DISABLED, got {mode}: the repeats would go on into "
                "the next episode. The order that works is AutoReset(ActionRepeat(env, times), mode)"
            )
        self.times = int(times)

    def step(self, actions: Any) -> Step:
        step = self.env.step(actions)
        num_steps = zeros_like_batch(step[0], self.num_envs, "int64") + 1
        if self.times > 1:
            step = _with_own_sums(step)
        for _ in range(1, self.times):
            over = step[2] | step[3]
            if not any_row(over):
                step = _then(step, self.env.step(actions))
                num_steps = num_steps + 1
                continue
            if not any_row(~over):
                break
            end_episodes(self.env, over)
            step = map_arrays(copied, step)
            with held(self.env, over):
                step = _then_without(over, step, self.env.step(actions))
            num_steps = choose_rows(over, num_steps, num_steps + 1)
        return *step[:4], {**step[4], "num_steps": num_steps}


def _with_own_sums(step: Step) -> Step:
    """A step with copies of what is summed: the next step may write to the same arrays."""
    observation, reward, terminated, truncated, info = step
    return observation, copied(reward), terminated, truncated, {**info, **_sums({}, info)}


def _then(first: Step, second: Step) -> Step:
    """Two steps as one."""
    observation, reward, terminated, truncated, info = second
    return observation, first[1] + reward, terminated, truncated, {**info, **_sums(first[4], info)}


def _then_without(over: Any, first: Step, second: Step) -> Step:
    """Two steps as one, of which the rows ``over`` made only the first."""
    going = ~over
    observation, reward, terminated, truncated, info = second
    added = {key: blank_rows(over, info[key]) for key in (*SUMMED, *MASKS) if key in info}
    return (
        choose_rows(going, observation, first[0]),
        first[1] + blank_rows(over, reward),
        choose_rows(going, terminated, first[2]),
        choose_rows(going, truncated, first[3]),
        {**info_rows(going, info, first[4]), **_sums(first[4], added)},
    )


def _sums(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """What two infos report together under the keys of ``SUMMED`` and ``MASKS``, in no array of the second."""
    sums = {}
    for keys, add in ((SUMMED, operator.add), (MASKS, operator.or_)):
        for key in keys:
            if key in first and key in second:
                sums[key] = add(first[key], second[key])
            elif key in first:
                sums[key] = first[key]
            elif key in second:
                sums[key] = copied(second[key])
    return sums
