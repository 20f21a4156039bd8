"""Functions on a stack of wrappers around an environment: its layers, autoreset mode and costs."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import gymnasium as gym
from gymnasium.vector import (
    AsyncVectorEnv,
    AutoresetMode,
    SyncVectorEnv,
    VectorEnv,
    VectorWrapper,
)

from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree

Env: TypeAlias = VectorEnv[Any, Any, Any]
"""A vector environment of any kind of arrays."""
SingleEnv: TypeAlias = gym.Env[Any, Any]
"""A plain ``gymnasium.Env``, which is not vectorized."""
if TYPE_CHECKING:
    Wrapper: TypeAlias = VectorWrapper[Any, Any, Any, Any, Any]
else:
    # Before Gymnasium 1.3 this class takes no type parameters.
    Wrapper = VectorWrapper
"""A wrapper of vector environments of any kind of arrays."""
SingleWrapper: TypeAlias = gym.Wrapper[Any, Any, Any, Any]
"""A wrapper of plain environments."""
Space: TypeAlias = gym.Space[Any]
"""Any space of Gymnasium."""
Layer: TypeAlias = Any
"""A wrapper or an environment, with attributes that Gymnasium's classes do not declare."""
Step: TypeAlias = tuple[Tree, Array, Array, Array, Info]
"""Observation, reward, terminated, truncated and info."""
State: TypeAlias = dict[str, Any]
"""A saved state, by the names of its parts."""
COST_KEYS = ("cost", "costs")
"""Keys of info for the scalar cost (num_envs,) and for the cost terms (num_envs, K)."""


class SixValueEnv(Protocol):
    """An environment with six values per step, such as OmniSafe's ``CMDP``."""

    @property
    def observation_space(self) -> object:
        """Space of the observations."""

    @property
    def action_space(self) -> object:
        """Space of the actions."""

    def reset(self, *args: Any, **kwargs: Any) -> object:
        """Reset the environment, and return observation and ``info``."""

    def step(self, action: Any, /) -> object:
        """Step the environment, and return observation, reward, cost, two flags and ``info``."""


AnyEnv: TypeAlias = Env | SingleEnv | SixValueEnv
"""Everything that a wrapper can be put around."""


def layers(env: Layer) -> Iterator[Layer]:
    """Iterate over the wrappers of a stack from the outside in, and then the environment itself."""
    while env is not env.unwrapped:
        yield env
        env = env.env
    yield env


def autoreset_mode(env: Env) -> AutoresetMode:
    """Return the autoreset mode of an environment. The default is NEXT_STEP, as in Gymnasium."""
    core: Layer = env.unwrapped
    # Before Gymnasium 1.3 these two write to the metadata that all environments of a class share,
    # where a later one replaces the mode. A layer with a mode has separate metadata.
    is_gymnasiums = isinstance(core, (SyncVectorEnv, AsyncVectorEnv))
    if is_gymnasiums and env.metadata is core.metadata:
        return AutoresetMode(core.autoreset_mode)
    return AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))


def name_of(env: Env | SingleEnv) -> str:
    """Return the class and id of the environment at the bottom of a stack, for errors.

    The ``str`` of an environment may be pages long.
    """
    core: Layer = env.unwrapped
    class_name = type(core).__name__
    if core.spec is None:
        return class_name
    return f"{class_name} {core.spec.id!r}"


def cost_attribute(env: Env | SingleEnv, name: str) -> Any:
    """Return ``cost_names`` or ``cost_limits`` of the environment at the bottom of a stack.

    Args:
        env: The stack.
        name: Name of the attribute.

    Returns:
        The attribute of ``env.unwrapped``, or of the first environment of a ``SyncVectorEnv``. None
        if neither has the attribute.
    """
    core: Layer = env.unwrapped
    # A SyncVectorEnv has no attributes of its environments, which are all alike: ask the first.
    if hasattr(core, name):
        return getattr(core, name)
    if not isinstance(core, SyncVectorEnv):
        return None
    single = core.envs[0]
    return single.get_wrapper_attr(name) if single.has_wrapper_attr(name) else None


def end_episodes(env: Env, mask: Array) -> None:
    """Tell every layer of a stack that episodes are over, so that nothing counts until their reset.

    Args:
        env: The stack.
        mask: Environments with an ended episode. Shape: (num_envs,), bool.
    """
    for layer in layers(env):
        if hasattr(type(layer), "end_episodes"):
            layer.end_episodes(mask)


def whole_keys(env: Env) -> frozenset[str]:
    """Return the keys of ``info`` with one number for each cost, not one row per environment."""
    if has_info_rows(env):
        return frozenset()
    keys: set[str] = set()
    for layer in layers(env):
        keys.update(getattr(type(layer), "whole_keys", ()))
    return frozenset(keys)


def has_info_rows(env: Env) -> bool:
    """Return True if the environment was made with ``info="arrays"``."""
    core: Layer = env.unwrapped
    # Another environment may have an attribute of this name for something else.
    arguments = getattr(core, "arguments", None)
    return isinstance(arguments, Mapping) and arguments.get("info") == "arrays"


def state_below(env: object) -> State:
    """Return ``env.get_state()``.

    Raises:
        TypeError: ``env`` has no ``get_state``, as Gymnasium's own wrappers and environments.
    """
    if not hasattr(env, "get_state"):
        raise TypeError(
            f"{type(env).__name__} has no get_state. "
            "Save each wrapper separately with its state_dict()."
        )
    state: State = env.get_state()
    return state
