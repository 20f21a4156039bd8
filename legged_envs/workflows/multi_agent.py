"""Isaac Lab's direct workflow for several agents: methods that take and return a dict with an entry for each agent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import VectorEnv

from legged_envs.checks import check_known
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.hooks import Evaluation
from legged_envs.state import mapped
from legged_envs.workflows.spaces import space_from
from legged_envs.workflows.workflow import Workflow, WorkflowCore

ByAgent = dict[str, Any]
"""Agent → its value; tensors start with ``num_envs``."""


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

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        groups, _ = super()._build()
        task = self.task
        groups["policy"] = _joined_space(task.observation_spaces)
        if task.state_space is not None:
            groups["critic"] = task.state_space
        if task.writes("_get_costs"):
            self.cost_names, self.cost_limits = tuple(task.cfg.cost_limits), tuple(task.cfg.cost_limits.values())
        return groups, _joined_space(task.action_spaces)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        *outcome, info = super().step(actions)
        task = self.task
        shown = {"rewards": task.agent_rewards}
        shown |= {"agent_terminated": task.agent_terminated, "agent_truncated": task.agent_truncated}
        return *outcome, {**info, **self._export(shown)}  # type: ignore[return-value]

    def _act(self, action: Any) -> None:
        task = self.task
        task.agent_over = task.agent_terminated | task.agent_truncated
        actions = task.split(action, task.action_spaces)
        if task.agent_over.any():
            actions = {agent: mapped(task._zero_where_over(agent), part) for agent, part in actions.items()}
        task._pre_physics_step(actions)
        times = self.cfg.sim.decimation if task.writes("_apply_action") else 1
        for _ in range(times):
            task._apply_action()
            self.sim.step(self.cfg.sim.decimation // times)

    def _evaluate(self) -> Evaluation:
        own, task = super()._evaluate(), self.task
        acting, dones = ~task.agent_over, task._get_dones()
        if not isinstance(dones, tuple) or len(dones) != 2:
            raise TypeError(
                f"{task.where('_get_dones')} must return two dicts, terminated and time_outs, got {dones!r}"
            )
        terminated, truncated = (task._stacked("_get_dones", part, torch.bool) & acting for part in dones)
        rewards = task._stacked("_get_rewards", task._get_rewards(), torch.float32) * acting
        costs = task._costs(acting) if task.writes("_get_costs") else own.costs
        if self._recovered is not None:
            terminated |= acting & self._recovered[:, None]
            rewards = rewards.masked_fill(self._recovered[:, None], 0.0)
        task.agent_rewards = rewards
        task.agent_terminated = task.agent_terminated | terminated
        task.agent_truncated = task.agent_truncated | truncated & ~terminated
        ended = task.agent_terminated.all(1)
        cut = (task.agent_terminated | task.agent_truncated).all(1) & ~ended
        return Evaluation(ended, rewards.sum(1), costs.sum(1), costs, cut)

    def _observe(self, env_ids: torch.Tensor | None) -> dict[str, Any]:
        rows, task = cast(dict[str, Any], super()._observe(env_ids)), self.task
        if task.writes("_get_observations"):
            given = task._checked("_get_observations", task._get_observations(), task.observation_spaces)
            rows["policy"] = _rows(_joined(given), env_ids)
        if env_ids is None and task.agent_over.any():
            parts = task.split(rows["policy"], task.observation_spaces)
            rows["policy"] = _joined({a: mapped(task._zero_where_over(a), part) for a, part in parts.items()})
        if self._dict_observations and task.cfg.state_space == -1:
            rows["critic"] = rows["policy"]
        elif self._dict_observations and task.writes("_get_states"):
            given = task._checked("_get_states", {"state": task._get_states()}, {"state": task.state_space})
            rows["critic"] = _rows(given["state"], env_ids)
        return rows

    def _place(self, env_ids: torch.Tensor, seeded: bool) -> None:
        task, self._seeded = self.task, seeded
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
    cfg: DirectMARLEnvCfg

    def __init__(self, cfg: DirectMARLEnvCfg, render_mode: str | None = None, **kwargs: Any):
        self.possible_agents = list(cfg.possible_agents)
        if not self.possible_agents:
            raise ValueError(f"{type(cfg).__name__}.possible_agents is empty: name the agents")
        for name, low, high in (("action_spaces", -1.0, 1.0), ("observation_spaces", -np.inf, np.inf)):
            specs = getattr(cfg, name)
            if sorted(specs) != sorted(self.possible_agents):
                wrong = f"{type(cfg).__name__}.{name} must have a space for each agent of {self.possible_agents}"
                raise ValueError(f"{wrong}, got {list(specs)}")
            setattr(self, name, {agent: space_from(specs[agent], low, high) for agent in self.possible_agents})
        own_state = not isinstance(cfg.state_space, int) or cfg.state_space > 0
        joined = _joined_space(self.observation_spaces) if cfg.state_space == -1 else None
        self.state_space = space_from(cfg.state_space, -np.inf, np.inf) if own_state else joined
        """The space of :meth:`state`, None without one."""
        self._make_core(cfg, cfg.num_envs, render_mode=render_mode, **kwargs)
        flags = torch.zeros(self.num_envs, len(self.possible_agents), dtype=torch.bool, device=self.device)
        self.agent_rewards = flags.float()
        self.agent_terminated, self.agent_truncated, self.agent_over = flags, flags.clone(), flags.clone()
        """Rewards of the last step; whose episode has ended in the present one of its environment, and of those, whose
        had ended before the last step. Shapes: (num_envs, agents)."""
        self._targets = self.robot.joint_pos.clone()
        self._setup_scene()

    @classmethod
    def _translate(cls, cfg: DirectMARLEnvCfg) -> TaskCfg:
        return cfg

    def _setup_scene(self) -> None:
        """Called once, when the simulation is there."""

    def _pre_physics_step(self, actions: ByAgent) -> None:
        """Take the actions of a control step; without an own method as ``cfg.actions`` says."""
        self._targets = self.core.actions.process(_joined(actions))

    def _apply_action(self) -> None:
        """Set targets of the joints; an own method is called before each physics step, else this once before all."""
        self.sim.set_joint_targets(self._targets)

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
        """Agent → whether it is terminated and whether its time is over, (num_envs,) bool; without an own method all
        are terminated as ``cfg.terminations`` says. The time limit of the task ends all episodes beside this."""
        terminated = self.core.terminations.terminated
        none = torch.zeros_like(terminated)
        return dict.fromkeys(self.possible_agents, terminated), dict.fromkeys(self.possible_agents, none)

    def _get_costs(self) -> dict[str, Any]:
        """Name → cost (num_envs,), float32 and at least 0, or agent → such a dict for what only it is to answer for;
        without an own method the costs are those of ``cfg.costs``."""
        raise NotImplementedError

    def _reset_idx(self, env_ids: torch.Tensor) -> None:
        """Place the robots of ``env_ids`` (n,) for new episodes: choose commands, and apply the events for resets."""
        super(WorkflowCore, self.core)._place(env_ids, self.core._seeded)

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
        return cast(gym.Space[Any], self._of("observation_space", self.observation_spaces, agent))

    def action_space(self, agent: str) -> gym.Space[Any]:
        return cast(gym.Space[Any], self._of("action_space", self.action_spaces, agent))

    def state(self) -> torch.Tensor | None:
        """The state (num_envs, …) that belongs to the last observation; None if ``cfg.state_space`` is 0."""
        return None if self.state_space is None else self.core._last_observation["critic"].clone()

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, dict[str, Any]]:
        observation, info = self.stack.reset(seed=seed, options=options)
        return self.split(observation["policy"], self.observation_spaces), self._extras(info)

    def step(self, actions: ByAgent) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, dict[str, Any]]:
        """One control step; whose last agent's episode is over begins a new one. Agents may be left out when they act
        in no environment. The extras have an entry for each agent and those of ``info``, ``final_obs`` by agent."""
        observation, _, _, truncated, info = self.stack.step(self.join_actions(actions))
        outcome = self.outcome(truncated, info)
        return self.split(observation["policy"], self.observation_spaces), *outcome, self._extras(info)

    def join_actions(self, actions: ByAgent) -> Any:
        """The actions of agents as the vector environment takes them, zeros for those that act no more."""
        check_known(f"{type(self).__name__}.step: there is no agent", tuple(actions), self.possible_agents, "agents")
        if missing := [agent for agent in self.agents if agent not in actions]:
            raise ValueError(f"{type(self).__name__}.step needs an action of each of {self.agents}, not of {missing}")
        rest = [agent for agent in self.possible_agents if agent not in actions]
        zeros = {agent: self._zeros(self.action_spaces[agent]) for agent in rest}
        return _joined({agent: {**zeros, **actions}[agent] for agent in self.possible_agents})

    def outcome(self, truncated: Any, info: dict[str, Any]) -> tuple[ByAgent, ByAgent, ByAgent]:
        """Rewards, terminated and truncated by agent of a step of the vector environment, all (num_envs,)."""
        ended = info["agent_terminated"]
        cut = (info["agent_truncated"] | truncated[:, None]) & ~ended
        columns = (
            {agent: part[:, i] for i, agent in enumerate(self.possible_agents)}
            for part in (info["rewards"], ended, cut)
        )
        return tuple(columns)  # type: ignore[return-value]

    def split(self, joined: Any, spaces: dict[str, gym.Space[Any]]) -> ByAgent:
        """By agent what :class:`MultiAgentCore` has of all in a row: observations or actions."""
        if isinstance(joined, dict):
            return joined
        shapes = {agent: cast(tuple[int, ...], space.shape) for agent, space in spaces.items()}
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()]).tolist()
        parts = zip(shapes.items(), [0, *ends], ends, strict=False)
        return {agent: joined[:, start:end].reshape(-1, *shape) for (agent, shape), start, end in parts}

    def writes(self, method: str) -> bool:
        """Whether a subclass has the method ``method``, else the configuration's terms stand for it."""
        return getattr(type(self), method) is not getattr(DirectMARLEnv, method)

    def where(self, method: str) -> str:
        return f"{type(self).__name__}.{method}"

    def _check(self) -> None:
        cfg, name = self.cfg, type(self).__name__
        groups = {"_get_observations": "policy", **({"_get_states": "critic"} if self.state_space is not None else {})}
        if cfg.state_space == -1:
            del groups["_get_states"]
        for method, group in groups.items():
            if not self.writes(method) and group not in self.core.cfg.observations:
                raise TypeError(f"{name} needs a method {method}, or observations[{group!r}] in its configuration")
        for method, terms in (("_get_rewards", "rewards"), ("_get_dones", "terminations")):
            if not self.writes(method) and not getattr(self.core.cfg, terms):
                raise TypeError(f"{name} needs a method {method}, or {terms} in its configuration")
        if self.writes("_get_costs") != bool(cfg.cost_limits):
            raise ValueError(f"{name}: _get_costs and a limit in cost_limits for each cost go together")

    def _checked(self, method: str, given: Any, spaces: dict[str, gym.Space[Any]]) -> ByAgent:
        """What a method returned by agent, of ``spaces``; else TypeError or ValueError."""
        self._check_keys(method, given, list(spaces))
        for agent, space in spaces.items():
            if isinstance(space, gym.spaces.Box):
                self._check_tensor(method, agent, given[agent], (self.num_envs, *space.shape), torch.float32)
        return {agent: given[agent] for agent in spaces}

    def _stacked(self, method: str, given: Any, dtype: torch.dtype) -> torch.Tensor:
        """What a method returned by agent, (num_envs,) each, in columns; else TypeError or ValueError."""
        self._check_keys(method, given, self.possible_agents)
        for agent in self.possible_agents:
            self._check_tensor(method, agent, given[agent], (self.num_envs,), dtype)
        return torch.stack([given[agent] for agent in self.possible_agents], 1)

    def _check_keys(self, method: str, given: Any, keys: list[str]) -> None:
        if not isinstance(given, dict) or sorted(given) != sorted(keys):
            got = list(given) if isinstance(given, dict) else type(given).__name__
            raise ValueError(f"{self.where(method)} must return a dict with the keys {keys}, got {got}")

    def _check_tensor(self, method: str, key: str, value: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        if not isinstance(value, torch.Tensor) or value.shape != shape or value.dtype != dtype:
            got = f"{value.dtype} {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
            raise ValueError(f"{self.where(method)} must return {dtype} {shape} for {key!r}, got {got}")

    def _costs(self, acting: torch.Tensor) -> torch.Tensor:
        """The costs in the order of ``cost_limits``, those of agents that act no more 0. Shape: (num_envs, costs)."""
        flat: dict[str, Any] = {}
        for name, given in self._get_costs().items():
            own = self.possible_agents.index(name) if isinstance(given, dict) else None
            parts = {name: given} if own is None else {f"{name}/{cost}": value for cost, value in given.items()}
            flat |= {key: value if own is None else value * acting[:, own] for key, value in parts.items()}
        self._check_keys("_get_costs", flat, list(self.cfg.cost_limits))
        for name, value in flat.items():
            self._check_tensor("_get_costs", name, value, (self.num_envs,), torch.float32)
        return torch.stack([flat[name] for name in self.cfg.cost_limits], 1)

    def _zero_where_over(self, agent: str) -> Callable[[torch.Tensor], torch.Tensor]:
        over = self.agent_over[:, self.possible_agents.index(agent)]
        return lambda value: value.masked_fill(over.reshape(-1, *[1] * (value.ndim - 1)), 0)

    def _zeros(self, space: gym.Space[Any]) -> Any:
        batch = gym.vector.utils.create_empty_array(space, self.num_envs, np.zeros)
        return mapped(lambda zero: torch.from_numpy(zero).to(self.device), batch)

    def _of(self, method: str, spaces: dict[str, gym.Space[Any]], agent: str) -> gym.Space[Any]:
        check_known(f"{self.where(method)}: there is no agent", (agent,), spaces, "agents")
        return spaces[agent]

    def _extras(self, info: dict[str, Any]) -> dict[str, Any]:
        extras = {agent: self.extras.get(agent, {}) for agent in self.possible_agents} | info
        if "final_obs" in info:
            extras["final_obs"] = self.split(info["final_obs"]["policy"], self.observation_spaces)
        return extras


def _joined_space(spaces: dict[str, gym.Space[Any]]) -> gym.Space[Any]:
    """One box of all agents' boxes in a row, or the dict of their spaces if one of them is none."""
    boxes = [space for space in spaces.values() if isinstance(space, gym.spaces.Box)]
    if len(boxes) < len(spaces):
        return gym.spaces.Dict(spaces)
    low, high = (np.concatenate([getattr(box, end).ravel() for box in boxes]) for end in ("low", "high"))
    return gym.spaces.Box(low, high, dtype=np.float32)


def _joined(values: ByAgent) -> Any:
    """Tensors of agents in a row, (num_envs, size), or the dict of them if one of them is none."""
    if not all(isinstance(value, torch.Tensor) and value.is_floating_point() for value in values.values()):
        return values
    return torch.cat([value.flatten(1) for value in values.values()], 1)


def _rows(value: Any, env_ids: torch.Tensor | None) -> Any:
    return value if env_ids is None else mapped(lambda all_rows: all_rows[env_ids], value)


class SingleAgentEnv:
    """Several agents as one, with what the direct workflow has for one agent: the observation, under ``"policy"``, is
    that of all agents in a row or the state, the action all actions, the reward the sum of all rewards."""

    def __init__(self, env: DirectMARLEnv, state_as_observation: bool):
        if state_as_observation and env.state_space is None:
            raise ValueError(f"{type(env).__name__} has no state to observe: its cfg.state_space is 0")
        self.env, self._group = env, "critic" if state_as_observation else "policy"
        space = env.state_space if state_as_observation else _joined_space(env.observation_spaces)
        self.single_observation_space = gym.spaces.Dict({"policy": cast(Any, space)})
        self.single_action_space = env.core.single_action_space

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, dict[str, Any]]:
        observation, info = self.env.stack.reset(seed=seed, options=options)
        return {"policy": observation[self._group]}, info

    def step(self, action: Any) -> tuple[ByAgent, torch.Tensor, torch.Tensor, torch.Tensor, dict[str, Any]]:
        observation, *outcome, info = self.env.stack.step(action)
        return {"policy": observation[self._group]}, *outcome, info  # type: ignore[return-value]


