"""Isaac Lab's direct workflow for several agents: methods that take and return a dict with an entry for each agent."""

import math
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector.utils import create_empty_array
from torch import Tensor

from legged_envs.checks import check_known
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.hooks import Evaluation
from legged_envs.managers import Piece
from legged_envs.state import Stateful, mapped
from legged_envs.workflows.configclass import configclass
from legged_envs.workflows.direct import DirectRLEnv, DirectRLEnvCfg
from legged_envs.workflows.direct_core import DirectCore
from legged_envs.workflows.spaces import space_from

ByAgent = dict[str, Any]
"""Agent → its value; tensors start with ``num_envs``."""
Spaces = dict[str, gym.Space[Any]]
TERMS = ("observations", "rewards", "only_positive_rewards", "terminations", "costs", "curriculum")
"""Fields of a ``TaskCfg`` that may stand for methods."""


@configclass
class DirectMARLEnvCfg(DirectRLEnvCfg):
    """A task of several agents in Isaac Lab's words. Terms as in a ``TaskCfg`` may take the place of methods: the
    observation group ``"policy"``, all agents in a row, of ``_get_observations``, ``"critic"`` of ``_get_states``."""

    possible_agents: Any = ()
    action_spaces: Any = {}  # noqa: RUF012
    observation_spaces: Any = {}  # noqa: RUF012
    """Agent → space, or what stands for one: see :func:`~legged_envs.workflows.spaces.space_from`."""
    state_space: Any = 0
    """The space of the state; −1: the observations of all agents in a row, 0: there is no state."""
    observation_noise_model: Any = None
    action_noise_model: Any = None
    """Agent → ``NoiseModelCfg``."""
    observations: Any = {}  # noqa: RUF012
    rewards: Any = {}  # noqa: RUF012
    only_positive_rewards: bool = True
    terminations: Any = {}  # noqa: RUF012
    costs: Any = {}  # noqa: RUF012
    curriculum: Any = {}  # noqa: RUF012

    def by_agent(self, name: str) -> Spaces:
        """The spaces of a field; ValueError unless each agent has one, and there are agents."""
        specs, where, agents = getattr(self, name), f"{type(self).__name__}.{name}", list(self.possible_agents)
        if not agents or sorted(specs) != sorted(agents):
            raise ValueError(f"{where} must have a space for each of possible_agents, {agents}, got {list(specs)}")
        bound = 1.0 if name == "action_spaces" else math.inf
        return {agent: space_from(specs[agent], -bound, bound, f"{where}[{agent!r}]") for agent in agents}

    def spaces(self) -> Spaces:
        spaces = {"policy": joined_space(self.by_agent("observation_spaces"))}
        spaces["action"] = joined_space(self.by_agent("action_spaces"))
        if self.state_space in (None, 0, -1):
            return spaces | ({"critic": spaces["policy"]} if self.state_space == -1 else {})
        where = f"{type(self).__name__}.state_space"
        return spaces | {"critic": space_from(self.state_space, -math.inf, math.inf, where)}


