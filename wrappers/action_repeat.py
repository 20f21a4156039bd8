"""Each action for several steps."""

import operator
from typing import Any

from gymnasium.vector import AutoresetMode

from legged_envs.checks import whole_number
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Info, Tree
from legged_envs.wrappers.plumbing.base import StatefulWrapper
from legged_envs.wrappers.plumbing.layers import Step, autoreset_mode, end_episodes, whole_keys

SUMMED = ("cost", "costs", "original_reward", "original_cost", "original_costs")
ADD = dict.fromkeys(SUMMED, operator.add) | {f"_{key}": operator.or_ for key in SUMMED}
"""How two steps' numbers under these keys of ``info`` add up, and their masks: rows that reported one in any step."""


class ActionRepeat(StatefulWrapper):
    """Gives each action to the environment ``times`` times; rewards and costs are summed, all else is the last step's.

    A cost that a step does not report counts as 0. An environment whose episode ends on the way keeps what its last
    step returned, its rows of ``info`` included, and collects nothing after it; ``info["num_steps"]`` (num_envs,) int64
    counts the steps of each. ``cost_limits`` stay those of one step. An ``env`` that resets by itself is a ValueError:
    :class:`AutoReset` goes above. A time limit below counts the environment's steps, one above the wrapper's.

    >>> import gymnasium as gym, numpy as np
    >>> env = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": "Disabled"})
    >>> for env in (env, ActionRepeat(env, 3)):
    ...     _ = env.reset(seed=0)
    ...     _, reward, _, _, info = env.step(np.zeros(2, int))
    ...     reward, info.get("num_steps")
    (array([1., 1.]), None)
    (array([3., 3.]), array([3, 3]))
    """

    def __init__(self, env: Any, times: int):
        super().__init__(env)
        self.times = whole_number("times", times)
        mode = autoreset_mode(self.env)
        if mode is not AutoresetMode.DISABLED:
            order = "The order that works is AutoReset(ActionRepeat(env, times), mode)"
            why = f"got {mode}: the repeats would go on into the next episode. {order}"
            raise ValueError(f"ActionRepeat needs an environment with autoreset DISABLED, {why}")
        self._whole = whole_keys(self.env)

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        num_steps = arrays.zeros_like_rows(observation, self.num_envs, "int64") + 1
        if self.times > 1:  # the next step may write to the same arrays
            reward, info = arrays.copied(reward), {**info, **_sums({}, info)}
        for _ in range(1, self.times):
            over = terminated | truncated
            if not arrays.any_row(over):
                observation, added, terminated, truncated, later = self.env.step(actions)
                reward, info = reward + added, {**later, **_sums(info, later)}
                num_steps = num_steps + 1
                continue
            going = ~over
            if not arrays.any_row(going):
                break
            end_episodes(self.env, over)
            last, info = arrays.map_arrays(
                arrays.copied, ((observation, terminated, truncated), info)
            )
            observation, added, terminated, truncated, later = self.env.step(actions)
            observation, terminated, truncated = arrays.where_rows(
                going, (observation, terminated, truncated), last
            )
            reward = reward + arrays.blank_rows(over, added)
            counted = {key: arrays.blank_rows(over, later[key]) for key in ADD if key in later}
            info = {**arrays.info_rows(going, later, info, self._whole), **_sums(info, counted)}
            num_steps = arrays.where_rows(over, num_steps, num_steps + 1)
        return observation, reward, terminated, truncated, {**info, "num_steps": num_steps}


def _sums(first: Info, second: Info) -> Info:
    """What two infos report together under the keys of ``ADD``, in no array of the second."""
    sums = {key: first[key] for key in ADD if key in first}
    for key, add in ADD.items():
        if key in second:
            sums[key] = add(sums[key], second[key]) if key in sums else arrays.copied(second[key])
    return sums
