"""OmniIsaacGymEnvs' way to write a task: methods that fill buffers, ``obs_buf``, ``rew_buf``, ``reset_buf``."""

import copy
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs.checks import check_known, check_number, check_spelling, whole_number
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.hooks import Evaluation
from legged_envs.managers import Piece, Program
from legged_envs.mdp.actions import JointPositionCfg, JointTorqueCfg, JointVelocityCfg
from legged_envs.mdp.context import is_pure
from legged_envs.robots import GO2, RobotCfg
from legged_envs.sim import SimCfg
from legged_envs.workflows.vec_env import VecEnvBase
from legged_envs.workflows.workflow import _GIVEN, Workflow, WorkflowCore

_TERMS = {field.name for field in fields(TaskCfg)} - {"sim", "workflow"}
_ACTIONS = {term.kind: term for term in (JointPositionCfg, JointVelocityCfg, JointTorqueCfg)}
_PARTS = ("name", "physics_engine", "env", "sim", "viewport", "renderingInterval", "domain_randomization", "test")
_ENV = ("numEnvs", "episodeLength", "controlFrequencyInv", "clipObservations", "clipActions", "costLimits")
_RECORDED = ("get_observations", "calculate_metrics", "calculate_costs", "is_done")
_BUFFERS: dict[str, tuple[str, bool, float]] = {
    "obs_buf": ("get_observations", False, -math.inf),
    "states_buf": ("get_states", False, -math.inf),
    "rew_buf": ("calculate_metrics", False, -math.inf),
    "cost_buf": ("calculate_costs", False, 0.0),
    "reset_buf": ("is_done", True, -math.inf),
    "_timeouts": ("is_timeout", True, -math.inf),
}
"""Buffers → the methods that fill them, whether they hold flags, and the least number in them."""


class SimConfig:
    """The configuration of a run, a dict like OmniIsaacGymEnvs' YAML files, copied. ``config["task"]`` has ``env``:
    ``numEnvs``, ``episodeLength`` [control steps], ``controlFrequencyInv`` [physics steps per control step],
    ``clipObservations``, ``clipActions``, ``costLimits`` {name: limit}, and whatever the task wants; ``sim``: the
    fields of :class:`SimCfg`, of which ``dt`` [s] is one; and any field of :class:`TaskCfg`: ``robot`` (without one it
    is Go2) and the terms of managers. ``sim_device`` and ``rl_device`` are torch devices. ValueError for a name in
    ``env`` or ``sim`` that is nearly one of these, for an unknown part of a task, and for one outside it."""

    def __init__(self, config: Mapping[str, Any] | None = None):
        self.config = {"headless": True, "seed": -1, "sim_device": "cpu", **copy.deepcopy(dict(config or {}))}
        self.task_config = self.config["task"] = {"env": {}, "sim": {}, **self.config.get("task", {})}
        check_known("SimConfig: config['task'] has no part", self.task_config, (*_PARTS, *sorted(_TERMS)), "parts")
        check_spelling("SimConfig: config['task']['env']", self.task_config["env"], _ENV)
        check_spelling("SimConfig: config['task']['sim']", self.task_config["sim"], vars(SimCfg()), 0.8)
        if outside := ({"env", "sim"} | _TERMS) & self.config.keys():
            raise ValueError(f"SimConfig: what config[{min(outside)!r}] says belongs in config['task']")


