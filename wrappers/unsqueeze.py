"""A plain environment as a batch of one."""

from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from legged_envs.wrappers.from_cmdp import reset_of_none
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import Options, Seed, StatefulWrapper
from legged_envs.wrappers.plumbing.layers import Step, cost_attribute


class Unsqueeze(StatefulWrapper):
    """A ``gymnasium.Env`` as a vector environment with ``num_envs`` 1 that does not reset by itself.

    It gives what ``gymnasium.vector.SyncVectorEnv`` with this one environment and autoreset DISABLED gives: NumPy
    arrays whose first dimension is 1, also of the numbers and arrays within ``info``, each with a mask of the same name
    and a leading underscore. ``reset(options={"reset_mask": array([False])})`` returns the last observation.
    ``cost_names`` and ``cost_limits`` are those of the environment, if it has them. A vector environment of several and
    a ``CMDP`` are a ValueError, no environment a TypeError. As all wrappers here do this to a plain environment, it can
    stand at the end of a chain too, as in OmniSafe: ``Unsqueeze(ActionScale(AutoReset(TimeLimit(env, 100)), -1, 1))``.

    >>> import gymnasium as gym
    >>> env = gym.make("CartPole-v1")
    >>> env.reset(seed=0)[0].shape, Unsqueeze(env).reset(seed=0)[0].shape
    ((4,), (1, 4))
    """

    STATE = {"observation": None}  # noqa: RUF012

    def __init__(self, env: Any):
        if isinstance(env, VectorEnv) and env.num_envs != 1:
            given = f"a vector environment with num_envs={env.num_envs}: it is a batch already, leave Unsqueeze out"
            raise ValueError(f"Unsqueeze makes a batch of one plain gymnasium.Env, got {given}")
        if not isinstance(env, (gym.Env, VectorEnv)) and not hasattr(
            env, "need_auto_reset_wrapper"
        ):
            raise TypeError(f"Unsqueeze needs a gymnasium.Env, got {type(env).__name__}")
        super().__init__(env)
        for name in ("cost_names", "cost_limits"):
            if (value := cost_attribute(self.env, name)) is not None:
                setattr(self, name, value)
        self._observation: Any = None

    def reset(self, *, seed: Seed = None, options: Options = None) -> tuple[Tree, Info]:
        """Start a new episode, or none by ``reset_mask`` ``[False]``: at first a RuntimeError. A mask or list of seeds
        of another length is a ValueError, a mask that is not boolean a TypeError."""
        if isinstance(seed, (list, tuple, np.ndarray)) and len(seed) != 1:
            raise ValueError(f"a list of seeds needs num_envs=1 entries, got {len(seed)}")
        mask = arrays.as_numpy((options or {}).get("reset_mask", np.ones(1, bool)))
        if mask.shape != (1,):
            raise ValueError(f"reset_mask must have shape (1,), got {mask.shape}")
        if mask.dtype != bool:
            raise TypeError(f"reset_mask must be boolean, got {mask.dtype}")
        if not mask[0]:
            return reset_of_none(self._observation)
        return super().reset(seed=seed, options=options)

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        self._observation = arrays.map_arrays(arrays.copied, observation)
        return observation, info

    def step(self, actions: Tree) -> Step:
        """Advance by one step with a batch of one action; a ``ValueError`` if it has another shape."""
        shape = self.action_space.shape
        if shape is not None and np.shape(cast(Any, actions)) != shape:
            raise ValueError(f"actions must have shape {shape}, got {np.shape(cast(Any, actions))}")
        observation, reward, terminated, truncated, info = self.env.step(actions)
        self._observation = arrays.map_arrays(arrays.copied, observation)
        return observation, reward, terminated, truncated, info
