"""Isaac Lab's direct workflow for several agents: methods that take and return a dict with an entry for each agent."""

import math
from functools import partialmethod
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor

from legged_envs.checks import check_known
from legged_envs.compat.isaac_lab.direct import DirectRLEnv, DirectRLEnvCfg
from legged_envs.compat.isaac_lab.direct_task import DirectCore
from legged_envs.compat.isaac_lab.spaces import space_from
from legged_envs.configuration import configclass
from legged_envs.envs.task import Evaluation
from legged_envs.state import map_tree

ByAgent = dict[str, Any]
"""Agent → its value; tensors start with ``num_envs``."""


@configclass
class DirectMARLEnvCfg(DirectRLEnvCfg):
    """A task of several agents in Isaac Lab's words. ``observation_noise_model`` and ``action_noise_model`` are dicts,
    agent → ``NoiseModelCfg``; ``state_space`` is −1 for the observations of all agents in a row, 0 for no state."""

    possible_agents: Any = ()
    action_spaces: Any = {}  # noqa: RUF012
    observation_spaces: Any = {}  # noqa: RUF012
    """Agent → a float32 box, or what stands for one: see :func:`~legged_envs.compat.isaac_lab.spaces.space_from`."""

    def by_agent(self, name: str, bound: float = math.inf) -> dict[str, Box]:
        """The spaces of a field; ValueError unless each agent has a float32 box, and there are agents."""
        specs, where, agents = (
            getattr(self, name),
            f"{type(self).__name__}.{name}",
            list(self.possible_agents),
        )
        if not agents or sorted(specs) != sorted(agents):
            raise ValueError(
                f"{where} must have a space for each of possible_agents, {agents}, got {list(specs)}"
            )
        spaces: Any = {a: space_from(specs[a], -bound, bound, f"{where}[{a!r}]") for a in agents}
        if others := [
            each for each in spaces.values() if not isinstance(each, Box) or each.dtype != "float32"
        ]:
            raise ValueError(
                f"{where} must be float32 boxes, which can stand in a row, got {others}"
            )
        return spaces

    def space(self, name: str, bound: float = math.inf) -> gym.Space[Any]:
        """The space ``name`` of all agents in a row, numbers without bounds within ±``bound``."""
        if name == "state_space" and self.state_space != -1:
            return super().space(name, bound)
        boxes = self.by_agent(
            "action_spaces" if name == "action_space" else "observation_spaces", bound
        )
        return gym.spaces.flatten_space(gym.spaces.Tuple(boxes.values()))


