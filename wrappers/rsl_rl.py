"""Train with rsl_rl 5: the environment as its ``VecEnv``, and a PPO that bootstraps from true final observations."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium.vector import AutoresetMode
from rsl_rl.algorithms import PPO
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from legged_envs.wrappers.base import layers
from legged_envs.wrappers.time_limit import TimeLimit


class RslRlVecEnv(VecEnv):
    """A vector environment as rsl_rl's ``VecEnv``.

    Observations are a TensorDict of the environment's groups. ``extras`` holds ``time_outs`` (num_envs,) bool and, on
    steps that end episodes, ``final_obs``: a TensorDict of the true last observations, from which
    :class:`BootstrapPPO` bootstraps time-outs. ``extras["log"]`` is the environment's, with rsl_rl's leading slash.

    Args:
        env: Made with ``array="torch"``, ``observations="dict"`` and ``autoreset_mode`` SAME_STEP. It is reset here.

    Raises:
        ValueError: If the environment was made otherwise.
    """

    def __init__(self, env: Any, seed: int | None = None):
        if env.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ValueError(f"rsl_rl needs autoreset_mode SAME_STEP, got {env.metadata.get('autoreset_mode')}")
        self.env = env
        self.num_envs = env.num_envs
        self.num_actions = env.single_action_space.shape[0]
        self.device = env.unwrapped.device
        self.cfg = env.unwrapped.cfg
        self._time_limit = _find_time_limit(env)
        self.max_episode_length = self._time_limit.time_limit
        observation, _ = env.reset(seed=seed)
        if not isinstance(observation, dict) or not isinstance(next(iter(observation.values())), torch.Tensor):
            raise ValueError("rsl_rl needs an environment made with array='torch' and observations='dict'")
        self._observation = self._tensordict(observation)

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Steps of each environment's present episode. Setting it moves the time limits. Shape: (num_envs,)."""
        return self._time_limit.elapsed_steps

    @episode_length_buf.setter
    def episode_length_buf(self, value: torch.Tensor) -> None:
        self._time_limit.elapsed_steps = value.to(torch.int64)

    def get_observations(self) -> TensorDict:
        return self._observation

    def get_state(self) -> dict[str, Any]:
        """The state of the environment and its wrappers, with the observation that comes next."""
        return {"env": self.env.get_state(), "observation": self._observation.clone()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Return to a state from ``get_state``."""
        self.env.set_state(state["env"])
        self._observation = state["observation"].clone()

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        self._observation = self._tensordict(observation)
        extras: dict[str, Any] = {
            "time_outs": truncated & ~terminated,
            "cost": info.get("cost"),
            "costs": info.get("costs"),
        }
        if "final_obs" in info:
            extras["final_obs"] = self._tensordict(info["final_obs"])
        if "log" in info:
            extras["log"] = {f"/{key}": value for key, value in info["log"].items()}
        return self._observation, reward, terminated | truncated, extras

    def _tensordict(self, observation: dict[str, torch.Tensor]) -> TensorDict:
        return TensorDict(observation, batch_size=[self.num_envs], device=self.device)


def _find_time_limit(env: Any) -> TimeLimit:
    for layer in layers(env):
        if isinstance(layer, TimeLimit):
            return layer
    raise ValueError("rsl_rl needs an environment with the TimeLimit wrapper")


class BootstrapPPO(PPO):
    """rsl_rl's PPO with the value of the state that a time-out cut off, V(s_{t+1}) of ``final_obs``.

    rsl_rl's own uses V(s_t), the observation before the step.
    """

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        time_outs = extras["time_outs"]
        if "final_obs" in extras and time_outs.any():
            ids = time_outs.nonzero().squeeze(1)
            values = self.critic(extras["final_obs"][ids]).detach().squeeze(1)
            rewards = rewards.index_add(0, ids, values, alpha=self.gamma)
        super().process_env_step(obs, rewards, dones, {key: extras[key] for key in extras if key != "time_outs"})
