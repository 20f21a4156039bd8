"""The layer around environments of other packages, above which every step has one form.

docs/how-to/wrappers.md describes the form of a step.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from legged_envs.wrappers.from_cmdp import FromCMDP
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, NumPyArray, Tree
from legged_envs.wrappers.plumbing.layers import (
    COST_KEYS,
    Env,
    Layer,
    SingleEnv,
    SingleWrapper,
    State,
    Step,
    Wrapper,
    autoreset_mode,
    layers,
    state_below,
)


class ForeignEnv(Wrapper):
    """A vector environment of Gymnasium's kind in the form that this package's wrappers expect.

    Wrappers put this layer around an environment of another package themselves. In mode SAME_STEP
    ``final_obs`` is a full batch instead of an array of objects, equal to the observation where
    ``_final_obs`` is false. Costs are at the top level of ``info`` on the step that they belong to,
    instead of only in ``final_info``.

    A ``SyncVectorEnv`` skips the environments that :meth:`end_episodes` named until their reset: it
    refuses to step them, and their next episodes would lose random numbers. Other environments step
    them, and the result is not used.

    Args:
        env: The vector environment.
    """

    def __init__(self, env: Env):
        super().__init__(env)
        # A copy, which later environments of the same class cannot change: see `autoreset_mode`.
        self.metadata = {**env.metadata, "autoreset_mode": autoreset_mode(env)}
        # Environments with an episode that a layer above has ended.
        self._over = np.zeros(self.num_envs, bool)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Tree, Info]:
        mask = None
        options_below = None
        if options is not None:
            mask = options.get("reset_mask")
            options_below = dict(options)  # Gymnasium's vector environments remove entries
        env: Layer = self.env
        observation, info = env.reset(seed=seed, options=options_below)
        if mask is None:
            self._over[:] = False
        else:
            self._over &= ~arrays.as_numpy(mask)
        return observation, info

    def step(self, actions: Tree) -> Step:
        core = self.env.unwrapped
        if isinstance(core, SyncVectorEnv) and self._over.any():
            with _waiting(core, self._over):
                return self.env.step(actions)
        observation, reward, terminated, truncated, info = self.env.step(actions)
        if "final_obs" in info or "final_info" in info:
            info = _uniform_info(observation, terminated | truncated, info)
        return observation, reward, terminated, truncated, info

    def end_episodes(self, mask: Array) -> None:
        """Leave the environments of a mask (num_envs,) out of the steps until their reset."""
        self._over |= arrays.as_numpy(mask)

    def get_state(self) -> State:
        """Return the state of the environment, or of the single ones of a ``SyncVectorEnv``.

        Raises:
            TypeError: The environments have no ``get_state``.
        """
        env: Layer = self.env
        if not _saves_single_envs(env):
            return {"env": state_below(env), "over": self._over.copy()}
        return {
            "envs": [single.get_wrapper_attr("get_state")() for single in env.envs],
            "wrappers": [_wrapper_states(single) for single in env.envs],
            # Gymnasium has no public way to these two.
            "observations": copy.deepcopy(env._env_obs),
            "waiting": env._autoreset_envs.copy(),
            "over": self._over.copy(),
        }

    def set_state(self, state: State) -> None:
        """Return to a state from :meth:`get_state` of the same environments and wrappers."""
        env: Layer = self.env
        if "envs" in state:
            for single, inner, wrappers in zip(
                env.envs, state["envs"], state["wrappers"], strict=True
            ):
                single.get_wrapper_attr("set_state")(inner)
                _set_wrapper_states(single, wrappers)
            env._env_obs = copy.deepcopy(state["observations"])
            env._autoreset_envs = state["waiting"].copy()
        else:
            env.set_state(state["env"])
        self._over = state["over"].copy()


def wrap_foreign(env: Layer) -> Env:
    """Return the bottom of a stack in the form that this package's wrappers expect.

    Args:
        env: A vector environment; a plain ``gymnasium.Env``, which becomes a batch of one without
            autoreset; or an environment of OmniSafe. Anything else is returned as it is.
    """
    wrapped: Env = env
    if isinstance(env, VectorEnv):
        resets_itself = autoreset_mode(env) is not AutoresetMode.DISABLED
        if resets_itself or isinstance(env.unwrapped, SyncVectorEnv):
            wrapped = ForeignEnv(env)
    elif isinstance(env, gym.Env):
        batch = SyncVectorEnv([partial(_itself, env)], autoreset_mode=AutoresetMode.DISABLED)
        # Errors and adapters name the environment by its spec.
        batch.spec = env.spec
        wrapped = ForeignEnv(batch)
    elif hasattr(env, "need_auto_reset_wrapper"):
        wrapped = FromCMDP(env)
    return wrapped


def transition_cost(info: Info, key: str) -> Array | None:
    """Return the cost or costs of a step, also where Gymnasium hides them.

    Gymnasium's mode SAME_STEP reports costs of an episode's last step only in ``final_info``.

    Args:
        info: Info of the step.
        key: ``"cost"`` or ``"costs"``.

    Returns:
        The values. Shape: (num_envs,) or (num_envs, K). None if the step reports none.
    """
    costs: Array | None = info.get(key)
    final_info = info.get("final_info")
    if not isinstance(final_info, dict) or f"_{key}" not in final_info:
        return costs
    rows = final_info[f"_{key}"]
    final_costs: Array = final_info[key]
    if costs is None:
        return arrays.blank_rows(~rows, final_costs)
    return arrays.where_rows(rows, final_costs, costs)


def _uniform_info(observation: Tree, ended: Array, info: Info) -> Info:
    uniform = dict(info)
    if "final_obs" in info:
        rows = info.get("_final_obs", ended)
        uniform["_final_obs"] = rows
        uniform["final_obs"] = _full_batch(rows, info["final_obs"], observation)
    for key in COST_KEYS:
        cost = transition_cost(info, key)
        if cost is None:
            continue
        uniform[key] = cost
        reports = (info, info.get("final_info", {}))
        masks = [report[f"_{key}"] for report in reports if f"_{key}" in report]
        if masks:
            uniform[f"_{key}"] = masks[0] | masks[-1]
    return uniform


def _full_batch(rows: Array, final: Any, observation: Tree) -> Tree:
    """Return ``observation`` with the last observations of the ended episodes in their rows.

    Args:
        rows: Environments with an ended episode. Shape: (num_envs,), bool.
        final: A full batch, or Gymnasium's array of single observations.
        observation: Observations after the step.
    """
    if not isinstance(final, np.ndarray) or final.dtype != object:
        return arrays.where_rows(rows, final, observation)
    env_ids = np.flatnonzero(arrays.as_numpy(rows)).tolist()

    def write(array: Array, *values: Any) -> Array:
        batch: Any = arrays.copied(array)
        for i, value in zip(env_ids, values, strict=True):
            batch[i] = arrays.as_kind_of(np.asarray(value), batch)
        written: Array = batch
        return written

    full: Tree = arrays.map_leaves(write, observation, *final[env_ids])
    return full


# --- environments of a SyncVectorEnv that wait for their reset ------------------------------------


class _WaitingEnv(SingleWrapper):
    """An environment that returns its last observation from every reset and step."""

    def __init__(self, env: SingleEnv, observation: Tree | None):
        super().__init__(env)
        self._observation = observation

    def reset(self, **kwargs: Any) -> tuple[Tree | None, Info]:
        return self._observation, {}

    def step(self, action: Tree) -> tuple[Tree | None, float, bool, bool, Info]:
        return self._observation, 0.0, False, False, {}


@contextmanager
def _waiting(core: SyncVectorEnv, mask: NumPyArray) -> Iterator[None]:
    """Let the environments of a mask (num_envs,) wait while the others are stepped."""
    envs = list(core.envs)
    for i in np.flatnonzero(mask):
        core.envs[i] = _WaitingEnv(envs[i], core._env_obs[i])
    try:
        # This reset changes no environment. The batch forgets that their episodes have ended.
        core.reset(options={"reset_mask": mask.copy()})
        yield
    finally:
        core.envs[:] = envs


def _itself(env: SingleEnv) -> SingleEnv:
    # A function at the top level, because a batch that holds a lambda cannot be pickled.
    return env


# --- state of the wrappers of single environments -------------------------------------------------


def _saves_single_envs(env: Layer) -> bool:
    if not isinstance(env, SyncVectorEnv) or hasattr(env, "get_state"):
        return False
    return all(single.has_wrapper_attr("get_state") for single in env.envs)


def _wrappers_of(single: SingleEnv) -> list[Layer]:
    return list(layers(single))[:-1]


def _wrapper_states(single: SingleEnv) -> list[State]:
    """Return copies of what the wrappers hold that changes, such as the count of a time limit."""
    states = []
    for wrapper in _wrappers_of(single):
        state = {}
        for key, value in vars(wrapper).items():
            if key != "env" and "space" not in key and "spec" not in key:
                state[key] = value
        # Copied as a whole, so that what two attributes share stays shared.
        states.append(copy.deepcopy(state))
    return states


def _set_wrapper_states(single: SingleEnv, states: list[State]) -> None:
    for wrapper, state in zip(_wrappers_of(single), states, strict=True):
        # Gymnasium's wrappers have no method that sets their state.
        vars(wrapper).update(copy.deepcopy(state))
