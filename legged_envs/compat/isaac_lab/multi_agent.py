"""Isaac Lab's direct workflow for several agents: methods take and return a dict by agent."""

import math
from typing import Any

import gymnasium as gym
import torch
from gymnasium.spaces import Box
from torch import Tensor

from legged_envs.checks import check_known
from legged_envs.compat.isaac_lab.direct import DirectRLEnv, DirectRLEnvCfg, NoiseSource
from legged_envs.compat.isaac_lab.direct_task import DirectTask
from legged_envs.compat.isaac_lab.spaces import space_from
from legged_envs.configuration import configclass
from legged_envs.envs import Evaluation
from legged_envs.envs.task import Action, Info, Observation, Space
from legged_envs.state import Tree, map_tree

ByAgent = dict[str, Tree]
"""Name of each agent mapped to its value; tensors start with ``num_envs``."""


@configclass
class DirectMARLEnvCfg(DirectRLEnvCfg):
    """A task of several agents in Isaac Lab's words.

    ``observation_noise_model`` and ``action_noise_model`` map agents to a ``NoiseModelCfg``.
    ``state_space`` is −1 for the observations of all agents in a row, and 0 for no state.
    """

    possible_agents: Any = ()
    """Names of the agents."""
    action_spaces: Any = {}  # noqa: RUF012
    """Agent mapped to a float32 box, or to what stands for one.

    See :func:`~legged_envs.compat.isaac_lab.spaces.space_from`.
    """
    observation_spaces: Any = {}  # noqa: RUF012
    """Agent mapped to a float32 box, or to what stands for one."""

    def by_agent(self, name: str, bound: float = math.inf) -> dict[str, Box]:
        """Return the spaces of a field by agent.

        Args:
            name: Name of the field.
            bound: Bound of a space that is given by its size.

        Raises:
            ValueError: If there are no agents, or one of them does not have a float32 box.
        """
        specs = getattr(self, name)
        where = f"{type(self).__name__}.{name}"
        agents = list(self.possible_agents)
        if not agents or sorted(specs) != sorted(agents):
            raise ValueError(
                f"{where} must have a space for each of possible_agents, {agents}, "
                f"got {list(specs)}"
            )
        boxes: dict[str, Box] = {}
        for agent in agents:
            space = space_from(specs[agent], -bound, bound, f"{where}[{agent!r}]")
            if not isinstance(space, Box) or space.dtype != "float32":
                raise ValueError(
                    f"{where} must be float32 boxes, which can be concatenated, got {space}"
                )
            boxes[agent] = space
        return boxes

    def space(self, name: str, bound: float = math.inf) -> Space:
        """Return the space of all agents in a row."""
        if name == "state_space" and self.state_space != -1:
            return super().space(name, bound)
        field = "action_spaces" if name == "action_space" else "observation_spaces"
        boxes = self.by_agent(field, bound)
        return gym.spaces.flatten_space(gym.spaces.Tuple(boxes.values()))


