"""Isaac Lab's direct workflow for several agents: methods that take and return a dict with an entry for each agent."""

import math
from functools import partial, partialmethod
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from legged_envs.checks import check_known
from legged_envs.configuration import configclass
from legged_envs.envs.hooks import Evaluation
from legged_envs.state import mapped
from legged_envs.workflows.direct import DirectRLEnv, DirectRLEnvCfg
from legged_envs.workflows.direct_core import DirectCore
from legged_envs.workflows.spaces import space_from

ByAgent = dict[str, Any]
"""Agent → its value; tensors start with ``num_envs``."""
Spaces = dict[str, gym.Space[Any]]


@configclass
class DirectMARLEnvCfg(DirectRLEnvCfg):
    """A task of several agents in Isaac Lab's words. ``observation_noise_model`` and ``action_noise_model`` are dicts,
    agent → ``NoiseModelCfg``; ``state_space`` is −1 for the observations of all agents in a row, 0 for no state."""

    possible_agents: Any = ()
    action_spaces: Any = {}  # noqa: RUF012
    observation_spaces: Any = {}  # noqa: RUF012
    """Agent → space, or what stands for one: see :func:`~legged_envs.workflows.spaces.space_from`."""

    def by_agent(self, name: str, bound: float = math.inf) -> Spaces:
        """The spaces of a field; ValueError unless each agent has one, and there are agents."""
        specs, where, agents = getattr(self, name), f"{type(self).__name__}.{name}", list(self.possible_agents)
        if not agents or sorted(specs) != sorted(agents):
            raise ValueError(f"{where} must have a space for each of possible_agents, {agents}, got {list(specs)}")
        return {agent: space_from(specs[agent], -bound, bound, f"{where}[{agent!r}]") for agent in agents}

    def space(self, name: str, bound: float = math.inf) -> gym.Space[Any]:
        if name == "state_space" and self.state_space != -1:
            return super().space(name, bound)
        return joined_space(self.by_agent("action_spaces" if name == "action_space" else "observation_spaces", bound))


