"""Isaac Lab's direct workflow: a task is a class with a method for each part of a step."""

import inspect
import math
import warnings
from abc import abstractmethod
from dataclasses import field
from functools import partial
from typing import Any

import gymnasium as gym
import torch
from gymnasium.vector.utils import batch_space
from torch import Tensor

from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import CostTermCfg, EventTermCfg, TerminationTermCfg
from legged_envs.mdp.actions import JointPositionCfg, JointTorqueCfg, JointVelocityCfg
from legged_envs.mdp.context import pure
from legged_envs.sim import ViewerCfg
from legged_envs.workflows.configclass import (
    Copied,
    InteractiveSceneCfg,
    SceneEntityCfg,
    SimulationCfg,
    configclass,
    world,
)
from legged_envs.workflows.direct_core import DirectCore
from legged_envs.workflows.isaac import IsaacEnv
from legged_envs.workflows.noise import NoiseModelCfg
from legged_envs.workflows.scene import InteractiveScene
from legged_envs.workflows.spaces import space_from

FIELDS = {"policy": "observation_space", "critic": "state_space", "action": "action_space"}
FORMER = {"observation_space": "num_observations", "action_space": "num_actions", "state_space": "num_states"}
"""Groups → fields of their spaces → what Isaac Lab called these before."""


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
    """A dict or a configuration class of :class:`~legged_envs.managers.EventTermCfg` or of terms in Isaac Lab's words,
    ``func(env, env_ids, **params)``, ``mode``, ``interval_range_s`` and ``params``."""
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
    actions: dict[str, Any] | None = None
    """None: a target for each joint, of the kind of its actuator."""
    max_action_delay: int = 0
    commands: dict[str, Any] = field(default_factory=dict)

    def spaces(self) -> dict[str, gym.Space[Any]]:
        """The spaces of one environment, of the observation groups and of ``"action"``; ValueError, which names the
        field, if one is none."""
        spaces = {}
        for group, name in FIELDS.items():
            spec, bound = getattr(self, name), 1.0 if group == "action" else math.inf
            if spec is None and (spec := getattr(self, FORMER[name])) is not None:
                warnings.warn(f"{FORMER[name]} is deprecated: use {name}", DeprecationWarning, stacklevel=2)
            if group != "critic" or spec not in (None, 0):
                spaces[group] = space_from(spec, -bound, bound, f"{type(self).__name__}.{name}")
        return spaces


@pure
def _terminated(env: Any) -> Any:
    """Whose episode ``_get_dones`` terminated."""
    return env.task.reset_terminated


@pure
def _get_costs(env: Any, name: str) -> Any:
    """One of the costs that the method of this name returned."""
    return getattr(env.task_costs, name)


def _event(term: Any) -> EventTermCfg:
    """A term of ours, or of Isaac Lab's in ours."""
    if isinstance(term, EventTermCfg):
        return term
    return EventTermCfg(partial(_call, term.func), term.mode, term.interval_range_s, term.params)


def _call(func: Any, env: Any, env_ids: Tensor, random: Any, **params: Any) -> None:
    """Call an event's function as Isaac Lab does, with its random stream only if it takes one."""
    takes = "random" in inspect.signature(func).parameters
    func(env, env_ids, **({"random": random} if takes else {}), **params)


