"""The wrapper that makes a batch of one of a plain environment."""

from collections.abc import Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from legged_envs.wrappers.from_cmdp import reset_of_none
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import Options, Seed, StatefulWrapper
from legged_envs.wrappers.plumbing.device import Device
from legged_envs.wrappers.plumbing.layers import AnyEnv, Step, cost_attribute


class Unsqueeze(StatefulWrapper):
    """Makes a ``gymnasium.Env`` a vector environment with ``num_envs`` 1 that never resets itself.

    The results are those of ``gymnasium.vector.SyncVectorEnv`` with this one environment and
    autoreset DISABLED: NumPy arrays with a first dimension of 1, also of the numbers and arrays
    within ``info``, each with a mask of the same name and a leading underscore. ``cost_names`` and
    ``cost_limits`` come from the environment, if it has them.

    All wrappers of this package make a plain environment a batch of one, so ``Unsqueeze`` can stand
    at the end of a chain too, as in OmniSafe:
    ``Unsqueeze(ActionScale(AutoReset(TimeLimit(env, 100)), -1, 1))``.

    Args:
        env: A plain ``gymnasium.Env``, or a chain of wrappers around one.
        device: Device on which the environment's arrays must be. None: any device.

    Raises:
        TypeError: ``env`` is not an environment.
        ValueError: ``env`` is a batch of several environments, or a ``CMDP``.

    Examples:
        >>> import gymnasium as gym
        >>> env = gym.make("CartPole-v1")
        >>> env.reset(seed=0)[0].shape, Unsqueeze(env).reset(seed=0)[0].shape
        ((4,), (1, 4))
    """

    STATE = {"observation": None}  # noqa: RUF012

    cost_names: Sequence[str]
    """Names of the cost terms, if the environment has them."""
    cost_limits: Sequence[float]
    """Limits of the cost terms, if the environment has them."""

    def __init__(self, env: AnyEnv, device: Device | None = None):
        if isinstance(env, VectorEnv) and env.num_envs != 1:
            raise ValueError(
                "Unsqueeze makes a batch of one plain gymnasium.Env, "
                f"got a vector environment with num_envs={env.num_envs}. "
                "It is a batch already: leave Unsqueeze out."
            )
        is_env = isinstance(env, (gym.Env, VectorEnv)) or hasattr(env, "need_auto_reset_wrapper")
        if not is_env:
            raise TypeError(f"Unsqueeze needs a gymnasium.Env, got {type(env).__name__}")
        super().__init__(env, device)
        cost_names = cost_attribute(self.env, "cost_names")
        if cost_names is not None:
            self.cost_names = cost_names
        cost_limits = cost_attribute(self.env, "cost_limits")
        if cost_limits is not None:
            self.cost_limits = cost_limits
        # The last observation, which a reset of no environment returns.
        self._observation: Tree | None = None

    def reset(self, *, seed: Seed = None, options: Options = None) -> tuple[Tree, Info]:
        """Start a new episode.

        Args:
            seed: Seed of the environment, or a list of one.
            options: Options of the environment. ``"reset_mask"`` [False] resets nothing and returns
                the last observation.

        Returns:
            Observation and info.

        Raises:
            RuntimeError: The first reset resets nothing.
            TypeError: The mask is not boolean.
            ValueError: The mask or the list of seeds does not have one entry.
        """
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
        """Step the environment with a batch of one action.

        Returns:
            Observation, reward, terminated, truncated and info.

        Raises:
            ValueError: The batch has another shape.
        """
        expected = self.action_space.shape
        given = np.shape(cast("Any", actions)) if expected is not None else None
        if given != expected:
            raise ValueError(f"actions must have shape {expected}, got {given}")
        observation, reward, terminated, truncated, info = self.env.step(actions)
        self._observation = arrays.map_arrays(arrays.copied, observation)
        return observation, reward, terminated, truncated, info
