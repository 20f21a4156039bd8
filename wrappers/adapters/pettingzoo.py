"""One environment of a multi-agent task as PettingZoo's ``ParallelEnv``."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from pettingzoo import ParallelEnv

from legged_envs.wrappers.plumbing.adapter import OBSERVATION_GROUP, checked_reset
from legged_envs.wrappers.plumbing.arrays import map_leaves
from legged_envs.wrappers.plumbing.base import in_order
from legged_envs.wrappers.plumbing.layers import Env


class PettingZooEnv(ParallelEnv[str, Any, Any]):
    """A vector environment of one environment, of NumPy arrays and without autoreset, whose task is a ``DirectMARLEnv``
    as PettingZoo's ``ParallelEnv``. An agent leaves ``agents`` when its episode is over. ``infos`` holds, for each
    agent, ``cost`` and ``costs`` (K,) of the environment. Options of ``reset`` are not looked at. ValueError if the
    environment is of another kind."""

    def __init__(self, env: Env):
        self._env = env = in_order(env, "PettingZoo")
        task: Any = getattr(env.unwrapped, "task", None)
        mode = env.metadata.get("autoreset_mode")
        if (
            not hasattr(task, "possible_agents")
            or env.num_envs != 1
            or mode is not AutoresetMode.DISABLED
        ):
            wrong = f"PettingZoo needs one environment of a task with agents that does not reset by itself, got {env}"
            raise ValueError(
                f"{wrong}: make it by gymnasium.make_vec(id, num_envs=1, autoreset_mode='Disabled')"
            )
        self._task = task
        self.possible_agents: list[str] = list(self._task.possible_agents)
        self.agents: list[str] = []
        self.observation_spaces: dict[str, gym.Space[Any]] = self._task.observation_spaces
        self.action_spaces: dict[str, gym.Space[Any]] = self._task.action_spaces
        self.render_mode = env.render_mode
        self.metadata = {
            **env.metadata,
            "name": env.spec.id if env.spec else str(env),
            "is_parallelizable": True,
        }

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space[Any]:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], Any]:
        observation, _ = checked_reset(self._env, "PettingZoo", "numpy", seed)
        self.agents = list(self.possible_agents)
        return self._rows(observation), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], Any, Any, Any, Any]:
        """One control step with an action of each of ``agents``; all five are dicts of these."""
        given = {
            a: map_leaves(lambda leaf: torch.as_tensor(np.asarray(leaf))[None], part)
            for a, part in actions.items()
        }
        joined = map_leaves(lambda leaf: leaf.numpy(), self._task.join_actions(given))
        observation, _, _, truncated, info = self._env.step(joined)
        parts = self._task.outcome(truncated, info)
        rewards, terminated, truncations = (
            {agent: part[agent][0].item() for agent in self.agents} for part in parts
        )
        observations = self._rows(observation)
        infos = {agent: {key: info[key][0] for key in ("cost", "costs")} for agent in self.agents}
        self.agents = [
            agent for agent in self.agents if not (terminated[agent] or truncations[agent])
        ]
        return observations, rewards, terminated, truncations, infos

    def state(self) -> np.ndarray:
        """The state of all agents; ValueError if the task has none."""
        if (state := self._task.state()) is None:
            raise ValueError("the task has no state: its state_space is 0")
        return np.asarray(state[0])

    def render(self) -> np.ndarray | None:
        """A picture, (480, 640, 3) uint8; None without a ``render_mode``."""
        return None if self.render_mode is None else self._env.render()[0]

    def close(self) -> None:
        self._env.close()

    def _rows(self, observation: Any) -> dict[str, Any]:
        is_groups = isinstance(self._env.single_observation_space, gym.spaces.Dict)
        joined = observation[OBSERVATION_GROUP] if is_groups else observation
        parts = self._task.split(joined, self.observation_spaces)
        return {agent: map_leaves(lambda rows: rows[0], parts[agent]) for agent in self.agents}
