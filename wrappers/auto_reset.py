"""The wrapper that lets an environment reset by itself."""

from typing import Any

from gymnasium.vector import AutoresetMode

from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import StatefulWrapper
from legged_envs.wrappers.plumbing.device import Device, split_device
from legged_envs.wrappers.plumbing.episodes import Episodes
from legged_envs.wrappers.plumbing.layers import (
    COST_KEYS,
    AnyEnv,
    Env,
    Step,
    autoreset_mode,
    end_episodes,
    whole_keys,
)

FINAL_KEYS = ("final_obs", "_final_obs", "final_info", "_final_info")
"""Keys of ``info`` that a step adds if it resets an environment in the mode SAME_STEP."""


class AutoReset(StatefulWrapper):
    """Resets environments with an ended episode, in one of Gymnasium's two autoreset modes.

    ``SAME_STEP``: the step that ends an episode returns the first observation of the next episode.
    ``info["final_obs"]`` is the true last observation. In rows with a running episode,
    ``final_obs`` equals the observation, so it serves as next observation for all rows.
    ``info["_final_obs"]`` marks the rows that ended, and ``info["final_info"]`` is the ``info`` of
    their last step. Costs and everything else stay at the top level of ``info`` on the step they
    belong to, except what the reset reports under the same key.

    ``NEXT_STEP``: the step after the end of an episode ignores the action of the ended environment.
    The step returns the first observation of the next episode with reward 0, cost 0 and both flags
    False. An environment that cannot leave out single rows makes the ignored step too,
    and its result is not used. Gymnasium's ``SyncVectorEnv`` and ``Unsqueeze`` leave out the ended
    rows.

    Args:
        env: The environment, which supports partial resets and does not reset by itself.
        mode_or_device: ``mode``, or the device in OmniSafe's order ``AutoReset(env, device)``.
        mode: SAME_STEP or NEXT_STEP. None: SAME_STEP.
        device: Device on which the environment's arrays must be. None: any device.

    Raises:
        TypeError: Two modes or two devices are given.
        ValueError: ``env`` resets by itself, or ``mode`` is DISABLED or not a mode.

    Examples:
        >>> import gymnasium as gym
        >>> env = gym.make_vec("CartPole-v1", 1, vectorization_mode="sync", max_episode_steps=2,
        ...                    vector_kwargs={"autoreset_mode": "Disabled"})
        >>> for env in (env, AutoReset(env)):
        ...     _ = env.reset(seed=0), env.step(env.action_space.sample())
        ...     observation, _, _, truncated, info = env.step(env.action_space.sample())
        ...     truncated, sorted(info)
        (array([ True]), [])
        (array([ True]), ['_final_info', '_final_obs', 'final_info', 'final_obs'])
        >>> bool((observation == info["final_obs"]).all())
        False
        >>> observation.shape == info["final_obs"].shape
        True
    """

    STATE = {"ended": ("num_envs",)}  # noqa: RUF012

    def __init__(
        self,
        env: AnyEnv,
        mode_or_device: AutoresetMode | str | Device | None = None,
        /,
        mode: AutoresetMode | str | None = None,
        *,
        device: Device | None = None,
    ):
        first, device = split_device("AutoReset", mode_or_device, device)
        if first is not None:
            if mode is not None:
                raise TypeError(f"AutoReset takes one mode, got {first!r} and {mode!r}")
            mode = first
        super().__init__(env, device)
        self.mode = AutoresetMode.SAME_STEP if mode is None else AutoresetMode(mode)
        """Time of the reset after an episode: in the same step (SAME_STEP) or in the next step."""
        if self.mode is AutoresetMode.DISABLED:
            raise ValueError(
                "AutoReset's mode must be SAME_STEP or NEXT_STEP. "
                "Leave the wrapper out for DISABLED."
            )
        below = autoreset_mode(self.env)
        if below is not AutoresetMode.DISABLED:
            raise ValueError(
                f"AutoReset needs an environment with autoreset DISABLED, got {below}, "
                "which resets by itself. Make it with autoreset_mode=AutoresetMode.DISABLED, "
                "or leave AutoReset out."
            )
        self.metadata = {**self.env.metadata, "autoreset_mode": self.mode}
        # Environments that the next step resets.
        self._ended = Episodes(self.mode)
        self._whole_keys = whole_keys(self.env)

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        self._ended.begin(begun)
        return observation, info

    def step(self, actions: Tree) -> Step:
        step: Step
        if self._ended.some_over:
            step = step_and_reset(self.env, self._ended, actions, self._whole_keys)
        else:
            step = self.env.step(actions)
        _, _, terminated, truncated, _ = step
        ended = arrays.union_rows(terminated, truncated)
        if ended is not None and self.mode is AutoresetMode.SAME_STEP:
            return reset_in_step(self.env, ended, step, self._whole_keys)
        self._ended.step(ended)
        # The layers below must count nothing of the step that only resets.
        if ended is not None:
            end_episodes(self.env, ended)
        return step


