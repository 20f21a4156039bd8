"""Train with skrl 2: the environment as its ``Wrapper``, and agents that learn from true final observations. skrl's own
wrapper gives them the next episode's first observation as the last one, and a critic no state."""

import copy
from collections.abc import Callable
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
    checked_reset,
    group_spaces,
    split_groups,
)
from legged_envs.wrappers.plumbing.arrays import Info, first_array
from legged_envs.wrappers.plumbing.layers import Env


class _SkrlEnv(AdapterEnv):
    """What skrl asks of both kinds of environments. ``_take`` keeps an observation, and the state that goes with it."""

    _take: Callable[[Any], None]
    _observation: Any
    _state: Any

    def _begin(self, env: Env, seed: int | None) -> Any:
        """Make the first episodes new ones of ``env``; gives the observation."""
        self.env = env
        observation, self._info = checked_reset(env, "skrl", "torch", seed)
        self._take(observation)
        self._new_episodes = True
        return observation

    def reset(self) -> tuple[Any, Info]:
        """Start new episodes, unless they are new: skrl's trainers reset a single environment that has reset itself."""
        if not self._new_episodes:
            observation, self._info = self.env.reset()
            self._take(observation)
            self._new_episodes = True
        return self._observation, self._info

    def state(self) -> Any:
        """The state that belongs to the last observation, (num_envs, size), of several agents by agent; None without
        one."""
        return self._state

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Pictures, or None without a ``render_mode``: skrl's trainers call this every step."""
        return None if self.env.render_mode is None else self.env.render()


class SkrlVecEnv(_SkrlEnv, Wrapper):
    """A vector environment of tensors that resets in the same step (else a ``ValueError``) as skrl's ``Wrapper``.

    Make it with ``array="torch"``, or put it in ``ToTorch``. It is reset at once, with ``seed``. Observations are
    float32, without copies. Of an environment made with ``observations="dict"`` the group ``policy`` is skrl's
    observation (``OBSERVATIONS`` in a model's configuration) and ``critic`` its state (``STATES``). ``truncated`` is a
    time-out alone, without the episodes that fall as they time out. ``infos`` is the environment's; on steps that end
    episodes ``final_obs`` and ``final_states`` in it are the true next observation and state of every environment, for
    :class:`FinalObservations`. Rewards, ``terminated`` and ``truncated`` are (num_envs, 1). Set the trainer's
    ``environment_info`` to ``"log"`` to log the environment's means."""

    observation_space: Any = None
    state_space: Any = None
    action_space: Any = None

    def __init__(self, env: Env, seed: int | None = None):
        env = accept_env(env, "skrl", "torch")
        super().__init__(env)
        self.observation_space, self.state_space = map(_float32, group_spaces(env, "skrl"))
        self.action_space = env.single_action_space
        self._device: torch.device = device(first_array(self._begin(env, seed)))

    def _take(self, observation: Any) -> None:
        self._observation, self._state = split_groups(observation, self._flat)

    def step(
        self, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, Info]:
        actions = torch.as_tensor(actions).reshape(self._env.action_space.shape)
        observation, reward, terminated, truncated, info = self._env.step(actions)
        self._take(observation)
        if "final_obs" in info:
            final_observation, final_state = split_groups(info["final_obs"], self._flat)
            info = {**info, "final_obs": final_observation, "final_states": final_state}
        self._new_episodes = self.num_envs == 1 and bool(terminated | truncated)
        time_outs = truncated & ~terminated
        # skrl adds to the rewards in place
        return (
            self._observation,
            reward.float().clone()[:, None],
            terminated[:, None],
            time_outs[:, None],
            info,
        )

    def _flat(self, array: torch.Tensor) -> torch.Tensor:
        return array.reshape(self.num_envs, -1).float()


def _float32(space: gym.Space[Any] | None) -> gym.Space[Any] | None:
    """A space of observations as they are given: skrl tries its models on samples of it."""
    if not isinstance(space, gym.spaces.Box) or space.dtype == np.float32:
        return space
    return gym.spaces.Box(
        space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32
    )


