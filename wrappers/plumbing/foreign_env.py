"""The door for other people's environments: above it every step has the one form that
docs/how-to/wrappers.md describes."""

import copy
from functools import partial
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper

from legged_envs.wrappers.from_cmdp import FromCMDP
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.layers import (
    COSTS,
    Env,
    Step,
    autoreset_mode,
    layers,
    state_below,
)

SingleEnv = gym.Env[Any, Any]


class ForeignEnv(VectorWrapper[Any, Any, Any, Any, Any]):
    """A vector environment of Gymnasium's kind in the form that this package's wrappers, which put it around, expect.

    In mode SAME_STEP ``final_obs`` is a full batch (not an array of objects), equal to the observation where
    ``_final_obs`` is false, and costs are at the top level of ``info`` on the step they belong to (not in
    ``final_info`` alone). A ``SyncVectorEnv`` leaves rows that :meth:`end_episodes` names out of every step until their
    reset: it refuses to step them, which would take their next episodes' random numbers. Others step them, unseen."""

    def __init__(self, env: Env):
        super().__init__(env)
        self._over = np.zeros(self.num_envs, bool)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Tree, Info]:
        mask = None if options is None else options.get("reset_mask")
        result = self.env.reset(seed=seed, options=None if options is None else dict(options))
        self._over &= False if mask is None else ~arrays.as_numpy(mask)
        return result

    def step(self, actions: Tree) -> Step:
        core = self.env.unwrapped
        if isinstance(core, SyncVectorEnv) and self._over.any():
            return _step_without(self._over, core, self.env, actions)
        observation, reward, terminated, truncated, info = self.env.step(actions)
        if "final_obs" in info or "final_info" in info:
            info = _in_order(observation, terminated | truncated, info)
        return observation, reward, terminated, truncated, info

    def end_episodes(self, mask: Array) -> None:
        self._over |= arrays.as_numpy(mask)

    def get_state(self) -> dict[str, Any]:
        """The state of the environment, or of a ``SyncVectorEnv``'s single ones; a TypeError without ``get_state``."""
        env: Any = self.env
        steps_alone = isinstance(env, SyncVectorEnv) and not hasattr(env, "get_state")
        if not steps_alone or not all(one.has_wrapper_attr("get_state") for one in env.envs):
            return {"env": state_below(env), "over": self._over.copy()}
        return {
            "envs": [one.get_wrapper_attr("get_state")() for one in env.envs],
            "wrappers": [
                [copy.deepcopy(_changing(layer)) for layer in [*layers(one)][:-1]]
                for one in env.envs
            ],
            "observations": copy.deepcopy(env._env_obs),
            "waiting": env._autoreset_envs.copy(),
            "over": self._over.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Return to a state from :meth:`get_state` of the same environments with the same wrappers."""
        env: Any = self.env
        if "envs" in state:
            for one, inner, own in zip(env.envs, state["envs"], state["wrappers"], strict=True):
                one.get_wrapper_attr("set_state")(inner)
                for layer, held in zip([*layers(one)][:-1], own, strict=True):
                    vars(layer).update(copy.deepcopy(held))
            env._env_obs = copy.deepcopy(state["observations"])
            env._autoreset_envs = state["waiting"].copy()
        else:
            env.set_state(state["env"])
        self._over = state["over"].copy()


def put_in_order(env: Any) -> Env:
    """A stack's bottom with the door it needs; a plain ``gymnasium.Env`` becomes a batch of one without autoreset."""
    if isinstance(env, VectorEnv):
        needs_door = (
            isinstance(env.unwrapped, SyncVectorEnv)
            or autoreset_mode(env) is not AutoresetMode.DISABLED
        )
        return ForeignEnv(env) if needs_door else env
    if isinstance(env, gym.Env):
        batch = SyncVectorEnv([partial(_itself, env)], autoreset_mode=AutoresetMode.DISABLED)
        batch.spec = env.spec
        return ForeignEnv(batch)
    return FromCMDP(env) if hasattr(env, "need_auto_reset_wrapper") else env


def transition_cost(info: Info, key: str) -> Array | None:
    """A step's cost or costs, or None. Gymnasium's SAME_STEP reports those of last steps in ``final_info`` alone."""
    costs, final_info = info.get(key), info.get("final_info")
    if not isinstance(final_info, dict) or f"_{key}" not in final_info:
        return costs
    rows, final_costs = final_info[f"_{key}"], final_info[key]
    return (
        arrays.blank_rows(~rows, final_costs)
        if costs is None
        else arrays.where_rows(rows, final_costs, costs)
    )


def _in_order(observation: Tree, ended: Array, info: Info) -> Info:
    ordered = dict(info)
    if "final_obs" in info:
        rows = ordered["_final_obs"] = info.get("_final_obs", ended)
        ordered["final_obs"] = _full_batch(rows, info["final_obs"], observation)
    for key in COSTS:
        cost = transition_cost(info, key)
        if cost is not None:
            ordered[key] = cost
            masks = [
                part[f"_{key}"] for part in (info, info.get("final_info", {})) if f"_{key}" in part
            ]
            if masks:
                ordered[f"_{key}"] = masks[0] | masks[-1]
    return ordered


def _full_batch(rows: Array, final: Any, observation: Tree) -> Tree:
    """``observation`` with the rows of a full batch or of Gymnasium's array of single observations."""
    if not (isinstance(final, np.ndarray) and final.dtype == object):
        return cast(Tree, arrays.where_rows(rows, final, observation))
    ids = np.flatnonzero(arrays.as_numpy(rows)).tolist()

    def write(array: Any, *values: Any) -> Array:
        batch: Any = arrays.copied(array)
        for i, value in zip(ids, values, strict=True):
            batch[i] = arrays.as_kind_of(np.asarray(value), batch)
        return cast(Array, batch)

    return cast(Tree, arrays.map_leaves(write, observation, *final[ids]))


class _Held(gym.Wrapper[Any, Any, Any, Any]):
    """An environment that waits: it returns its last observation, whatever is asked of it."""

    def __init__(self, env: SingleEnv, observation: Any):
        super().__init__(env)
        self._observation = observation

    def reset(self, **kwargs: Any) -> tuple[Any, Info]:
        return self._observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        return self._observation, 0.0, False, False, {}


def _step_without(rows: np.ndarray[Any, Any], core: SyncVectorEnv, env: Env, actions: Tree) -> Step:
    envs = list(core.envs)
    for i in np.flatnonzero(rows):
        core.envs[i] = _Held(envs[i], core._env_obs[i])
    try:
        core.reset(options={"reset_mask": rows.copy()})  # forgets that they have ended
        return env.step(actions)
    finally:
        core.envs[:] = envs


def _itself(env: SingleEnv) -> SingleEnv:
    return env


def _changing(layer: Any) -> dict[str, Any]:
    """What a wrapper of Gymnasium holds that changes, such as the count of its ``TimeLimit``."""
    return {
        key: held
        for key, held in vars(layer).items()
        if key != "env" and "space" not in key and "spec" not in key
    }