class MultiAgentTask(DirectTask):
    """Calls the methods of a user's ``DirectMARLEnv``.

    Actions and the observation group ``"policy"`` of the environment concatenate all agents;
    ``"critic"`` is the state; the reward is the sum over the agents. ``info`` of a step holds
    ``rewards``, ``agent_terminated`` and ``agent_truncated``, (num_envs, agents), in the order of
    ``possible_agents``.
    """

    def step_info(self) -> dict[str, Tensor]:
        return {
            "rewards": self.user.agent_rewards,
            "agent_terminated": self.user.agent_terminated,
            "agent_truncated": self.user.agent_truncated,
        }

    def act(self, action: Action) -> None:
        self.user.agent_over = self.user.agent_terminated | self.user.agent_truncated
        super().act(self.user.without_over(action, self.user.action_spaces))

    def by_agent(self, action: Action) -> ByAgent:
        return split(action, self.user.action_spaces)

    def evaluate(self) -> Evaluation:
        evaluation = super().evaluate()
        recovered = self.env.recovered
        if recovered is not None:
            user = self.user
            bad = recovered.unsqueeze(1)
            user.agent_terminated = user.agent_terminated | (bad & ~user.agent_over)
            user.agent_rewards = user.agent_rewards.masked_fill(bad, 0.0)
        if self.cfg.is_finite_horizon:
            # As in the flags of the batch, no agent is cut off by the end of the time.
            user = self.user
            user.agent_terminated = user.agent_terminated | user.agent_truncated
            user.agent_truncated = torch.zeros_like(user.agent_truncated)
        return evaluation

    def evaluate_dones(self) -> None:
        user = self.user
        flags = torch.zeros(self.env.num_envs, dtype=torch.bool)
        expected = dict.fromkeys(user.possible_agents, flags)
        terminated, truncated = self.call("_get_dones", (expected, expected))
        ended = user.join(terminated) & ~user.agent_over
        cut = user.join(truncated) & ~user.agent_over
        user.agent_terminated = user.agent_terminated | ended
        user.agent_truncated = user.agent_truncated | (cut & ~user.agent_terminated)
        # The environment's episode is over when the last agent's episode is over.
        user.reset_terminated = user.agent_terminated.all(1)
        user.reset_buf = (user.agent_terminated | user.agent_truncated).all(1)
        user.reset_time_outs = user.reset_buf & ~user.reset_terminated

    def evaluate_rewards(self) -> None:
        user = self.user
        expected = dict.fromkeys(user.possible_agents, torch.zeros(self.env.num_envs))
        rewards = user.join(self.call("_get_rewards", expected))
        user.agent_rewards = rewards.masked_fill(user.agent_over, 0.0)
        user.reward_buf = user.agent_rewards.sum(1)

    def evaluate_costs(self) -> None:
        super().evaluate_costs()
        for index, agent in enumerate(self.user.possible_agents):
            over = self.user.agent_over[:, index]
            for name, cost in self.returned_costs.items():
                if name.startswith(f"{agent}/"):
                    self.returned_costs[name] = cost.masked_fill(over, 0.0)

    def observe_all(self) -> None:
        user = self.user
        expected = split(self.zeros["policy"], user.observation_spaces)
        policy = user.join(self.call("_get_observations", expected))
        self.observation["policy"] = policy
        self.observation["critic"] = policy
        if "critic" in self.shown_names and user.cfg.state_space != -1:
            self.observation["critic"] = self.call("_get_states", self.zeros.get("critic"))

    def observe(self, env_ids: Tensor | None) -> dict[str, Observation]:
        shown = super().observe(env_ids)
        if env_ids is None:
            shown["policy"] = self.user.without_over(shown["policy"], self.user.observation_spaces)
        if self.user.cfg.state_space == -1:
            shown["critic"] = shown["policy"]
        return shown

    def place(self, env_ids: Tensor, seeded: bool) -> None:
        user = self.user
        # Not in place: the flags of the last step may still be in use.
        user.agent_terminated = user.agent_terminated.index_fill(0, env_ids, False)
        user.agent_truncated = user.agent_truncated.index_fill(0, env_ids, False)
        user.agent_over = user.agent_over.index_fill(0, env_ids, False)
        super().place(env_ids, seeded)