class MultiAgentCore(DirectCore):
    """The vector environment of a :class:`DirectMARLEnv`: actions and the observation group ``"policy"`` are those of
    all agents in a row, ``"critic"`` is the state; the reward is the sum over the agents. ``info`` holds ``rewards``,
    ``agent_terminated`` and ``agent_truncated``, (num_envs, agents), in the order of ``possible_agents``."""

    task: "DirectMARLEnv"

    def _results(self, number: Tensor) -> dict[str, Any]:
        task, costs = self.task, dict[str, Any]()
        for name in vars(self.task_costs):  # "agent/cost" is returned as {agent: {cost: …}}
            agent, _, own = name.partition("/")
            costs |= {agent: {**costs.get(agent, {}), own: number}} if agent in task.possible_agents else {name: number}
        rewards, dones = (dict.fromkeys(task.possible_agents, value) for value in (number, number.bool()))
        policy = task.split(self.zeros["policy"], task.observation_spaces)
        results = {"_get_observations": policy, "_get_rewards": rewards, "_get_dones": (dones, dones)}
        return {**results, "_get_costs": costs, "_get_states": self.zeros.get("critic")}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        *outcome, info = super().step(actions)
        task = self.task
        ended = {"agent_terminated": task.agent_terminated, "agent_truncated": task.agent_truncated}
        return *outcome, {**info, **self._export({"rewards": task.agent_rewards, **ended})}

    def _act(self, action: Any) -> None:
        self.task.agent_over = self.task.agent_terminated | self.task.agent_truncated
        super()._act(self.task.without_over(action, self.task.action_spaces))

    def by_agent(self, action: Any) -> ByAgent:
        return self.task.split(action, self.task.action_spaces)

    def _evaluate(self) -> Evaluation:
        evaluation, task = super()._evaluate(), self.task
        if self._recovered is not None:
            bad = self._recovered.unsqueeze(1)
            task.agent_terminated = task.agent_terminated | bad & ~task.agent_over
            task.agent_rewards = task.agent_rewards.masked_fill(bad, 0.0)
        return evaluation

    def _columns(self, values: ByAgent) -> Tensor:
        """Values (num_envs,) of all agents. Shape: (num_envs, agents)."""
        return torch.stack([values[agent] for agent in self.task.possible_agents], 1)

    def _end(self) -> None:
        task = self.task
        ended, cut = (self._columns(part) & ~task.agent_over for part in self._returned("_get_dones"))
        task.agent_terminated = task.agent_terminated | ended
        task.agent_truncated = task.agent_truncated | cut & ~task.agent_terminated
        task.reset_terminated = task.agent_terminated.all(1)
        task.reset_buf = (task.agent_terminated | task.agent_truncated).all(1)
        task.reset_time_outs = task.reset_buf & ~task.reset_terminated

    def _reward(self) -> None:
        task = self.task
        task.agent_rewards = self._columns(self._returned("_get_rewards")).masked_fill(task.agent_over, 0.0)
        task.reward_buf = task.agent_rewards.sum(1)

    def _charge(self) -> None:
        costs = dict(self._returned("_get_costs"))
        for agent, over in zip(self.task.possible_agents, self.task.agent_over.unbind(1), strict=True):
            own = costs.pop(agent, {}).items()
            costs |= {f"{agent}/{name}": cost.masked_fill(over, 0.0) for name, cost in own}
        vars(self.task_costs).update(costs)

    def _look(self) -> None:
        self.seen.policy = self.seen.critic = joined(self._returned("_get_observations"))
        if "critic" in self._shown and self.task.cfg.state_space != -1:
            self.seen.critic = self._returned("_get_states")

    def _observe(self, env_ids: Tensor | None) -> dict[str, Any]:
        shown = super()._observe(env_ids)
        if env_ids is None:
            shown["policy"] = self.task.without_over(shown["policy"], self.task.observation_spaces)
        return {**shown, "critic": shown["policy"]} if self.task.cfg.state_space == -1 else shown

    def _place(self, env_ids: Tensor, seeded: bool) -> None:
        for name in ("agent_terminated", "agent_truncated", "agent_over"):
            setattr(self.task, name, getattr(self.task, name).index_fill(0, env_ids, False))
        super()._place(env_ids, seeded)


