"""Train with rl_games: the environment as its ``IVecEnv``, and a PPO that bootstraps from true final observations.
After ``register(id)`` a configuration has that ``env_name``; ``env_config`` are keywords of ``gymnasium.make_vec``."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import torch
from rl_games.algos_torch.a2c_continuous import A2CAgent
from rl_games.common import env_configurations, vecenv
from rl_games.common.algo_observer import AlgoObserver
from rl_games.common.ivecenv import IVecEnv
from rl_games.torch_runner import Runner

from legged_envs.wrappers.plumbing.adapter import (
    AdapterEnv,
    accept_env,
    checked_reset,
    group_spaces,
    split_groups,
)
from legged_envs.wrappers.plumbing.arrays import Info, Tree
from legged_envs.wrappers.plumbing.layers import COSTS, Env


class RlGamesVecEnv(AdapterEnv, IVecEnv):
    """A vector environment of tensors that resets in the same step (else a ``ValueError``) as rl_games' ``IVecEnv``.

    Make it with ``array="torch"``, or put it in ``ToTorch``, on rl_games' ``device``. ``seed`` is that of the first
    reset. Observations are ``{"obs", "states"}``, float32 or uint8: the groups ``policy`` and ``critic`` of an
    environment made with ``observations="dict"``, for rl_games' ``central_value_config``; of others both are the
    observation. ``infos`` has ``time_outs`` (num_envs,) bool, ``cost``, ``costs`` and, on steps that end episodes,
    ``final_obs``, the true next observations, and ``episode``, the log, which ``IsaacAlgoObserver`` writes."""

    def __init__(self, env: Env, seed: int | None = None):
        self.env = env = accept_env(env, "rl_games", "torch")
        self._seed = seed
        self.observation_space, self.state_space = group_spaces(env, "rl_games")
        self.action_space = env.single_action_space

    def reset(self) -> dict[str, torch.Tensor]:
        """Start new episodes, the first ones with ``seed``; returns ``{"obs", "states"}``, (num_envs, …). A
        ``ValueError`` if the environment's arrays are not tensors."""
        observation, _ = checked_reset(self.env, "rl_games", "torch", self._seed)
        self._seed = None
        return self._split(observation)

    def step(
        self, actions: torch.Tensor
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor, Info]:
        """Advance by a step with ``actions`` (num_envs, num_actions). Returns ``{"obs", "states"}``, of a new episode
        where one ended, rewards (num_envs,) float32, whose episode ended (num_envs,) bool, and ``infos``."""
        observation, reward, terminated, truncated, info = self.env.step(actions)
        infos: Info = {
            "time_outs": truncated & ~terminated,
            **{key: info[key] for key in COSTS if key in info},
        }
        if "final_obs" in info:
            infos["final_obs"] = self._split(info["final_obs"])
        if "log" in info:
            infos["episode"] = dict(info["log"])
        return self._split(observation), reward.float(), terminated | truncated, infos

    def get_env_info(self) -> dict[str, Any]:
        """The spaces of one environment, and that it has one agent, whose value is one number."""
        spaces = {
            name: getattr(self, name)
            for name in ("observation_space", "state_space", "action_space")
        }
        return {**spaces, "agents": 1, "value_size": 1}

    def render(self, mode: str | None = None) -> Any:
        """Pictures, as the environment's own ``render_mode`` says; ``mode`` is not read."""
        return self.env.render()

    def _split(self, observation: Tree) -> dict[str, torch.Tensor]:
        policy, critic = split_groups(observation, _as_taken)
        return {"obs": policy, "states": policy if critic is None else critic}


def _as_taken(array: torch.Tensor) -> torch.Tensor:
    """float32, but of images uint8, which rl_games scales itself."""
    return array if array.dtype == torch.uint8 else array.float()


