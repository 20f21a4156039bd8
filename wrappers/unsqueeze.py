"""A plain environment as a batch of one."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from legged_envs.wrappers.base import check_step_values


class Unsqueeze(VectorEnv):
    """A ``gymnasium.Env`` as a vector environment with ``num_envs`` 1 that does not reset by itself.

    It gives what ``gymnasium.vector.SyncVectorEnv`` with this one environment and autoreset DISABLED gives: NumPy
    arrays whose first dimension is 1, also of the numbers and arrays within ``info``, each with a mask of the same name
    and a leading underscore. ``reset(options={"reset_mask": array([False])})`` returns the last observation.

    Args:
        env: An environment, with its own time limit or without.

    Raises:
        ValueError: If ``env`` is a vector environment, or a ``CMDP``.
        TypeError: If it is no environment.
    """

    def __init__(self, env: gym.Env):
        given: object = env
        if isinstance(given, VectorEnv):
            raise ValueError(
                f"Unsqueeze makes a batch of one plain gymnasium.Env, got a vector environment with num_envs="
                f"{given.num_envs}: it is a batch already, leave Unsqueeze out"
            )
        if not isinstance(given, gym.Env):
            raise TypeError(f"Unsqueeze needs a gymnasium.Env, got {type(given).__name__}")
        check_step_values(env, "Unsqueeze")
        self.envs = [env]
        self.num_envs = 1
        self.metadata = {**env.metadata, "autoreset_mode": AutoresetMode.DISABLED}
        self.render_mode = env.render_mode
        self.spec = env.spec
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.observation_space = batch_space(env.observation_space, 1)
        self.action_space = batch_space(env.action_space, 1)
        self._env_obs: list[Any] = [None]

    @property
    def cost_names(self) -> tuple[str, ...]:
        """Names of the columns of ``info["costs"]``, if the environment has them."""
        return self.envs[0].get_wrapper_attr("cost_names")

    @property
    def cost_limits(self) -> tuple[float, ...]:
        """What each column of ``info["costs"]`` may be on average per step, if the environment has such limits."""
        return self.envs[0].get_wrapper_attr("cost_limits")

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode, unless ``options["reset_mask"]`` is ``[False]``.

        Raises:
            ValueError: If the mask or a list of seeds has another length than 1.
            TypeError: If the mask is not boolean.
            RuntimeError: If the mask of the first reset is ``[False]``.
        """
        options = dict(options or {})
        mask = np.asarray(options.pop("reset_mask", [True]))
        if mask.shape != (1,):
            raise ValueError(f"reset_mask must have shape (1,), got {mask.shape}")
        if mask.dtype != bool:
            raise TypeError(f"reset_mask must be boolean, got {mask.dtype}")
        if isinstance(seed, (list, tuple, np.ndarray)):
            if len(seed) != 1:
                raise ValueError(f"a list of seeds needs num_envs=1 entries, got {len(seed)}")
            seed = seed[0]
        if not mask[0]:
            if self._env_obs[0] is None:
                raise RuntimeError("the first reset must be of all environments: call reset() without a reset_mask")
            return self._observation(), {}
        self._env_obs[0], info = self.envs[0].reset(seed=seed, options=options or None)
        return self._observation(), self._add_info({}, info, 0)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Advance by one step.

        Args:
            actions: A batch of one action, an element of ``action_space``.

        Raises:
            ValueError: If the actions have another shape.
        """
        shape = self.action_space.shape
        if shape is not None and np.shape(actions) != shape:
            raise ValueError(f"actions must have shape {shape}, got {np.shape(actions)}")
        action = next(iter(iterate(self.action_space, actions)))
        self._env_obs[0], reward, terminated, truncated, info = self.envs[0].step(action)
        return (
            self._observation(),
            np.array([reward], np.float64),
            np.array([terminated], bool),
            np.array([truncated], bool),
            self._add_info({}, info, 0),
        )

    def render(self) -> tuple[Any, ...]:
        """The picture of the environment, in a tuple."""
        return (self.envs[0].render(),)

    def close_extras(self, **kwargs: Any) -> None:
        self.envs[0].close()

    def get_state(self) -> dict[str, Any]:
        """The state of the environment, from its own ``get_state``, and of the wrappers around it."""
        return {
            "env": self.envs[0].get_wrapper_attr("get_state")(),
            "wrappers": [copy.deepcopy(_own(layer)) for layer in self._layers()],
            "observation": copy.deepcopy(self._env_obs),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Return to a state from ``get_state`` of the same environment with the same wrappers."""
        self.envs[0].get_wrapper_attr("set_state")(state["env"])
        for layer, own in zip(self._layers(), state["wrappers"], strict=True):
            vars(layer).update(copy.deepcopy(own))
        self._env_obs[:] = copy.deepcopy(state["observation"])

    def _observation(self) -> Any:
        batch: Any = create_empty_array(self.single_observation_space, 1)
        return concatenate(self.single_observation_space, self._env_obs, batch)

    def _layers(self) -> list[gym.Wrapper]:
        layers, env = [], self.envs[0]
        while isinstance(env, gym.Wrapper):
            layers.append(env)
            env = env.env
        return layers


def _own(layer: gym.Wrapper) -> dict[str, Any]:
    """What a wrapper of Gymnasium holds that changes, such as the count of its ``TimeLimit``."""
    return {
        key: value for key, value in vars(layer).items() if key != "env" and "space" not in key and "spec" not in key
    }