class DirectRLEnv(IsaacEnv):
    """A task whose subclass writes ``_get_observations``, ``_get_rewards`` and ``_get_dones``, and what else it likes
    of the methods with an underscore. A step: ``_pre_physics_step`` → physics, ``_apply_action`` before each of its
    steps → ``_get_dones`` → ``_get_rewards`` → ``_get_costs`` → commands, interval events → ``_get_observations``;
    episodes that ended begin anew after it. Methods marked :func:`~legged_envs.mdp.context.pure` are recorded.

    ``cfg`` and ``render_mode`` as in Isaac Lab; ``kwargs`` are arguments of ``CoreVectorEnv``, such as ``compile``. The
    terms of ``mdp/`` take ``self`` as ``env``, or ``self.core`` in a class with an own ``robot`` or ``actions``."""

    CORE = DirectCore
    core: DirectCore

    def __init__(self, cfg: Any, render_mode: str | None = None, **kwargs: Any):
        spaces = cfg.spaces()
        self._make_core(cfg, cfg.scene.num_envs, **{"render_mode": render_mode, "device": cfg.sim.device, **kwargs})
        core = self.core
        core.prepare(spaces, cfg.cost_limits)
        self.common_step_counter = 0
        """Control steps since the environment was made."""
        self.reset_terminated = torch.zeros(core.num_envs, dtype=torch.bool, device=core.device)
        self.reset_time_outs, self.reset_buf = self.reset_terminated.clone(), self.reset_terminated.clone()
        self.reward_buf = self.reset_buf.float()
        """Whose episode ended in the last step by what, whose at all, and its rewards. Shape: (num_envs,)."""
        self.joint_targets = core.robot.default_joint_pos.repeat(core.num_envs, 1)
        """What the action manager made of the action. Shape: (num_envs, num_joints)."""
        self.state_space = batch_space(spaces["critic"], core.num_envs) if "critic" in spaces else None
        for group, name in FIELDS.items():
            setattr(self, FORMER[name], gym.spaces.flatdim(spaces[group]) if group in spaces else 0)
        if core.action_bounds and self.writes("_pre_physics_step"):
            self.actions = torch.zeros(core.action_space.shape or (), device=core.device)
        self._observation_noise_model = self._noise("observation", "observation_noise/policy", spaces["policy"])
        self._action_noise_model = self._noise("action", "action_noise", spaces["action"])
        self.scene = core.scene = InteractiveScene(cfg.scene, core)
        with self.scene.set_up():
            self._setup_scene()
        for part in (part for term in core.events.cfg.values() for part in term.params.values()):
            if isinstance(part, SceneEntityCfg):
                part.resolve(self.scene)

    @classmethod
    def _translate(cls, cfg: Any) -> TaskCfg:
        terms = cfg.events if isinstance(cfg.events, dict) else vars(cfg.events) if cfg.events else {}
        events = {name: _event(term) for name, term in terms.items() if term is not None}
        costs = {name: CostTermCfg(_get_costs, limit, {"name": name}) for name, limit in cfg.cost_limits.items()}
        there = {"max_action_delay": cfg.max_action_delay, "commands": cfg.commands, **world(cfg)}
        joints = [*zip(there["robot"].actuators, there["robot"].joint_names, strict=True)]
        actions: dict[str, Any] = {
            f"joint_{term.kind}": term(joints=tuple(joint for kind, joint in joints if kind == term.kind))
            for term in (JointPositionCfg, JointVelocityCfg, JointTorqueCfg)
            if term.kind in there["robot"].actuators
        }
        ends = {"terminated": TerminationTermCfg(_terminated)}
        return TaskCfg(actions=cfg.actions or actions, events=events, costs=costs, terminations=ends, **there)

    def _noise(self, name: str, stream: str, space: gym.Space[Any]) -> Any:
        if (cfg := getattr(self.cfg, f"{name}_noise_model")) is None:
            return None
        if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
            field_name = f"{type(self.cfg).__name__}.{name}_noise_model"
            raise ValueError(f"{field_name} needs a {name}_space of one dimension, got {space}")
        return cfg.class_type(cfg, self.random.stream(stream), space.shape[0])

    @property
    def context(self) -> Any:
        return self.core

    def _check(self) -> None:
        task, cfg = type(self).__name__, type(self.cfg).__name__
        if bool(self.cfg.cost_limits) != self.writes("_get_costs"):
            how = "write both, or neither"
            raise TypeError(f"{task}._get_costs returns the costs that {cfg}.cost_limits names: {how}")
        if not (self.core.moves_joints or self.writes("_apply_action")):
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
        method = f"{type(self).__name__}._get_states"
        raise TypeError(f"{method} is not written, nor does _get_observations return 'critic': state_space needs one")

    @abstractmethod
    def _get_rewards(self) -> Any:
        """Shape: (num_envs,), float32."""

    @abstractmethod
    def _get_dones(self) -> Any:
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
        if written := self.writes("_set_debug_vis_impl"):
            self._set_debug_vis_impl(debug_vis)
        return written
