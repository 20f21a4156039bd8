"""One environment of a multi-agent task as PettingZoo's ``ParallelEnv``."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from pettingzoo import ParallelEnv

from legged_envs.wrappers.plumbing.adapter import (
    OBSERVATION_GROUP,
    agent_action_spaces,
    checked_reset,
)
from legged_envs.wrappers.plumbing.arrays import Info, Tree, map_leaves
from legged_envs.wrappers.plumbing.base import prepare_env
from legged_envs.wrappers.plumbing.layers import Env, Layer, Space

Observations = dict[str, Tree]
"""The observation of each agent."""
StepResult = tuple[
    Observations, dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]
]
"""Observations, rewards, terminations, truncations and infos, by agent."""


class PettingZooEnv(ParallelEnv[str, Any, Any]):
    """A vector environment of one environment as PettingZoo's ``ParallelEnv``.

    The task is a ``DirectMARLEnv``. An agent leaves ``agents`` when its episode is over. ``infos``
    holds, for each agent, the environment's ``cost`` and ``costs`` (K,).

    Args:
        env: A vector environment with ``num_envs=1``, NumPy arrays and without autoreset.

    Raises:
        ValueError: If the environment is of another kind, or a wrapper changed the size of its
            observation.
    """

    def __init__(self, env: Env):
        env = prepare_env(env, "PettingZoo")
        core_task = getattr(env.unwrapped, "task", None)
        task: Layer = getattr(core_task, "user", None)
        has_agents = hasattr(task, "possible_agents")
        resets_itself = env.metadata.get("autoreset_mode") is not AutoresetMode.DISABLED
        if not has_agents or env.num_envs != 1 or resets_itself:
            raise ValueError(
                "PettingZoo needs one environment of a task with agents that does not reset "
                f"by itself, got {env}: make it by "
                "gymnasium.make_vec(id, num_envs=1, autoreset_mode='Disabled')"
            )
        self._env = env
        self._task = task
        self.possible_agents: list[str] = list(task.possible_agents)
        self.agents: list[str] = []
        self.observation_spaces: dict[str, Space] = task.observation_spaces
        self.action_spaces: dict[str, Space] = agent_action_spaces(env, task)
        self.render_mode = env.render_mode
        self.metadata = dict(env.metadata)
        self.metadata["name"] = env.spec.id if env.spec else str(env)
        self.metadata["is_parallelizable"] = True

    def observation_space(self, agent: str) -> Space:
        """Return the space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Space:
        """Return the space of an agent's actions."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[Observations, dict[str, Info]]:
        """Start a new episode of all agents.

        Args:
            seed: Seed; None continues the present random streams.
            options: Not read.

        Returns:
            The observation and an empty ``info`` of each agent.
        """
        observation, _ = checked_reset(self._env, "PettingZoo", "numpy", seed)
        self.agents = list(self.possible_agents)
        return self._split(observation), {agent: {} for agent in self.agents}

    def step(self, actions: Mapping[str, Any]) -> StepResult:
        """Advance by one control step.

        Args:
            actions: The action of each of ``agents``.

        Returns:
            Observations, rewards, terminations, truncations and infos of ``agents`` before the
            step, each a dict.
        """
        # The task joins tensors with a batch dimension; the environment takes NumPy arrays.
        batches = {agent: map_leaves(_as_batch, action) for agent, action in actions.items()}
        joined = map_leaves(torch.Tensor.numpy, self._task.join_actions(batches))
        observation, _, terminated, truncated, info = self._env.step(joined)
        outcome = self._task.outcome(terminated, truncated, info)
        rewards = self._first_items(outcome[0])
        terminations = self._first_items(outcome[1])
        truncations = self._first_items(outcome[2])
        observations = self._split(observation)
        infos: dict[str, Info] = {}
        for agent in self.agents:
            infos[agent] = {"cost": info["cost"][0], "costs": info["costs"][0]}
        # PettingZoo: an agent leaves after the step that ended its episode, which still has its
        # values.
        self.agents = [
            agent for agent in self.agents if not (terminations[agent] or truncations[agent])
        ]
        return observations, rewards, terminations, truncations, infos

    def state(self) -> np.ndarray:
        """Return the state of all agents.

        Raises:
            ValueError: If the task has no state, or the environment was made without
                ``observations="dict"``.
        """
        state = self._task.state()
        if state is None:
            raise ValueError("the task has no state: its state_space is 0")
        return np.asarray(state[0])

    def render(self) -> np.ndarray | None:
        """Return a picture, (480, 640, 3) uint8, or None without a ``render_mode``."""
        if self.render_mode is None:
            return None
        pictures: Any = self._env.render()
        return np.asarray(pictures[0])

    def close(self) -> None:
        """Close the environment; it cannot be reset or stepped afterwards."""
        self._env.close()

    def _split(self, observation: Tree) -> Observations:
        """Return each present agent's part of the batch's observation, without the batch
        dimension."""
        has_groups = isinstance(self._env.single_observation_space, gym.spaces.Dict)
        joined: Any = observation
        if has_groups:
            joined = joined[OBSERVATION_GROUP]
        parts = self._task.split(joined, self.observation_spaces)
        return {agent: map_leaves(_first_row, parts[agent]) for agent in self.agents}

    def _first_items(self, values: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """Return each present agent's number of the one environment, as a Python number."""
        return {agent: values[agent][0].item() for agent in self.agents}


def _as_batch(leaf: object) -> torch.Tensor:
    """Return an array as a tensor with a batch dimension of 1."""
    return torch.as_tensor(np.asarray(leaf))[None]


def _first_row(rows: Any) -> Any:
    return rows[0]
