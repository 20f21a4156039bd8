"""Make a core environment from a configuration, and find it under wrappers."""

from typing import Any

from gymnasium.vector import VectorEnv

from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.core import CoreVectorEnv


def make_core(cfg: TaskCfg, num_envs: int, **arguments: Any) -> CoreVectorEnv:
    """Make the vector environment of a configuration, without time limit and autoreset.

    Args:
        cfg: Configuration of the task.
        num_envs: Number of environments.
        arguments: Keyword arguments of :class:`CoreVectorEnv`.
    """
    return CoreVectorEnv(cfg.make_task(), num_envs, **arguments)


def unwrap(env: VectorEnv) -> CoreVectorEnv:
    """Return the core environment under a stack of wrappers.

    Raises:
        TypeError: If the environment under the wrappers is not a core environment.
    """
    core: object = env.unwrapped
    if not isinstance(core, CoreVectorEnv):
        raise TypeError(f"expected a CoreVectorEnv under the wrappers, got {type(core).__name__}")
    return core
