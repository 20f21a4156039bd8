"""Isaac Lab's direct workflow: a task is a class with a method for each part of a step."""

import math
from abc import abstractmethod
from dataclasses import field
from functools import partial
from inspect import signature
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs.compat.isaac_lab.cfg import InteractiveSceneCfg, SimulationCfg, world
from legged_envs.compat.isaac_lab.direct_task import DirectCore
from legged_envs.compat.isaac_lab.environment import IsaacEnv
from legged_envs.compat.isaac_lab.scene import InteractiveScene
from legged_envs.compat.isaac_lab.scene_entity import resolved
from legged_envs.compat.isaac_lab.spaces import space_from
from legged_envs.configuration import configclass
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import CostTermCfg, EventTermCfg, TerminationTermCfg
from legged_envs.mdp.actions import JointPositionCfg, JointTorqueCfg, JointVelocityCfg
from legged_envs.mdp.context import pure
from legged_envs.sim import ViewerCfg

ACTIONS: dict[str, Any] = {
    cfg.kind: cfg for cfg in (JointPositionCfg, JointVelocityCfg, JointTorqueCfg)
}
"""Kinds of actuators → what makes targets of actions for them."""


@configclass
class DirectRLEnvCfg:
    """A task in Isaac Lab's words. Beside them: ``actions`` and ``commands`` as in a ``TaskCfg``,
    the limits of what ``_get_costs`` returns and ``terms``. A subclass has the robot, such as ``robot = GO2``."""

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
    :func:`~legged_envs.compat.isaac_lab.spaces.space_from`; a size is unbounded, of actions ±1."""
    observation_noise_model: Any = None
    action_noise_model: Any = None
    """A ``NoiseModelCfg`` of :mod:`legged_envs.compat.isaac_lab.noise`, or None."""
    rerender_on_reset: bool = False
    """Is accepted: all quantities are current after a reset."""
    cost_limits: dict[str, float] = field(default_factory=dict)
    """Name of each cost → what it may be on average per step."""
    actions: dict[str, Any] | None = None
    """None: a target for each joint, of the kind of the actuators, all of one kind."""
    commands: dict[str, Any] = field(default_factory=dict)
    terms: dict[str, Any] = field(default_factory=dict)
    """Other fields of the ``TaskCfg``, such as ``observations`` and ``rewards``: what managers evaluate, in each step
    before the methods, which find it in ``self.core.observations``, ``self.core.rewards``, …"""

    def spaces(self) -> dict[str, gym.Space[Any]]:
        """The spaces of one environment, of the observation groups and of ``"action"``; ValueError, which names the
        field, if one is none."""
        state = {} if self.state_space in (None, 0) else {"critic": self.space("state_space")}
        return {
            "policy": self.space("observation_space"),
            **state,
            "action": self.space("action_space", 1.0),
        }

    def space(self, name: str, bound: float = math.inf) -> gym.Space[Any]:
        """The space of the field ``name``, numbers without bounds within ±``bound``; ValueError, naming the field, if
        it stands for none."""
        return space_from(getattr(self, name), -bound, bound, f"{type(self).__name__}.{name}")


@pure
def _terminated(env: Any) -> Any:
    """Whose episode ``_get_dones`` terminated."""
    return env.task.reset_terminated


@pure
def _get_costs(env: Any, name: str) -> Any:
    """One of the costs that the method of this name returned."""
    return getattr(env.task_costs, name)


def _call(func: Any, env: Any, env_ids: Tensor, random: Any, **params: Any) -> None:
    """Call an event's function as Isaac Lab does, with its random stream only if it takes one."""
    stream = {"random": random} if "random" in signature(func).parameters else {}
    func(env, env_ids, **stream, **params)


