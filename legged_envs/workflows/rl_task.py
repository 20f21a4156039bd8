"""OmniIsaacGymEnvs' way to write a task: methods that fill buffers, ``obs_buf``, ``rew_buf``, ``reset_buf``."""

import copy
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs import robots
from legged_envs.checks import check_known, check_number, whole_number
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.hooks import Evaluation
from legged_envs.managers import Piece, Program
from legged_envs.mdp.actions import JointPositionCfg, JointTorqueCfg, JointVelocityCfg
from legged_envs.mdp.context import is_pure
from legged_envs.sim import SimCfg
from legged_envs.state import copied, replaced_in_place
from legged_envs.workflows.articulation_view import Scene
from legged_envs.workflows.vec_env import VecEnvBase
from legged_envs.workflows.workflow import _GIVEN, Workflow, WorkflowCore

_ROBOTS = {robot.name: robot for robot in vars(robots).values() if isinstance(robot, robots.RobotCfg)}
_TERMS = {field.name for field in fields(TaskCfg)} - {"sim", "workflow"}
_GRAVITY = [0.0, 0.0, -9.81]
_ACTIONS = {term.kind: term for term in (JointPositionCfg, JointVelocityCfg, JointTorqueCfg)}
_PARTS = ("name", "physics_engine", "env", "sim", "viewport", "renderingInterval", "domain_randomization", "test")
_METHODS = ("get_observations", "get_states", "calculate_metrics", "calculate_costs", "is_done")


class SimConfig:
    """The configuration of a run, a dict like OmniIsaacGymEnvs' YAML files, copied. ``config["task"]`` has ``env``:
    ``numEnvs``, ``episodeLength`` [control steps], ``controlFrequencyInv`` [physics steps per control step],
    ``clipObservations``, ``clipActions``, ``costLimits`` {name: limit}, and whatever the task wants; ``sim``: the
    fields of :class:`SimCfg`, of which ``dt`` [s] is one; and any field of :class:`TaskCfg`: ``robot``, also by name
    (without one it is Go2), and the terms of managers. ``sim_device`` and ``rl_device`` are torch devices."""

    def __init__(self, config: Mapping[str, Any] | None = None):
        self.config: dict[str, Any] = {"test": False, "headless": True, "seed": -1, "sim_device": "cpu"}
        self.config |= copy.deepcopy(dict(config or {}))
        self.config.setdefault("rl_device", self.config["sim_device"])
        self.task_config: dict[str, Any] = {"env": {}, "sim": {}, **self.config.get("task", {})}
        self.config["task"], self.sim_params = self.task_config, self.task_config["sim"]
        check_known("SimConfig: config['task'] has no part", self.task_config, (*_PARTS, *sorted(_TERMS)), "parts")