class RLTaskCore(WorkflowCore):
    """The vector environment of an :class:`RLTask`."""

    task: Any

    def __init__(self, task: "RLTask", cfg: TaskCfg, num_envs: int, **arguments: Any):
        steps = vars(task).get("_max_episode_length", vars(task).get("max_episode_length"))
        if steps is not None and math.isinf(cfg.episode_length_s):
            cfg = replace(cfg, episode_length_s=steps * cfg.sim.step_dt)
        self._cfg, self._task_cfg = task.cfg.config, task.cfg.task_config
        self.control_frequency_inv, self.num_agents = cfg.sim.decimation, 1
        super().__init__(task, cfg, num_envs, **arguments)

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        self._evaluate_and_observe(self)
        task, limits = self.task, self.task._limits
        self.cost_names, self.cost_limits = (*self.cost_names, *limits), (*self.cost_limits, *limits.values())
        states = {"critic": task.state_space} if task.num_states else {}
        return {"policy": task.observation_space, **states}, task.action_space

    def _try_out(self) -> None:
        """Nothing before there is a scene."""

    def start(self, scene: Any) -> None:
        """Set up the scene and the task. Call each method of the task once, which shows what is wrong with it, and put
        back what that changed. Record the methods that are marked pure."""
        task = self.task
        with torch.inference_mode(False), torch.no_grad():
            task.set_up_scene(scene)
            task.post_reset()
            super()._try_out()
        owners = [owner for manager in self.managers.values() for owner in manager.owners()]
        owners += [task, *self.robot.owners(), self.sim, self.sim.parameters]
        pure = [name for name in _RECORDED if is_pure(getattr(task, name))]
        vars(task).update({n: Program([Piece(getattr(task, n), True)], owners, self._compile) for n in pure})

    def _act(self, action: Tensor) -> None:
        self.task.pre_physics_step(action.clamp(-self.task.clip_actions, self.task.clip_actions))
        self.sim.step(self.cfg.sim.decimation)

    def _evaluate(self) -> Evaluation:
        task = self.task
        super()._evaluate()
        super()._observe(None)
        vars(task)["reset_idx"] = lambda env_ids: None  # a task that resets here is reset after it, in every mode
        try:
            task.post_physics_step()
        finally:
            del vars(task)["reset_idx"]
        task._timeouts = task.is_timeout()
        for name, (method, flags, least) in _BUFFERS.items():
            self.check(method, name, getattr(task, name), *task._sizes[name], flags=flags, least=least)
        ended, late = task.reset_buf > 0, task._timeouts > 0
        task.reset_buf, task._timeouts = task.reset_buf.long(), late  # of whatever type the task makes them
        return Evaluation(ended & ~late, task.rew_buf, task.cost_buf.sum(1), task.cost_buf, ended & late)

    def _observe(self, env_ids: Tensor | None) -> dict[str, Tensor]:
        task, chosen = self.task, slice(None) if env_ids is None else env_ids
        if env_ids is not None:
            self._observe_new(env_ids, self._look)
        groups = {"policy": task.obs_buf[chosen], "critic": task.states_buf[chosen]}
        return {name: value.clamp(-task.clip_obs, task.clip_obs) for name, value in groups.items()}

    def _look(self) -> None:
        self.task.get_observations()
        self.task.states_buf = self.task.get_states()

    def _choose_start(self, env_ids: Tensor) -> None:
        super()._choose_start(env_ids)
        task, own = self.task, hasattr(self.task, "reset_idx")
        task.progress_buf[env_ids] = 0
        task._joint_targets[env_ids] = self.actions._rest[env_ids]
        if own:
            task.reset_idx(env_ids)
        task.reset_buf[env_ids] = not own  # without it pre_physics_step has to reset whoever is flagged