class DirectRLEnv(IsaacEnv):
    """A task whose subclass writes ``_get_observations``, ``_get_rewards`` and ``_get_dones``, and what else it likes
    of the methods with an underscore. A step: ``_pre_physics_step`` → physics, ``_apply_action`` before each of its
    steps → ``_get_dones`` → ``_get_rewards`` → ``_get_costs`` → commands, interval events → ``_get_observations``;
    episodes that ended begin anew after it. Methods marked :func:`~legged_envs.mdp.context.pure` are recorded.

    ``cfg`` and ``render_mode`` as in Isaac Lab; ``kwargs`` are arguments of ``CoreVectorEnv``, such as ``compile``. The
    terms of ``mdp/`` take ``self`` as ``env``, or ``self.core`` in a class with an own ``robot`` or ``actions``.
    ValueError or TypeError, naming field or method, if ``cfg`` or what a method returns does not fit."""

    CORE, CFG = DirectCore, DirectRLEnvCfg
    core: DirectCore
    context = property(lambda self: self.core)

    def __init__(self, cfg: Any, render_mode: str | None = None, **kwargs: Any):
        spaces = cfg.spaces()
        self._make_core(
            cfg,
            cfg.scene.num_envs,
            **{"render_mode": render_mode, "device": cfg.sim.device, **kwargs},
        )
        core = self.core
        core.prepare(spaces, cfg.cost_limits)
        self.common_step_counter = 0
        """Control steps since the environment was made."""
        self.reset_terminated = torch.zeros(core.num_envs, dtype=torch.bool, device=core.device)
        self.reset_time_outs, self.reset_buf = (
            self.reset_terminated.clone(),
            self.reset_terminated.clone(),
        )
        self.reward_buf = self.reset_buf.float()
        """Whose episode ended in the last step by what, whose at all, and its rewards. Shape: (num_envs,)."""
        self.joint_targets = core.robot.default_joint_pos.repeat(core.num_envs, 1)
        """What the action manager made of the action. Shape: (num_envs, num_joints)."""
        self.state_space = core.batched.get("critic")
        """The space of the states of all environments, None without any."""
        if self.writes("_pre_physics_step"):
            self.actions = core.by_agent(core.zeros["action"])
        self.noise_models: dict[str, Any] = {}
        for kind, (noise, stream, space) in self._noise(spaces).items():
            if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
                raise ValueError(
                    f"{type(cfg).__name__}.{kind}_noise_model needs a space of one dimension, got {space}"
                )
            self.noise_models[kind] = noise.class_type(
                noise, self.random.stream(stream), space.shape[0]
            )
        self.scene = InteractiveScene(cfg.scene, core)
        core.scene = self.scene
        self.scene.set_up(self._setup_scene)
        for term in core.events.cfg.values():
            resolved(term.params, self.scene)

    @classmethod
    def _translate(cls, cfg: Any) -> TaskCfg:
        terms = (
            cfg.events if isinstance(cfg.events, dict) else vars(cfg.events) if cfg.events else {}
        )
        events = {name: term for name, term in terms.items() if term is not None}
        for name, term in events.items():
            if not isinstance(term, EventTermCfg):
                events[name] = EventTermCfg(
                    partial(_call, term.func), term.mode, term.interval_range_s, term.params
                )
        costs = {
            name: CostTermCfg(_get_costs, limit, {"name": name})
            for name, limit in cfg.cost_limits.items()
        }
        there = world(cfg)
        kind = there["robot"].actuators[0]
        there |= {
            "actions": cfg.actions or {f"joint_{kind}": ACTIONS[kind]()},
            "commands": cfg.commands,
        }
        there |= {
            "events": events,
            "costs": costs,
            "terminations": {"terminated": TerminationTermCfg(_terminated)},
        }
        return TaskCfg(**{**there, **cfg.terms})

    def _noise(self, spaces: dict[str, gym.Space[Any]]) -> dict[str, Any]:
        """What is noisy → its model's configuration, random stream and space."""
        seen = self.cfg.observation_noise_model, "observation_noise/policy", spaces["policy"]
        done = self.cfg.action_noise_model, "action_noise", spaces["action"]
        return {
            kind: of
            for kind, of in {"observation": seen, "action": done}.items()
            if of[0] is not None
        }

    def noisy(self, kind: str, rows: Any, env_ids: Tensor | None = None) -> Any:
        """Rows of all environments or of ``env_ids``, of kind ``"observation"`` or ``"action"``, with noise."""
        return self.noise_models[kind](rows, env_ids) if kind in self.noise_models else rows

    def _check(self) -> None:
        task, cfg = type(self).__name__, type(self.cfg).__name__
        if bool(self.cfg.cost_limits) != self.writes("_get_costs"):
            raise TypeError(
                f"{task}._get_costs returns the costs that {cfg}.cost_limits names: write both, or neither"
            )
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
        """The group ``"critic"``; where this is written, ``_get_observations`` returns ``"policy"`` alone."""

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
        for model in self.noise_models.values():
            model.reset(env_ids)

    def _set_debug_vis_impl(self, debug_vis: bool) -> None:
        """Show or hide what the task draws: append to or remove from ``self.sim.decorations``."""

    def set_debug_vis(self, debug_vis: bool) -> bool:
        """Show or hide what the task draws; returns whether it draws anything."""
        self._set_debug_vis_impl(debug_vis)
        return self.writes("_set_debug_vis_impl")
