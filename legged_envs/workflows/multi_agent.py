"""Isaac Lab's direct workflow for several agents: methods that take and return a dict with an entry for each agent."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector.utils import create_empty_array

from legged_envs.checks import check_known
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.hooks import Evaluation
from legged_envs.state import mapped
from legged_envs.workflows.spaces import space_from
from legged_envs.workflows.workflow import Workflow, WorkflowCore

ByAgent = dict[str, Any]
"""Agent → its value; tensors start with ``num_envs``."""
Spaces = dict[str, gym.Space[Any]]


@dataclass
class DirectMARLEnvCfg(TaskCfg):
    """A multi-agent task: Isaac Lab's fields beside those of :class:`TaskCfg`, whose terms take the place of methods
    that the task does not write."""

    num_envs: int = 1
    """How many environments a task has that is made directly, not by its id."""
    possible_agents: Sequence[str] = ()
    action_spaces: dict[str, Any] = field(default_factory=dict)
    observation_spaces: dict[str, Any] = field(default_factory=dict)
    """Agent → space, or what stands for one: see :func:`~legged_envs.workflows.spaces.space_from`."""
    state_space: Any = 0
    """The space of the state; −1: the observations of all agents in a row, 0: there is no state."""
    cost_limits: dict[str, float] = field(default_factory=dict)
    """Name of each cost that ``_get_costs`` returns, ``"agent/cost"`` for the costs of an agent → its limit."""


class MultiAgentCore(WorkflowCore):
    """The vector environment of a :class:`DirectMARLEnv`: actions and the observation group ``"policy"`` are those of
    all agents in a row, ``"critic"`` is the state; the reward is the sum over the agents. ``info`` holds ``rewards``,
    ``agent_terminated`` and ``agent_truncated``, (num_envs, agents), in the order of ``possible_agents``."""

    task: "DirectMARLEnv"

    def _build(self) -> tuple[Spaces, gym.Space[Any]]:
        groups, _ = super()._build()
        task = self.task
        spaces = {"policy": joined_space(task.observation_spaces)}
        spaces |= {} if task.state_space is None else {"critic": task.state_space}
        for method, name in (("_get_observations", "policy"), ("_get_states", "critic")):
            if (
                not task.writes(method)
                and name in groups
                and groups[name].shape != spaces.get(name, groups[name]).shape
            ):
                wrong = f"observations[{name!r}] of its configuration have the shape {groups[name].shape}"
                raise ValueError(f"{task.where(method)}: {wrong}, expected {spaces[name].shape} by its spaces")
        if task.writes("_get_costs"):
            self.cost_names, self.cost_limits = tuple(task.cfg.cost_limits), tuple(task.cfg.cost_limits.values())
        return groups | spaces, joined_space(task.action_spaces)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(actions)
        task = self.task
        own = {"rewards": task.agent_rewards, "agent_terminated": task.agent_terminated}
        own = self._export(own | {"agent_truncated": task.agent_truncated})
        return observation, reward, terminated, truncated, info | own

    def _act(self, action: Any) -> None:
        task = self.task
        task.agent_over = task.agent_terminated | task.agent_truncated
        if isinstance(box := self.single_action_space, gym.spaces.Box):
            action = action.clamp(*(torch.from_numpy(bound).to(self.device) for bound in (box.low, box.high)))
        actions = task.split(action, task.action_spaces)
        task._pre_physics_step(task.without_over(actions) if task.agent_over.any() else actions)
        times = self.cfg.sim.decimation if task.writes("_apply_action") else 1
        for _ in range(times):
            task._apply_action()
            self.sim.step(self.cfg.sim.decimation // times)

    def _evaluate(self) -> Evaluation:
        own, task = super()._evaluate(), self.task
        bad = torch.zeros_like(own.terminated) if self._recovered is None else self._recovered
        acting, dones = ~task.agent_over, task._get_dones()
        if not isinstance(dones, tuple) or len(dones) != 2:
            raise TypeError(
                f"{task.where('_get_dones')} must return two dicts, terminated and time_outs, got {dones!r}"
            )
        terminated, truncated = (task.columns("_get_dones", part, torch.bool) for part in dones)
        rewards = task.columns("_get_rewards", task._get_rewards())
        task.agent_rewards = rewards.masked_fill(~acting | bad[:, None], 0.0)
        task.agent_terminated = task.agent_terminated | (terminated | bad[:, None]) & acting
        task.agent_truncated = task.agent_truncated | truncated & acting & ~task.agent_terminated
        costs = task.costs(acting) if task.writes("_get_costs") else own.costs
        ended = task.agent_terminated.all(1)
        cut = (task.agent_terminated | task.agent_truncated).all(1) & ~ended
        return Evaluation(ended, task.agent_rewards.sum(1), costs.sum(1), costs, cut)

    def _observe(self, env_ids: torch.Tensor | None) -> dict[str, Any]:
        rows, task = cast(dict[str, Any], super()._observe(env_ids)), self.task
        own = {}
        if task.writes("_get_observations"):
            own["policy"] = joined(task.checked("_get_observations", task._get_observations(), task.observation_spaces))
        if self._dict_observations and task.own_state and task.writes("_get_states"):
            own["critic"] = task.checked("_get_states", {"state": task._get_states()}, {"state": task.state_space})[
                "state"
            ]
        rows |= own if env_ids is None else mapped(lambda value: value[env_ids], own)
        if env_ids is None and task.agent_over.any():
            rows["policy"] = joined(task.without_over(task.split(rows["policy"], task.observation_spaces)))
        if self._dict_observations and task.cfg.state_space == -1:
            rows["critic"] = rows["policy"]
        return rows

    def _place(self, env_ids: torch.Tensor, seeded: bool) -> None:
        task, self.seeded = self.task, seeded
        for name in ("agent_terminated", "agent_truncated", "agent_over"):
            setattr(task, name, getattr(task, name).index_fill(0, env_ids, False))
        task._reset_idx(env_ids)


class DirectMARLEnv(Workflow):
    """A task of several agents. A subclass writes ``_get_observations``, ``_get_rewards`` and ``_get_dones``, which
    return a dict with an entry for each agent (dones: two), ``_pre_physics_step``, which takes one, and, if it likes,
    the other methods; for what it does not write, the terms of the configuration stand.

    An agent whose episode is over, terminated or truncated, acts no more: its action is taken for zero, and reward,
    costs of its own and observation are zero, until the episode of the last agent is over. Then the environment's is:
    terminated if all agents were, else truncated."""

    CORE = MultiAgentCore
    core: MultiAgentCore
    cfg: DirectMARLEnvCfg

    def __init__(self, cfg: DirectMARLEnvCfg, render_mode: str | None = None, **kwargs: Any):
        self.possible_agents, name = list(cfg.possible_agents), type(cfg).__name__
        if not self.possible_agents:
            raise ValueError(f"{name}.possible_agents is empty: name the agents")
        for field_name in ("action_spaces", "observation_spaces"):
            specs, limit = getattr(cfg, field_name), 1.0 if field_name == "action_spaces" else np.inf
            if sorted(specs) != sorted(self.possible_agents):
                wrong = f"{name}.{field_name} must have a space for each agent of {self.possible_agents}"
                raise ValueError(f"{wrong}, got {list(specs)}")
            where = f"{name}.{field_name}[{{!r}}]"
            spaces = {a: space_from(specs[a], -limit, limit, where.format(a)) for a in self.possible_agents}
            setattr(self, field_name, spaces)
        self.state_space = None if cfg.state_space in (None, 0) else joined_space(self.observation_spaces)
        """The space of :meth:`state`, None without one."""
        self.own_state = cfg.state_space not in (None, 0, -1)
        if self.own_state:
            self.state_space = space_from(cfg.state_space, -np.inf, np.inf, f"{name}.state_space")
        self._make_core(cfg, cfg.num_envs, render_mode=render_mode, **kwargs)
        none = torch.zeros(self.num_envs, len(self.possible_agents), dtype=torch.bool, device=self.device)
        self.agent_terminated, self.agent_truncated, self.agent_over = none, none.clone(), none.clone()
        """Whose episode has ended in the present one of the environment, and whose had before the last step; and"""
        self.agent_rewards = none.float()
        """the rewards of that. Shapes: (num_envs, agents)."""
        self._setup_scene()

    @classmethod
    def _translate(cls, cfg: DirectMARLEnvCfg) -> TaskCfg:
        return cfg

    def _setup_scene(self) -> None:
        """Called once, when the simulation is there."""

    def _pre_physics_step(self, actions: ByAgent) -> None:
        """Take the actions of a control step; without an own method the first robot moves as ``cfg.actions`` says."""
        self.sim.set_joint_targets(self.core.actions.process(joined(actions)))

    def _apply_action(self) -> None:
        """Called before each physics step, if it is written."""

    def _get_observations(self) -> ByAgent:
        """Agent → observation (num_envs, …), float32; without an own method those of ``cfg.observations["policy"]``."""
        return self.split(self.core.observations.groups["policy"].value, self.observation_spaces)

    def _get_states(self) -> torch.Tensor:
        """The state (num_envs, …), float32; without an own method that of ``cfg.observations["critic"]``."""
        return self.core.observations.groups["critic"].value

    def _get_rewards(self) -> ByAgent:
        """Agent → reward (num_envs,), float32; without an own method equal parts of that of ``cfg.rewards``."""
        return dict.fromkeys(self.possible_agents, self.core.rewards.total / len(self.possible_agents))

    def _get_dones(self) -> tuple[ByAgent, ByAgent]:
        """Agent → whether it is terminated, and whether its time is over, (num_envs,) bool; without an own method all
        are terminated as ``cfg.terminations`` says. The time limit of the task ends all episodes beside this."""
        terminated = self.core.terminations.terminated
        in_time = torch.zeros_like(terminated)
        return dict.fromkeys(self.possible_agents, terminated), dict.fromkeys(self.possible_agents, in_time)

    def _get_costs(self) -> dict[str, Any]:
        """Name → cost (num_envs,), float32 and at least 0, or agent → such a dict of what it alone answers for; without
        an own method the costs are those of ``cfg.costs``."""
        raise NotImplementedError

    def _reset_idx(self, env_ids: torch.Tensor) -> None:
        """Place the robots of ``env_ids`` (n,) for new episodes: choose commands, and apply the events for resets."""
        super(WorkflowCore, self.core)._place(env_ids, self.core.seeded)

    @property
    def agents(self) -> list[str]:
        """The agents that act in at least one environment."""
        over = (self.agent_terminated | self.agent_truncated).all(0).tolist()
        return [agent for agent, is_over in zip(self.possible_agents, over, strict=True) if not is_over]

    @property
    def num_agents(self) -> int:
        return len(self.agents)

    @property
    def max_num_agents(self) -> int:
        return len(self.possible_agents)

    def observation_space(self, agent: str) -> gym.Space[Any]:
        check_known(f"{self.where('observation_space')}: there is no agent", (agent,), self.possible_agents, "agents")
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space[Any]:
        check_known(f"{self.where('action_space')}: there is no agent", (agent,), self.possible_agents, "agents")
        return self.action_spaces[agent]

    def state(self) -> torch.Tensor | None:
        """The state (num_envs, …) that belongs to the last observation; None if ``cfg.state_space`` is 0."""
        return None if self.state_space is None else mapped(torch.clone, self.core._last_observation["critic"])

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, dict[str, Any]]:
        observation, info = self.stack.reset(seed=seed, options=options)
        return self.split(observation["policy"], self.observation_spaces), self._extras(info)

    def step(self, actions: ByAgent) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, dict[str, Any]]:
        """One control step; the last agent whose episode is over begins a new one of its environment. Agents that act
        in no environment may be left out. The extras have an entry for each agent, and those of ``info``, where
        ``final_obs`` is by agent."""
        observation, _, _, truncated, info = self.stack.step(self.join_actions(actions))
        outcome = self.outcome(truncated, info)
        return self.split(observation["policy"], self.observation_spaces), *outcome, self._extras(info)

    def join_actions(self, actions: ByAgent) -> Any:
        """The actions of agents as the vector environment takes them, zeros for those that act no more."""
        check_known(f"{self.where('step')}: there is no agent", tuple(actions), self.possible_agents, "agents")
        if missing := [agent for agent in self.agents if agent not in actions]:
            raise ValueError(f"{self.where('step')} needs an action of each of {self.agents}, got none of {missing}")
        rest = {a: create_empty_array(space, self.num_envs, np.zeros) for a, space in self.action_spaces.items()}
        return joined({a: actions[a] if a in actions else mapped(torch.from_numpy, rest[a]) for a in rest})

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
        return {agent: rows[:, start:end].reshape(-1, *space.shape) for (agent, space), start, end in parts}

    def writes(self, method: str) -> bool:
        """Whether a subclass has the method ``method``; else the terms of the configuration stand for it."""
        return getattr(type(self), method) is not getattr(DirectMARLEnv, method)

    def where(self, method: str) -> str:
        return f"{type(self).__name__}.{method}"

    def checked(self, method: str, given: Any, spaces: Spaces, dtype: torch.dtype = torch.float32) -> ByAgent:
        """What a method returned by agent; ValueError if it has not these keys, or a tensor not this shape and dtype,
        or is not finite where the physics was."""
        if not isinstance(given, dict) or sorted(given) != sorted(spaces):
            got = list(given) if isinstance(given, dict) else type(given).__name__
            raise ValueError(f"{self.where(method)} must return a dict with the keys {list(spaces)}, got {got}")
        for key, space in spaces.items():
            value, shape = given[key], (self.num_envs, *(space.shape or ()))
            if not isinstance(space, gym.spaces.Box):
                continue
            if not isinstance(value, torch.Tensor) or value.shape != shape or value.dtype != dtype:
                got = f"{value.dtype} {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
                raise ValueError(f"{self.where(method)} must return {dtype} {shape} for {key!r}, got {got}")
            if not math.isfinite(value.sum()):
                wrong = ~value.reshape(self.num_envs, -1).isfinite().all(1)
                wrong = wrong if self.core._recovered is None else wrong & ~self.core._recovered
                if env_ids := wrong.nonzero().squeeze(1).tolist():
                    where = f"for {key!r}, is not in environments {env_ids[:8]}"
                    raise ValueError(f"{self.where(method)} must return finite numbers {where}")
        return {key: given[key] for key in spaces}

    def columns(self, method: str, given: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """What a method returned by agent, (num_envs,) each, in columns."""
        scalars: Spaces = dict.fromkeys(self.possible_agents, gym.spaces.Box(-np.inf, np.inf, ()))
        return torch.stack([*self.checked(method, given, scalars, dtype).values()], 1)

    def costs(self, acting: torch.Tensor) -> torch.Tensor:
        """The costs in the order of ``cost_limits``, those of agents that act no more 0. Shape: (num_envs, costs)."""
        given, flat = self._get_costs(), {}
        for i, agent in enumerate(self.possible_agents):
            flat |= {f"{agent}/{name}": cost * acting[:, i] for name, cost in given.pop(agent, {}).items()}
        scalars: Spaces = dict.fromkeys(self.cfg.cost_limits, gym.spaces.Box(-np.inf, np.inf, ()))
        return torch.stack([*self.checked("_get_costs", {**given, **flat}, scalars).values()], 1)

    def without_over(self, parts: ByAgent) -> ByAgent:
        """Zeros for the agents that act no more, in their environments."""
        over = dict(zip(self.possible_agents, self.agent_over.unbind(1), strict=True))
        expand = lambda mask, value: mask.reshape(-1, *[1] * (value.ndim - 1))  # noqa: E731
        return {a: mapped(lambda v, a=a: v.masked_fill(expand(over[a], v), 0), part) for a, part in parts.items()}

    def _check(self) -> None:
        cfg, name = self.core.cfg, type(self).__name__
        terms = {"_get_observations": "policy" in cfg.observations, "_get_rewards": cfg.rewards}
        terms |= {"_get_states": not self.own_state or "critic" in cfg.observations}
        for method, instead in (terms | {"_get_dones": cfg.terminations}).items():
            if not self.writes(method) and not instead:
                raise TypeError(f"{name} needs a method {method}, or terms for that in its configuration")
        if self.writes("_get_costs") != bool(self.cfg.cost_limits):
            raise ValueError(f"{name}._get_costs and the limit of each cost, cost_limits in its cfg, go together")

    def _extras(self, info: dict[str, Any]) -> dict[str, Any]:
        extras = {agent: self.extras.get(agent, {}) for agent in self.possible_agents} | info
        if "final_obs" in info:
            extras["final_obs"] = self.split(info["final_obs"]["policy"], self.observation_spaces)
        return extras


def joined_space(spaces: Spaces) -> gym.Space[Any]:
    """One box of all agents' boxes in a row, or the dict of their spaces if one of them is none."""
    boxes = [space for space in spaces.values() if isinstance(space, gym.spaces.Box)]
    if len(boxes) < len(spaces):
        return gym.spaces.Dict(spaces)
    return gym.spaces.Box(*(np.concatenate([getattr(box, end).ravel() for box in boxes]) for end in ("low", "high")))


