"""Train with skrl 2: the environment as its ``Wrapper``, and agents that learn from true final observations. skrl's own
wrapper gives them the next episode's first observation as the last one, and a critic no state."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from array_api_compat import device
from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import Wrapper
from skrl.utils.runner.torch import Runner

from legged_envs.wrappers.adapter import accept_env, checked_reset, group_spaces, split_groups
from legged_envs.wrappers.arrays import Info, first_array
from legged_envs.wrappers.base import ShowsEnv
from legged_envs.wrappers.layers import Env


class SkrlVecEnv(ShowsEnv, Wrapper):
    """A vector environment of tensors that resets in the same step (else a ``ValueError``) as skrl's ``Wrapper``.

    Make it with ``array="torch"``, or put it in ``ToTorch``. It is reset at once, with ``seed``. Observations are
    float32, without copies. Of an environment made with ``observations="dict"`` the group ``policy`` is skrl's
    observation (``OBSERVATIONS`` in a model's configuration) and ``critic`` its state (``STATES``). ``truncated`` is a
    time-out alone, without the episodes that fall as they time out. ``infos`` is the environment's; on steps that end
    episodes ``final_obs`` and ``final_states`` in it are the true next observation and state of every environment, for
    :class:`FinalObservations`. Set the trainer's ``environment_info`` to ``"log"`` to log the environment's means."""

    observation_space: Any = None
    state_space: Any = None
    action_space: Any = None

    def __init__(self, env: Env, seed: int | None = None):
        env = accept_env(env, "skrl", "torch")
        super().__init__(env)
        self.env = env
        self.observation_space, self.state_space = map(_float32, group_spaces(env, "skrl"))
        self.action_space = env.single_action_space
        observation, self._info = checked_reset(env, "skrl", "torch", seed)
        self._device: torch.device = device(first_array(observation))
        self._observation, self._state = split_groups(observation, self._flat)
        self._new_episodes = True

    def reset(self) -> tuple[torch.Tensor, Info]:
        """Start new episodes, unless they are new: skrl's trainers reset a single environment that has reset itself."""
        if not self._new_episodes:
            observation, self._info = self._env.reset()
            self._observation, self._state = split_groups(observation, self._flat)
            self._new_episodes = True
        return self._observation, self._info

    def step(self, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, Info]:
        actions = torch.as_tensor(actions).reshape(self._env.action_space.shape)
        observation, reward, terminated, truncated, info = self._env.step(actions)
        self._observation, self._state = split_groups(observation, self._flat)
        if "final_obs" in info:
            final_observation, final_state = split_groups(info["final_obs"], self._flat)
            info = {**info, "final_obs": final_observation, "final_states": final_state}
        self._new_episodes = self.num_envs == 1 and bool(terminated | truncated)
        time_outs = truncated & ~terminated
        # skrl adds to the rewards in place
        return self._observation, reward.float().clone()[:, None], terminated[:, None], time_outs[:, None], info

    def state(self) -> Any:
        return self._state

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Pictures, or None without a ``render_mode``: skrl's trainers call this every step."""
        return None if self._env.render_mode is None else self._env.render()

    def close(self) -> None:
        self._env.close()

    def _flat(self, array: torch.Tensor) -> torch.Tensor:
        return array.reshape(self.num_envs, -1).float()


def _float32(space: gym.Space[Any] | None) -> gym.Space[Any] | None:
    """A space of observations as they are given: skrl tries its models on samples of it."""
    if not isinstance(space, gym.spaces.Box) or space.dtype == np.float32:
        return space
    return gym.spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32)


class FinalObservations:
    """Makes an agent class learn from true next observations: ``class MySAC(FinalObservations, SAC)``."""

    def record_transition(self, *, infos: Any, **transition: Any) -> None:
        if "final_obs" in infos:
            given, expected = len(transition["next_observations"]), len(infos["final_obs"])
            if given != expected:
                part = f"{type(self).__name__} got {given} of {expected} environments"
                raise ValueError(f"{part}: several agents cannot share one SkrlVecEnv, give each its own")
            transition |= {"next_observations": infos["final_obs"], "next_states": infos["final_states"]}
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
            raise ValueError(f"{parts} need num_envs of at least {needed}, got {self.memory.num_envs}")


class BootstrapRunner(Runner):
    """skrl's ``Runner`` whose agent class ``PPO`` is :class:`BootstrapPPO`."""

    def _component(self, name: str) -> type:
        return BootstrapPPO if name.lower() == "ppo" else super()._component(name)