class MultiAgentCore(DirectCore):
    """The vector environment of a :class:`DirectMARLEnv`: actions and the observation group ``"policy"`` are those of
    all agents in a row, ``"critic"`` is the state; the reward is the sum over the agents. ``info`` holds ``rewards``,
    ``agent_terminated`` and ``agent_truncated``, (num_envs, agents), in the order of ``possible_agents``."""

    task: "DirectMARLEnv"

    def _build(self) -> tuple[Spaces, gym.Space[Any]]:
        agents, expected, costs = self.task.possible_agents, self._expected, dict[str, Any]()
        for name, cost in expected["cost"].items():  # "agent/cost" is returned as {agent: {cost: …}}
            owner, _, part = name.partition("/")
            costs |= {owner: costs.get(owner, {}) | {part: cost}} if owner in agents else {name: cost}
        rewards, dones = (dict.fromkeys(agents, like) for like in (expected["reward"], expected["done"][0]))
        expected |= {"cost": costs, "reward": rewards, "done": (dones, dones)}
        expected["agents"] = self.task.split(expected["policy"], self.task.observation_spaces)
        vars(self.seen).update({name: expected[name] for name in self._shown})
        spaces = super()._build()
        for name in self.groups.keys() & self.observations.groups.keys():
            self._returned(f"cfg.observations[{name!r}]", self.observations.groups[name].value, expected[name])
        return spaces

    def _evaluation_pieces(self) -> list[Piece]:
        ends = [[self._ends], self.terminations.pieces()]
        first, second = ends if self.task.writes("_get_dones") else ends[::-1]
        return [*first, *second, *self.rewards.pieces(), *self._rates, *self.costs.pieces()]

    def _observation_pieces(self) -> list[Piece]:
        return [*(piece for group in self._groups for piece in group.pieces()), self._looks]

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        *outcome, info = super().step(actions)
        own = {name: getattr(self.task, name) for name in ("agent_rewards", "agent_terminated", "agent_truncated")}
        own = self._export({"rewards": own.pop("agent_rewards"), **own})
        return *outcome, info | own

    def _act(self, action: Any) -> None:
        task = self.task
        task.agent_over = task.agent_terminated | task.agent_truncated
        super()._act(task.without_over(action, task.action_spaces))

    def _given(self, action: Any) -> ByAgent:
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
        dones = self._returned("_get_dones", task._get_dones(), self._expected["done"])
        ended, cut = (task.columns(part) & ~task.agent_over for part in dones)
        task.agent_terminated = task.agent_terminated | ended
        task.agent_truncated = task.agent_truncated | cut & ~task.agent_terminated
        task.reset_terminated = task.agent_terminated.all(1)
        task.reset_buf = (task.agent_terminated | task.agent_truncated).all(1)
        task.reset_time_outs = task.reset_buf & ~task.reset_terminated

    def _reward(self) -> None:
        task = self.task
        rewards = task.columns(self._returned("_get_rewards", task._get_rewards(), self._expected["reward"]))
        task.agent_rewards = rewards.masked_fill(task.agent_over, 0.0)
        task.reward_buf = task.agent_rewards.sum(1)

    def _charge(self) -> None:
        task, costs = self.task, dict(self._returned("_get_costs", self.task._get_costs(), self._expected["cost"]))
        for i, agent in enumerate(task.possible_agents):
            own = costs.pop(agent, {}).items()
            costs |= {f"{agent}/{name}": cost.masked_fill(task.agent_over[:, i], 0.0) for name, cost in own}
        vars(self.task_costs).update(costs)

    def _look(self) -> None:
        task, groups = self.task, self.observations.groups if hasattr(self, "observations") else {}
        seen = {name: group.value for name, group in groups.items()}
        if task.writes("_get_observations"):
            own = self._returned("_get_observations", task._get_observations(), self._expected["agents"])
            seen["policy"] = joined(own)
        if "critic" in self._shown and task.writes("_get_states") and task.cfg.state_space != -1:
            seen["critic"] = self._returned("_get_states", task._get_states(), self._expected["critic"])
        vars(self.seen).update(seen)

    def _observe(self, env_ids: Tensor | None) -> dict[str, Any]:
        for group in self._groups if env_ids is None else ():
            group.draw()
        shown = super()._observe(env_ids)
        if env_ids is None:
            shown["policy"] = self.task.without_over(shown["policy"], self.task.observation_spaces)
        else:
            shown |= {group.name: group.compute_rows(env_ids) for group in self._groups}
        return shown | ({"critic": shown["policy"]} if "critic" in shown and self.task.cfg.state_space == -1 else {})

    def _place(self, env_ids: Tensor, seeded: bool) -> None:
        for name in ("agent_terminated", "agent_truncated", "agent_over"):
            setattr(self.task, name, getattr(self.task, name).index_fill(0, env_ids, False))
        super()._place(env_ids, seeded)


