"""Questions that concern a whole stack: its layers, its mode, its costs, and whose episodes are over."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree

Env: TypeAlias = VectorEnv[Any, Any, Any]
"""A vector environment of any kind of arrays."""
Step: TypeAlias = tuple[Tree, Array, Array, Array, Info]
"""Observation, reward, terminated, truncated, info."""
COSTS = (
    "cost",
    "costs",
)  # keys of info for the scalar cost (num_envs,) and for the cost terms (num_envs, K)


def layers(env: Any) -> Iterator[Any]:
    """The wrappers of a stack from the outside in, and the environment itself."""
    while env is not env.unwrapped:
        yield env
        env = env.env
    yield env


def autoreset_mode(env: Env) -> AutoresetMode:
    """When an environment resets; Gymnasium's default is the next step."""
    return AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))


def name_of(env: Any) -> str:
    """What an error calls the environment at the bottom of a stack: its class and its id. Its ``str`` may be pages."""
    core = env.unwrapped
    return type(core).__name__ if core.spec is None else f"{type(core).__name__} {core.spec.id!r}"


def cost_attribute(env: Any, name: str) -> Any:
    """``cost_names`` or ``cost_limits`` of ``env.unwrapped``, or of its first single environment; None without such."""
    core = env.unwrapped
    if hasattr(core, name) or not isinstance(core, SyncVectorEnv):
        return getattr(core, name, None)
    single = core.envs[0]
    return single.get_wrapper_attr(name) if single.has_wrapper_attr(name) else None


def end_episodes(env: Any, mask: Array) -> None:
    """Tell every layer below that the episodes of ``mask`` (num_envs,) are over: nothing counts until their reset."""
    for layer in layers(env):
        if hasattr(type(layer), "end_episodes"):
            layer.end_episodes(mask)


def whole_keys(env: Any) -> frozenset[str]:
    """Keys of ``info`` that layers name as having no row for each environment, but one number for each cost."""
    return frozenset[str]().union(
        *(getattr(type(layer), "whole_keys", ()) for layer in layers(env))
    )


def state_below(env: Any) -> Any:
    """``env.get_state()``; a ``TypeError`` if it has none to give, as Gymnasium's own wrappers and environments."""
    if not hasattr(env, "get_state"):
        raise TypeError(
            f"{type(env).__name__} has no get_state: save each wrapper by its own state_dict()"
        )
    return env.get_state()