class SkrlMultiAgentEnv(_SkrlEnv, MultiAgentEnvWrapper):
    """A vector environment of tensors whose task is a ``DirectMARLEnv`` as skrl's ``MultiAgentEnvWrapper``: all that
    :class:`SkrlVecEnv` says, by agent. Rewards are those of the agents in ``info["rewards"]``, which wrappers of the
    reward leave as they are. An agent whose episode is over stays terminated, with observation and reward 0, until the
    last agent's is. ValueError if the task has no agents."""

    def __init__(self, env: Env, seed: int | None = None):
        env = accept_env(env, "skrl", "torch")
        task: Any = getattr(env.unwrapped, "task", None)
        if not hasattr(task, "possible_agents"):
            raise ValueError(
                f"SkrlMultiAgentEnv needs a task with agents, got {env}: use SkrlVecEnv"
            )
        super().__init__(env)
        self._task = self._unwrapped = task  # whose agents and spaces skrl's properties give
        self._begin(env, seed)

    def step(self, actions: dict[str, torch.Tensor]) -> Any:
        observation, _, _, truncated, info = self._env.step(self._task.join_actions(actions))
        self._new_episodes = False
        rewards, *flags = self._task.outcome(truncated, info)
        rewards = {
            agent: reward.float().clone()[:, None] for agent, reward in rewards.items()
        }  # skrl adds to them
        flags = [{agent: flag[:, None] for agent, flag in part.items()} for part in flags]
        if "final_obs" in info:
            self._take(info["final_obs"])
            info = {**info, "final_obs": self._observation, "final_states": self._state}
        self._take(observation)
        return self._observation, rewards, *flags, info

    def _take(self, observation: Any) -> None:
        joined, state = split_groups(observation, lambda group: group)
        self._observation: dict[str, torch.Tensor] = self._task.split(
            joined, self._task.observation_spaces
        )
        self._state = dict.fromkeys(self._task.possible_agents, state)


class FinalObservations:
    """Makes an agent class learn from true next observations: ``class MySAC(FinalObservations, SAC)``.
    ValueError if it is given a part of the environments."""

    def record_transition(self, *, infos: Any, **transition: Any) -> None:
        """Record a transition, on steps that end episodes with the true next observations and states of ``infos``."""
        if "final_obs" in infos:
            given, expected = len(transition["next_observations"]), len(infos["final_obs"])
            if given != expected:
                part = f"{type(self).__name__} got {given} of {expected} environments"
                raise ValueError(
                    f"{part}: several agents cannot share one SkrlVecEnv, give each its own"
                )
            transition |= {
                "next_observations": infos["final_obs"],
                "next_states": infos["final_states"],
            }
        super().record_transition(infos=infos, **transition)  # type: ignore[misc]


class BootstrapPPO(FinalObservations, PPO):
    """skrl's PPO, by its arguments, that always bootstraps a time-out from the true last observation, V(s_{t+1}). A
    rollout of fewer than two samples for each mini-batch is a ``ValueError``."""

    def __init__(self, **arguments: Any):
        super().__init__(**arguments)
        self.cfg.time_limit_bootstrap = True
        # A mini-batch of one sample has no variance: skrl's scaler would turn every weight into NaN.
        needed = -(-2 * self.cfg.mini_batches // self.cfg.rollouts)
        if self.memory is not None and self.memory.num_envs < needed:
            parts = f"{self.cfg.mini_batches} mini-batches of {self.cfg.rollouts} steps"
            raise ValueError(
                f"{parts} need num_envs of at least {needed}, got {self.memory.num_envs}"
            )


class _Bootstrap(FinalObservations):
    def __init__(self, *, possible_agents: list[str], cfg: Any, **arguments: Any):
        cfg = copy.copy(cfg)
        options = cfg if isinstance(cfg, dict) else vars(cfg)
        parts = [f"{name}_preprocessor" for name in ("observation", "state", "value")]
        for part in ("learning_rate_scheduler", *parts):
            # skrl refuses its own default, {}
            options[f"{part}_kwargs"] = options.get(f"{part}_kwargs") or {
                agent: {} for agent in possible_agents
            }
        super().__init__(possible_agents=possible_agents, cfg=cfg, **arguments)  # type: ignore[call-arg]
        self.cfg.time_limit_bootstrap = dict.fromkeys(possible_agents, True)  # type: ignore[attr-defined]


class BootstrapIPPO(_Bootstrap, IPPO):
    """skrl's IPPO, by its arguments, that always bootstraps a time-out from the true last observations."""


class BootstrapMAPPO(_Bootstrap, MAPPO):
    """skrl's MAPPO, by its arguments, that always bootstraps a time-out from the true last observations and states."""


class BootstrapRunner(Runner):
    """skrl's ``Runner`` whose agent classes ``PPO``, ``IPPO`` and ``MAPPO`` are those of this module."""

    def _component(self, name: str) -> type:
        own: dict[str, type] = {"ppo": BootstrapPPO, "ippo": BootstrapIPPO, "mappo": BootstrapMAPPO}
        return own.get(name.lower()) or super()._component(name)
