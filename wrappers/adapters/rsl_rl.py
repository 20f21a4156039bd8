"""Train with rsl_rl 5: a vector environment as its ``VecEnv``, and a PPO with exact
bootstrapping."""

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
from legged_envs.wrappers.plumbing.layers import Env
from legged_envs.wrappers.time_limit import TimeLimit


class RslRlVecEnv(ShowsEnv, VecEnv):
    """A vector environment of tensors as rsl_rl's ``VecEnv``.

    Make the environment with ``array="torch"`` and ``observations="dict"``, or wrap it in
    ``ToTorch``. The environment must reset in the same step, and the adapter resets it at once.

    Observations are a TensorDict of the environment's groups, float32. An observation that is not a
    dict becomes the group ``policy``.

    ``extras`` holds ``time_outs`` (num_envs,) bool, ``cost`` and ``costs``. On steps that end
    episodes ``extras`` also holds ``final_obs``, a TensorDict of the true last observations, from
    which :class:`BootstrapPPO` bootstraps time-outs. ``extras["log"]`` is the environment's log
    with a leading slash in each name, as rsl_rl expects.

    rsl_rl moves the time limits of a run's first episodes, so an environment without ``TimeLimit``
    gets one with the limit of its spec.

    Args:
        env: The environment.
        seed: Seed of the first reset.

    Raises:
        ValueError: If the environment does not reset in the same step, has no time limit, or its
            arrays are not tensors.
    """

    def __init__(self, env: Any, seed: int | None = None):
        env = accept_env(env, "rsl_rl", "torch")
        limit = find_layer(env, TimeLimit)
        if limit is None:
            limit = TimeLimit(env, _steps_of_spec(env))
            env = limit
        self.env = env
        self._time_limit = limit
        self.num_envs = env.num_envs
        self.num_actions = env.single_action_space.shape[0]
        self.cfg = getattr(env.unwrapped, "cfg", {})
        self.max_episode_length = limit.time_limit
        observation, _ = checked_reset(self.env, "rsl_rl", "torch", seed)
        self.device: torch.device = device(first_array(observation))
        self._observation = self._tensordict(observation)

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Steps of each environment's present episode, (num_envs,). Setting it moves the time
        limits."""
        return torch.as_tensor(self._time_limit.elapsed_steps, device=self.device)

    @episode_length_buf.setter
    def episode_length_buf(self, value: torch.Tensor) -> None:
        steps = value.to(torch.int64)
        self._time_limit.elapsed_steps = as_kind_of(steps, self._time_limit.elapsed_steps)

    def get_observations(self) -> TensorDict:
        """Return the present observation."""
        return self._observation

    def get_state(self) -> dict[str, Any]:
        """Return the state of the environment and its wrappers, with the present observation."""
        return {"env": self.env.get_state(), "observation": self._observation.clone().to_dict()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Return to a state from :meth:`get_state`.

        Args:
            state: The state.

        Raises:
            ValueError: If the state belongs to another environment or stack of wrappers.
        """
        self.env.set_state(state["env"])
        self._observation = self._tensordict(state["observation"]).clone()

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, Info]:
        """Advance by one step.

        Args:
            actions: Shape: (num_envs, num_actions).

        Returns:
            Observations, rewards (num_envs,) float32, dones (num_envs,) bool, and ``extras``.
        """
        observation, reward, terminated, truncated, info = self.env.step(actions)
        self._observation = self._tensordict(observation)
        extras: Info = {
            # An episode that also failed in this step has no future value.
            "time_outs": truncated & ~terminated,
            "cost": info.get("cost"),
            "costs": info.get("costs"),
        }
        if "final_obs" in info:
            extras["final_obs"] = self._tensordict(info["final_obs"])
        if "log" in info:
            # rsl_rl puts names without a slash under "Episode/".
            extras["log"] = {f"/{key}": value for key, value in info["log"].items()}
        return self._observation, reward.float(), terminated | truncated, extras

    def _tensordict(self, observation: Any) -> TensorDict:
        groups = observation if isinstance(observation, dict) else {OBSERVATION_GROUP: observation}
        for name, group in groups.items():
            if isinstance(group, dict):
                raise ValueError(
                    f"rsl_rl needs one array for each observation group, but {name!r} has its "
                    f"terms by name: set observations.{name}.concatenate to True"
                )
        floats = {name: group.float() for name, group in groups.items()}
        return TensorDict(floats, batch_size=[self.num_envs], device=self.device)


def _steps_of_spec(env: Env) -> int:
    """Return the time limit of an environment's spec, in control steps."""
    spec = env.spec
    steps: int | None = None
    if spec is not None:
        steps = spec.kwargs.get("max_episode_steps", spec.max_episode_steps)
    # make_vec(max_episode_steps=-1) asks for none.
    if steps is None or steps < 0:
        raise ValueError(
            "rsl_rl needs an environment with a time limit, got one without a limit in its spec: "
            "wrap it in legged_envs.wrappers.TimeLimit(env, steps)"
        )
    return steps


class BootstrapPPO(PPO):
    """rsl_rl's PPO with the true value after a time-out: V(s_{t+1}) instead of rsl_rl's V(s_t)."""

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Info
    ) -> None:
        """Record a step of :class:`RslRlVecEnv`.

        Args:
            obs: Observations after the step.
            rewards: Shape: (num_envs,).
            dones: Shape: (num_envs,).
            extras: ``extras`` of the step, with ``time_outs`` and, where an episode ended,
                ``final_obs``.
        """
        time_outs = extras["time_outs"].to(self.device)
        if "final_obs" in extras and time_outs.any():
            ids = time_outs.nonzero().squeeze(1)
            values = self._final_values(extras["final_obs"].to(self.device), ids)
            # Not in place: the caller still holds the rewards.
            rewards = rewards.index_add(0, ids, values, alpha=self.gamma)
        # Given time_outs, rsl_rl would add its own V(s_t) as well.
        other_extras = {key: extras[key] for key in extras if key != "time_outs"}
        super().process_env_step(obs, rewards, dones, other_extras)

    def _final_values(self, final_obs: TensorDict, ids: torch.Tensor) -> torch.Tensor:
        """Return the critic's values of the last observations of ``ids`` (n,). Shape: (n,)."""
        if not self.critic.is_recurrent:
            values: torch.Tensor = self.critic(final_obs[ids])
            return values.detach().squeeze(1)
        # A memory has a row for each environment, so all of them are evaluated. The next step must
        # continue from the present memory.
        memory = self.critic.get_hidden_state()
        values = self.critic(final_obs)[ids]
        self.critic.reset(hidden_state=memory)
        return values.detach().squeeze(1)