class RLTask(Workflow):
    """A task whose methods are called in every control step: ``pre_physics_step`` → physics → ``post_physics_step``,
    which calls ``get_observations``, ``get_states``, ``calculate_metrics``, ``calculate_costs``, ``is_done`` and
    ``get_extras``. A subclass's constructor takes (name, sim_config, env, offset=None), sets ``_num_observations`` and
    ``_num_actions``, and calls ``RLTask.__init__(self, name, env)``, which takes the :class:`SimConfig`, dict or None
    that the subclass was given, unless that sets ``_sim_config``. Episodes begin by ``reset_idx(env_ids)``: in the step
    after the one that flagged them where :class:`VecEnvBase` steps, as the autoreset mode says in Gymnasium.
    Views are made in ``set_up_scene`` and show the robots from ``scene.add(view)`` on."""

    CORE = RLTaskCore
    core: RLTaskCore

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        task, given = super().__new__(cls), (*arguments, *named.values())
        vars(task)["_sim_config"] = next((each for each in given if isinstance(each, (SimConfig, Mapping))), None)
        return task

    def __init__(self, name: str, env: VecEnvBase, offset: Any = None):
        own, given = vars(self), vars(self)["_sim_config"]
        self._sim_config = sim_config = given if isinstance(given, SimConfig) else SimConfig(given)
        config, settings = sim_config.config, sim_config.task_config["env"]
        self.name, self._env, self._offset = name, env, offset
        self.rl_device, self._limits = config.get("rl_device", config["sim_device"]), settings.get("costLimits", {})
        self.clip_obs, self.clip_actions = (settings.get(f"clip{k}", math.inf) for k in ("Observations", "Actions"))
        for key, limit in {"clipObservations": self.clip_obs, "clipActions": self.clip_actions}.items():
            check_number(f"SimConfig: env.{key}", min(limit, 1e30), above=0.0)
        for kind, least, end in (("observation", 1, self.clip_obs), ("action", 1, 1.0), ("state", 0, self.clip_obs)):
            field, space = f"_num_{kind}s", f"{kind}_space"
            what = f"{type(self).__name__}: self.{field}, set before RLTask.__init__,"
            own[field] = own[field[1:]] = whole_number(what, own.get(field, None if least else 0), least)
            own[space] = getattr(self, space, gym.spaces.Box(-end, end, (own[field],)))
            if own[space].shape != (own[field],):
                raise ValueError(f"{type(self).__name__}: self.{field} is {own[field]}, but {space} is {own[space]}")
        device = config["sim_device"] if env.sim_device is None else env.sim_device
        num_envs = own.get("_num_envs", settings.get("numEnvs", 1))
        self._make_core(sim_config, num_envs, device=device, sim=env.sim, render_mode="rgb_array")
        self._num_envs, self._device = self.core.num_envs, self.core.device
        self._joint_targets = self.core.actions._rest.clone()
        self.cleanup()

    @classmethod
    def task_cfg(cls, cfg: Any) -> TaskCfg:
        return super().task_cfg(cfg if isinstance(cfg, SimConfig) else SimConfig(cfg))

    @classmethod
    def _translate(cls, cfg: SimConfig) -> TaskCfg:
        task, env = cfg.task_config, cfg.task_config["env"]
        known = {field.name: task["sim"][field.name] for field in fields(SimCfg) if field.name in task["sim"]}
        repeat = whole_number("SimConfig: env.controlFrequencyInv", env.get("controlFrequencyInv", 1))
        sim, robot = SimCfg(**{**known, "decimation": repeat}), task.get("robot", GO2)
        if not isinstance(robot, RobotCfg):
            raise TypeError(f"SimConfig: config['task']['robot'] must be a RobotCfg, such as GO2, got {robot!r}")
        joints = [(kind, name) for name, kind in zip(robot.joint_names, robot.actuators, strict=True)]
        actions = {k: _ACTIONS[k](joints=tuple(n for kind, n in joints if kind == k)) for k, _ in joints}
        own = {"robot": robot, "actions": actions, "advance_first": True, "episode_length_s": math.inf}
        if "episodeLength" in env:
            own["episode_length_s"] = whole_number("SimConfig: env.episodeLength", env["episodeLength"]) * sim.step_dt
        return TaskCfg(sim=sim, **{**own, **{name: task[name] for name in _TERMS & task.keys()}})

    @classmethod
    def _construct(cls, cfg: Any) -> Workflow:
        env, given = VecEnvBase(), _GIVEN.get() or {}  # of make_core
        cfg.task_config["sim"] |= (sim := vars(given["cfg"].sim))  # so that the task reads there what is so
        cfg.task_config["env"] |= {"numEnvs": given["num_envs"], "controlFrequencyInv": sim["decimation"]}
        env.set_task(task := cls(cls.__name__, cfg, env))
        return task

    @property
    def context(self) -> Any:
        return self.core  # a task may well have tensors ``actions`` and ``commands``

    def cleanup(self) -> None:
        """Make the buffers; every environment is flagged for reset."""
        zeros, costs = torch.zeros(self._num_envs, device=self._device), len(self.core.cfg.costs) + len(self._limits)
        sizes = {"obs_buf": self.num_observations, "states_buf": self.num_states, "cost_buf": costs}
        vars(self).update({name: zeros.new_zeros(len(zeros), size) for name, size in sizes.items()}, extras={})
        self.rew_buf, self.progress_buf, self.reset_buf = zeros, zeros.long(), zeros.long() + 1
        self._timeouts = zeros.bool()
        self._sizes = {name: getattr(self, name).shape[1:] for name in _BUFFERS}

    def set_up_scene(self, scene: Any, *cloning: Any, **options: Any) -> None:
        """Ground and copies of the robot exist already, each copy in a world of its own, whatever the arguments for
        cloning and collision filters say. A subclass adds its views after it has called this."""
        self._env_pos = torch.zeros(self._num_envs, 3, device=self._device)

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
        return self.progress_buf >= (vars(self).get("_max_episode_length", self.max_episode_length) or math.inf) - 1

    def calculate_costs(self) -> None:
        """Fill ``cost_buf``, at least 0, (num_envs, K): first the cost terms of the configuration, as is done here,
        then the costs that ``costLimits`` names."""
        self.cost_buf[:, : len(self.core.cfg.costs)] = self.core.costs.values

    def get_states(self) -> Any:
        """Return the observations of an asymmetric critic, (num_envs, num_states): the next ``states_buf``."""
        return self.states_buf

    def get_extras(self) -> None:
        """Write to ``extras``; ``extras["episode"]`` of a ``reset_idx`` joins ``info["log"]``."""

    def reset(self) -> None:
        """Flag every environment for reset."""
        self.reset_buf = torch.ones_like(self.reset_buf)

    def post_physics_step(self) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        """Let the step count and evaluate it. Returns ``obs_buf``, ``rew_buf``, ``reset_buf`` and ``extras``."""
        self.progress_buf += 1
        self.get_observations()
        self.states_buf = self.get_states()
        self.calculate_metrics()
        self.calculate_costs()
        self.is_done()
        self.get_extras()
        return self.obs_buf, self.rew_buf, self.reset_buf, self.extras