class MultiAgentCore(DirectCore):
    """The vector environment of a :class:`DirectMARLEnv`: actions and the observation group ``"policy"`` are those of
    all agents in a row, ``"critic"`` is the state; the reward is the sum over the agents. ``info`` holds ``rewards``,
    ``agent_terminated`` and ``agent_truncated``, (num_envs, agents), in the order of ``possible_agents``."""

    def _results(self, number: Tensor) -> dict[str, Any]:
        task = self.task
        rewards, dones = (
            dict.fromkeys(task.possible_agents, value) for value in (number, number.bool())
        )
        policy, state = (
            task.split(self.zeros["policy"], task.observation_spaces),
            self.zeros.get("critic"),
        )
        results = {"_get_observations": policy, "_get_states": state, "_get_rewards": rewards}
        return {**super()._results(number), **results, "_get_dones": (dones, dones)}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        *outcome, info = super().step(actions)
        ended = {name: getattr(self.task, name) for name in ("agent_terminated", "agent_truncated")}
        return *outcome, {**info, **self._export({"rewards": self.task.agent_rewards, **ended})}

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

    def _end(self) -> None:
        task = self.task
        ended, cut = (task.join(part) & ~task.agent_over for part in self._returned("_get_dones"))
        task.agent_terminated = task.agent_terminated | ended
        task.agent_truncated = task.agent_truncated | cut & ~task.agent_terminated
        task.reset_terminated = task.agent_terminated.all(1)
        task.reset_buf = (task.agent_terminated | task.agent_truncated).all(1)
        task.reset_time_outs = task.reset_buf & ~task.reset_terminated

    def _reward(self) -> None:
        task = self.task
        task.agent_rewards = task.join(self._returned("_get_rewards")).masked_fill(
            task.agent_over, 0.0
        )
        task.reward_buf = task.agent_rewards.sum(1)

    def _charge(self) -> None:
        costs = dict(self._returned("_get_costs"))
        for agent, over in zip(
            self.task.possible_agents, self.task.agent_over.unbind(1), strict=True
        ):
            own = [name for name in costs if name.startswith(f"{agent}/")]
            costs |= {name: costs[name].masked_fill(over, 0.0) for name in own}
        vars(self.task_costs).update(costs)

    def _look(self) -> None:
        self.seen.policy = self.seen.critic = self.task.join(self._returned("_get_observations"))
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
    agent, ``_get_dones`` two; with a ``cfg.state_space`` of its own ``_get_states`` returns the state. A cost named
    ``"agent/cost"`` in ``cfg.cost_limits`` and by ``_get_costs`` is one for which that agent alone answers.

    An agent whose episode is over, terminated or truncated, acts no more: its action is taken for zero, and reward,
    costs of its own and observation are zero, until the episode of the last agent is over. Then the environment's is:
    terminated if all agents were, else truncated."""

    CORE, CFG = MultiAgentCore, DirectMARLEnvCfg
    cfg: DirectMARLEnvCfg

    def __init__(self, cfg: DirectMARLEnvCfg, render_mode: str | None = None, **kwargs: Any):
        self.possible_agents = list(cfg.possible_agents)
        self.observation_spaces = cfg.by_agent("observation_spaces")
        self.action_spaces = cfg.by_agent("action_spaces", 1.0)
        super().__init__(cfg, render_mode, **kwargs)
        self.extras |= {agent: {} for agent in self.possible_agents}
        none = torch.zeros(
            self.num_envs, len(self.possible_agents), dtype=torch.bool, device=self.device
        )
        self.agent_terminated, self.agent_truncated, self.agent_over = (
            none,
            none.clone(),
            none.clone(),
        )
        """Whose episode has ended in the present one of the environment, and whose had before the last step; and"""
        self.agent_rewards = none.float()
        """the rewards of that. Shapes: (num_envs, agents)."""
        self.state_space = self.core.groups.get("critic")
        """The space of :meth:`state`, None without one."""

    def _noise(self, spaces: dict[str, gym.Space[Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for kind, own in (("observation", self.observation_spaces), ("action", self.action_spaces)):
            models = getattr(self.cfg, f"{kind}_noise_model") or {}
            check_known(
                f"{type(self.cfg).__name__}.{kind}_noise_model: there is no agent",
                models,
                own,
                "agents",
            )
            found |= {
                f"{kind}/{a}": (model, f"{kind}_noise/{a}", own[a])
                for a, model in models.items()
                if model
            }
        return found

    def noisy(self, kind: str, rows: Any, env_ids: Tensor | None = None) -> Any:
        parts, noisy = self.split(rows, getattr(self, f"{kind}_spaces")), super().noisy
        return self.join(
            {agent: noisy(f"{kind}/{agent}", part, env_ids) for agent, part in parts.items()}
        )

    @property
    def agents(self) -> list[str]:
        """The agents that act in at least one environment."""
        over = (self.agent_terminated | self.agent_truncated).all(0).tolist()
        return [
            agent for agent, is_over in zip(self.possible_agents, over, strict=True) if not is_over
        ]

    num_agents = property(lambda self: len(self.agents))
    max_num_agents = property(lambda self: len(self.possible_agents))
    """How many agents act in at least one environment, and how many the task has."""

    def _space(self, name: str, agent: str) -> gym.Space[Any]:
        check_known(
            f"{type(self).__name__}: there is no agent", (agent,), self.possible_agents, "agents"
        )
        return getattr(self, name)[agent]

    observation_space = partialmethod(_space, "observation_spaces")
    action_space = partialmethod(_space, "action_spaces")
    """The space of one agent of one environment, by its name; ValueError if there is no such agent."""

    def state(self) -> Any:
        """The state (num_envs, …) that belongs to the last observation; None if ``cfg.state_space`` is 0."""
        return (
            None
            if self.state_space is None
            else map_tree(torch.clone, self.core._last_observation["critic"])
        )

    def reset(self, *args: Any, **kwargs: Any) -> tuple[ByAgent, dict[str, Any]]:
        """Observations by agent, and extras with an entry for each agent, beside those of ``info``."""
        observation, extras = super().reset(*args, **kwargs)
        return self._by_agent(observation), extras

    def step(self, actions: ByAgent) -> Any:
        """One control step: observations, rewards, terminated, truncated and ``final_obs`` of the extras by agent. When
        the last agent's episode is over, a new one of that environment begins. Agents that act in no environment may be
        left out."""
        observation, _, _, truncated, extras = super().step(self.join_actions(actions))
        if "final_obs" in extras:
            extras["final_obs"] = self._by_agent(extras["final_obs"])
        return self._by_agent(observation), *self.outcome(truncated, extras), extras

    def _by_agent(self, observation: Any) -> ByAgent:
        return self.split(observation["policy"], self.observation_spaces)

    def join_actions(self, actions: ByAgent) -> Any:
        """The actions of agents as the vector environment takes them, zeros for those that act no more; ValueError if
        one is missing, unknown or of another shape."""
        if not {*self.agents} <= {*actions} <= {*self.possible_agents}:
            given = f"got those of {list(actions)}, of the agents {self.possible_agents}"
            raise ValueError(
                f"{type(self).__name__}.step needs an action of each of {self.agents}, {given}"
            )
        zeros = self.core.by_agent(self.core.zeros["action"])
        if wrong := [
            agent for agent, action in actions.items() if action.shape != zeros[agent].shape
        ]:
            expected = {agent: tuple(zeros[agent].shape) for agent in wrong}
            raise ValueError(f"{type(self).__name__}.step: actions must have the shapes {expected}")
        return self.join({**zeros, **actions})

    def outcome(self, truncated: Any, info: dict[str, Any]) -> list[ByAgent]:
        """Rewards, terminated and truncated by agent of a step of the vector environment, all (num_envs,)."""
        ended = info["agent_terminated"]
        cut = (info["agent_truncated"] | truncated[:, None]) & ~ended
        return [
            {a: part[:, i] for i, a in enumerate(self.possible_agents)}
            for part in (info["rewards"], ended, cut)
        ]

    def split(self, rows: Any, spaces: dict[str, Box]) -> ByAgent:
        """By agent what the vector environment has of all in a row: observations or actions; ValueError if the row is
        of another length."""
        ends = np.cumsum([gym.spaces.flatdim(space) for space in spaces.values()]).tolist()
        if rows.shape[1] != ends[-1]:
            raise ValueError(
                f"{type(self).__name__}: {rows.shape[1]} numbers where {ends[-1]} are of {spaces}"
            )
        parts = zip(spaces.items(), [0, *ends], ends, strict=False)
        return {
            a: rows[:, start:end].reshape(-1, *(space.shape or ()))
            for (a, space), start, end in parts
        }

    def join(self, values: ByAgent) -> Tensor:
        """What agents have in a row, (num_envs, size) of all: the opposite of :meth:`split`."""
        return torch.cat(
            [values[agent].unsqueeze(-1).flatten(1) for agent in self.possible_agents], 1
        )

    def without_over(self, rows: Tensor, spaces: dict[str, Box]) -> Tensor:
        """What the vector environment has of all agents in a row, (num_envs, size) of all, zero for those that act no
        more."""
        sizes = torch.tensor(
            [gym.spaces.flatdim(space) for space in spaces.values()], device=rows.device
        )
        return rows.masked_fill(self.agent_over.repeat_interleave(sizes, 1), 0.0)


class SingleAgentEnv:
    """Several agents as one, with what the direct workflow has for one agent: the observation, under ``"policy"``, is
    that of all agents in a row or the state, the action all actions, the reward the sum of all rewards. ValueError if
    the state is to be observed and there is none."""

    AGENT = "policy"
    """Under which name the observation is."""

    def __init__(self, env: Any, state_as_observation: bool = False):
        if state_as_observation and env.state_space is None:
            raise ValueError(
                f"{type(env).__name__} has no state to observe: its cfg.state_space is 0"
            )
        self.env, self._group = env, "critic" if state_as_observation else "policy"
        self.single_observation_space = gym.spaces.Dict({self.AGENT: env.core.groups[self._group]})

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, **options: Any) -> tuple[ByAgent, dict[str, Any]]:
        observation, info = self.env.stack.reset(**options)
        return {self.AGENT: observation[self._group]}, info

    def step(self, action: Any) -> Any:
        """The observation, and reward, terminated, truncated, (num_envs,), and ``info`` of all agents."""
        observation, *outcome = self.env.stack.step(action)
        return {self.AGENT: observation[self._group]}, *outcome


class OneAgentEnv(SingleAgentEnv):
    """Several agents as a multi-agent environment whose one agent is ``"single-agent"``."""

    AGENT = "single-agent"

    def __init__(self, env: Any, state_as_observation: bool = False):
        super().__init__(env, state_as_observation)
        self.agents = self.possible_agents = [self.AGENT]
        self.num_agents = self.max_num_agents = 1
        self.observation_spaces = self.single_observation_space
        self.action_spaces = {self.AGENT: env.single_action_space}
        self.observation_space, self.action_space = (
            self.observation_spaces.__getitem__,
            self.action_spaces.__getitem__,
        )

    def step(self, actions: ByAgent) -> Any:
        """Five dicts, as :meth:`DirectMARLEnv.step`."""
        observation, *outcome, info = super().step(actions[self.AGENT])
        return observation, *({self.AGENT: part} for part in outcome), info


multi_agent_to_single_agent, multi_agent_with_one_agent = SingleAgentEnv, OneAgentEnv
"""Isaac Lab's names."""
