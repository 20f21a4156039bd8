"""Train with skrl 2: environments as its ``Wrapper``, and agents with exact bootstrapping.

skrl's own wrapper gives agents the first observation of the next episode as the last observation of
the ended episode, and a critic no state.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from array_api_compat import device
from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import MultiAgentEnvWrapper, Wrapper
from skrl.multi_agents.torch.ippo import IPPO
from skrl.multi_agents.torch.mappo import MAPPO
from skrl.utils.runner.torch import Runner

from legged_envs.wrappers.plumbing.adapter import (
    AdapterEnv,
    accept_env,
    agent_action_spaces,
    checked_reset,
    group_spaces,
    split_groups,
)
from legged_envs.wrappers.plumbing.arrays import Info, Tree, first_array, map_leaves
from legged_envs.wrappers.plumbing.layers import Env, Space

AgentTensors = dict[str, torch.Tensor]
"""A tensor for each agent."""


class _SkrlEnv(AdapterEnv, ABC):
    """Common part of skrl's two kinds of environments. Subclasses first call :meth:`_begin`."""

    _observation: Any
    _state: Any
    _info: Info
    _new_episodes: bool

    def _begin(self, env: Env, seed: int | None) -> Any:
        """Start the first episodes of an environment, and return their observation."""
        self.env = env
        observation, info = checked_reset(env, "skrl", "torch", seed)
        self._info = info
        self._remember(observation)
        self._new_episodes = True
        return observation

    @abstractmethod
    def _remember(self, observation: Tree) -> None:
        """Keep an observation of the batch, and the state that belongs to it, in skrl's form."""

    def reset(self) -> tuple[Any, Info]:
        """Start new episodes, unless the present ones are new.

        skrl's trainers reset a single environment after it has reset itself.

        Returns:
            The observation, (num_envs, size), of several agents by agent, and ``info``.
        """
        if not self._new_episodes:
            observation, info = self.env.reset()
            self._info = info
            self._remember(observation)
            self._new_episodes = True
        return self._observation, self._info

    def state(self) -> Any:
        """Return the state that belongs to the last observation.

        Returns:
            Shape: (num_envs, size), of several agents by agent; None without one.
        """
        return self._state

    def get_state(self) -> dict[str, Any]:
        """Return the state of the environment and its wrappers, with the present observation."""
        return {
            "env": self.env.get_state(),
            "observation": map_leaves(torch.clone, self._observation),
            "state": map_leaves(torch.clone, self._state),
            "new_episodes": self._new_episodes,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Return to a state from :meth:`get_state`.

        Args:
            state: The state.

        Raises:
            ValueError: If the state belongs to another environment or stack of wrappers.
        """
        self.env.set_state(state["env"])
        self._observation = map_leaves(torch.clone, state["observation"])
        self._state = map_leaves(torch.clone, state["state"])
        self._new_episodes = state["new_episodes"]
        self._info = {}

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Return pictures, or None without a ``render_mode``: skrl calls this every step."""
        if self.env.render_mode is None:
            return None
        return self.env.render()


class SkrlVecEnv(_SkrlEnv, Wrapper):
    """A vector environment of tensors as skrl's ``Wrapper``.

    Make the environment with ``array="torch"``, or wrap it in ``ToTorch``. The environment must
    reset in the same step, and the adapter resets it at once.

    Observations are float32, without copies. Of an environment made with ``observations="dict"``
    the group ``policy`` is skrl's observation (``OBSERVATIONS`` in a model's configuration) and
    ``critic`` its state (``STATES``).

    Rewards, ``terminated`` and ``truncated`` are (num_envs, 1). ``truncated`` is only a time-out,
    without the episodes that fall as they time out. ``infos`` is the environment's ``info``. On
    steps that end episodes ``final_obs`` and ``final_states`` in ``infos`` are the true next
    observation and state of every environment, for :class:`FinalObservations`. Set the trainer's
    ``environment_info`` to ``"log"`` to log the environment's means.

    Args:
        env: The environment.
        seed: Seed of the first reset.

    Raises:
        ValueError: If the environment does not reset in the same step, has no observation group
            ``policy``, or its arrays are not tensors.
    """

    observation_space: Any = None
    """Space of the observation of one environment, float32."""
    state_space: Any = None
    """Space of the state of one environment, float32; None without a group ``critic``."""
    action_space: Any = None
    """Space of the action of one environment."""

    def __init__(self, env: Env, seed: int | None = None):
        env = accept_env(env, "skrl", "torch")
        super().__init__(env)
        observation_space, state_space = group_spaces(env, "skrl")
        self.observation_space = _as_float32(observation_space)
        self.state_space = _as_float32(state_space)
        self.action_space = env.single_action_space
        observation = self._begin(env, seed)
        self._device: torch.device = device(first_array(observation))

    def _remember(self, observation: Tree) -> None:
        policy, critic = split_groups(observation, self._flat)
        self._observation = policy
        self._state = critic

    def step(
        self, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, Info]:
        """Advance by one step.

        Args:
            actions: Shape: (num_envs, num_actions).

        Returns:
            Observation, reward, terminated, truncated and ``infos``.
        """
        # skrl's models give actions of a discrete space a separate column.
        actions = torch.as_tensor(actions).reshape(self._env.action_space.shape)
        observation, reward, terminated, truncated, info = self._env.step(actions)
        self._remember(observation)
        if "final_obs" in info:
            final_observation, final_state = split_groups(info["final_obs"], self._flat)
            info = {**info, "final_obs": final_observation, "final_states": final_state}
        # The environment has reset itself; skrl's trainers reset a single one once more.
        self._new_episodes = self.num_envs == 1 and bool(terminated | truncated)
        time_outs = truncated & ~terminated
        return (
            self._observation,
            _as_reward(reward),
            terminated[:, None],
            time_outs[:, None],
            info,
        )

    def _flat(self, array: torch.Tensor) -> torch.Tensor:
        return array.reshape(self.num_envs, -1).float()


def _as_reward(reward: torch.Tensor) -> torch.Tensor:
    """Return rewards as (num_envs, 1) float32; a copy, because skrl adds to them in place."""
    return reward.float().clone()[:, None]


def _as_float32(space: Space | None) -> Space | None:
    """Return a space of float32 observations: skrl tries its models on samples of it."""
    if not isinstance(space, gym.spaces.Box) or space.dtype == np.float32:
        return space
    low = space.low.astype(np.float32)
    high = space.high.astype(np.float32)
    return gym.spaces.Box(low, high, dtype=np.float32)


class SkrlMultiAgentEnv(_SkrlEnv, MultiAgentEnvWrapper):
    """A vector environment with a ``DirectMARLEnv`` as skrl's ``MultiAgentEnvWrapper``.

    Everything is as in :class:`SkrlVecEnv`, by agent. Rewards come from the agents'
    ``info["rewards"]``, which wrappers of the reward do not change. An agent that ended its episode
    stays terminated, with observation and reward 0, until the last agent has ended its episode.

    Args:
        env: A vector environment of tensors that resets in the same step.
        seed: Seed of the first reset.

    Raises:
        ValueError: If the task has no agents, the environment does not fit :class:`SkrlVecEnv`, or
            a wrapper changed the size of its observation.
    """

    def __init__(self, env: Env, seed: int | None = None):
        env = accept_env(env, "skrl", "torch")
        core_task = getattr(env.unwrapped, "task", None)
        task: Any = getattr(core_task, "user", None)
        if not hasattr(task, "possible_agents"):
            raise ValueError(
                f"SkrlMultiAgentEnv needs a task with agents, got {env}: use SkrlVecEnv"
            )
        super().__init__(env)
        self._task = task
        self._unwrapped = task  # skrl's properties read agents and spaces from here
        self._action_spaces = agent_action_spaces(env, task)
        self._begin(env, seed)

    @property
    def action_spaces(self) -> dict[str, Space]:
        """Space of the actions of each agent."""
        return self._action_spaces

    def step(
        self, actions: AgentTensors
    ) -> tuple[AgentTensors, AgentTensors, AgentTensors, AgentTensors, Info]:
        """Advance by one step.

        Args:
            actions: The actions of each agent, (num_envs, size).

        Returns:
            Observations, rewards, terminations and truncations by agent, and ``infos``.
        """
        joined = self._task.join_actions(actions)
        observation, _, terminated, truncated, info = self._env.step(joined)
        self._new_episodes = False
        outcome = self._task.outcome(terminated, truncated, info)
        rewards = {agent: _as_reward(reward) for agent, reward in outcome[0].items()}
        terminations = _as_columns(outcome[1])
        truncations = _as_columns(outcome[2])
        # Final observations take the same way, so the present one is remembered after them.
        if "final_obs" in info:
            self._remember(info["final_obs"])
            info = {**info, "final_obs": self._observation, "final_states": self._state}
        self._remember(observation)
        return self._observation, rewards, terminations, truncations, info

    def _remember(self, observation: Tree) -> None:
        joined, state = split_groups(observation, _unchanged)
        self._observation = self._task.split(joined, self._task.observation_spaces)
        self._state = dict.fromkeys(self._task.possible_agents, state)


def _as_columns(flags: Mapping[str, torch.Tensor]) -> AgentTensors:
    """Return each agent's flags as (num_envs, 1)."""
    return {agent: flag[:, None] for agent, flag in flags.items()}


def _unchanged(array: torch.Tensor) -> torch.Tensor:
    return array


class FinalObservations:
    """Mixin with which an agent learns from true next observations.

    Use: ``class MySAC(FinalObservations, SAC)``.
    """

    def record_transition(self, *, infos: Info, **transition: Any) -> None:
        """Record a transition; on steps that end episodes with the true next observations.

        Args:
            infos: ``infos`` of the step.
            transition: skrl's other arguments.

        Raises:
            ValueError: If the agent is given only a part of the environments.
        """
        if "final_obs" in infos:
            num_given = len(transition["next_observations"])
            num_envs = len(infos["final_obs"])
            if num_given != num_envs:
                raise ValueError(
                    f"{type(self).__name__} got {num_given} of {num_envs} environments: "
                    "several agents cannot share one SkrlVecEnv, give each a separate one"
                )
            transition["next_observations"] = infos["final_obs"]
            transition["next_states"] = infos["final_states"]
        super().record_transition(infos=infos, **transition)  # type: ignore[misc]


class BootstrapPPO(FinalObservations, PPO):
    """PPO of skrl that bootstraps correctly when the time limit ends an episode.

    The agent uses the value V(s_{t+1}) of the episode's true last observation, and always sets
    ``time_limit_bootstrap``.

    Args:
        arguments: Keyword arguments of skrl's ``PPO``.

    Raises:
        ValueError: If a rollout has fewer than two samples for each mini-batch.
    """

    def __init__(self, **arguments: Any):
        super().__init__(**arguments)
        self.cfg.time_limit_bootstrap = True
        if self.memory is None:
            return
        # A mini-batch of one sample has no variance: skrl's scaler would turn every weight into
        # NaN.
        least = -(-2 * self.cfg.mini_batches // self.cfg.rollouts)
        if self.memory.num_envs < least:
            raise ValueError(
                f"{self.cfg.mini_batches} mini-batches of {self.cfg.rollouts} steps "
                f"need num_envs of at least {least}, got {self.memory.num_envs}"
            )


class _MultiAgentBootstrap(FinalObservations):
    """Common part of the multi-agent algorithms: options by agent, and the bootstrap."""

    def __init__(self, *, possible_agents: list[str], cfg: Any, **arguments: Any):
        cfg = copy.copy(cfg)  # the caller's configuration stays as it is
        options = cfg if isinstance(cfg, dict) else vars(cfg)
        for part in (
            "learning_rate_scheduler",
            "observation_preprocessor",
            "state_preprocessor",
            "value_preprocessor",
        ):
            # skrl refuses its own default, {}
            if not options.get(f"{part}_kwargs"):
                options[f"{part}_kwargs"] = {agent: {} for agent in possible_agents}
        arguments["possible_agents"] = possible_agents
        arguments["cfg"] = cfg
        super().__init__(**arguments)
        bootstrap = dict.fromkeys(possible_agents, True)
        self.cfg.time_limit_bootstrap = bootstrap  # type: ignore[attr-defined]


class BootstrapIPPO(_MultiAgentBootstrap, IPPO):
    """skrl's IPPO that always bootstraps a time-out from the true last observations."""


class BootstrapMAPPO(_MultiAgentBootstrap, MAPPO):
    """skrl's MAPPO that always bootstraps a time-out from the true last observations and states."""


class BootstrapRunner(Runner):
    """skrl's ``Runner`` with the agents ``PPO``, ``IPPO`` and ``MAPPO`` of this module."""

    def _component(self, name: str) -> type:
        own: dict[str, type] = {"ppo": BootstrapPPO, "ippo": BootstrapIPPO, "mappo": BootstrapMAPPO}
        return own.get(name.lower()) or super()._component(name)