def reset_in_step(env: Env, ended: Array, step: Step, whole: frozenset[str]) -> Step:
    """Reset environments after the step that ended their episode, as part of this step.

    Args:
        env: The environment.
        ended: Environments to reset. Shape: (num_envs,), bool.
        step: Result of the step of ``env``. Rows of environments that ``env`` itself reset in this
            step are not changed.
        whole: Keys of ``info`` with values that are not split into one row for each environment.

    Returns:
        The step with the first observations of the next episodes, and the keys of ``FINAL_KEYS`` in
        ``info``.
    """
    # Everything is copied, because the reset may write to the same arrays.
    last, reward, terminated, truncated, info = arrays.map_arrays(arrays.copied, step)
    final_obs = last
    reported = {key: value for key, value in info.items() if key not in FINAL_KEYS}
    final_info = arrays.map_arrays(arrays.copied, reported)
    rows = arrays.copied(ended)
    if "_final_obs" in info:
        reset_below = info["_final_obs"]
        rows = ended | reset_below
        final_obs = arrays.where_rows(reset_below, info["final_obs"], last)
        final_info = arrays.info_rows(ended, final_info, info.get("final_info", {}), whole)
    begun, reset_info = _reset_rows(env, ended)
    # The other rows stay the rows of the step, so that they equal final_obs: ObsNormalize, after
    # two resets in one step, normalizes them by newer statistics.
    observation = arrays.where_rows(ended, begun, last)
    # Costs belong to the step. Everything else that the reset reports describes the next episode.
    begun_info: Info = {}
    for key, value in reset_info.items():
        if key not in info or key.removeprefix("_") not in COST_KEYS:
            begun_info[key] = value
    step_info = {key: info[key] for key in begun_info if key in info}
    info.update(arrays.info_rows(ended, begun_info, step_info, whole))
    info["final_obs"] = final_obs
    info["_final_obs"] = rows
    info["final_info"] = final_info
    info["_final_info"] = arrays.copied(rows)
    return observation, reward, terminated, truncated, info


def step_and_reset(env: Env, waiting: Episodes, actions: Tree, whole: frozenset[str]) -> Step:
    """Step all environments, and reset those with an episode that ended in the previous step.

    This function implements the autoreset mode ``NEXT_STEP``: an environment with an ended episode
    ignores its action, and this step returns the first observation of its next episode.

    Args:
        env: Environment with wrappers that have already marked the ended episodes.
        waiting: Environments with an episode that ended in the previous step.
        actions: Actions of all environments.
        whole: Keys of ``info`` with values that are not split into one row for each environment.

    Returns:
        Observation, reward, terminated, truncated and info. In the rows of the reset environments
        the reward is 0 and both flags are False.
    """
    observation, reward, terminated, truncated, info = env.step(actions)
    rows = waiting.over(reward)
    # Copied before the reset, which may write to the same arrays.
    last = arrays.map_arrays(arrays.copied, observation)
    reward = arrays.blank_rows(rows, reward)
    # Flags of the old episode, which ran on, must not end the new one.
    terminated = terminated & ~rows
    truncated = truncated & ~rows
    begun, reset_info = _reset_rows(env, rows)
    # Not all rows of the reset's observation: an environment below ActionRepeat may have gone on
    # after the end of an episode, which keeps its last observation.
    observation = arrays.where_rows(rows, begun, last)
    info = arrays.info_rows(rows, reset_info, info, whole)
    return observation, reward, terminated, truncated, info


def _reset_rows(env: Any, rows: Array) -> tuple[Tree, Info]:
    # A copy, because an environment may keep or change the mask.
    observation, info = env.reset(options={"reset_mask": arrays.copied(rows)})
    return observation, info