def joined(values: ByAgent) -> Any:
    """Tensors of agents in a row, (num_envs, size), or the dict of them if one of them is of no box."""
    if not all(isinstance(value, torch.Tensor) and value.is_floating_point() for value in values.values()):
        return values
    return torch.cat([value.flatten(1) for value in values.values()], 1)


class SingleAgentEnv:
    """Several agents as one, with what the direct workflow has for one agent: the observation, under ``"policy"``, is
    that of all agents in a row or the state, the action all actions, the reward the sum of all rewards."""

    def __init__(self, env: Any, state_as_observation: bool):
        self.env = env if isinstance(env, DirectMARLEnv) else getattr(env.unwrapped, "task", None)
        if not isinstance(self.env, DirectMARLEnv):
            raise TypeError(f"expected a DirectMARLEnv, or a vector environment of one, got {type(env).__name__}")
        if state_as_observation and self.env.state_space is None:
            raise ValueError(f"{type(self.env).__name__} has no state to observe: its cfg.state_space is 0")
        self._group = "critic" if state_as_observation else "policy"
        space = self.env.core.single_observation_space[self._group]
        self.single_observation_space = gym.spaces.Dict({"policy": space})
        self.single_action_space = self.env.core.single_action_space

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, dict[str, Any]]:
        observation, info = self.env.stack.reset(seed=seed, options=options)
        return {"policy": observation[self._group]}, info

    def step(self, action: Any) -> Any:
        """The observation, and reward, terminated, truncated, (num_envs,), and ``info`` of all agents."""
        observation, reward, terminated, truncated, info = self.env.stack.step(action)
        return {"policy": observation[self._group]}, reward, terminated, truncated, info


class OneAgentEnv(SingleAgentEnv):
    """Several agents as a multi-agent environment whose one agent is ``"single-agent"``."""

    def __init__(self, env: Any, state_as_observation: bool):
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


def multi_agent_to_single_agent(env: Any, state_as_observation: bool = False) -> SingleAgentEnv:
    """The agents of a task as one; ValueError if the state is to be observed and there is none."""
    return SingleAgentEnv(env, state_as_observation)


def multi_agent_with_one_agent(env: Any, state_as_observation: bool = False) -> OneAgentEnv:
    """The agents of a task as those of a task of one; ValueError if the state is to be observed and there is none."""
    return OneAgentEnv(env, state_as_observation)
