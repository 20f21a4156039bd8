"""The unbatched environment: one robot as a plain ``gymnasium.Env``."""

from collections.abc import Callable
from operator import index, itemgetter
from typing import Any

import gymnasium as gym
import numpy as np

from legged_envs.envs.arguments import action_array
from legged_envs.envs.core import CoreVectorEnv
from legged_envs.envs.manager_task import LeggedVectorEnv
from legged_envs.state import map_tree
from legged_envs.tables import Table, TableRepr


class LeggedEnv(TableRepr, gym.Env):
    """One robot of :class:`LeggedVectorEnv`, without the batch dimension and without a time limit. ``info`` holds
    ``cost`` (float) and ``costs`` (K,), in the order of ``cost_names`` with ``cost_limits``, on every step."""

    def __init__(
        self, cfg: Any, make_core: Callable[..., CoreVectorEnv] = LeggedVectorEnv, **kwargs: Any
    ):
        batch = self.core = make_core(cfg, 1, array="numpy", **kwargs)
        """The vector environment of this one robot."""
        self.cfg, self.render_mode = batch.cfg, batch.render_mode
        self.metadata = {
            key: value for key, value in batch.metadata.items() if key != "autoreset_mode"
        }
        self.observation_space, self.action_space = (
            batch.single_observation_space,
            batch.single_action_space,
        )
        self.cost_names, self.cost_limits = batch.cost_names, batch.cost_limits

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode. The same seed gives what environment 0 of a vector environment with that seed
        does. ValueError or TypeError if seed or option is not valid."""
        super().reset(seed=None if seed is None else index(seed))
        if options and "reset_mask" in options:
            raise ValueError("reset_mask is for vector environments: gymnasium.make_vec")
        observation, _ = self.core.reset(seed=seed, options=options)
        return self._first(observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance by one control step; ValueError if the action has the wrong shape or is not finite, TypeError if it
        is not of real numbers."""
        if not isinstance(self.action_space, gym.spaces.Box):
            action = map_tree(np.asarray, action)
        elif not isinstance(action, np.ndarray) or action.shape != self.action_space.shape:
            action = action_array(action, self.action_space.shape)
        batch = (
            action[None]
            if isinstance(action, np.ndarray)
            else map_tree(lambda part: part[None], action)
        )
        observation, reward, terminated, truncated, info = self.core.step(batch)
        info = {"cost": float(info["cost"][0]), "costs": info["costs"][0]}
        return (
            self._first(observation),
            float(reward[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            info,
        )

    def render(self) -> np.ndarray | None:
        """A picture, (480, 640, 3) uint8; None without a render mode."""
        return None if self.render_mode is None else self.core.render()[0]

    def close(self) -> None:
        self.core.close()

    def get_state(self) -> dict[str, Any]:
        """Everything that the future of this environment depends on, copied."""
        return self.core.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Return exactly to a state from :meth:`get_state`; ValueError, and nothing changed, if it is of another
        task."""
        self.core.set_state(state)

    def _as_tables(self) -> list[Table]:
        return [(repr(self), (), ()), *self.core._as_tables()]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}<{self.spec.id if self.spec else self.cfg.robot.name}>>"

    @staticmethod
    def _first(observation: Any) -> Any:
        return (
            observation[0]
            if isinstance(observation, np.ndarray)
            else map_tree(itemgetter(0), observation)
        )


class EpisodeLimit(gym.wrappers.TimeLimit):
    """Gymnasium's time limit, whose end is a termination where the task says ``is_finite_horizon``."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        if truncated:
            cfg = self.env.get_wrapper_attr("cfg")
            if cfg.is_finite_horizon and self._elapsed_steps >= cfg.max_episode_length:
                terminated, truncated = True, False
        return observation, reward, terminated, truncated, info
