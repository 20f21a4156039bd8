"""Train with rsl_rl 5: the environment as its ``VecEnv``, and a PPO that bootstraps from true final observations."""

from typing import Any

import torch
from array_api_compat import device
from rsl_rl.algorithms import PPO
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from legged_envs.wrappers.plumbing.adapter import (
    OBSERVATION_GROUP,
    accept_env,
    checked_reset,
    find_layer,
)
from legged_envs.wrappers.plumbing.arrays import Info, as_kind_of, first_array
from legged_envs.wrappers.plumbing.base import ShowsEnv
from legged_envs.wrappers.time_limit import TimeLimit


class RslRlVecEnv(ShowsEnv, VecEnv):
    """A vector environment of tensors that resets in the same step (else a ``ValueError``) as rsl_rl's ``VecEnv``.

    Make it with ``array="torch"`` and ``observations="dict"``, or put it in ``ToTorch``. It is reset at once, with
    ``seed``. Observations are a TensorDict of the environment's groups, float32; an observation that is no dict is the
    group ``policy``. ``extras`` holds ``time_outs`` (num_envs,) bool and, on steps that end episodes, ``final_obs``: a
    TensorDict of the true last observations, from which :class:`BootstrapPPO` bootstraps time-outs. ``extras["log"]``
    is the environment's, with rsl_rl's leading slash. rsl_rl moves the time limits of a run's first episodes: an
    ``env`` without ``TimeLimit`` gets one, by its spec."""

    def __init__(self, env: Any, seed: int | None = None):
        env = accept_env(env, "rsl_rl", "torch")
        limit = find_layer(env, TimeLimit)
        if limit is None:
            steps = (
                None
                if env.spec is None
                else env.spec.kwargs.get("max_episode_steps", env.spec.max_episode_steps)
            )
            if steps is None:
                how = "wrap it in legged_envs.wrappers.TimeLimit(env, steps)"
                raise ValueError(
                    f"rsl_rl needs an environment with a time limit, got one whose spec has none: {how}"
                )
            env = limit = TimeLimit(env, steps)
        self.env, self._time_limit = env, limit
        self.num_envs = env.num_envs
        self.num_actions = env.single_action_space.shape[0]
        self.cfg = getattr(env.unwrapped, "cfg", {})
        self.max_episode_length = limit.time_limit
        observation, _ = checked_reset(self.env, "rsl_rl", "torch", seed)
        self.device: torch.device = device(first_array(observation))
        self._observation = self._tensordict(observation)

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Steps of each environment's present episode. Setting it moves the time limits. Shape: (num_envs,)."""
        return torch.as_tensor(self._time_limit.elapsed_steps, device=self.device)

    @episode_length_buf.setter
    def episode_length_buf(self, value: torch.Tensor) -> None:
        self._time_limit.elapsed_steps = as_kind_of(
            value.to(torch.int64), self._time_limit.elapsed_steps
        )

    def get_observations(self) -> TensorDict:
        return self._observation

    def get_state(self) -> dict[str, Any]:
        """The state of the environment and its wrappers, with the observation that comes next."""
        return {"env": self.env.get_state(), "observation": self._observation.clone().to_dict()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Return to a state from :meth:`get_state`; one of another environment or stack is a ``ValueError``."""
        self.env.set_state(state["env"])
        self._observation = self._tensordict(state["observation"]).clone()

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, Info]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        self._observation = self._tensordict(observation)
        extras: Info = {
            "time_outs": truncated & ~terminated,
            "cost": info.get("cost"),
            "costs": info.get("costs"),
        }
        if "final_obs" in info:
            extras["final_obs"] = self._tensordict(info["final_obs"])
        if "log" in info:
            extras["log"] = {f"/{key}": value for key, value in info["log"].items()}
        return self._observation, reward.float(), terminated | truncated, extras

    def _tensordict(self, observation: Any) -> TensorDict:
        groups = observation if isinstance(observation, dict) else {OBSERVATION_GROUP: observation}
        floats = {name: group.float() for name, group in groups.items()}
        return TensorDict(floats, batch_size=[self.num_envs], device=self.device)


class BootstrapPPO(PPO):
    """rsl_rl's PPO that bootstraps a time-out from the true last observation: V(s_{t+1}), not V(s_t)."""

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Info
    ) -> None:
        time_outs = extras["time_outs"]
        if "final_obs" in extras and time_outs.any():
            ids = time_outs.nonzero().squeeze(1)
            values = self.critic(extras["final_obs"][ids]).detach().squeeze(1)
            rewards = rewards.index_add(0, ids, values, alpha=self.gamma)
        super().process_env_step(
            obs, rewards, dones, {key: extras[key] for key in extras if key != "time_outs"}
        )