def register(env_id: str, make: Callable[..., Env] | None = None, **arguments: Any) -> None:
    """Make an id an ``env_name`` of rl_games. ``make`` gets ``num_envs`` and ``arguments``, on top of which come those
    in ``env_config``, and returns a vector environment of torch tensors that resets in the same step; the default is
    ``gymnasium.make_vec`` of the id with ``array="torch"``. An id that takes no ``array`` needs a function::

        same_step = {"vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": "SameStep"}}
        register("HalfCheetah-v5", lambda **kwargs: ToTorch(gym.make_vec("HalfCheetah-v5", **same_step, **kwargs)))
    """
    maker = make or partial(gym.make_vec, env_id, array="torch")

    def create(num_envs: int = 1, seed: int | None = None, **env_config: Any) -> RlGamesVecEnv:
        return RlGamesVecEnv(maker(num_envs=num_envs, **{**arguments, **env_config}), seed)

    env_configurations.register(env_id, {"vecenv_type": "legged_envs", "env_creator": create})


def _create(config_name: str, num_actors: int, **env_config: Any) -> Any:
    """What rl_games calls to make the ``num_actors`` environments of a training."""
    creator = env_configurations.configurations[config_name]["env_creator"]
    return creator(**{**env_config, "num_envs": num_actors})


vecenv.register("legged_envs", _create)


class BootstrapPPO(A2CAgent):
    """rl_games' ``a2c_continuous`` that bootstraps a time-out from the true last observation: V(s_{t+1}), not V(s_t). A
    ``num_actors`` that does not fit the mini-batches, or a recurrent central value network, is a ``ValueError``."""

    rewards_shaper: Any

    def __init__(self, base_name: str, params: dict[str, Any]):
        _check_num_actors(params["config"])
        super().__init__(base_name, params)
        if self.has_central_value and self.central_value_net.is_rnn:
            raise ValueError(
                "BootstrapPPO cannot ask a recurrent central value network about final observations"
            )
        self._shape = self.rewards_shaper
        self.rewards_shaper = self._shape_and_bootstrap
        self._cut_off: torch.Tensor | None = None

    def env_step(self, actions: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor, Info]:
        """Take a step; with ``value_bootstrap`` the shaping of its rewards, (num_envs, 1), adds γ V(s_{t+1}) where an
        episode timed out. ``infos`` comes without ``time_outs``."""
        observation, rewards, dones, infos = super().env_step(actions)
        time_outs = infos.pop("time_outs")  # rl_games would bootstrap these itself
        self._cut_off = None
        if self.value_bootstrap and time_outs.any():
            self._cut_off = self.gamma * self.get_values(infos["final_obs"]) * time_outs[:, None]
        return observation, rewards, dones, infos

    def _shape_and_bootstrap(self, rewards: torch.Tensor) -> torch.Tensor:
        """The shaped rewards of the last ``env_step``, to which γ V(s_{t+1}) of its time-outs is added."""
        shaped: torch.Tensor = self._shape(rewards)
        return shaped if self._cut_off is None else shaped + self._cut_off


class BootstrapRunner(Runner):
    """rl_games' ``Runner`` whose algorithm ``a2c_continuous`` is :class:`BootstrapPPO`."""

    def __init__(self, algo_observer: AlgoObserver | None = None):
        super().__init__(algo_observer)
        self.algo_factory.register_builder("a2c_continuous", BootstrapPPO)


def _check_num_actors(config: dict[str, Any]) -> None:
    num_actors, horizon = config["num_actors"], config["horizon_length"]
    networks = (config, config.get("central_value_config") or {})
    parts = [
        config.get("seq_length", 4),
        *(part["minibatch_size"] for part in networks if "minibatch_size" in part),
    ]
    multiple = math.lcm(*parts)
    least = multiple // math.gcd(multiple, horizon)
    if num_actors % least:
        below = num_actors // least * least
        works = " and ".join(str(number) for number in (below, below + least) if number)
        rule = f"num_actors {num_actors} × horizon_length {horizon} must be a multiple of each of {parts}"
        raise ValueError(f"{rule} (seq_length and every minibatch_size). Numbers that do: {works}")