class DirectMARLEnv(DirectRLEnv):
    """A task of several agents: a :class:`DirectRLEnv` whose methods take and return a dict with an entry for each
    agent, ``_get_dones`` two. ``_get_costs`` returns name → cost, or agent → such a dict of what it alone answers for;
    the limit of that is ``cfg.cost_limits["agent/cost"]``. For methods that it does not write terms may stand.

    An agent whose episode is over, terminated or truncated, acts no more: its action is taken for zero, and reward,
    costs of its own and observation are zero, until the episode of the last agent is over. Then the environment's is:
    terminated if all agents were, else truncated."""

    CORE = MultiAgentCore
    core: MultiAgentCore
    cfg: DirectMARLEnvCfg

    def __init__(self, cfg: DirectMARLEnvCfg, render_mode: str | None = None, **kwargs: Any):
        self.possible_agents = list(cfg.possible_agents)
        self.observation_spaces, self.action_spaces = map(cfg.by_agent, ("observation_spaces", "action_spaces"))
        super().__init__(cfg, render_mode, **kwargs)
        none = torch.zeros(self.num_envs, len(self.possible_agents), dtype=torch.bool, device=self.device)
        self.agent_terminated, self.agent_truncated, self.agent_over = none, none.clone(), none.clone()
        """Whose episode has ended in the present one of the environment, and whose had before the last step; and"""
        self.agent_rewards = none.float()
        """the rewards of that. Shapes: (num_envs, agents)."""
        self.state_space = self.core.groups.get("critic")
        """The space of :meth:`state`, None without one."""
        if "actions" in vars(self):
            self.actions: Any = self.split(self.actions, self.action_spaces)

    @classmethod
    def _translate(cls, cfg: Any) -> TaskCfg:
        task = super()._translate(cfg)
        for name in TERMS:
            setattr(task, name, getattr(task, name) if getattr(cfg, name) == {} else getattr(cfg, name))
        return task

    def _noise(self, name: str, stream: str, space: gym.Space[Any]) -> Any:
        spaces = self.observation_spaces if name == "observation" else self.action_spaces
        models = getattr(self.cfg, f"{name}_noise_model") or {}
        check_known(f"{type(self.cfg).__name__}.{name}_noise_model: there is no agent", models, spaces, "agents")
        streams = {agent: self.random.stream(f"{name}_noise/{agent}") for agent in models}
        made = {a: cfg.class_type(cfg, streams[a], gym.spaces.flatdim(spaces[a])) for a, cfg in models.items()}
        return _NoiseByAgent(made, self, spaces) if made else None

    def _check(self) -> None:
        super()._check()
        cfg, name = self.core.cfg, type(self).__name__
        terms = {"_get_observations": "policy" in cfg.observations, "_get_rewards": cfg.rewards}
        terms["_get_states"] = "critic" in cfg.observations or self.cfg.state_space in (None, 0, -1)
        for method, instead in (terms | {"_get_dones": self.cfg.terminations}).items():
            if not self.writes(method) and not instead:
                raise TypeError(f"{name} needs a method {method}, or terms for that in its configuration")

    def _get_observations(self) -> ByAgent:
        """Agent → observation (num_envs, …), float32."""
        return self.split(self.core.observations.groups["policy"].value, self.observation_spaces)

    def _get_rewards(self) -> Any:
        """Agent → reward (num_envs,), float32; without an own method equal parts of that of ``cfg.rewards``."""
        return dict.fromkeys(self.possible_agents, self.core.rewards.total / len(self.possible_agents))

    def _get_dones(self) -> Any:
        """Agent → whether it is terminated, and whether its time is over, (num_envs,) bool; without an own method all
        are terminated as ``cfg.terminations`` says. The time limit of the task ends all episodes beside this."""
        terminated = self.core.terminations.terminated
        in_time = torch.zeros_like(terminated)
        return dict.fromkeys(self.possible_agents, terminated), dict.fromkeys(self.possible_agents, in_time)

    @property
    def agents(self) -> list[str]:
        """The agents that act in at least one environment."""
        over = (self.agent_terminated | self.agent_truncated).all(0).tolist()
        return [agent for agent, is_over in zip(self.possible_agents, over, strict=True) if not is_over]

    num_agents = property(lambda self: len(self.agents))
    max_num_agents = property(lambda self: len(self.possible_agents))

    def observation_space(self, agent: str) -> gym.Space[Any]:
        self._know("observation_space", agent)
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space[Any]:
        self._know("action_space", agent)
        return self.action_spaces[agent]

    def state(self) -> Any:
        """The state (num_envs, …) that belongs to the last observation; None if ``cfg.state_space`` is 0."""
        return None if self.state_space is None else mapped(torch.clone, self.core._last_observation["critic"])

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None, env_ids: Any = None
    ) -> tuple[ByAgent, dict[str, Any]]:
        """Observations by agent, and extras with an entry for each agent, beside those of ``info``."""
        observation, info = super().reset(seed, options, env_ids)
        return self.split(observation["policy"], self.observation_spaces), self._extras(info)

    def step(self, actions: ByAgent) -> Any:
        """One control step: observations, rewards, terminated, truncated and ``final_obs`` of the extras by agent. When
        the last agent's episode is over, a new one of that environment begins. Agents that act in no environment may be
        left out."""
        observation, _, _, truncated, info = super().step(self.join_actions(actions))
        extras = self._extras(info)
        return self.split(observation["policy"], self.observation_spaces), *self.outcome(truncated, info), extras

    def join_actions(self, actions: ByAgent) -> Any:
        """The actions of agents as the vector environment takes them, zeros for those that act no more."""
        self._know("step", *actions)
        if missing := [agent for agent in self.agents if agent not in actions]:
            wrong = f"needs an action of each of {self.agents}, got none of {missing}"
            raise ValueError(f"{type(self).__name__}.step {wrong}")
        zeros = {a: create_empty_array(space, self.num_envs, np.zeros) for a, space in self.action_spaces.items()}
        return joined({**mapped(torch.from_numpy, zeros), **actions})

    def outcome(self, truncated: Any, info: dict[str, Any]) -> list[ByAgent]:
        """Rewards, terminated and truncated by agent of a step of the vector environment, all (num_envs,)."""
        ended = info["agent_terminated"]
        cut = (info["agent_truncated"] | truncated[:, None]) & ~ended
        return [{a: part[:, i] for i, a in enumerate(self.possible_agents)} for part in (info["rewards"], ended, cut)]

    def split(self, rows: Any, spaces: Spaces) -> ByAgent:
        """By agent what the vector environment has of all in a row: observations or actions."""
        if isinstance(rows, dict):
            return rows
        ends = np.cumsum([gym.spaces.flatdim(space) for space in spaces.values()]).tolist()
        parts = zip(spaces.items(), [0, *ends], ends, strict=False)
        return {a: rows[:, start:end].reshape(-1, *(space.shape or ())) for (a, space), start, end in parts}

    def columns(self, values: ByAgent) -> Tensor:
        """Values (num_envs,) of all agents. Shape: (num_envs, agents)."""
        return torch.stack([values[agent] for agent in self.possible_agents], 1)

    def without_over(self, rows: Any, spaces: Spaces) -> Any:
        """What the vector environment has of all agents in a row, zero for those that act no more."""
        if not self.agent_over.any():
            return rows
        parts = {**self.split(rows, spaces)}
        for agent, over in zip(self.possible_agents, self.agent_over.unbind(1), strict=True):
            parts[agent] = mapped(
                lambda v, gone=over: v.masked_fill(gone.view(-1, *[1] * (v.ndim - 1)), 0), parts[agent]
            )
        return joined(parts)

    def _know(self, method: str, *agents: str) -> None:
        check_known(f"{type(self).__name__}.{method}: there is no agent", agents, self.possible_agents, "agents")

    def _extras(self, info: dict[str, Any]) -> dict[str, Any]:
        extras = {agent: self.extras.get(agent, {}) for agent in self.possible_agents} | info
        if "final_obs" in info:
            extras["final_obs"] = self.split(info["final_obs"]["policy"], self.observation_spaces)
        return extras