class DirectMARLEnv(DirectRLEnv):
    """A task of several agents.

    It is a :class:`DirectRLEnv` with methods that take and return a dict by agent; ``_get_dones``
    returns two. If the state has a separate shape, ``_get_states`` returns the state. A cost named
    ``"agent/cost"``, in ``cfg.cost_limits`` and by ``_get_costs``, counts only for that agent.

    An agent stops acting when its episode ends: its action is replaced by zero, and its reward, its
    own costs and its observation are zero, until the episode of the last agent is over. Then the
    environment's episode is over: terminated if all agents were, otherwise truncated.

    Args:
        cfg: The configuration.
        render_mode: None or ``"rgb_array"``.
        kwargs: Keyword arguments of :class:`~legged_envs.envs.CoreVectorEnv`.
    """

    ADAPTER = MultiAgentTask
    CFG = DirectMARLEnvCfg
    cfg: DirectMARLEnvCfg

    def __init__(self, cfg: DirectMARLEnvCfg, render_mode: str | None = None, **kwargs: Any):
        self.possible_agents = list(cfg.possible_agents)
        """Names of the agents, in order."""
        self.observation_spaces = cfg.by_agent("observation_spaces")
        """Observation space of each agent in one environment."""
        self.action_spaces = cfg.by_agent("action_spaces", 1.0)
        """Action space of each agent in one environment."""
        super().__init__(cfg, render_mode, **kwargs)
        for agent in self.possible_agents:
            self.extras[agent] = {}
        core = self.core
        shape = (core.num_envs, len(self.possible_agents))

        self.agent_terminated = torch.zeros(shape, dtype=torch.bool, device=core.device)
        """Agents that were terminated in the present episode. Shape: (num_envs, agents)."""
        self.agent_truncated = torch.zeros_like(self.agent_terminated)
        """Agents that were truncated in the present episode. Shape: (num_envs, agents)."""
        self.agent_over = torch.zeros_like(self.agent_terminated)
        """Agents with an episode that was over before the last step. Shape: (num_envs, agents)."""
        self.agent_rewards = torch.zeros(shape, device=core.device)
        """Rewards of the last step. Shape: (num_envs, agents)."""
        self.state_space = self.adapter.groups.get("critic")
        """Space of :meth:`state` of one environment; None without a state."""

    def _noise_sources(self) -> dict[str, NoiseSource]:
        sources = {}
        kinds = {
            "observation": (self.cfg.observation_noise_model, self.observation_spaces),
            "action": (self.cfg.action_noise_model, self.action_spaces),
        }
        for kind, (models, spaces) in kinds.items():
            where = f"{type(self.cfg).__name__}.{kind}_noise_model: there is no agent"
            check_known(where, models or {}, spaces, "agents")
            for agent, model in (models or {}).items():
                if model:
                    stream = f"{kind}_noise/{agent}"
                    sources[f"{kind}/{agent}"] = NoiseSource(model, stream, spaces[agent])
        return sources

    def noisy(self, kind: str, rows: Tree, env_ids: Tensor | None = None) -> Tree:
        spaces = self.observation_spaces if kind == "observation" else self.action_spaces
        parts = {}
        for agent, part in split(rows, spaces).items():
            parts[agent] = super().noisy(f"{kind}/{agent}", part, env_ids)
        return self.join(parts)

    @property
    def agents(self) -> list[str]:
        """Agents that act in at least one environment."""
        is_over = (self.agent_terminated | self.agent_truncated).all(0).tolist()
        return [
            agent for agent, over in zip(self.possible_agents, is_over, strict=True) if not over
        ]

    @property
    def num_agents(self) -> int:
        """Number of agents that act in at least one environment."""
        return len(self.agents)

    @property
    def max_num_agents(self) -> int:
        """Number of agents of the task."""
        return len(self.possible_agents)

    def observation_space(self, agent: str) -> Space:
        """Return the observation space of an agent in one environment.

        Raises:
            ValueError: If there is no such agent.
        """
        self._check_agent(agent)
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Space:
        """Return the action space of an agent in one environment.

        Raises:
            ValueError: If there is no such agent.
        """
        self._check_agent(agent)
        return self.action_spaces[agent]

    def _check_agent(self, agent: str) -> None:
        where = f"{type(self).__name__}: there is no agent"
        check_known(where, (agent,), self.possible_agents, "agents")

    def state(self) -> Tree:
        """Return the state that belongs to the last observation, (num_envs, …).

        None if ``cfg.state_space`` is 0.

        Raises:
            ValueError: If the environment was made without the observation group of the state.
        """
        if self.state_space is None:
            return None
        if "critic" not in self.core.last_observation:
            raise ValueError(
                "the state is an observation group of its own: make the environment with "
                'observations="dict"'
            )
        return map_tree(torch.clone, self.core.last_observation["critic"])

    def reset(self, *args: Any, **kwargs: Any) -> tuple[ByAgent, Info]:
        """Begin episodes: see :meth:`IsaacEnv.reset`.

        Returns:
            Observations by agent, and extras with an entry for each agent.
        """
        observation, extras = super().reset(*args, **kwargs)
        return self._by_agent(observation), extras

    def step(self, actions: ByAgent) -> Any:
        """Advance by one control step.

        When the last agent's episode is over, a new one starts in that environment.

        Args:
            actions: Actions by agent. Agents that act in no environment may be left out.

        Returns:
            Observations, rewards, terminated and truncated by agent, and extras, with ``final_obs``
            by agent too.
        """
        observation, _, terminated, truncated, extras = super().step(self.join_actions(actions))
        if "final_obs" in extras:
            extras["final_obs"] = self._by_agent(extras["final_obs"])
        rewards, ended, cut = self.outcome(terminated, truncated, extras)
        return self._by_agent(observation), rewards, ended, cut, extras

    def _by_agent(self, observation: Observation) -> ByAgent:
        return split(observation["policy"], self.observation_spaces)

    def join_actions(self, actions: ByAgent) -> Action:
        """Return the actions of all agents in a row, zeros for agents that act no more.

        Args:
            actions: Actions by agent.

        Raises:
            ValueError: If an action is missing, of an unknown agent, or of another shape.
        """
        if not set(self.agents) <= set(actions) <= set(self.possible_agents):
            raise ValueError(
                f"{type(self).__name__}.step needs an action of each of {self.agents}, "
                f"got actions of {list(actions)}; the agents of the task are {self.possible_agents}"
            )
        # Agents that act in no environment may be left out; the others were checked above.
        complete = self.adapter.by_agent(self.adapter.zero_action)
        for agent, action in actions.items():
            shape = tuple(complete[agent].shape)
            if action.shape != shape:
                raise ValueError(
                    f"{type(self).__name__}.step: the actions of {agent!r} must have the shape "
                    f"{shape}, got {tuple(action.shape)}"
                )
            complete[agent] = action
        return self.join(complete)

    def outcome(
        self, terminated: Tree, truncated: Tree, info: Info
    ) -> tuple[ByAgent, ByAgent, ByAgent]:
        """Return rewards, terminated and truncated by agent, (num_envs,) each.

        Args:
            terminated: Failures in a step of the vector environment, (num_envs,), bool.
            truncated: Time-outs in that step, (num_envs,), bool.
            info: ``info`` of that step.
        """
        # Wrappers, too, can end the episode of all agents that still act.
        ended = info["agent_terminated"] | (terminated[:, None] & ~info["agent_truncated"])
        # An agent that failed in the step in which the time ran out has failed.
        cut = (info["agent_truncated"] | truncated[:, None]) & ~ended
        rewards = {}
        failures = {}
        truncations = {}
        for index, agent in enumerate(self.possible_agents):
            rewards[agent] = info["rewards"][:, index]
            failures[agent] = ended[:, index]
            truncations[agent] = cut[:, index]
        return rewards, failures, truncations

    def split(self, rows: Tree, spaces: dict[str, Box]) -> ByAgent:
        """Split rows of all agents into rows by agent: see :func:`split`."""
        return split(rows, spaces)

    def join(self, values: ByAgent) -> Tensor:
        """Return the values of all agents in a row, (num_envs, size): the opposite of ``split``."""
        parts = [values[agent].unsqueeze(-1).flatten(1) for agent in self.possible_agents]
        return torch.cat(parts, 1)

    def without_over(self, rows: Tensor, spaces: dict[str, Box]) -> Tensor:
        """Return rows of all agents, zero for agents that act no more.

        Args:
            rows: Numbers of all agents in a row, (num_envs, size).
            spaces: Space of each agent's part.
        """
        sizes = [gym.spaces.flatdim(space) for space in spaces.values()]
        repeats = torch.tensor(sizes, device=rows.device)
        return rows.masked_fill(self.agent_over.repeat_interleave(repeats, 1), 0.0)


def split(rows: Tree, spaces: dict[str, Box]) -> ByAgent:
    """Split rows that have the numbers of all agents.

    Args:
        rows: Observations or actions of all agents in a row, (num_envs, size).
        spaces: Space of each agent's part.

    Returns:
        The part of each agent in the shape of its space.

    Raises:
        ValueError: If the rows have another length.
    """
    sizes = {agent: gym.spaces.flatdim(space) for agent, space in spaces.items()}
    expected = sum(sizes.values())
    if rows.shape[1] != expected:
        raise ValueError(f"{rows.shape[1]} numbers, expected {expected} for {spaces}")
    parts = {}
    start = 0
    for agent, space in spaces.items():
        end = start + sizes[agent]
        parts[agent] = rows[:, start:end].reshape(-1, *(space.shape or ()))
        start = end
    return parts