class RLTaskCore(WorkflowCore):
    """The vector environment of an :class:`RLTask`."""

    task: Any

    def __init__(self, task: "RLTask", cfg: TaskCfg, num_envs: int, **arguments: Any):
        steps = vars(task).get("_max_episode_length", vars(task).get("max_episode_length"))
        if steps is not None and math.isinf(cfg.episode_length_s):
            cfg = replace(cfg, episode_length_s=steps * cfg.sim.step_dt)
        super().__init__(task, cfg, num_envs, **arguments)

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        self._evaluate_and_observe(self)
        task, limits = self.task, self.task._limits
        self.cost_names, self.cost_limits = (*self.cost_names, *limits), (*self.cost_limits, *limits.values())
        states = {"critic": task.state_space} if task.num_states else {}
        return {"policy": task.observation_space, **states}, task.action_space

    def rehearse(self) -> None:
        """Call each method of the task once, which shows what is wrong with it, and put back what that changed."""
        task, sim, own = self.task, self.sim.get_state(), copied(self.task._stateful())
        if hasattr(task, "reset_idx"):
            task.reset_idx(self._all_ids)
        task.pre_physics_step(torch.zeros(self.num_envs, task.num_actions, device=self.device))
        self._evaluate()
        self._observe(None)
        self.sim.set_state(sim)
        vars(task).update({name: replaced_in_place(vars(task)[name], value) for name, value in own.items()}, extras={})
        owners = [owner for manager in self.managers.values() for owner in manager.owners()]
        owners += [task, *self.robot.owners(), self.sim, self.sim.parameters]
        pure = [name for name in _METHODS if is_pure(getattr(task, name))]
        vars(task).update({n: Program([Piece(getattr(task, n), True)], owners, self._compile) for n in pure})

    def _act(self, action: Tensor) -> None:
        self.task.pre_physics_step(action.clamp(-self.task.clip_actions, self.task.clip_actions))
        self.sim.step(self.cfg.sim.decimation)

    def _evaluate(self) -> Evaluation:
        task, num_envs = self.task, self.num_envs
        values = super()._evaluate()
        super()._observe(None)
        vars(task)["reset_idx"] = lambda env_ids: None  # a task that resets here is reset after it, in every mode
        try:
            task.post_physics_step()
        finally:
            del vars(task)["reset_idx"]
        reward = self._taken("calculate_metrics", "rew_buf", (num_envs,))
        own = self._taken("calculate_costs", "cost_buf", (num_envs, len(task._limits)))
        if (own < 0.0).any():
            raise ValueError(f"{type(task).__name__}.calculate_costs: costs must be at least 0, got {own.min():g}")
        task._timeouts = task.is_timeout()
        late = self._taken("is_timeout", "_timeouts", (num_envs,), None) > 0
        ended, costs = self._taken("is_done", "reset_buf", (num_envs,), None) > 0, torch.cat((values.costs, own), dim=1)
        return Evaluation(ended & ~late, reward, values.cost + own.sum(1), costs, ended & late)

    def _observe(self, env_ids: Tensor | None) -> dict[str, Tensor]:
        task, num_envs = self.task, self.num_envs
        if env_ids is not None:
            for name, rows in super()._observe(env_ids).items():
                group = self.observations.groups[name]
                group.value = group.value.index_copy(0, env_ids, rows)
            with self._others_unchanged(env_ids):
                task.get_observations()
                task.update_states()
        groups = {"policy": self._taken("get_observations", "obs_buf", (num_envs, task.num_observations))}
        groups["critic"] = self._taken("get_states", "states_buf", (num_envs, task.num_states))
        chosen = slice(None) if env_ids is None else env_ids
        return {name: value[chosen].clamp(-task.clip_obs, task.clip_obs) for name, value in groups.items()}

    def _place(self, env_ids: Tensor, seeded: bool) -> None:
        super()._place(env_ids, seeded)
        task, own = self.task, hasattr(self.task, "reset_idx")
        task.progress_buf[env_ids] = 0
        task._joint_targets[env_ids] = task._rest
        if own:
            task.reset_idx(env_ids)
        task.reset_buf[env_ids] = not own  # without it pre_physics_step has to reset whoever is flagged

    @contextmanager
    def _others_unchanged(self, env_ids: Tensor) -> Iterator[None]:
        """Keep the rows of all but ``env_ids`` of the task's tensors: its methods are for whole batches."""
        others = torch.ones(self.num_envs, dtype=torch.bool, device=self.device).index_fill_(0, env_ids, False)
        tensors = {name: value for name, value in self.task._stateful().items() if isinstance(value, Tensor)}
        before = [(n, t, t.clone()) for n, t in tensors.items() if t.shape[:1] == others.shape]
        yield
        for name, old, values in before:
            new = vars(self.task)[name]
            new = vars(self.task)[name] = new if new is old else new.clone()
            new[others] = values[others]

    def _taken(self, method: str, name: str, shape: tuple[int, ...], dtype: Any = torch.float32) -> Tensor:
        value, where = getattr(self.task, name), f"{type(self.task).__name__}.{method} must leave self.{name}"
        if not isinstance(value, Tensor) or value.shape != shape or dtype not in (None, value.dtype):
            given = f"{value.dtype} {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)
            raise ValueError(f"{where} as a {dtype or 'bool or integer'} tensor of shape {shape}, got {given}")
        if dtype is not None and not math.isfinite(value.sum().item()):
            bad = ~value.isfinite().view(self.num_envs, -1).all(1)
            bad &= ~self._recovered if self._recovered is not None else bad
            if bad.any():
                raise ValueError(f"{where} finite, and it is not in environments {bad.nonzero()[:8, 0].tolist()}")
        return value