class _NoiseByAgent(Stateful):
    """The noise ``models`` of some agents on rows of all agents."""

    STATE = ("models",)

    def __init__(self, models: ByAgent, task: DirectMARLEnv, spaces: Spaces):
        self.models, self._task, self._spaces = models, task, spaces

    def __call__(self, rows: Any, env_ids: Tensor | None = None) -> Any:
        parts = self._task.split(rows, self._spaces)
        return joined({a: self.models[a](part, env_ids) if a in self.models else part for a, part in parts.items()})

    def reset(self, env_ids: Tensor) -> None:
        for model in self.models.values():
            model.reset(env_ids)


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
        self.env = env if isinstance(env, DirectMARLEnv) else getattr(env.unwrapped, "task", None)
        if not isinstance(self.env, DirectMARLEnv):
            raise TypeError(f"expected a DirectMARLEnv, or a vector environment of one, got {type(env).__name__}")
        if state_as_observation and self.env.state_space is None:
            raise ValueError(f"{type(self.env).__name__} has no state to observe: its cfg.state_space is 0")
        core, self._group = self.env.core, "critic" if state_as_observation else "policy"
        self.single_observation_space = gym.spaces.Dict({"policy": core.groups[self._group]})
        self.single_action_space = core.single_action_space

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, dict[str, Any]]:
        observation, info = self.stack.reset(seed=seed, options=options)
        return {"policy": observation[self._group]}, info

    def step(self, action: Any) -> Any:
        """The observation, and reward, terminated, truncated, (num_envs,), and ``info`` of all agents."""
        observation, reward, terminated, truncated, info = self.stack.step(action)
        return {"policy": observation[self._group]}, reward, terminated, truncated, info


class OneAgentEnv(SingleAgentEnv):
    """Several agents as a multi-agent environment whose one agent is ``"single-agent"``."""

    def __init__(self, env: Any, state_as_observation: bool = False):
        super().__init__(env, state_as_observation)
        self.possible_agents = self.agents = ["single-agent"]
        self.num_agents = self.max_num_agents = 1
        self.observation_spaces = {"single-agent": self.single_observation_space["policy"]}
        self.action_spaces = {"single-agent": self.single_action_space}
        self.observation_space, self.action_space = self.observation_spaces.__getitem__, self.action_spaces.__getitem__

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, dict[str, Any]]:
        observation, info = super().reset(seed, options)
        return {"single-agent": observation["policy"]}, {"single-agent": {}, **info}

    def step(self, actions: ByAgent) -> Any:
        """Five dicts, as :meth:`DirectMARLEnv.step`."""
        observation, *outcome, info = super().step(actions["single-agent"])
        return *({"single-agent": part} for part in (observation["policy"], *outcome)), {"single-agent": {}, **info}


multi_agent_to_single_agent, multi_agent_with_one_agent = SingleAgentEnv, OneAgentEnv
"""Isaac Lab's names."""
