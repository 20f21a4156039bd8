"""OmniIsaacGymEnvs' way to write a task: methods that fill buffers."""

import math
from dataclasses import replace
from typing import Any, cast

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs.checks import whole_number
from legged_envs.compat.adapter import AdapterCfg
from legged_envs.compat.isaac_lab.direct import ACTIONS
from legged_envs.compat.omni_isaac_gym.sim_config import TASK_FIELDS, SimConfig
from legged_envs.compat.omni_isaac_gym.task import OmniIsaacTask
from legged_envs.compat.omni_isaac_gym.vec_env import VecEnvBase
from legged_envs.compat.omni_isaac_gym.world import World
from legged_envs.compat.user_task import UserTask
from legged_envs.envs.cfg import TaskCfg
from legged_envs.robots import GO2, RobotCfg
from legged_envs.sim import SimCfg


class RLTask(UserTask):
    """A task with methods that are called in every control step.

    A step, in order: ``pre_physics_step``; physics; ``post_physics_step``, which calls
    ``get_observations``, ``get_states``, ``calculate_metrics``, ``calculate_costs``, ``is_done``
    and ``get_extras``.

    A subclass's constructor takes (name, sim_config, env, offset=None), sets
    ``_num_observations`` and ``_num_actions``, and calls ``RLTask.__init__(self, name, env)``. The
    configuration is the attribute ``_sim_config`` if the subclass sets it, otherwise the
    :class:`SimConfig` or dict among the arguments of its constructor.

    Episodes start with ``reset_idx(env_ids)``: one step after they were flagged where
    :class:`VecEnvBase` steps, as the autoreset mode defines in Gymnasium. Views are made in
    ``set_up_scene`` and show the robots from ``scene.add(view)`` on.

    Args:
        name: Name of the task.
        env: What steps the task.
        offset: This setting has no effect.

    Raises:
        ValueError: If the configuration is not valid.
    """

    ADAPTER = OmniIsaacTask

    _sim_config: Any

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        task = super().__new__(cls)
        task._sim_config = None
        # A subclass may call RLTask.__init__(self, name, env) without the configuration that its
        # constructor was given, as in OmniIsaacGymEnvs' examples.
        for given in (*arguments, *named.values()):
            if task._sim_config is None and isinstance(given, (SimConfig, dict)):
                task._sim_config = given
        return task

    def __init__(self, name: str, env: VecEnvBase, offset: Any = None):
        if not isinstance(self._sim_config, SimConfig):
            self._sim_config = SimConfig(self._sim_config)
        sim_config = self._sim_config
        config = sim_config.config
        settings = sim_config.task_config["env"]

        # Tasks assign both before this method or leave them to it, as in OmniIsaacGymEnvs.
        self._cfg: dict[str, Any] = config
        self._task_cfg: dict[str, Any] = sim_config.task_config

        self.name = name
        """Name of the task."""
        self._env = env
        self._offset = offset

        self.rl_device = config.get("rl_device", config["sim_device"])
        """Device of what rl_games gets."""
        self.cost_limits_by_name: dict[str, float] = settings.get("costLimits", {})
        """Largest allowed mean per step of each cost that ``calculate_costs`` adds."""
        self.clip_obs = settings.get("clipObservations", math.inf)
        """Bound of the observations."""
        self.clip_actions = settings.get("clipActions", math.inf)
        """Bound of the actions."""
        self.num_observations = self._size("_num_observations", None, least=1)
        """Number of elements of an observation."""
        self.num_actions = self._size("_num_actions", None, least=1)
        """Number of elements of an action."""
        self.num_states = self._size("_num_states", 0, least=0)
        """Number of elements of the critic's observation; 0 without one."""
        self._num_observations = self.num_observations
        self._num_actions = self.num_actions
        self._num_states = self.num_states
        self._make_spaces()
        own = vars(self)
        num_envs = own.get("_num_envs", settings.get("numEnvs", 1))
        self.make_core(sim_config, num_envs, device=config["sim_device"])
        # Before wrappers: they read the limit when they are made.
        self._set_time_limit()
        self._num_envs = self.core.num_envs
        self._device = self.core.device

        self.world = World(self.core)
        """The simulation, to which views are added."""
        # Methods ask `self._env._world.is_playing()`, also in the trial that finds their mistakes.
        if isinstance(env, VecEnvBase):
            env._task = self
            env._world = self.world
        self._make_buffers()
        # Whoever calls reset_idx in a step asks for a reset, which the adapter does afterwards: it
        # calls the method of the class.
        self.reset_idx = self._reset_outside_of_steps  # type: ignore[method-assign]

    def _size(self, name: str, default: int | None, least: int) -> int:
        where = f"{type(self).__name__}: self.{name}, set before RLTask.__init__,"
        return whole_number(where, vars(self).get(name, default), least)

    def _make_spaces(self) -> None:
        # A subclass may set the spaces, also as attributes of the class.
        if not hasattr(self, "observation_space"):
            shape = (self.num_observations,)
            self.observation_space = gym.spaces.Box(-self.clip_obs, self.clip_obs, shape)
        if not hasattr(self, "action_space"):
            self.action_space = gym.spaces.Box(-1.0, 1.0, (self.num_actions,))
        if not hasattr(self, "state_space"):
            shape = (self.num_states,)
            self.state_space = gym.spaces.Box(-self.clip_obs, self.clip_obs, shape)

    def _set_time_limit(self) -> None:
        """Let ``_max_episode_length`` be the time limit if the configuration has none."""
        own = vars(self)
        steps = own.get("_max_episode_length", own.get("max_episode_length"))
        core = self.core
        if steps is not None and math.isinf(core.cfg.episode_length_s):
            core.set_time_limit(steps * core.cfg.sim.step_dt)

    def _make_buffers(self) -> None:
        zeros = torch.zeros(self._num_envs, device=self._device)
        num_costs = len(self.core.cfg.costs) + len(self.cost_limits_by_name)

        self.obs_buf = zeros.new_zeros(self._num_envs, self.num_observations)
        """Observations. Shape: (num_envs, num_observations)."""
        self.states_buf = zeros.new_zeros(self._num_envs, self.num_states)
        """Observations of the critic. Shape: (num_envs, num_states)."""
        self.cost_buf = zeros.new_zeros(self._num_envs, num_costs)
        """Costs of the last step. Shape: (num_envs, K)."""
        self.rew_buf = zeros
        """Rewards of the last step. Shape: (num_envs,)."""
        self.progress_buf = torch.zeros_like(zeros, dtype=torch.long)
        """Control steps of the present episodes. Shape: (num_envs,), int64."""
        # All are flagged, so that the first step of a VecEnvBase resets them.
        self.reset_buf = torch.ones_like(zeros, dtype=torch.long)
        """Flags of environments to reset. Shape: (num_envs,), int64."""

    @property
    def control_frequency_inv(self) -> int:
        """Physics steps per control step."""
        return self.core.cfg.sim.decimation

    def _reset_outside_of_steps(self, env_ids: Tensor) -> None:
        task = cast(OmniIsaacTask, self.core.task)
        if not task.is_evaluating:
            type(self).reset_idx(self, env_ids)

    @classmethod
    def task_cfg(cls, cfg: Any) -> AdapterCfg:
        """Translate a :class:`SimConfig`, or a dict for one."""
        return super().task_cfg(cfg if isinstance(cfg, SimConfig) else SimConfig(cfg))

    @classmethod
    def _translate(cls, cfg: SimConfig) -> TaskCfg:
        task = {"robot": GO2, "advance_first": True, **cfg.task_config}
        settings = task["env"]
        for name in ("controlFrequencyInv", "episodeLength"):
            if name in settings:
                whole_number(f"SimConfig: env.{name}", settings[name])
        robot = task["robot"]
        if not isinstance(robot, RobotCfg):
            raise TypeError(f"SimConfig: config['task']['robot'] must be a RobotCfg, got {robot!r}")
        sim = SimCfg(decimation=settings.get("controlFrequencyInv", 1))
        for name in vars(sim):
            if name in task["sim"] and name != "decimation":
                sim = replace(sim, **{name: task["sim"][name]})
        fields = {
            "actions": cls._actions(robot),
            "episode_length_s": settings.get("episodeLength", math.inf) * sim.step_dt,
        }
        for name in TASK_FIELDS:
            if name in task:
                fields[name] = task[name]
        return TaskCfg(sim=sim, **fields)

    @staticmethod
    def _actions(robot: RobotCfg) -> dict[str, Any]:
        """Return an action term for each kind of actuator."""
        joints: dict[str, list[str]] = {}
        for kind, name in zip(robot.actuators, robot.joint_names, strict=True):
            joints.setdefault(kind, []).append(name)
        return {kind: ACTIONS[kind](joints=tuple(names)) for kind, names in joints.items()}

    def construct(self, cfg: Any) -> None:
        # The task reads in its configuration what the environment was made with.
        core = self.core
        cfg.task_config["sim"].update(vars(core.cfg.sim))
        cfg.task_config["env"]["numEnvs"] = core.num_envs
        cfg.task_config["env"]["controlFrequencyInv"] = core.cfg.sim.decimation
        self._sim_config = cfg
        self.__init__(type(self).__name__, cfg, VecEnvBase())  # type: ignore[misc]

    def set_up_scene(self, scene: Any, *cloning: Any, **options: Any) -> None:
        """Set up the scene; called once, before :meth:`post_reset`.

        Ground and copies of the robot exist already. Each copy is in a separate world, regardless
        of the arguments for cloning and collision filters. A subclass adds its views after it has
        called this method.

        Args:
            scene: The scene, :attr:`world`.
            cloning: This setting has no effect.
            options: This setting has no effect.
        """
        self._env_pos = torch.zeros(self._num_envs, 3, device=self._device)

    def post_reset(self) -> None:
        """Called once, when the robots stand in their default pose and the views show them."""

    def pre_physics_step(self, actions: Tensor) -> None:
        """Apply actions by the targets of a view.

        Args:
            actions: Actions clipped to ±``clip_actions``, shape (num_envs, num_actions).
        """
        raise NotImplementedError(
            f"{type(self).__name__} needs a method pre_physics_step(self, actions)"
        )

    def reset_idx(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids`` (n,); their robots stand in the default pose.

        By default these are flagged, for a ``pre_physics_step`` that resets flagged environments.
        """
        self.reset_buf[env_ids] = 1

    def get_observations(self) -> Any:
        """Fill ``obs_buf``; the return value is not used."""
        raise NotImplementedError(
            f"{type(self).__name__} needs a method get_observations(self) that fills obs_buf"
        )

    def calculate_metrics(self) -> None:
        """Fill ``rew_buf``, (num_envs,)."""
        raise NotImplementedError(
            f"{type(self).__name__} needs a method calculate_metrics(self) that fills rew_buf"
        )

    def is_done(self) -> None:
        """Fill ``reset_buf``, (num_envs,): flags of environments with an ended episode."""
        raise NotImplementedError(
            f"{type(self).__name__} needs a method is_done(self) that fills reset_buf"
        )

    def is_timeout(self) -> Tensor:
        """Return which finished episodes are time-outs rather than failures, (num_envs,), bool.

        By default those with ``progress_buf`` ≥ ``_max_episode_length`` − 1, or
        ``max_episode_length`` − 1.
        """
        # The limit of OmniIsaacGymEnvs' own tasks.
        limit = vars(self).get("_max_episode_length", self.max_episode_length) or math.inf
        return self.progress_buf >= limit - 1

    def calculate_costs(self) -> None:
        """Fill ``cost_buf``, at least 0, (num_envs, K).

        First come the cost terms of the configuration, which this method fills in, then the costs
        that ``costLimits`` names.
        """
        self.cost_buf[:, : len(self.core.cfg.costs)] = self.core.costs.values

    def get_states(self) -> Any:
        """Return the observations of an asymmetric critic, (num_envs, num_states)."""
        return self.states_buf

    def get_extras(self) -> None:
        """Write to ``extras``; ``extras["episode"]`` of a ``reset_idx`` joins ``info["log"]``."""

    def reset(self) -> None:
        """Flag every environment for reset."""
        self.reset_buf = torch.ones_like(self.reset_buf)

    def post_physics_step(self) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        """Count the step and evaluate it.

        Returns:
            ``obs_buf``, ``rew_buf``, ``reset_buf`` and ``extras``.
        """
        # OmniIsaacGymEnvs' order.
        self.progress_buf += 1
        self.observe_all()
        self.calculate_metrics()
        self.calculate_costs()
        self.is_done()
        self.get_extras()
        return self.obs_buf, self.rew_buf, self.reset_buf, self.extras

    def observe_all(self) -> None:
        """Call ``get_observations`` and ``get_states``."""
        self.get_observations()
        self.states_buf = self.get_states()
