"""Common parts of the adapters of the RL libraries: checks of the environment and its
observations."""

from collections.abc import Callable
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from array_api_compat import is_torch_array
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs.wrappers.plumbing.arrays import Info, first_array
from legged_envs.wrappers.plumbing.base import Options, ShowsEnv, prepare_env
from legged_envs.wrappers.plumbing.layers import Env, Layer, Space, autoreset_mode, layers

OBSERVATION_GROUP = "policy"
"""Key of the observation for policy and critic in a dict of observations."""
STATE_GROUP = "critic"
"""Key of the observation for only the critic in a dict of observations."""
LayerType = TypeVar("LayerType")


class AdapterEnv(ShowsEnv):
    """An environment ``env`` in the form that a library needs."""

    def close(self) -> None:
        """Close the environment. It cannot be reset or stepped afterwards."""
        self.env.close()


class WrongArrays(TypeError, ValueError):
    """An environment's arrays are of another kind than the library takes."""


def accept_env(env: Layer, library: str, array: str) -> Layer:
    """Check the environment that an adapter was given, and prepare it as a wrapper does.

    Args:
        env: The argument of the adapter.
        library: Name of the library, for errors.
        array: Kind of arrays that the library takes, ``"numpy"`` or ``"torch"``.

    Returns:
        The prepared environment.

    Raises:
        ValueError: ``env`` is not a vector environment, or not in autoreset mode SAME_STEP.
    """
    call = _make_vec_call(env, array)
    if not isinstance(env, VectorEnv):
        raise ValueError(
            f"{library} needs a vector environment, got {type(env).__name__}: make it by {call}"
        )
    mode = autoreset_mode(env)
    if mode is not AutoresetMode.SAME_STEP:
        raise ValueError(
            f"{library} needs autoreset_mode SAME_STEP, got {mode}: make the environment by {call}"
        )
    return prepare_env(env, library)


def checked_reset(
    env: Env, library: str, array: str, seed: int | None, options: Options = None
) -> tuple[Any, Info]:
    """Reset an environment and check the kind of its arrays.

    Args:
        env: The environment.
        library: Name of the library, for errors.
        array: Kind of arrays that the library takes, ``"numpy"`` or ``"torch"``.
        seed: Seed of the reset.
        options: Options of the reset.

    Returns:
        Observation and info.

    Raises:
        WrongArrays: The observation is of another kind of arrays.
    """
    observation, info = env.reset(seed=seed, options=options)
    example = first_array(observation)
    if array == "torch":
        is_right_kind = is_torch_array(example)
        wrapper = "legged_envs.wrappers.ToTorch"
    else:
        is_right_kind = isinstance(example, np.ndarray)
        wrapper = "legged_envs.wrappers.ToNumpy"
    if not is_right_kind:
        remedy = f"array={array!r}"
        if is_of_this_package(env.spec):
            remedy = _make_vec_call(env, array)
        raise WrongArrays(
            f"{library} takes {array} arrays, got {type(example).__name__}: "
            f"make the environment with {remedy}, or wrap it in {wrapper}"
        )
    return observation, info


def _make_vec_call(env: Layer, array: str) -> str:
    spec = getattr(env, "spec", None)
    env_id = "id" if spec is None else repr(spec.id)
    num_envs = getattr(env, "num_envs", "N")
    call = f"gymnasium.make_vec({env_id}, num_envs={num_envs}"
    if is_of_this_package(spec):
        return f"{call}, autoreset_mode='SameStep', array={array!r})"
    return f"{call}, vectorization_mode='sync', vector_kwargs={{'autoreset_mode': 'SameStep'}})"


def is_of_this_package(spec: EnvSpec | None) -> bool:
    """Return True if ``make_vec`` takes this package's keywords, such as ``array``, for an id."""
    entry_point = str(getattr(spec, "vector_entry_point", ""))
    return entry_point.startswith("legged_envs.")


def find_layer(env: Env, kind: type[LayerType]) -> LayerType | None:
    """Return the outermost layer of a class, or None if the stack has no such layer."""
    for layer in layers(env):
        if isinstance(layer, kind):
            return layer
    return None


def group_spaces(env: Env, library: str) -> tuple[Space, Space | None]:
    """Return the spaces of the observation for the policy and of the observation for only the
    critic.

    Args:
        env: The environment.
        library: Name of the library, for errors.

    Returns:
        The space of the group ``policy``, or of the observation if it has no groups; and the space
        of the group ``critic``, or None.

    Raises:
        ValueError: There are groups, but not ``policy``.
    """
    space = env.single_observation_space
    if not isinstance(space, gym.spaces.Dict):
        return space, None
    groups = dict(space.spaces)
    if OBSERVATION_GROUP not in groups:
        raise ValueError(
            f"{library} needs an observation group {OBSERVATION_GROUP!r}, got {list(groups)}"
        )
    return groups[OBSERVATION_GROUP], groups.get(STATE_GROUP)


def split_groups(observation: Any, convert: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the converted observations for the policy and for only the critic.

    Args:
        observation: An observation, or a dict of the groups ``policy`` and, maybe, ``critic``.
        convert: It is called with each of the two.

    Returns:
        The observation for the policy, and that for the critic or None.
    """
    if not isinstance(observation, dict):
        return convert(observation), None
    policy = convert(observation[OBSERVATION_GROUP])
    critic = observation.get(STATE_GROUP)
    if critic is None:
        return policy, None
    return policy, convert(critic)


def agent_action_spaces(env: Layer, task: Layer) -> dict[str, Space]:
    """Return the action space of each agent, with the bounds that wrappers gave it.

    Args:
        env: A vector environment of a task with agents, with its wrappers.
        task: The task.

    Raises:
        ValueError: A wrapper changed the size of the observation, which then cannot be split among
            the agents.
    """
    observation = env.single_observation_space
    if isinstance(observation, gym.spaces.Dict):
        observation = observation[OBSERVATION_GROUP]
    sizes = [gym.spaces.flatdim(space) for space in task.observation_spaces.values()]
    if observation.shape != (sum(sizes),):
        raise ValueError(
            f"the observation has the shape {observation.shape}, but the agents observe "
            f"{sum(sizes)} numbers: take out the wrapper that changes the observation's size"
        )
    joint = env.single_action_space
    low = task.split(joint.low[None], task.action_spaces)
    high = task.split(joint.high[None], task.action_spaces)
    spaces: dict[str, Space] = {}
    for agent in task.possible_agents:
        spaces[agent] = gym.spaces.Box(low[agent][0], high[agent][0], dtype=joint.dtype)
    return spaces
