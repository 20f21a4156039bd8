"""LeggedGym-Ex's way to write a task: ``LeggedRobot`` with its callbacks, ``_reward_<name>`` methods and buffers."""

import copy
import inspect
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import torch
from torch import Tensor

from legged_envs.envs import LeggedVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.mdp import events
from legged_envs.state import copied
from legged_envs.workflows import legged_robot_terms as terms
from legged_envs.workflows.legged_robot_cfg import BaseConfig, LeggedRobotCfg, LeggedRobotCfgPPO, check_fields
from legged_envs.workflows.legged_robot_core import READ, RobotCore, Simulator
from legged_envs.workflows.task_registry import TaskRegistry, task_registry
from legged_envs.workflows.workflow import Workflow

__all__ = [
    "BaseConfig",
    "BaseTask",
    "LeggedRobot",
    "LeggedRobotCfg",
    "LeggedRobotCfgPPO",
    "TaskRegistry",
    "task_registry",
]


class BaseTask(Workflow):
    """The buffers and the interface of a task: ``cfg.env.num_envs`` environments, or as many as ``make_vec`` asks for.
    ``sim_params`` may hold fields in place of those of ``cfg.sim``. Without ``headless`` a window shows the environment
    ``cfg.viewer.ref_env``."""

    CORE = RobotCore
    _computed: dict[str, Tensor]
    core: Any
    external_command_source_enabled = False

    def __init__(self, cfg: Any, sim_params: dict[str, Any] | None, sim_device: str | int, headless: bool):
        self.headless, self._stepping = headless, False
        self._rows: Tensor | None = None
        device = f"cuda:{sim_device}" if isinstance(sim_device, int) else sim_device
        self._make_core(cfg, cfg.env.num_envs, device=device)
        zeros = partial(torch.zeros, self.num_envs, device=self.device)
        self.num_obs, self.num_privileged_obs = cfg.env.num_observations, cfg.env.num_privileged_obs
        self.num_actions = self.core.actions.size
        self.max_episode_length: float = self.core.max_episode_length or math.inf
        self.obs_buf = torch.zeros(self.num_envs, self.num_obs, device=self.device)
        self.privileged_obs_buf: Tensor | None = None
        if self.num_privileged_obs is not None:
            self.privileged_obs_buf = torch.zeros(self.num_envs, self.num_privileged_obs, device=self.device)
        self.rew_buf, self.episode_length_buf = zeros(), zeros(dtype=torch.long)
        self.reset_buf, self.time_out_buf = zeros(dtype=torch.bool) | True, zeros(dtype=torch.bool)
        self.simulator = Simulator(self.core, cfg)
        # Whoever calls reset_idx asks for a reset, in which the core calls the method of the class.
        self.reset_idx = self._reset_now  # type: ignore[method-assign]

    @classmethod
    def _construct(cls, cfg: Any) -> "BaseTask":
        return cls(cfg, {}, "cpu", True)

    @property
    def context(self) -> Any:
        return self.core

    def reset_idx(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids``."""
        raise NotImplementedError(f"{type(self).__name__} needs a method reset_idx(env_ids)")

    def _reset_now(self, env_ids: Tensor) -> None:
        """Reset ``env_ids``; in a step the autoreset does that after it, when the last observation has been taken."""
        if not self._stepping and len(env_ids):
            mask = torch.zeros_like(self.reset_buf).index_fill(0, torch.as_tensor(env_ids), True)
            self.stack.reset(options={"reset_mask": mask} if self.core._begun else None)

    def reset(self, seed: int | None = None) -> tuple[Tensor, Tensor | None]:
        """Reset all environments."""
        self.stack.reset(seed=seed)
        return self.get_observations()

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor | None, Tensor, Tensor, dict[str, Any]]:
        """Observation, privileged observation or None, reward, whose episode ended, and ``extras``: statistics of those
        episodes under ``"episode"``, who ran out of time under ``"time_outs"``, and what ``info`` of the core has."""
        self.extras = {}
        observation, reward, terminated, truncated, info = cast(Any, self.stack.step(actions))
        self.reset_buf, self.time_out_buf = terminated | truncated, truncated
        logged = {"episode": info.pop("log")} if "log" in info else {}
        self.extras |= info | logged | ({"time_outs": truncated} if self.cfg.env.send_timeouts else {})
        if not self.headless:
            self.sim.view(self.cfg.viewer.ref_env)
        return observation["policy"], observation.get("critic"), reward, self.reset_buf, self.extras

    def get_observations(self) -> tuple[Tensor, Tensor | None]:
        return self.obs_buf, self.privileged_obs_buf

    def get_privileged_observations(self) -> Tensor | None:
        return self.privileged_obs_buf

    def _check_buffer(self, method: str, name: str, *expected: Any) -> None:
        value, shape = getattr(self, name), (self.num_envs, *expected[:1])
        if not isinstance(value, Tensor) or value.shape != shape:
            wrong = f"{type(self).__name__}.{method} must leave {name} with shape {shape}{''.join(expected[1:])}"
            raise ValueError(f"{wrong}, got {tuple(value.shape) if isinstance(value, Tensor) else repr(value)}")


def _put_rows(now: Any, before: Any, rows: Tensor) -> None:
    """Take back the ``rows`` of what has rows, also in dicts and lists."""
    for key, old in before.items() if isinstance(before, dict) else enumerate(before):
        if isinstance(old, (dict, list, deque)) and type(now[key]) is type(old):
            _put_rows(now[key], old, rows)
        elif isinstance(old, Tensor) and old.shape[:1] == rows.shape and old.shape == now[key].shape:
            now[key][rows] = old[rows]


class LeggedRobot(BaseTask):
    """The base of legged robots: methods that a subclass does not override run as recordings of the terms in
    :mod:`legged_envs.mdp`. Commands and pushes advance before terminations and rewards."""

    def __init__(self, cfg: Any, sim_params: dict[str, Any] | None, sim_device: str | int, headless: bool):
        check_fields(cfg, terms.mentioned(type(self)))
        self.cfg = cfg = copy.deepcopy(cfg)
        vars(cfg.sim).update(sim_params or {})
        self._parse_cfg(cfg)
        super().__init__(cfg, sim_params, sim_device, headless)
        self._init_buffers()
        self._prepare_reward_function()

    @classmethod
    def _translate(cls, cfg: Any) -> TaskCfg:
        check_fields(cfg, terms.mentioned(cls))
        return terms.task_of(cls, cfg)

    @classmethod
    def _overrides(cls, method: str) -> bool:
        """Whether a subclass has a method of its own."""
        return getattr(cls, method) is not getattr(LeggedRobot, method, None)

    def _parse_cfg(self, cfg: Any) -> None:
        self.dt = cfg.sim.dt * cfg.control.decimation
        self.debug, self.obs_scales = cfg.env.debug, cfg.normalization.obs_scales
        self.command_ranges = {name: list(span) for name, span in vars(cfg.commands.ranges).items()}
        self._ranges = copy.deepcopy(self.command_ranges)
        scales = {name: scale * self.dt for name, scale in vars(cfg.rewards.scales).items() if scale != 0.0}
        self.reward_scales = MappingProxyType(scales)  # changing it would not change the recorded sum
        self.max_episode_length_s, rand = cfg.env.episode_length_s, cfg.domain_rand
        means = (sum(getattr(rand, f"{name}_range")) / 2.0 for name in ("friction", "kp", "kd"))
        self.friction_value_offset, self.kp_scale_offset, self.kd_scale_offset = means

    def _init_buffers(self) -> None:
        vector, scales = partial(torch.tensor, dtype=torch.float32, device=self.device), self.obs_scales
        self.common_step_counter, self.add_noise = 0, self.cfg.noise.add_noise
        self.commands_scale = vector((scales.lin_vel, scales.lin_vel, scales.ang_vel))
        self.gravity_vec, self.forward_vec = (vector([v]).repeat(self.num_envs, 1) for v in ((0, 0, -1), (1, 0, 0)))
        self.fail_buf, self._failing, self._own_failing = (torch.zeros_like(self.episode_length_buf) for _ in range(3))
        self.feet_air_time = torch.zeros_like(self.robot.foot_air_time)
        self.last_contacts = torch.zeros_like(self.robot.foot_contact)
        takes_cfg = inspect.signature(self._get_noise_scale_vec).parameters
        self.noise_scale_vec = self._get_noise_scale_vec(*[self.cfg] * len(takes_cfg))

    def _prepare_reward_function(self) -> None:
        """Make the sums of each reward over the episodes."""
        self.reward_names = [name for name in self.reward_scales if name != "termination"]
        self.reward_functions = [getattr(self, f"_reward_{name}") for name in self.reward_names]
        self.episode_sums = {name: torch.zeros_like(self.rew_buf) for name in self.reward_scales}

    commands = property(lambda self: self.core.commands["velocity"])
    """(vx m/s, vy m/s, ωz rad/s, heading rad), which may be written to. Shape: (num_envs, num_commands)."""
    actions = property(lambda self: self.core.actions.current)
    last_actions = property(lambda self: self.core.actions.previous)
    last_last_actions = llast_actions = property(lambda self: self.core.actions.before_previous)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.simulator, name) if name in READ or name == "dof_pos_limits" else super().__getattr__(name)

    def _pre_sim_step(self, actions: Tensor) -> Tensor:
        """Clip the actions; what is returned acts, and is ``actions`` from then on. (num_envs, num_actions)."""
        limit = self.cfg.normalization.clip_actions
        return actions.clamp(-limit, limit)

    def post_physics_step(self) -> None:
        """Count, read the robots, call the callback, check terminations, compute rewards and observations. Episodes
        that ended are reset next, by ``reset_idx`` and ``compute_observations``, when this observation is kept."""
        self.episode_length_buf += 1
        self.common_step_counter += 1
        self.simulator.post_physics_step()
        self._post_physics_step_callback()
        self.check_termination()
        self.compute_reward()
        self.simulator.update_sensors()
        self.compute_observations()
        if self.debug:
            self._draw_debug_vis()

    def _post_physics_step_callback(self) -> None:
        """Resample commands, turn to headings and push robots that are due."""
        LeggedVectorEnv._advance(self.core)

    def check_termination(self) -> None:
        """Set ``reset_buf`` and ``time_out_buf``. ``fail_buf`` counts for how many steps in succession an environment
        has failed; what a subclass adds to it adds up as long as it does so on each step."""
        own = self.fail_buf - self._failing
        self._own_failing = own * (own > self._own_failing)
        self.core.programs["terminations"]()
        self._failing = self.core.terminations.held_steps.amax(1).long()
        self.fail_buf = self._failing + self._own_failing
        self.time_out_buf = self.episode_length_buf >= self.max_episode_length
        self.reset_buf = self.core.terminations.terminated | self.time_out_buf

    def compute_reward(self) -> None:
        """Set ``rew_buf`` to Σ scale · dt · ``_reward_<name>()``."""
        self.core.commands.terms["velocity"].take_in()
        self.core.terminated()
        self.core.programs["rewards"]()
        self.rew_buf = self.core.rewards.total

    def compute_observations(self) -> None:
        """Set ``obs_buf`` and, with ``num_privileged_obs``, ``privileged_obs_buf``."""
        core, rows = self.core, self._rows
        core.commands.terms["velocity"].take_in()
        new = LeggedVectorEnv._observe(core, rows)
        if self.add_noise and self._overrides("_get_noise_scale_vec"):
            stream, policy = core.random.stream("observation_noise/policy"), new["policy"]
            new["policy"] = policy + stream.uniform(-1.0, 1.0, policy.shape[1], rows) * self.noise_scale_vec
        if rows is not None:
            new = {name: self._computed[name].index_copy(0, rows, value) for name, value in new.items()}
        self._computed, self.obs_buf = new, new["policy"]
        self.privileged_obs_buf = new.get("critic", self.privileged_obs_buf)

    def _observe_rows(self, env_ids: Tensor) -> None:
        """``compute_observations`` that changes nothing but ``env_ids``, whose episodes begin."""
        own = self._overrides("compute_observations")
        before, self._rows = copied(self._stateful()) if own else {}, env_ids
        try:
            self.compute_observations()
        finally:
            self._rows = None
        _put_rows(vars(self), before, torch.ones_like(self.reset_buf).index_fill(0, env_ids, False))

    def reset_idx(self, env_ids: Tensor) -> None:
        """Update curricula, draw commands, place and randomise the robots, clear buffers, log into ``extras``."""
        core, cfg = self.core, self.cfg
        if cfg.terrain.curriculum:
            self._update_terrain_curriculum(env_ids)
        if cfg.commands.curriculum and self.common_step_counter % self.max_episode_length == 0:
            self._update_command_curriculum(env_ids)
        core.commands.reset(env_ids)
        self._reset_dofs(env_ids)
        self._reset_root_states(env_ids)
        self.simulator.reset_idx(env_ids)
        for buffer in (self.episode_length_buf, self.fail_buf, self.feet_air_time, self.last_contacts):
            buffer[env_ids] = 0
        sums = core.rewards.episode_sums[env_ids].mean(0) / self.max_episode_length_s
        self.extras["episode"] = {f"rew_{name}": value for name, value in zip(core.rewards.names, sums, strict=True)}
        if cfg.commands.curriculum:
            self.extras["episode"]["max_command_x"] = self.command_ranges["lin_vel_x"][1]

    def _resample_commands(self, env_ids: Tensor) -> None:
        """Draw from ``command_ranges``."""
        command = self.core.commands.terms["velocity"]
        if self.command_ranges != self._ranges:
            command.set_ranges(self.command_ranges)
            self._ranges = copy.deepcopy(self.command_ranges)
        if len(env_ids):
            command.draw(env_ids)

    def _reset_dofs(self, env_ids: Tensor) -> None:
        stream, span = self.random.stream("event/joints"), self.cfg.init_state.dof_pos_random_scale
        events.reset_joints(self.core, env_ids, stream, span)

    def _reset_root_states(self, env_ids: Tensor) -> None:
        cfg, stream, standing = self.cfg.init_state, self.random.stream("event/root"), self.core.cfg.robot.base_height
        yaw, height = cfg.yaw_random_scale, cfg.pos[2] - standing if cfg.pos else 0.0
        events.reset_root(self.core, env_ids, stream, (-yaw, yaw), (height, height), cfg.velocity_random_scale)

    def _update_terrain_curriculum(self, env_ids: Tensor) -> None:
        """Called with ``cfg.terrain.curriculum``; the ground is a plane."""

    def _update_command_curriculum(self, env_ids: Tensor) -> None:
        """Widen the range of forward commands by 0.5 m/s when those of ``env_ids`` were tracked well."""
        name, cfg = "tracking_lin_vel", self.cfg.commands
        mean = self.episode_sums[name][env_ids].mean() / self.max_episode_length
        if mean > cfg.curriculum_threshold * self.reward_scales[name]:
            low, high, limit = *self.command_ranges["lin_vel_x"], cfg.max_curriculum
            self.command_ranges["lin_vel_x"] = [max(low - 0.5, -limit), min(high + 0.5, limit)]

    def _get_noise_scale_vec(self, cfg: Any = None) -> Tensor:
        """Half-widths of the noise of each element of ``obs_buf``, scaled as that is. Shape: (num_obs,)."""
        parts = []
        for term in self.core.cfg.observations["policy"].terms.values():
            row = torch.full_like(term.func(self.core)[0], term.noise)
            parts.append(row * torch.tensor(term.scale, device=self.device))
        return torch.cat(parts) * self.cfg.noise.add_noise

    def _get_costs(self) -> dict[str, Tensor]:
        """Cost terms beside the built-in ones by name, (num_envs,) each, as in ``cfg.costs.limits``."""
        return {}

    def _draw_debug_vis(self) -> None:
        """Called after each step with ``cfg.env.debug``."""

    def set_viewer_camera(self, pos: Any, lookat: Any) -> None:
        """Where the camera of pictures and windows is, and where it looks, m in the world frame."""
        self.core.cfg.viewer.origin_type = "world"
        self.core.set_viewer(tuple(map(float, pos)), tuple(map(float, lookat)))


def _built_in(name: str) -> Callable[[LeggedRobot], Tensor]:
    def reward(self: LeggedRobot) -> Tensor:
        return terms.REWARDS[name](self.core, **terms.parameters_of(self.cfg, name))

    reward.__name__, reward.__doc__ = f"_reward_{name}", terms.REWARDS[name].__doc__
    return reward


for _name in terms.REWARDS:
    setattr(LeggedRobot, f"_reward_{_name}", _built_in(_name))
