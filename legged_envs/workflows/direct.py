"""Isaac Lab's direct workflow: a task is a class with a method for each part of a step."""

import random
import warnings
from abc import abstractmethod
from dataclasses import field
from types import SimpleNamespace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, create_empty_array
from torch import Tensor

from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.hooks import Evaluation
from legged_envs.managers import CostTermCfg, EventTermCfg, Piece
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.mdp.context import is_pure, pure
from legged_envs.sim import ViewerCfg
from legged_envs.state import mapped
from legged_envs.workflows.noise import NoiseModelCfg
from legged_envs.workflows.scene import (
    Copied,
    InteractiveScene,
    InteractiveSceneCfg,
    SceneEntityCfg,
    SimulationCfg,
    configclass,
    world,
)
from legged_envs.workflows.spaces import space_from
from legged_envs.workflows.workflow import Workflow, WorkflowCore

ALIASES = {"observation_space": "num_observations", "action_space": "num_actions", "state_space": "num_states"}
"""Fields → what Isaac Lab called them before."""


@configclass
class EventTerm(Copied):
    """An event in Isaac Lab's words: ``func(env, env_ids, **params)``, without a random stream of its own."""

    func: Any
    mode: str
    params: dict[str, Any] = field(default_factory=dict)
    interval_range_s: tuple[float, float] | None = None


class _Event:
    """Calls the function of an :class:`EventTerm`."""

    def __init__(self, func: Any):
        self.func, self.__name__ = func, func.__name__

    def __call__(self, env: Any, env_ids: Tensor, random: Any, **params: Any) -> None:
        self.func(env, env_ids, **params)


@configclass
class DirectRLEnvCfg(Copied):
    """A task in Isaac Lab's words. Beside them: ``actions``, ``max_action_delay`` and ``commands`` as in a ``TaskCfg``
    and the limits of what ``_get_costs`` returns. A subclass has the robot, such as ``robot = GO2``."""

    scene: InteractiveSceneCfg = InteractiveSceneCfg()
    sim: SimulationCfg = SimulationCfg()
    viewer: ViewerCfg = ViewerCfg()
    seed: int | None = None
    """Of the first reset, where that has none."""
    decimation: int = 1
    episode_length_s: float = 20.0
    is_finite_horizon: bool = False
    events: Any = None
    """A dict or a configuration class of :class:`EventTerm`, or of :class:`~legged_envs.managers.EventTermCfg`."""
    observation_space: Any = None
    action_space: Any = None
    state_space: Any = None
    """Of the group ``"policy"``, of actions, and of the group ``"critic"``, None or 0 without one: see
    :func:`~legged_envs.workflows.spaces.space_from`; a size is unbounded, of actions ±1."""
    num_observations: int | None = None
    num_actions: int | None = None
    num_states: int | None = None
    observation_noise_model: NoiseModelCfg | None = None
    action_noise_model: NoiseModelCfg | None = None
    rerender_on_reset: bool = False
    """Is accepted: all quantities are current after a reset."""
    cost_limits: dict[str, float] = field(default_factory=dict)
    """Name of each cost → what it may be on average per step."""
    actions: dict[str, Any] = field(default_factory=lambda: {"joint_position": JointPositionCfg()})
    max_action_delay: int = 0
    commands: dict[str, Any] = field(default_factory=dict)

    def spec(self, name: str) -> Any:
        """What is said of a space, also under its former name."""
        spec, former = getattr(self, name), getattr(self, ALIASES[name])
        if former is not None:
            warnings.warn(f"{ALIASES[name]} is deprecated: use {name}", DeprecationWarning, stacklevel=2)
        return former if spec is None else spec


@pure
def _get_costs(env: Any, name: str) -> Tensor:
    """One of the costs that the method of this name returned."""
    cost: Tensor = getattr(env.task_costs, name)
    return cost