class DirectMARLEnv(DirectRLEnv):
    """A task of several agents: a :class:`DirectRLEnv` whose methods take and return a dict with an entry for each
    agent, ``_get_dones`` two; with a ``cfg.state_space`` of its own ``_get_states`` returns the state. ``_get_costs``
    returns name → cost, or agent → such a dict of what it alone answers for; the limit of that is
    ``cfg.cost_limits["agent/cost"]``.

    An agent whose episode is over, terminated or truncated, acts no more: its action is taken for zero, and reward,
    costs of its own and observation are zero, until the episode of the last agent is over. Then the environment's is:
    terminated if all agents were, else truncated."""

    CORE, CFG = MultiAgentCore, DirectMARLEnvCfg
    core: MultiAgentCore
    cfg: DirectMARLEnvCfg

    def __init__(self, cfg: DirectMARLEnvCfg, render_mode: str | None = None, **kwargs: Any):
        self.possible_agents = list(cfg.possible_agents)
        self.observation_spaces = cfg.by_agent("observation_spaces")
        self.action_spaces = cfg.by_agent("action_spaces", 1.0)
        super().__init__(cfg, render_mode, **kwargs)
        none = torch.zeros(self.num_envs, len(self.possible_agents), dtype=torch.bool, device=self.device)
        self.agent_terminated, self.agent_truncated, self.agent_over = none, none.clone(), none.clone()
        """Whose episode has ended in the present one of the environment, and whose had before the last step; and"""
        self.agent_rewards = none.float()
        """the rewards of that. Shapes: (num_envs, agents)."""
        self.state_space = self.core.groups.get("critic")
        """The space of :meth:`state`, None without one."""

    def _check(self) -> None:
        super()._check()
        if self.cfg.state_space not in (None, 0, -1) and not self.writes("_get_states"):
            raise TypeError(f"{type(self).__name__} needs a method _get_states, or another state_space")

    def _noise(self, spaces: Spaces) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for kind in ("observation", "action"):
            name, own = f"{kind}_noise", getattr(self, f"{kind}_spaces")
            models = getattr(self.cfg, f"{name}_model") or {}
            check_known(f"{type(self.cfg).__name__}.{name}_model: there is no agent", models, own, "agents")
            found |= {f"{kind}/{a}": (model, f"{name}/{a}", own[a]) for a, model in models.items()}
        return found

    def noisy(self, kind: str, rows: Any, env_ids: Tensor | None = None) -> Any:
        parts, noisy = self.split(rows, getattr(self, f"{kind}_spaces")), super().noisy
        return joined({agent: noisy(f"{kind}/{agent}", part, env_ids) for agent, part in parts.items()})

    @property
    def agents(self) -> list[str]:
        """The agents that act in at least one environment."""
        over = (self.agent_terminated | self.agent_truncated).all(0).tolist()
        return [agent for agent, is_over in zip(self.possible_agents, over, strict=True) if not is_over]

    num_agents = property(lambda self: len(self.agents))
    max_num_agents = property(lambda self: len(self.possible_agents))

    def _know(self, *agents: str) -> None:
        check_known(f"{type(self).__name__}: there is no agent", agents, self.possible_agents, "agents")

    def _space(self, name: str, agent: str) -> gym.Space[Any]:
        self._know(agent)
        return getattr(self, name)[agent]

    observation_space = partialmethod(_space, "observation_spaces")
    action_space = partialmethod(_space, "action_spaces")

    def state(self) -> Any:
        """The state (num_envs, …) that belongs to the last observation; None if ``cfg.state_space`` is 0."""
        return None if self.state_space is None else mapped(torch.clone, self.core._last_observation["critic"])

    def reset(self, *args: Any, **kwargs: Any) -> tuple[ByAgent, dict[str, Any]]:
        """Observations by agent, and extras with an entry for each agent, beside those of ``info``."""
        observation, info = super().reset(*args, **kwargs)
        return self._by_agent(observation), self._extras(info)

    def step(self, actions: ByAgent) -> Any:
        """One control step: observations, rewards, terminated, truncated and ``final_obs`` of the extras by agent. When
        the last agent's episode is over, a new one of that environment begins. Agents that act in no environment may be
        left out."""
        observation, _, _, truncated, info = super().step(self.join_actions(actions))
        if "final_obs" in info:
            info["final_obs"] = self._by_agent(info["final_obs"])
        return self._by_agent(observation), *self.outcome(truncated, info), self._extras(info)

    def _by_agent(self, observation: Any) -> ByAgent:
        return self.split(observation["policy"], self.observation_spaces)

    def _extras(self, info: dict[str, Any]) -> dict[str, Any]:
        return {**{agent: {} for agent in self.possible_agents}, **info}

    def join_actions(self, actions: ByAgent) -> Any:
        """The actions of agents as the vector environment takes them, zeros for those that act no more."""
        self._know(*actions)
        if missing := [agent for agent in self.agents if agent not in actions]:
            raise ValueError(f"{type(self).__name__}.step needs an action of each of {self.agents}, none of {missing}")
        return joined({**self.core.by_agent(self.core.zeros["action"]), **actions})

    def outcome(self, truncated: Any, info: dict[str, Any]) -> list[ByAgent]:
        """Rewards, terminated and truncated by agent of a step of the vector environment, all (num_envs,)."""
        ended = info["agent_terminated"]
        cut = (info["agent_truncated"] | truncated[:, None]) & ~ended
        return [{a: part[:, i] for i, a in enumerate(self.possible_agents)} for part in (info["rewards"], ended, cut)]

    def split(self, rows: Any, spaces: Spaces) -> ByAgent:
        """By agent what the vector environment has of all in a row: observations or actions; ValueError if the row is
        of another length."""
        if isinstance(rows, dict):
            return rows
        ends = np.cumsum([gym.spaces.flatdim(space) for space in spaces.values()]).tolist()
        if rows.shape[1] != ends[-1]:
            raise ValueError(f"{type(self).__name__}: {rows.shape[1]} numbers where {ends[-1]} are of {spaces}")
        parts = zip(spaces.items(), [0, *ends], ends, strict=False)
        return {a: rows[:, start:end].reshape(-1, *(space.shape or ())) for (a, space), start, end in parts}

    def without_over(self, rows: Any, spaces: Spaces) -> Any:
        """What the vector environment has of all agents in a row, zero for those that act no more."""
        if not self.agent_over.any():
            return rows
        over = dict(zip(self.possible_agents, self.agent_over.unbind(1), strict=True))
        return joined({a: mapped(partial(_cleared, over[a]), part) for a, part in self.split(rows, spaces).items()})


