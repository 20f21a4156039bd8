"""What the adapters ask of an environment that an RL library trains on, and how they read its observations."""

from collections.abc import Callable
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from array_api_compat import is_torch_array
from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs.wrappers.plumbing.arrays import Info, first_array
from legged_envs.wrappers.plumbing.base import Options, ShowsEnv, in_order
from legged_envs.wrappers.plumbing.layers import Env, layers

OBSERVATION_GROUP, STATE_GROUP = (
    "policy",
    "critic",
)  # groups of a dict of observations: for both, for the critic alone
LayerType = TypeVar("LayerType")


class AdapterEnv(ShowsEnv):
    """An environment ``env`` in the form that a library wants."""

    def close(self) -> None:
        """Close the environment; it cannot be reset or stepped afterwards."""
        self.env.close()


class WrongArrays(TypeError, ValueError):
    """An environment's arrays are of another kind than a library takes."""


def accept_env(env: Any, library: str, array: str) -> Any:
    """The environment in order; a ValueError with the right call unless it is a vector one in mode SAME_STEP."""
    call = _make_vec_call(env, array)
    if not isinstance(env, VectorEnv):
        raise ValueError(
            f"{library} needs a vector environment, got {type(env).__name__}: make it by {call}"
        )
    mode = env.metadata.get("autoreset_mode")
    if mode is not AutoresetMode.SAME_STEP:
        raise ValueError(
            f"{library} needs autoreset_mode SAME_STEP, got {mode}: make the environment by {call}"
        )
    return in_order(env, library)


def checked_reset(
    env: Env, library: str, array: str, seed: int | None, options: Options = None
) -> tuple[Any, Info]:
    """``env.reset``; a :class:`WrongArrays` that says what to do if the observation is of another kind of arrays."""
    observation, info = env.reset(seed=seed, options=options)
    example = first_array(observation)
    if not (is_torch_array(example) if array == "torch" else isinstance(example, np.ndarray)):
        how = _make_vec_call(env, array) if is_of_this_package(env.spec) else f"array={array!r}"
        wrapper = f"legged_envs.wrappers.{'ToTorch' if array == 'torch' else 'ToNumpy'}"
        wrong = f"{library} takes {array} arrays, got {type(example).__name__}"
        raise WrongArrays(f"{wrong}: make the environment with {how}, or wrap it in {wrapper}")
    return observation, info


def _make_vec_call(env: Any, array: str) -> str:
    spec = getattr(env, "spec", None)
    call = f"gymnasium.make_vec({'id' if spec is None else repr(spec.id)}, num_envs={getattr(env, 'num_envs', 'N')}"
    if is_of_this_package(spec):
        return f"{call}, autoreset_mode='SameStep', array={array!r})"
    return f"{call}, vectorization_mode='sync', vector_kwargs={{'autoreset_mode': 'SameStep'}})"


def is_of_this_package(spec: gym.envs.registration.EnvSpec | None) -> bool:
    """Whether ``make_vec`` makes an id as it makes this package's, with the keyword ``array``."""
    return str(getattr(spec, "vector_entry_point", "")).startswith("legged_envs.")


def find_layer(env: Env, kind: type[LayerType]) -> LayerType | None:
    return next((layer for layer in layers(env) if isinstance(layer, kind)), None)


def group_spaces(env: Env, library: str) -> tuple[gym.Space[Any], gym.Space[Any] | None]:
    """Spaces of the observation for the policy and for the critic alone, or None; without ``policy`` a ValueError."""
    space = env.single_observation_space
    groups = (
        dict(space.spaces) if isinstance(space, gym.spaces.Dict) else {OBSERVATION_GROUP: space}
    )
    if OBSERVATION_GROUP not in groups:
        raise ValueError(
            f"{library} needs an observation group {OBSERVATION_GROUP!r}, got {list(groups)}"
        )
    return groups[OBSERVATION_GROUP], groups.get(STATE_GROUP)


def split_groups(observation: Any, convert: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The converted observations for the policy and for the critic alone, or None without one."""
    groups = observation if isinstance(observation, dict) else {OBSERVATION_GROUP: observation}
    critic = groups.get(STATE_GROUP)
    return convert(groups[OBSERVATION_GROUP]), None if critic is None else convert(critic)