class DirectCore(WorkflowCore):
    """The vector environment of a :class:`DirectRLEnv`."""

    task: "DirectRLEnv"

    def make_spaces(self) -> None:
        """Make the spaces and what has their structure; ValueError if a field of the configuration is none."""
        cfg, name = self.task.cfg, type(self.task.cfg).__name__
        fields = {"policy": "observation_space", "critic": "state_space", "action": "action_space"}
        specs = {group: cfg.spec(field) for group, field in fields.items()}
        self.spaces = {
            group: space_from(
                spec, *((-1.0, 1.0) if group == "action" else (-np.inf, np.inf)), f"{name}.{fields[group]}"
            )
            for group, spec in specs.items()
            if not (group == "critic" and (spec is None or spec == 0))
        }
        """Of the observation groups, and under ``"action"`` of actions, each of one environment."""
        self.single_action_space = space = self.spaces["action"]
        self.action_space = batch_space(space, self.num_envs)
        self.groups = {group: space for group, space in self.spaces.items() if group != "action"}
        self.single_observation_space = gym.spaces.Dict(self.groups)
        shown = [*self.groups] if self._dict_observations else ["policy"]
        zeros = {group: create_empty_array(self.spaces[group], self.num_envs, np.zeros) for group in shown}
        self._expected = mapped(torch.from_numpy, zeros)
        self.seen, self.task_costs = SimpleNamespace(), SimpleNamespace()
        """What the task returned last: observation groups, and costs."""
        for cost in cfg.cost_limits:
            setattr(self.task_costs, cost, torch.zeros(self.num_envs, device=self.device))
        self.bounds = None
        if isinstance(space, gym.spaces.Box):
            self.bounds = [torch.from_numpy(bound).to(self.device) for bound in (space.low, space.high)]
        self.moves_joints = self.bounds is not None and space.shape == (self.actions.size,)

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        self._evaluate_and_observe(self)
        return self.groups, self.single_action_space

    def _sources(self) -> list[object]:
        data = [getattr(entity, "data", entity) for entity in self.task.scene.entities.values()]
        return [self, self.task, self.seen, self.task_costs, *data]

    def _evaluation_pieces(self) -> list[Piece]:
        task = self.task
        pieces = [Piece(self._end, is_pure(task._get_dones)), Piece(self._reward, is_pure(task._get_rewards))]
        if self.cost_names:
            pieces.append(Piece(self._charge, is_pure(task._get_costs)))
        return [*pieces, *super()._evaluation_pieces()]

    def _observation_pieces(self) -> list[Piece]:
        states = is_pure(self.task._get_states) or "critic" not in self._expected
        return [Piece(self._look, is_pure(self.task._get_observations) and states)]

    def _act(self, action: Any) -> None:
        task, decimation = self.task, self.cfg.sim.decimation
        if self.bounds:
            action = action.clamp(*self.bounds)
        if task._action_noise_model is not None:
            action = task._action_noise_model(action)
        if self.moves_joints:
            task.joint_targets = self.actions.process(action)
        task._pre_physics_step(action)
        times = decimation if _is_written(task, "_apply_action") else 1
        for _ in range(times):
            task._apply_action()
            self.sim.step(decimation // times)
            task.scene.update(self.cfg.sim.dt * (decimation // times))

    def _evaluate(self) -> Evaluation:
        task = self.task
        if self._recovered is not None:
            task.scene.reset(self._recovered.nonzero().squeeze(1))
        task.common_step_counter += 1
        self._evaluation()
        self.costs.check_values(self._recovered)
        self._check_finite("_get_rewards", task.reward_buf, self._recovered)
        terminated, truncated = task.reset_terminated, task.reset_time_outs
        if self.cfg.is_finite_horizon:
            terminated, truncated = task.reset_buf, torch.zeros_like(truncated)
        return Evaluation(terminated, task.reward_buf, self.costs.total, self.costs.values, truncated)

    def _end(self) -> None:
        task, dones = self.task, self.task._get_dones()
        if not isinstance(dones, tuple) or len(dones) != 2:
            raise TypeError(f"{_where(task, '_get_dones')} must return (terminated, time_out), got {dones!r}")
        task.reset_terminated, task.reset_time_outs = (self._per_env("_get_dones", part, torch.bool) for part in dones)
        task.reset_buf = task.reset_terminated | task.reset_time_outs
        self.terminations.terminated = task.reset_terminated

    def _reward(self) -> None:
        self.task.reward_buf = self._per_env("_get_rewards", self.task._get_rewards(), torch.float32)

    def _charge(self) -> None:
        costs, names = self.task._get_costs(), list(self.cost_names)
        if not isinstance(costs, dict) or sorted(costs) != sorted(names):
            given = list(costs) if isinstance(costs, dict) else costs
            raise ValueError(f"{_where(self.task, '_get_costs')} must return a dict of {names}, got {given!r}")
        for name, cost in costs.items():
            setattr(self.task_costs, name, self._per_env("_get_costs", cost, torch.float32))

    def _look(self) -> None:
        task, names = self.task, list(self.groups)
        given = task._get_observations()
        if isinstance(given, dict) and "critic" in self.groups and "critic" not in given:
            given = {**given, "critic": task._get_states() if "critic" in self._expected else None}
        if not isinstance(given, dict) or sorted(given) != sorted(names):
            got = list(given) if isinstance(given, dict) else given
            how = "a group 'critic' needs the field state_space"
            raise ValueError(f"{_where(task, '_get_observations')} must return a dict of {names}, got {got!r}; {how}")
        for name, expected in self._expected.items():
            self._check_like(name, given[name], expected)
            setattr(self.seen, name, given[name])

    def _observe(self, env_ids: Tensor | None) -> dict[str, Any]:
        if env_ids is None:
            self._observation()
        else:
            self._look()
        take = Tensor.clone if env_ids is None else (lambda value: value[env_ids])
        shown = {name: mapped(take, getattr(self.seen, name)) for name in self._expected}
        if self.task._observation_noise_model is not None:
            shown["policy"] = self.task._observation_noise_model(shown["policy"], env_ids)
        for name, value in shown.items():
            mapped(lambda part, name=name: self._check_finite(f"_get_observations: {name}", part), value)
        return shown

    def _place(self, env_ids: Tensor, seeded: bool) -> None:
        if seeded:
            self.events.apply("startup", env_ids)
        self.commands.reset(env_ids)
        self.task.scene.reset(env_ids)
        self.task._reset_idx(env_ids)

    def _start_episodes(self, env_ids: Tensor, seed: int | list[int] | None) -> None:
        super()._start_episodes(env_ids, self.task.cfg.seed if seed is None and not self._begun else seed)

    def _per_env(self, method: str, value: Any, dtype: torch.dtype) -> Tensor:
        expected = torch.empty(self.num_envs, dtype=dtype, device="meta")
        return self._check_like(method, value, expected)

    def _check_like(self, what: str, value: Any, expected: Any) -> Any:
        """``value`` if it has the structure, the shapes and the dtypes of ``expected``."""
        method = what if what.startswith("_") else "_get_observations"
        where = f"{_where(self.task, method)} must return {'' if method == what else f'{what!r} as '}"
        if isinstance(expected, Tensor):
            given = (value.dtype, tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__
            if given != (needed := (expected.dtype, tuple(expected.shape))):
                raise ValueError(f"{where}a tensor {needed}, got {given}")
            return value
        parts = dict(expected) if isinstance(expected, dict) else dict(enumerate(expected))
        if type(value) is not type(expected) or len(value) != len(parts):
            raise ValueError(f"{where}a {type(expected).__name__} of {list(parts)}, got {value!r}")
        for key, part in parts.items():
            self._check_like(what, value[key], part)
        return value

    def _check_finite(self, method: str, value: Tensor, excepted: Tensor | None = None) -> None:
        if torch.isfinite(value.sum()):
            return
        wrong = ~torch.isfinite(value.reshape(self.num_envs, -1)).all(1)
        wrong = wrong if excepted is None else wrong & ~excepted
        if env_ids := wrong.nonzero().squeeze(1).tolist():
            how = "guard divisions, roots and logarithms, or use torch.where"
            raise ValueError(f"{_where(self.task, method)} must be finite, is not in environments {env_ids[:8]}: {how}")


def _where(task: Any, method: str) -> str:
    return f"{type(task).__name__}.{method}"


def _is_written(task: Any, method: str) -> bool:
    return getattr(type(task), method) is not getattr(DirectRLEnv, method)


class _View:
    """What the terms of managers see: the vector environment, and what that lacks of the task, such as ``scene``. So a
    task may call an own attribute ``robot`` or ``actions``."""

    def __init__(self, task: "DirectRLEnv"):
        self._task = task

    def __getattr__(self, name: str) -> Any:
        core = self._task.core
        return getattr(core, name) if hasattr(core, name) else getattr(self._task, name)


class DirectRLEnv(Workflow):
    """A task whose subclass writes ``_get_observations``, ``_get_rewards`` and ``_get_dones``, and what else it likes
    of the methods with an underscore. A step: ``_pre_physics_step`` → physics, ``_apply_action`` before each of its
    steps → ``_get_dones`` → ``_get_rewards`` → ``_get_costs`` → commands, interval events → ``_get_observations``;
    episodes that ended begin anew after it. Methods marked :func:`~legged_envs.mdp.context.pure` are recorded.

    ``cfg`` and ``render_mode`` as in Isaac Lab; ``kwargs`` are arguments of ``CoreVectorEnv``, such as ``compile``. The
    terms of ``mdp/`` take ``self`` as ``env``, or ``self.context`` in a class with an own ``robot`` or ``actions``."""

    CORE = DirectCore
    core: DirectCore
    is_vector_env: ClassVar[bool] = True
    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": [None, "rgb_array"],
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(self, cfg: Any, render_mode: str | None = None, **kwargs: Any):
        self._make_core(cfg, cfg.scene.num_envs, **{"render_mode": render_mode, "device": cfg.sim.device, **kwargs})
        core = self.core
        core.make_spaces()
        self.common_step_counter = 0
        """Control steps since the environment was made."""
        self.reset_terminated = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self.reset_time_outs, self.reset_buf = self.reset_terminated.clone(), self.reset_terminated.clone()
        self.reward_buf = self.reset_buf.float()
        """Whose episode ended in the last step by what, whose at all, and its rewards. Shape: (num_envs,)."""
        self.joint_targets = core.robot.default_joint_pos.expand(self.num_envs, -1)
        """What the action manager made of the action. Shape: (num_envs, num_joints)."""
        for name, group in (("num_observations", "policy"), ("num_actions", "action"), ("num_states", "critic")):
            setattr(self, name, gym.spaces.flatdim(core.spaces[group]) if group in core.spaces else 0)
        self.state_space = batch_space(core.spaces["critic"], self.num_envs) if "critic" in core.spaces else None
        if core.bounds and _is_written(self, "_pre_physics_step"):
            self.actions = torch.zeros(core.action_space.shape or (), device=self.device)
        self._observation_noise_model = self._noise("observation", "observation_noise/policy", "policy")
        self._action_noise_model = self._noise("action", "action_noise", "action")
        self.scene = InteractiveScene(cfg.scene, core)
        with self.scene.set_up():
            self._setup_scene()
        for term in core.events.cfg.values():
            for part in term.params.values():
                if isinstance(part, SceneEntityCfg):
                    part.resolve(self.scene)

    @classmethod
    def _translate(cls, cfg: Any) -> TaskCfg:
        events = cfg.events if isinstance(cfg.events, dict) else vars(cfg.events) if cfg.events else {}
        terms = {name: _event(term) if isinstance(term, EventTerm) else term for name, term in events.items() if term}
        costs = {name: CostTermCfg(_get_costs, limit, {"name": name}) for name, limit in cfg.cost_limits.items()}
        own = {"actions": cfg.actions, "max_action_delay": cfg.max_action_delay, "commands": cfg.commands}
        return TaskCfg(**world(cfg), **own, events=terms, costs=costs)

    def _noise(self, name: str, stream: str, group: str) -> Any:
        if (cfg := getattr(self.cfg, f"{name}_noise_model")) is None:
            return None
        space = self.core.spaces[group]
        if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
            field = f"{type(self.cfg).__name__}.{name}_noise_model"
            raise ValueError(f"{field} needs a {name}_space of one dimension, got {space}")
        return cfg.class_type(cfg, self.random.stream(stream), space.shape[0])

    @property
    def context(self) -> Any:
        return _View(self)

    def _check(self) -> None:
        task, cfg = type(self).__name__, type(self.cfg).__name__
        if bool(self.cfg.cost_limits) != _is_written(self, "_get_costs"):
            how = "write both, or neither"
            raise TypeError(f"{task}._get_costs returns the costs that {cfg}.cost_limits names: {how}")
        if not (self.core.moves_joints or _is_written(self, "_apply_action")):
            wrong = f"actions of {self.single_action_space} are no targets of {self.core.actions.size} joints"
            raise TypeError(f"{task}._apply_action is not written, and {wrong}: write it")

    def _setup_scene(self) -> None:
        """Make ``Articulation(cfg)`` and ``ContactSensor(cfg)`` and put them into ``self.scene``."""

    def _pre_physics_step(self, actions: Any) -> None:
        """Take the actions, clipped to their bounds, with noise, in the structure of their space."""

    def _apply_action(self) -> None:
        """Set the joint targets, before every physics step. Unless this is written, those of ``cfg.actions`` hold for
        the control step."""
        self.sim.set_joint_targets(self.joint_targets)

    @abstractmethod
    def _get_observations(self) -> dict[str, Any]:
        """The group ``"policy"`` and, with ``cfg.state_space``, ``"critic"``; all tensors start with ``num_envs``."""

    def _get_states(self) -> Any:
        """The group ``"critic"``, where ``_get_observations`` does not return it."""
        raise NotImplementedError(f"{_where(self, '_get_states')} is missing: state_space needs it")

    @abstractmethod
    def _get_rewards(self) -> Tensor:
        """Shape: (num_envs,), float32."""

    @abstractmethod
    def _get_dones(self) -> tuple[Tensor, Tensor]:
        """Whose episode is terminated, and whose is cut off. Shape: (num_envs,), bool."""

    def _get_costs(self) -> dict[str, Tensor]:
        """For each name of ``cfg.cost_limits`` the cost, at least 0. Shape: (num_envs,), float32."""
        return {}

    def _reset_idx(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids``, whose robots stand in the default pose; here the events of mode
        ``"reset"`` happen and noise models draw their bias."""
        self.core.events.reset(env_ids)
        for model in (self._observation_noise_model, self._action_noise_model):
            if model is not None:
                model.reset(env_ids)

    def _set_debug_vis_impl(self, debug_vis: bool) -> None:
        """Show or hide what the task draws: append to or remove from ``self.sim.decorations``."""

    def set_debug_vis(self, debug_vis: bool) -> bool:
        """Show or hide what the task draws; returns whether it draws anything."""
        if written := _is_written(self, "_set_debug_vis_impl"):
            self._set_debug_vis_impl(debug_vis)
        return written

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes, or those of ``options["reset_mask"]``."""
        observation, info = self.stack.reset(seed=seed, options=options)
        return observation, {**self.extras, **info}

    def step(self, action: Any) -> tuple[Any, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Observations (of new episodes where one ended), rewards, terminated, truncated and extras."""
        *outcome, info = self.stack.step(action)
        return *outcome, {**self.extras, **info}  # type: ignore[return-value]

    @staticmethod
    def seed(seed: int = -1) -> int:
        """Seed the generators of Python, NumPy and PyTorch, −1: with a random number, which is returned. The streams
        ``self.random`` of the environments are seeded by ``reset(seed=…)`` or ``cfg.seed``."""
        seed = random.randrange(10_000) if seed == -1 else seed
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        return seed

    def render(self, recompute: bool = False) -> np.ndarray | None:
        """A picture of environment ``cfg.viewer.env_index``, (height, width, 3) uint8; None without a render mode."""
        return None if self.render_mode is None else self.core.render()[0]

    @property
    def episode_length_buf(self) -> Tensor:
        """Steps of the present episodes; what is assigned is taken over. Shape: (num_envs,), int32."""
        return self.core._episode_steps

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Tensor) -> None:
        self.core._episode_steps.copy_(steps)

    @property
    def physics_dt(self) -> float:
        """Physics time step, s."""
        return self.core.cfg.sim.dt

    @property
    def unwrapped(self) -> "DirectRLEnv":
        return self

    def get_wrapper_attr(self, name: str) -> Any:
        return getattr(self, name)

    def has_wrapper_attr(self, name: str) -> bool:
        return hasattr(self, name)

    def set_wrapper_attr(self, name: str, value: Any) -> None:
        setattr(self, name, value)


def _event(term: EventTerm) -> EventTermCfg:
    """Ours of Isaac Lab's."""
    return EventTermCfg(_Event(term.func), term.mode, term.interval_range_s, term.params)  # type: ignore[arg-type]
