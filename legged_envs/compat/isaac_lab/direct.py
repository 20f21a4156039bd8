"""Isaac Lab's direct workflow: a task is a class with a method for each part of a step."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import field
from functools import partial
from inspect import signature
from typing import Any, NamedTuple, cast

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs.compat.adapter import OwnCfg
from legged_envs.compat.isaac_lab.cfg import InteractiveSceneCfg, SimulationCfg, world
from legged_envs.compat.isaac_lab.direct_task import DirectTask
from legged_envs.compat.isaac_lab.environment import IsaacEnv
from legged_envs.compat.isaac_lab.scene import InteractiveScene
from legged_envs.compat.isaac_lab.scene_entity import resolved
from legged_envs.compat.isaac_lab.spaces import space_from
from legged_envs.configuration import ConfigClass, configclass
from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.task import Action, Space
from legged_envs.managers import CostTermCfg, EventTermCfg, TerminationTermCfg
from legged_envs.mdp.actions import (
    JointActionCfg,
    JointPositionCfg,
    JointTorqueCfg,
    JointVelocityCfg,
)
from legged_envs.rng import Stream
from legged_envs.sim import ViewerCfg
from legged_envs.state import Tree

ACTIONS: dict[str, Callable[..., JointActionCfg]] = {
    "position": JointPositionCfg,
    "velocity": JointVelocityCfg,
    "torque": JointTorqueCfg,
}
"""Kind of an actuator mapped to the action term that makes its targets."""


@configclass
class DirectRLEnvCfg(ConfigClass):
    """A task in Isaac Lab's words.

    A subclass has the robot as a field, such as ``robot = GO2``. Some fields are additions of this
    package: ``cost_limits``, ``actions``, ``commands`` and ``terms``.
    """

    scene: InteractiveSceneCfg = InteractiveSceneCfg()
    """Entities of every environment."""
    sim: SimulationCfg = SimulationCfg()
    """Physics settings."""
    viewer: ViewerCfg = ViewerCfg()
    """Camera of pictures and windows."""
    seed: int | None = None
    """Seed of the first reset, if that has none."""
    decimation: int = 1
    """Physics steps per control step."""
    episode_length_s: float = 20.0
    """Time limit of an episode, s."""
    is_finite_horizon: bool = False
    """True if the end of the time limit is a termination."""
    events: Any = None
    """A dict or a configuration class of event terms.

    A term is a :class:`~legged_envs.managers.EventTermCfg`, or one in Isaac Lab's words with
    ``func(env, env_ids, **params)``, ``mode``, ``interval_range_s`` and ``params``.
    """
    observation_space: object = None
    """Space of the group ``"policy"``; a size is unbounded.

    See :func:`~legged_envs.compat.isaac_lab.spaces.space_from`.
    """
    action_space: object = None
    """Space of the actions; a size is bounded by ±1."""
    state_space: object = None
    """Space of the group ``"critic"``; None or 0 without one."""
    observation_noise_model: Any = None
    """A ``NoiseModelCfg`` of :mod:`legged_envs.compat.isaac_lab.noise`, or None."""
    action_noise_model: Any = None
    """A ``NoiseModelCfg`` of :mod:`legged_envs.compat.isaac_lab.noise`, or None."""
    rerender_on_reset: bool = False
    """This setting has no effect: all quantities are current after a reset."""
    cost_limits: dict[str, float] = field(default_factory=dict)
    """Name of each cost of ``_get_costs`` mapped to its largest allowed mean per step."""
    actions: dict[str, Any] | None = None
    """Action terms. None: one target per joint, of the kind of the actuators."""
    commands: dict[str, Any] = field(default_factory=dict)
    """Command terms."""
    terms: dict[str, Any] = field(default_factory=dict)
    """Other fields of the ``TaskCfg``, such as ``observations`` and ``rewards``.

    Managers evaluate them before the methods, which find the results in
    ``self.core.observations``, ``self.core.rewards``, …
    """

    def spaces(self) -> dict[str, Space]:
        """Return the spaces of one environment: observation groups and ``"action"``.

        Raises:
            ValueError: If a field does not describe a space; the error names it.
        """
        spaces = {"policy": self.space("observation_space")}
        if self.state_space not in (None, 0):
            spaces["critic"] = self.space("state_space")
        spaces["action"] = self.space("action_space", 1.0)
        return spaces

    def space(self, name: str, bound: float = math.inf) -> Space:
        """Return the space of a field.

        Args:
            name: Name of the field.
            bound: Bound of a space that is given by its size.

        Raises:
            ValueError: If the field does not describe a space; the error names it.
        """
        return space_from(getattr(self, name), -bound, bound, f"{type(self).__name__}.{name}")


def is_terminated(env: CoreVectorEnv) -> Tensor:
    """Return the environments that ``_get_dones`` terminated, (num_envs,), bool."""
    user: DirectRLEnv = cast("DirectTask", env.task).user
    return user.reset_terminated


def cost_of_get_costs(env: CoreVectorEnv, name: str) -> Tensor:
    """Return the cost ``name`` of ``_get_costs``, (num_envs,)."""
    task = cast("DirectTask", env.task)
    return task.returned_costs[name]


def call_isaac_event(
    func: Callable[..., None], env: CoreVectorEnv, env_ids: Tensor, random: Stream, **params: Any
) -> None:
    """Call an event's function as Isaac Lab does.

    It gets the user's object, and a random stream only if it takes one.
    """
    if "random" in signature(func).parameters:
        params["random"] = random
    user: DirectRLEnv = cast("DirectTask", env.task).user
    func(user, env_ids, **params)


class NoiseSource(NamedTuple):
    """A noise model and what it acts on."""

    cfg: OwnCfg
    """Configuration of the model."""
    stream: str
    """Name of its random stream."""
    space: Space
    """Space of the numbers that it acts on."""


class DirectRLEnv(IsaacEnv):
    """A task; a subclass writes ``_get_observations``, ``_get_rewards`` and ``_get_dones``.

    It may write the other methods with an underscore too. A step, in order:
    ``_pre_physics_step``; physics, with ``_apply_action`` before each of its steps;
    ``_get_dones``; ``_get_rewards``; ``_get_costs``; commands and interval events;
    ``_get_observations``. Ended episodes restart afterwards.

    The terms of :mod:`legged_envs.mdp` take ``self`` as ``env``, or ``self.core`` in a class that
    has an attribute ``robot`` or ``actions``. The results of the methods are checked when the
    environment is first used.

    Args:
        cfg: The configuration.
        render_mode: None or ``"rgb_array"``.
        kwargs: Keyword arguments of :class:`~legged_envs.envs.CoreVectorEnv`.

    Raises:
        ValueError: If a field of ``cfg`` is not valid.
        TypeError: If ``cfg`` is of another kind.
    """

    ADAPTER = DirectTask
    CFG = DirectRLEnvCfg

    def __init__(self, cfg: OwnCfg, render_mode: str | None = None, **kwargs: Any):
        options = {"render_mode": render_mode, "device": cfg.sim.device, **kwargs}
        self.make_core(cfg, cfg.scene.num_envs, **options)
        core = self.core
        task = self.adapter

        self.common_step_counter = 0
        """Control steps since the environment was made."""
        self.reset_terminated = torch.zeros(core.num_envs, dtype=torch.bool, device=core.device)
        """Environments that the last step terminated. Shape: (num_envs,), bool."""
        self.reset_time_outs = torch.zeros_like(self.reset_terminated)
        """Environments that the last step truncated. Shape: (num_envs,), bool."""
        self.reset_buf = torch.zeros_like(self.reset_terminated)
        """Environments with an episode that ended in the last step. Shape: (num_envs,), bool."""
        self.reward_buf = torch.zeros(core.num_envs, device=core.device)
        """Rewards of the last step. Shape: (num_envs,)."""
        self.joint_targets = core.robot.default_joint_pos.repeat(core.num_envs, 1)
        """Targets that the action terms made of the action. Shape: (num_envs, num_joints)."""
        self.state_space = task.batched_space("critic")
        """Space of the states of all environments; None without states."""
        if self.writes("_pre_physics_step"):
            self.actions = task.by_agent(task.zero_action)
        self.noise_models = self._make_noise_models()
        """Kind of noise, ``"observation"`` or ``"action"``, mapped to its model."""
        self.scene = InteractiveScene(cfg.scene, core)
        """Robots, objects and sensors."""
        self.scene.set_up(self._setup_scene)
        for term in core.events.cfg.values():
            resolved(term.params, self.scene)

    @property
    def adapter(self) -> DirectTask:
        """The task that calls the methods."""
        return cast("DirectTask", self.core.task)

    @classmethod
    def _translate(cls, cfg: OwnCfg) -> TaskCfg:
        fields = world(cfg)
        kind = fields["robot"].actuators[0]
        fields["actions"] = cfg.actions or {f"joint_{kind}": ACTIONS[kind]()}
        fields["commands"] = cfg.commands
        fields["events"] = cls._events(cfg)
        fields["terminations"] = {"terminated": TerminationTermCfg(is_terminated)}
        fields["costs"] = {}
        for name, limit in cfg.cost_limits.items():
            fields["costs"][name] = CostTermCfg(cost_of_get_costs, limit, {"name": name})
        return TaskCfg(**{**fields, **cfg.terms})

    @staticmethod
    def _events(cfg: OwnCfg) -> dict[str, EventTermCfg]:
        terms = cfg.events or {}
        if not isinstance(terms, dict):
            terms = vars(terms)
        events = {}
        for name, term in terms.items():
            if term is None:
                continue
            # Only terms in Isaac Lab's words have this field.
            if hasattr(term, "interval_range_s"):
                term = EventTermCfg(
                    func=partial(call_isaac_event, term.func),
                    mode=term.mode,
                    interval_s=term.interval_range_s,
                    params=term.params,
                    purpose=getattr(term, "purpose", None),
                )
            events[name] = term
        return events

    def _make_noise_models(self) -> dict[str, Any]:
        models = {}
        for kind, source in self._noise_sources().items():
            if not isinstance(source.space, gym.spaces.Box) or len(source.space.shape) != 1:
                raise ValueError(
                    f"{type(self.cfg).__name__}.{kind}_noise_model needs a space of one "
                    f"dimension, got {source.space}"
                )
            stream = self.core.random.stream(source.stream)
            models[kind] = source.cfg.class_type(source.cfg, stream, source.space.shape[0])
        return models

    def _noise_sources(self) -> dict[str, NoiseSource]:
        """Return the noise models of the configuration by what they act on."""
        task = self.adapter
        sources = {}
        if self.cfg.observation_noise_model is not None:
            sources["observation"] = NoiseSource(
                self.cfg.observation_noise_model, "observation_noise/policy", task.groups["policy"]
            )
        if self.cfg.action_noise_model is not None:
            sources["action"] = NoiseSource(
                self.cfg.action_noise_model, "action_noise", task.action_space
            )
        return sources

    def noisy(self, kind: str, rows: Tree, env_ids: Tensor | None = None) -> Tree:
        """Return rows with the noise of a model, if there is one.

        Args:
            kind: ``"observation"`` or ``"action"``.
            rows: A row for each of ``env_ids``, or of all environments.
            env_ids: Environments of the rows, shape (n,); None for all.
        """
        if kind not in self.noise_models:
            return rows
        return self.noise_models[kind](rows, env_ids)

    def check_methods(self) -> None:
        task = self.adapter
        name = type(self).__name__
        if bool(self.cfg.cost_limits) != self.writes("_get_costs"):
            raise TypeError(
                f"{name}._get_costs returns the costs that "
                f"{type(self.cfg).__name__}.cost_limits names: write both, or neither"
            )
        if not task.moves_joints and not self.writes("_apply_action"):
            raise TypeError(
                f"{name}._apply_action is not written, and actions of {task.action_space} are not "
                f"targets of {self.core.actions.size} joints: write it"
            )

    def _setup_scene(self) -> None:
        """Make robots and sensors from their configurations, and put them into ``self.scene``."""

    def _pre_physics_step(self, actions: Action) -> None:
        """Receive the actions: clipped, with noise, in the structure of their space."""

    def _apply_action(self) -> None:
        """Set the joint targets, before every physics step.

        By default the targets of ``cfg.actions`` hold for the whole control step.
        """
        self.core.sim.set_joint_targets(self.joint_targets)

    @abstractmethod
    def _get_observations(self) -> dict[str, Tree]:
        """Return the group ``"policy"`` and, with ``cfg.state_space``, ``"critic"``.

        All tensors start with ``num_envs``.
        """

    def _get_states(self) -> Tree:
        """Return the group ``"critic"``.

        If this is written, ``_get_observations`` returns only ``"policy"``.
        """

    @abstractmethod
    def _get_rewards(self) -> Tree:
        """Return the rewards, (num_envs,), float32."""

    @abstractmethod
    def _get_dones(self) -> Tree:
        """Return the environments that are terminated and truncated, (num_envs,), bool each."""

    def _get_costs(self) -> dict[str, Tensor]:
        """Return a cost for each name of ``cfg.cost_limits``, at least 0, (num_envs,), float32."""
        return {}

    def _reset_idx(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids`` (n,); their robots stand in the default pose.

        By default the events of mode ``"reset"`` happen, and noise models draw their bias.
        """
        self.core.events.reset(env_ids)
        for model in self.noise_models.values():
            model.reset(env_ids)

    def _set_debug_vis_impl(self, debug_vis: bool) -> None:
        """Show or hide what the task draws: change the list ``self.sim.decorations``."""

    def set_debug_vis(self, debug_vis: bool) -> bool:
        """Show or hide what the task draws.

        Returns:
            True if the task draws anything.
        """
        self._set_debug_vis_impl(debug_vis)
        return self.writes("_set_debug_vis_impl")
