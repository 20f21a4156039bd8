"""Train with rl_games: a vector environment as its ``IVecEnv``, and a PPO with exact bootstrapping.

After ``register(id)`` a configuration may name the id as ``env_name``; its ``env_config`` are
keywords of ``gymnasium.make_vec``.
"""

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
from legged_envs.wrappers.plumbing.layers import COST_KEYS, Env

Observations = dict[str, torch.Tensor]
"""``obs`` for the policy and ``states`` for the critic, each (num_envs, …)."""


class RlGamesVecEnv(AdapterEnv, IVecEnv):
    """A vector environment of tensors as rl_games' ``IVecEnv``.

    Make the environment with ``array="torch"``, or wrap it in ``ToTorch``, on rl_games' ``device``.
    The environment must reset in the same step.

    Observations are ``{"obs", "states"}``, float32 or uint8. In an environment made with
    ``observations="dict"``, ``obs`` and ``states`` are the groups ``policy`` and ``critic``, for
    rl_games' ``central_value_config``; in other environments both are the observation.

    ``infos`` has ``time_outs`` (num_envs,) bool, ``cost`` and ``costs``. On steps that end episodes
    ``infos`` also has ``final_obs``, the true next observations, and ``episode``, the log, which
    ``IsaacAlgoObserver`` writes.

    Args:
        env: The environment.
        seed: Seed of the first reset.

    Raises:
        ValueError: If the environment does not reset in the same step or has no observation group
            ``policy``.
    """

    def __init__(self, env: Env, seed: int | None = None):
        self.env = accept_env(env, "rl_games", "torch")
        self._seed = seed
        observation_space, state_space = group_spaces(self.env, "rl_games")
        self.observation_space = observation_space
        self.state_space = state_space
        self.action_space = self.env.single_action_space

    def reset(self) -> Observations:
        """Start new episodes, the first episodes with ``seed``.

        Returns:
            ``{"obs", "states"}``, each (num_envs, …).

        Raises:
            ValueError: If the environment's arrays are not tensors.
        """
        observation, _ = checked_reset(self.env, "rl_games", "torch", self._seed)
        self._seed = None  # later resets continue the random streams
        return self._split(observation)

    def step(self, actions: torch.Tensor) -> tuple[Observations, torch.Tensor, torch.Tensor, Info]:
        """Advance by one step.

        Args:
            actions: Shape: (num_envs, num_actions).

        Returns:
            Observations (of a new episode where one ended), rewards (num_envs,) float32, dones
            (num_envs,) bool, and ``infos``.
        """
        observation, reward, terminated, truncated, info = self.env.step(actions)
        infos: Info = {"time_outs": truncated & ~terminated}
        for key in COST_KEYS:
            if key in info:
                infos[key] = info[key]
        if "final_obs" in info:
            infos["final_obs"] = self._split(info["final_obs"])
        if "log" in info:
            infos["episode"] = dict(info["log"])
        return self._split(observation), reward.float(), terminated | truncated, infos

    def get_env_info(self) -> dict[str, Any]:
        """Return the spaces of one environment, which has one agent with a value of one number."""
        return {
            "observation_space": self.observation_space,
            "state_space": self.state_space,
            "action_space": self.action_space,
            "agents": 1,
            "value_size": 1,
        }

    def render(self, mode: str | None = None) -> Any:
        """Return pictures in the environment's own ``render_mode``; ``mode`` is not read."""
        return self.env.render()

    def _split(self, observation: Tree) -> Observations:
        policy, critic = split_groups(observation, _as_input)
        return {"obs": policy, "states": policy if critic is None else critic}


def _as_input(array: torch.Tensor) -> torch.Tensor:
    """Return an observation as float32; images stay uint8, because rl_games scales them itself."""
    return array if array.dtype == torch.uint8 else array.float()


def register(env_id: str, make: Callable[..., Env] | None = None, **arguments: Any) -> None:
    """Make an id an ``env_name`` of rl_games.

    An id of another package needs a function, because its environment takes no ``array``::

        same_step = {"vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": "SameStep"}}
        register("HalfCheetah-v5", lambda **kwargs: ToTorch(gym.make_vec("HalfCheetah-v5",
        **same_step, **kwargs)))

    Args:
        env_id: The id.
        make: A function that gets ``num_envs``, ``arguments`` and ``env_config`` and returns a
            vector environment of torch tensors that resets in the same step. The default is
            ``gymnasium.make_vec`` of the id with ``array="torch"``.
        arguments: Keywords of ``make``; keywords in a configuration's ``env_config`` have priority.
    """
    maker = make or partial(gym.make_vec, env_id, array="torch")

    def create(num_envs: int = 1, seed: int | None = None, **env_config: Any) -> RlGamesVecEnv:
        keywords = {**arguments, **env_config}
        return RlGamesVecEnv(maker(num_envs=num_envs, **keywords), seed)

    env_configurations.register(env_id, {"vecenv_type": "legged_envs", "env_creator": create})


