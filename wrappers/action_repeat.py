"""The wrapper that gives each action for several steps."""

from gymnasium.vector import AutoresetMode

from legged_envs.checks import whole_number
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import StatefulWrapper
from legged_envs.wrappers.plumbing.device import Device
from legged_envs.wrappers.plumbing.layers import (
    AnyEnv,
    Step,
    autoreset_mode,
    end_episodes,
    whole_keys,
)

SUMMED_KEYS = ("cost", "costs", "rewards", "original_reward", "original_cost", "original_costs")
"""Keys of ``info`` that are summed over the repeats. A missing number counts as 0."""


class ActionRepeat(StatefulWrapper):
    """Gives each action to the environment several times.

    Rewards and costs are summed, everything else belongs to the last step. An environment with an
    episode that ends before the last repeat keeps the results of its last step, with its rows of
    ``info``. ``info["num_steps"]`` (num_envs,) int64 is the number of steps of each environment.

    ``cost_limits`` remain the limits of one step. A time limit below this wrapper counts steps of
    the environment, a time limit above it counts steps of the wrapper.

    Args:
        env: The environment, which does not reset by itself: ``AutoReset`` goes above this wrapper.
        times: Number of steps for each action.
        device: Device on which the environment's arrays must be. None: any device.

    Raises:
        ValueError: ``env`` resets by itself, or ``times`` is not a positive integer.

    Examples:
        >>> import gymnasium as gym, numpy as np
        >>> mode = {"autoreset_mode": "Disabled"}
        >>> env = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync", vector_kwargs=mode)
        >>> for env in (env, ActionRepeat(env, 3)):
        ...     _ = env.reset(seed=0)
        ...     _, reward, _, _, info = env.step(np.zeros(2, int))
        ...     reward, info.get("num_steps")
        (array([1., 1.]), None)
        (array([3., 3.]), array([3, 3]))
    """

    def __init__(self, env: AnyEnv, times: int, device: Device | None = None):
        super().__init__(env, device)
        self.times = whole_number("times", times)
        """Number of steps of the environment for each action."""
        mode = autoreset_mode(self.env)
        if mode is not AutoresetMode.DISABLED:
            raise ValueError(
                f"ActionRepeat needs an environment with autoreset DISABLED, got {mode}: "
                "the repeats would continue into the next episode. "
                "The order that works is AutoReset(ActionRepeat(env, times), mode)."
            )
        self._whole_keys = whole_keys(self.env)

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        # An episode may end before the last repeat, so that rows differ in their number of steps.
        num_steps = arrays.zeros_per_env(observation, self.num_envs, "int64") + 1
        if self.times > 1:
            # Copied, because the next step may write to the same arrays.
            reward = arrays.copied(reward)
            copied_costs = _sums({}, info)
            info = {**info, **copied_costs}
        step: Step = (observation, reward, terminated, truncated, info)
        for _ in range(1, self.times):
            _, _, terminated, truncated, _ = step
            over = terminated | truncated
            if not arrays.any_row(over):
                step = self._repeat_all(actions, step)
                num_steps = num_steps + 1
            elif arrays.any_row(~over):
                step = self._repeat_running(actions, step, over)
                num_steps = arrays.where_rows(over, num_steps, num_steps + 1)
            else:
                break
        observation, reward, terminated, truncated, info = step
        return observation, reward, terminated, truncated, {**info, "num_steps": num_steps}

    def _repeat_all(self, actions: Tree, earlier: Step) -> Step:
        """Step all environments once more."""
        _, reward, _, _, info = earlier
        observation, added, terminated, truncated, later_info = self.env.step(actions)
        info = {**later_info, **_sums(info, later_info)}
        return observation, reward + added, terminated, truncated, info

    def _repeat_running(self, actions: Tree, earlier: Step, over: Array) -> Step:
        """Step once more, and keep the earlier step in the rows of the mask ``over``."""
        running = ~over
        # First, so that layers below count nothing of rows that only wait for their reset.
        end_episodes(self.env, over)
        # Copied, because the next step may write to the same arrays. The reward is a copy already.
        observation, reward, terminated, truncated, info = earlier
        last = arrays.map_arrays(arrays.copied, (observation, terminated, truncated))
        info = arrays.map_arrays(arrays.copied, info)
        observation, added, terminated, truncated, later_info = self.env.step(actions)
        later = (observation, terminated, truncated)
        observation, terminated, truncated = arrays.where_rows(running, later, last)
        reward = reward + arrays.blank_rows(over, added)
        counted: Info = {}
        for key in _summed_and_masks():
            if key in later_info:
                counted[key] = arrays.blank_rows(over, later_info[key])
        merged = arrays.info_rows(running, later_info, info, self._whole_keys)
        return observation, reward, terminated, truncated, {**merged, **_sums(info, counted)}


def _summed_and_masks() -> tuple[str, ...]:
    """Return the summed keys and the keys of their masks, such as ``"_cost"``."""
    masks = tuple(f"_{key}" for key in SUMMED_KEYS)
    return SUMMED_KEYS + masks


def _sums(first: Info, second: Info) -> Info:
    """Return the sums of two infos under the summed keys.

    A mask holds where one of the two infos reports a number. The arrays are not shared with
    ``second``.
    """
    sums: Info = {}
    for key in _summed_and_masks():
        is_mask = key.startswith("_")
        if key not in second:
            if key in first:
                sums[key] = first[key]
        elif key not in first:
            sums[key] = arrays.copied(second[key])
        elif is_mask:
            sums[key] = first[key] | second[key]
        else:
            sums[key] = first[key] + second[key]
    return sums