def _cleared(over: Tensor, value: Tensor) -> Tensor:
    return value.masked_fill(over.view(-1, *[1] * (value.ndim - 1)), 0)


def joined_space(spaces: Spaces) -> gym.Space[Any]:
    """One box of all agents' boxes in a row, or the dict of their spaces if one of them is none."""
    boxes = [space for space in spaces.values() if isinstance(space, gym.spaces.Box)]
    if len(boxes) < len(spaces):
        return gym.spaces.Dict(spaces)
    low, high = (np.concatenate([getattr(box, end).ravel() for box in boxes]) for end in ("low", "high"))
    return gym.spaces.Box(low, high)


def joined(values: ByAgent) -> Any:
    """Tensors of agents in a row, (num_envs, size), or the dict of them if one of them is of no box."""
    if not all(isinstance(value, Tensor) and value.is_floating_point() for value in values.values()):
        return values
    return torch.cat([value.flatten(1) for value in values.values()], 1)


class SingleAgentEnv:
    """Several agents as one, with what the direct workflow has for one agent: the observation, under ``"policy"``, is
    that of all agents in a row or the state, the action all actions, the reward the sum of all rewards. ValueError if
    the state is to be observed and there is none."""

    def __init__(self, env: Any, state_as_observation: bool = False):
        if not isinstance(env, DirectMARLEnv):
            raise TypeError(f"expected a DirectMARLEnv, got {type(env).__name__}")
        if state_as_observation and env.state_space is None:
            raise ValueError(f"{type(env).__name__} has no state to observe: its cfg.state_space is 0")
        self.env: Any = env
        self._group = "critic" if state_as_observation else "policy"
        self.single_observation_space = gym.spaces.Dict({"policy": env.core.groups[self._group]})

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, **options: Any) -> tuple[ByAgent, dict[str, Any]]:
        observation, info = self.env.stack.reset(**options)
        return {"policy": observation[self._group]}, info

    def step(self, action: Any) -> Any:
        """The observation, and reward, terminated, truncated, (num_envs,), and ``info`` of all agents."""
        observation, *outcome = self.env.stack.step(action)
        return {"policy": observation[self._group]}, *outcome


class OneAgentEnv(SingleAgentEnv):
    """Several agents as a multi-agent environment whose one agent is ``"single-agent"``."""

    def __init__(self, env: Any, state_as_observation: bool = False):
        super().__init__(env, state_as_observation)
        self.agents = self.possible_agents = ["single-agent"]
        self.num_agents = self.max_num_agents = 1
        self.observation_spaces = {"single-agent": self.single_observation_space["policy"]}
        self.action_spaces = {"single-agent": self.single_action_space}
        self.observation_space, self.action_space = self.observation_spaces.__getitem__, self.action_spaces.__getitem__

    def reset(self, **options: Any) -> tuple[ByAgent, dict[str, Any]]:
        observation, info = super().reset(**options)
        return {"single-agent": observation["policy"]}, {"single-agent": {}, **info}

    def step(self, actions: ByAgent) -> Any:
        """Five dicts, as :meth:`DirectMARLEnv.step`."""
        observation, *outcome, info = super().step(actions["single-agent"])
        return *({"single-agent": part} for part in (observation["policy"], *outcome)), {"single-agent": {}, **info}


multi_agent_to_single_agent, multi_agent_with_one_agent = SingleAgentEnv, OneAgentEnv
"""Isaac Lab's names."""