class OneAgentEnv(SingleAgentEnv):
    """Several agents as a multi-agent environment whose one agent is ``"single-agent"``."""

    def __init__(self, env: DirectMARLEnv, state_as_observation: bool):
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
        observation, *outcome, info = super().step(actions["single-agent"])
        results = ({"single-agent": part} for part in (observation["policy"], *outcome))
        return *results, {"single-agent": {}, **info}


def multi_agent_to_single_agent(env: DirectMARLEnv | VectorEnv, state_as_observation: bool = False) -> SingleAgentEnv:
    """The agents of a task as one; ValueError if the state is to be observed and there is none."""
    return SingleAgentEnv(_task(env), state_as_observation)


def multi_agent_with_one_agent(env: DirectMARLEnv | VectorEnv, state_as_observation: bool = False) -> OneAgentEnv:
    """The agents of a task as those of a task of one; ValueError if the state is to be observed and there is none."""
    return OneAgentEnv(_task(env), state_as_observation)


def _task(env: Any) -> DirectMARLEnv:
    task = env if isinstance(env, DirectMARLEnv) else getattr(getattr(env, "unwrapped", None), "task", None)
    if not isinstance(task, DirectMARLEnv):
        raise TypeError(f"expected a DirectMARLEnv or a vector environment of one, got {type(env).__name__}")
    return task
