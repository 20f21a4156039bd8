"""Turn an environment that does not reset by itself into one that does."""

from typing import Any

from gymnasium.vector import AutoresetMode

from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import Episodes, StatefulWrapper
from legged_envs.wrappers.plumbing.layers import (
    COSTS,
    Step,
    autoreset_mode,
    end_episodes,
    whole_keys,
)

FINAL = (
    "final_obs",
    "_final_obs",
    "final_info",
    "_final_info",
)  # keys of info that a reset in the same step adds


class AutoReset(StatefulWrapper):
    """Resets environments whose episode ended, as Gymnasium defines its two autoreset modes. It needs partial resets;
    an ``env`` that resets by itself and a ``mode`` DISABLED are a ``ValueError``.

    ``SAME_STEP``: the step that ends an episode returns the next episode's first observation; ``info["final_obs"]`` is
    the true last one, equal to the observation in rows that go on, so it serves as next observation for all;
    ``info["_final_obs"]`` marks the rows that ended, ``info["final_info"]`` is what that step reported. Costs and all
    else stay at the top level of ``info`` on the step they belong to, except what the reset reports under the same key.

    ``NEXT_STEP``: the step after the one that ended an episode ignores that environment's action and returns the next
    episode's first observation with reward 0, cost 0 and both flags False. An environment that cannot leave out some of
    its rows makes that step all the same, unseen; Gymnasium's ``SyncVectorEnv`` and :class:`Unsqueeze` leave it out.

    >>> import gymnasium as gym
    >>> env = gym.make_vec("CartPole-v1", 1, vectorization_mode="sync", max_episode_steps=2,
    ...                    vector_kwargs={"autoreset_mode": "Disabled"})
    >>> for env in (env, AutoReset(env)):
    ...     _ = env.reset(seed=0), env.step(env.action_space.sample())
    ...     observation, _, _, truncated, info = env.step(env.action_space.sample())
    ...     truncated, sorted(info)
    (array([ True]), [])
    (array([ True]), ['_final_info', '_final_obs', 'final_info', 'final_obs'])
    >>> bool((observation == info["final_obs"]).all()), observation.shape == info["final_obs"].shape
    (False, True)
    """

    STATE = {"ended": ("num_envs",)}  # noqa: RUF012

    def __init__(self, env: Any, mode: AutoresetMode | str = AutoresetMode.SAME_STEP):
        super().__init__(env)
        self.mode = AutoresetMode(mode)
        if self.mode is AutoresetMode.DISABLED:
            raise ValueError(
                "AutoReset's mode must be SAME_STEP or NEXT_STEP; leave the wrapper out for DISABLED"
            )
        below = autoreset_mode(self.env)
        if below is not AutoresetMode.DISABLED:
            how = "which resets by itself: make it with autoreset_mode=AutoresetMode.DISABLED, or leave AutoReset out"
            raise ValueError(
                f"AutoReset needs an environment with autoreset DISABLED, got {below}, {how}"
            )
        self.metadata = {**self.env.metadata, "autoreset_mode": self.mode}
        self._ended = Episodes(self.mode)  # rows whose next step resets
        self._whole = whole_keys(self.env)

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        self._ended.begin(begun)
        return observation, info

    def step(self, actions: Tree) -> Step:
        if self._ended.some_over:
            step = step_and_reset(self.env, self._ended, actions, self._whole)
        else:
            step = self.env.step(actions)
        _, _, terminated, truncated, _ = step
        ended = arrays.either(terminated, truncated)
        if ended is not None and self.mode is AutoresetMode.SAME_STEP:
            return reset_in_step(self.env, ended, step, self._whole)
        self._ended.step(ended)
        if ended is not None:
            end_episodes(self.env, ended)
        return step


def reset_in_step(env: Any, ended: Array, step: Step, whole: frozenset[str]) -> Step:
    """Reset the rows ``ended`` after a step, of which all is copied, since a reset may write to the same arrays.
    Returns the step with the first observations of the next episodes in those rows and the keys ``FINAL`` in ``info``.
    Rows that ``env`` has reset in that step by itself stay. ``whole``: keys of ``info`` without rows."""
    final_observation, reward, terminated, truncated, info = arrays.map_arrays(arrays.copied, step)
    final_info = arrays.map_arrays(
        arrays.copied, {key: value for key, value in info.items() if key not in FINAL}
    )
    if "_final_obs" in info:
        rows = ended | info["_final_obs"]
        final_observation = arrays.where_rows(
            info["_final_obs"], info["final_obs"], final_observation
        )
        final_info = arrays.info_rows(ended, final_info, info.get("final_info", {}), whole)
    else:
        rows = arrays.copied(ended)
    observation, reset_info = env.reset(options={"reset_mask": arrays.copied(ended)})
    reset_info = {
        key: reset_info[key]
        for key in reset_info
        if not (key in info and key.removeprefix("_") in COSTS)
    }
    info |= arrays.info_rows(
        ended, reset_info, {key: info[key] for key in reset_info if key in info}, whole
    )
    info |= zip(FINAL, (final_observation, rows, final_info, arrays.copied(rows)), strict=True)
    return observation, reward, terminated, truncated, info


def step_and_reset(env: Any, waiting: Episodes, actions: Tree, whole: frozenset[str]) -> Step:
    """A step that starts the next episodes of the rows ``waiting``, which the layers below were told of, instead."""
    _, reward, terminated, truncated, info = env.step(actions)
    rows = waiting.over(reward)
    # Before the reset, which may write to the same arrays.
    reward, terminated, truncated = (
        arrays.blank_rows(rows, reward),
        terminated & ~rows,
        truncated & ~rows,
    )
    observation, reset_info = env.reset(options={"reset_mask": arrays.copied(rows)})
    return (
        observation,
        reward,
        terminated,
        truncated,
        arrays.info_rows(rows, reset_info, info, whole),
    )