class RLTask(Workflow):
    """A task whose methods are called in every control step: ``pre_physics_step`` → physics → ``post_physics_step``,
    which calls ``get_observations``, ``get_states``, ``calculate_metrics``, ``calculate_costs``, ``is_done`` and
    ``get_extras``. A subclass's constructor takes (name, sim_config, env, offset=None), sets ``_num_observations`` and
    ``_num_actions``, and calls ``RLTask.__init__(self, name, env)``. Episodes begin by ``reset_idx(env_ids)``: in the
    step after the one that flagged them where :class:`VecEnvBase` steps, as the autoreset mode says in Gymnasium.
    Views are made in ``set_up_scene`` and show the robots from ``scene.add(view)`` on."""

    CORE = RLTaskCore
    core: RLTaskCore
    default_base_env_path, default_zero_env_path, is_extension = "/World/envs", "/World/envs/env_0", False

    def __new__(cls, name: str = "", sim_config: Any = None, *args: Any, **kwargs: Any) -> Any:
        task: Any = super().__new__(cls)
        task._sim_config = sim_config if isinstance(sim_config, SimConfig) else SimConfig(sim_config)
        task._cfg, task._task_cfg = task._sim_config.config, task._sim_config.task_config
        return task

    def __init__(self, name: str, env: VecEnvBase, offset: Any = None):
        own, config = vars(self), vars(self)["_sim_config"]
        where, settings = type(self).__name__, config.task_config["env"]
        self.name, self._env, self._offset, self.rl_device = name, env, offset, config.config["rl_device"]
        self.clip_obs, self.clip_actions = (settings.get(f"clip{k}", math.inf) for k in ("Observations", "Actions"))
        self.control_frequency_inv = settings.get("controlFrequencyInv", 1)
        self._limits = settings.get("costLimits", {})
        for key, limit in {"clipObservations": self.clip_obs, "clipActions": self.clip_actions}.items():
            check_number(f"SimConfig: env.{key}", min(limit, 1e30), above=0.0)
        for cost, limit in self._limits.items():
            check_number(f"SimConfig: env.costLimits.{cost}", limit, least=0.0)
        ends = {"observation": self.clip_obs, "action": 1.0, "state": self.clip_obs, "agent": 1.0}
        for (kind, end), least, default in zip(ends.items(), (1, 1, 0, 1), (None, None, 0, 1), strict=True):
            field, space = f"_num_{kind}s", f"{kind}_space"
            what = f"{where}: self.{field}, set before RLTask.__init__,"
            own[field] = own[field[1:]] = whole_number(what, own.get(field, default), least)
            if not hasattr(self, space):
                own[space] = gym.spaces.Box(-end, end, (own[field],))
            elif getattr(self, space).shape != (own[field],):
                raise ValueError(f"{where}: self.{field} is {own[field]}, but {space} is {getattr(self, space)}")
        given = {"device": env.sim_device or config.config["sim_device"], "sim": env.sim, "render_mode": "rgb_array"}
        self._make_core(config, own.get("_num_envs", settings.get("numEnvs", 1)), **given)
        self._num_envs, self._device = self.core.num_envs, self.core.device
        held = [kind == "position" for kind in self.core.sim.robot.actuators]
        self._rest = self.core.robot.default_joint_pos * torch.tensor(held, device=self._device)
        self._joint_targets = self._rest.repeat(self._num_envs, 1)
        self.cleanup()

    @classmethod
    def task_cfg(cls, cfg: Any) -> TaskCfg:
        return super().task_cfg(cfg if isinstance(cfg, SimConfig) else SimConfig(cfg))

    @classmethod
    def _translate(cls, cfg: SimConfig) -> TaskCfg:
        task, env = cfg.task_config, cfg.task_config["env"]
        if list(task["sim"].get("gravity", _GRAVITY)) != _GRAVITY:
            raise ValueError(f"SimConfig: sim.gravity must be {_GRAVITY}, got {task['sim']['gravity']}")
        known = {field.name: task["sim"][field.name] for field in fields(SimCfg) if field.name in task["sim"]}
        repeat = whole_number("SimConfig: env.controlFrequencyInv", env.get("controlFrequencyInv", 1))
        sim = SimCfg(**{**known, "decimation": repeat})
        own = {"advance_first": True, "episode_length_s": math.inf} | {n: task[n] for n in _TERMS & task.keys()}
        if "episodeLength" in env:
            own["episode_length_s"] = whole_number("SimConfig: env.episodeLength", env["episodeLength"]) * sim.step_dt
        robot = own.pop("robot", robots.GO2)
        if isinstance(robot, str):
            check_known("SimConfig: there is no robot", (robot,), _ROBOTS, "robots")
            robot = _ROBOTS[robot]
        joints: dict[str, tuple[str, ...]] = {}
        for joint, kind in zip(robot.joint_names, robot.actuators, strict=True):
            joints[kind] = (*joints.get(kind, ()), joint)
        own.setdefault("actions", {kind: _ACTIONS[kind](joints=names) for kind, names in joints.items()})
        return TaskCfg(robot, sim, **own)

    @classmethod
    def _construct(cls, cfg: Any) -> Workflow:
        env, cfg = VecEnvBase(), copy.deepcopy(cfg)
        cfg.task_config["env"]["numEnvs"] = (_GIVEN.get() or {})["num_envs"]  # of make_core
        env.set_task(task := cls(cls.__name__, cfg, env))
        return task

    @property
    def context(self) -> Any:
        return self.core  # a task may well have tensors ``actions`` and ``commands``

    def start(self, scene: Scene) -> None:
        """Set up the scene, or only the views of one that exists if ``is_extension``, and the task."""
        with torch.inference_mode(False), torch.no_grad():
            (self.initialize_views if self.is_extension else self.set_up_scene)(scene)
            self.post_reset()
            self.core.rehearse()

    def cleanup(self) -> None:
        """Make the buffers; every environment is flagged for reset."""
        zeros = torch.zeros(self._num_envs, device=self._device)
        sizes = {"obs_buf": self.num_observations, "states_buf": self.num_states, "cost_buf": len(self._limits)}
        vars(self).update({name: zeros.new_zeros(len(zeros), size) for name, size in sizes.items()})
        self.rew_buf, self.progress_buf, self.reset_buf = zeros, zeros.long(), zeros.long() + 1
        self.extras = {}

    def set_up_scene(
        self,
        scene: Any,
        replicate_physics: Any = True,
        collision_filter_global_paths: Any = (),
        filter_collisions: Any = True,
    ) -> None:
        """Ground and copies of the robot exist already, each copy in a world of its own: ``filter_collisions=False`` is
        a ValueError. A subclass adds its views after it has called this."""
        if not filter_collisions:
            raise ValueError(f"{type(self).__name__}.set_up_scene: environments never touch, filter_collisions is True")
        self._env_pos = torch.zeros(self._num_envs, 3, device=self._device)

    def initialize_views(self, scene: Scene) -> None:
        """Add the views to a scene that exists already."""
        RLTask.set_up_scene(self, scene)

    def post_reset(self) -> None:
        """Called once, when the robots stand in their default pose and the views show them."""

    def pre_physics_step(self, actions: Tensor) -> None:
        """Apply actions (num_envs, num_actions), clipped to ±clip_actions, by a view's targets."""
        raise NotImplementedError(f"{type(self).__name__} needs a method pre_physics_step(self, actions)")

    def get_observations(self) -> Any:
        """Fill ``obs_buf``; what it returns is not used."""
        raise NotImplementedError(f"{type(self).__name__} needs a method get_observations(self) that fills obs_buf")

    def calculate_metrics(self) -> None:
        """Fill ``rew_buf`` (num_envs,)."""
        raise NotImplementedError(f"{type(self).__name__} needs a method calculate_metrics(self) that fills rew_buf")

    def is_done(self) -> None:
        """Fill ``reset_buf`` (num_envs,): whose episode is over."""
        raise NotImplementedError(f"{type(self).__name__} needs a method is_done(self) that fills reset_buf")

    def is_timeout(self) -> Tensor:
        """Of whom ``is_done`` flagged, whose episode is cut off and no failure: by default who has come to the end,
        ``progress_buf`` ≥ ``_max_episode_length`` or ``max_episode_length`` − 1. Shape: (num_envs,)."""
        steps = vars(self).get("_max_episode_length", self.max_episode_length)
        return self.progress_buf >= (math.inf if steps is None else steps - 1)

    def calculate_costs(self) -> None:
        """Fill ``cost_buf`` (num_envs, number of ``costLimits``), at least 0, in the order of these."""

    def get_states(self) -> Any:
        """The observations of an asymmetric critic, (num_envs, num_states): fill or return ``states_buf``."""
        return self.states_buf

    def get_extras(self) -> None:
        """Write to ``extras``; ``extras["episode"]`` of a ``reset_idx`` joins ``info["log"]``."""

    def update_states(self) -> None:
        if isinstance(states := self.get_states(), Tensor):
            self.states_buf = states

    def reset(self) -> None:
        """Flag every environment for reset."""
        self.reset_buf = torch.ones_like(self.reset_buf)

    def post_physics_step(self) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        """Let the step count and evaluate it. Returns ``obs_buf``, ``rew_buf``, ``reset_buf`` and ``extras``."""
        self.progress_buf += 1
        self.get_observations()
        self.update_states()
        self.calculate_metrics()
        self.calculate_costs()
        self.is_done()
        self.get_extras()
        return self.obs_buf, self.rew_buf, self.reset_buf, self.extras