def _create(config_name: str, num_actors: int, **env_config: Any) -> Any:
    """Make the ``num_actors`` environments of a training; rl_games calls this function."""
    creator = env_configurations.configurations[config_name]["env_creator"]
    # num_actors wins over a num_envs in env_config: rl_games sizes its buffers by it.
    keywords = {**env_config, "num_envs": num_actors}
    return creator(**keywords)


vecenv.register("legged_envs", _create)


class BootstrapPPO(A2CAgent):
    """rl_games' ``a2c_continuous`` with the true value after a time-out: V(s_{t+1}) instead of
    V(s_t).

    Args:
        base_name: Name of the training.
        params: Parameters of rl_games.

    Raises:
        ValueError: If ``num_actors`` does not fit the mini-batches, or the central value network is
            recurrent.
    """

    rewards_shaper: Callable[[torch.Tensor], torch.Tensor]

    def __init__(self, base_name: str, params: dict[str, Any]):
        _check_num_actors(params["config"])
        super().__init__(base_name, params)
        if self.has_central_value and self.central_value_net.is_rnn:
            raise ValueError(
                "BootstrapPPO cannot ask a recurrent central value network about "
                "final observations: use one without memory"
            )
        # rl_games shapes the rewards of a step after env_step: the only place to add a value to
        # them.
        self._shape = self.rewards_shaper
        self.rewards_shaper = self._shape_and_bootstrap
        self._final_values: torch.Tensor | None = None

    def env_step(self, actions: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor, Info]:
        """Take a step.

        With ``value_bootstrap`` the shaping of its rewards, (num_envs, 1), adds γ V(s_{t+1}) where
        an episode timed out.

        Args:
            actions: Shape: (num_envs, num_actions).

        Returns:
            Observations, rewards, dones and ``infos`` without ``time_outs``.
        """
        observation, rewards, dones, infos = super().env_step(actions)
        time_outs = infos.pop("time_outs")  # given these, rl_games would bootstrap from V(s_t)
        self._final_values = None
        if self.value_bootstrap and time_outs.any():
            values = self.gamma * self.get_values(infos["final_obs"])
            self._final_values = values * time_outs[:, None]
        return observation, rewards, dones, infos

    def _shape_and_bootstrap(self, rewards: torch.Tensor) -> torch.Tensor:
        """Return the shaped rewards of the last ``env_step``, with γ V(s_{t+1}) of its
        time-outs."""
        shaped = self._shape(rewards)
        if self._final_values is None:
            return shaped
        return shaped + self._final_values


class BootstrapRunner(Runner):
    """rl_games' ``Runner`` with :class:`BootstrapPPO` as the algorithm ``a2c_continuous``.

    Args:
        algo_observer: rl_games' observer of the training.
    """

    def __init__(self, algo_observer: AlgoObserver | None = None):
        super().__init__(algo_observer)
        self.algo_factory.register_builder("a2c_continuous", BootstrapPPO)


def _check_num_actors(config: dict[str, Any]) -> None:
    """Raise a ValueError unless mini-batches and sequences divide the rollout without a rest."""
    num_actors = config["num_actors"]
    horizon = config["horizon_length"]
    central = config.get("central_value_config") or {}
    divisors = [config.get("seq_length", 4)]
    for part in (config, central):
        if "minibatch_size" in part:
            divisors.append(part["minibatch_size"])
    # num_actors · horizon is a multiple of all divisors if num_actors is one of this number.
    multiple = math.lcm(*divisors)
    least = multiple // math.gcd(multiple, horizon)
    if num_actors % least == 0:
        return
    below = num_actors // least * least
    suggestions = str(below + least)
    if below:
        suggestions = f"{below} and {suggestions}"
    raise ValueError(
        f"num_actors {num_actors} × horizon_length {horizon} must be a multiple of each of "
        f"{divisors} (seq_length and every minibatch_size). num_actors that fit: {suggestions}"
    )
