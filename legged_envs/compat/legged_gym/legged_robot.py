"""LeggedGym-Ex's way to write a task: ``LeggedRobot`` with its callbacks, ``_reward_<name>`` methods and buffers."""

import copy
from functools import partial
from inspect import getmembers, isfunction
from types import MappingProxyType
from typing import Any, cast

import torch
from torch import Tensor

from legged_envs import registration
from legged_envs.compat.adapter import Workflow
from legged_envs.compat.legged_gym.cfg import LeggedRobotCfg, check_fields, task_of
from legged_envs.compat.legged_gym.task import RobotCore, Simulator
from legged_envs.mdp import curricula, events, rewards
from legged_envs.mdp.context import pure
from legged_envs.mdp.scan import lookup_heights

__all__ = ["BaseTask", "LeggedRobot", "LeggedRobotCfg", "TaskRegistry", "task_registry"]
ObsBuf = Action = Reward = EnvIds = Tensor
REWARDS = dict(getmembers(rewards, isfunction))
REWARDS |= {"keep_balance": rewards.alive, "stand_still": rewards.dof_vel_stand_still}
"""The built-in rewards."""
PARAMETERS = {f"tracking_{kind}_vel": {"sigma": "tracking_sigma"} for kind in ("lin", "ang")}
PARAMETERS |= {
    "base_height": {"target": "base_height_target"},
    "torque_limits": {"soft_limit": "soft_torque_limit"},
}
PARAMETERS |= {"dof_pos_limits": {"soft_limit": "soft_dof_pos_limit"}}
"""Parameters of them that are fields of ``cfg.rewards``."""


class BaseTask(Workflow):
    """The buffers and the interface of a task: ``cfg.env.num_envs`` environments, or as many as ``make_vec`` asks for.
    ``sim_params`` may hold fields in place of those of ``cfg.sim``. Without ``headless`` a window shows the environment
    ``cfg.viewer.ref_env``."""

    CORE = RobotCore
    core: Any
    external_command_source_enabled = False
    privileged_obs_buf: Tensor | None = None
    _rows: Tensor | None = None

    def __init__(
        self, cfg: Any, sim_params: dict[str, Any] | None, sim_device: str | int, headless: bool
    ):
        check_fields(cfg)
        cfg = copy.deepcopy(cfg)
        vars(cfg.sim).update(sim_params or {})
        device = f"cuda:{sim_device}" if isinstance(sim_device, int) else sim_device
        self._make_core(cfg, cfg.env.num_envs, device=device)
        cfg.env.num_envs, cfg.env.episode_length_s = (
            self.core.num_envs,
            self.core.max_episode_length_s,
        )
        self.headless, self.simulator = headless, cast(Any, Simulator(self.core))
        zeros = partial(torch.zeros, self.num_envs, device=self.device)
        self.num_obs, self.num_privileged_obs = cfg.env.num_observations, cfg.env.num_privileged_obs
        self.num_actions = self.core.actions.size
        self.obs_buf, self.rew_buf, self.episode_length_buf = (
            zeros(self.num_obs),
            zeros(),
            zeros(dtype=torch.long),
        )
        self.reset_buf, self.time_out_buf = zeros(dtype=torch.bool) | True, zeros(dtype=torch.bool)
        # Whoever calls reset_idx asks for a reset, in which the core calls the method of the class.
        self.reset_idx = self._reset_now
        self._parse_cfg(cfg)
        self._init_buffers()
        self._prepare_reward_function()

    @classmethod
    def _construct(cls, cfg: Any) -> "BaseTask":
        return cls(cfg, {}, "cpu", True)

    context = property(lambda self: self.core)

    def _reset_now(self, env_ids: Tensor) -> None:
        """Reset ``env_ids``; in a step the autoreset does that after it, when the last observation has been taken."""
        if not self.core._fresh and len(env_ids):
            mask = torch.zeros_like(self.reset_buf).index_fill(0, torch.as_tensor(env_ids), True)
            self.stack.reset(options={"reset_mask": mask} if self.core._begun else None)

    def reset(self, seed: int | None = None) -> tuple[Tensor, Tensor | None]:
        """Reset all environments; their observations (num_envs, num_obs), and those of the critic or None."""
        self.stack.reset(seed=seed)
        return self.get_observations()

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor | None, Tensor, Tensor, dict[str, Any]]:
        """Observation (num_envs, num_obs), privileged observation or None, reward (num_envs,), whose episode ended
        (num_envs,), and ``extras``: statistics of those episodes under ``"episode"``, who ran out of time under
        ``"time_outs"``, and what ``info`` of the core has."""
        self.extras = {}
        observation, reward, terminated, truncated, info = cast(Any, self.stack.step(actions))
        self.reset_buf, self.time_out_buf = terminated | truncated, truncated
        logged = {"episode": info.pop("log")} if "log" in info else {}
        self.extras |= (
            info | logged | ({"time_outs": truncated} if self.cfg.env.send_timeouts else {})
        )
        if not self.headless:
            self.sim.view(self.cfg.viewer.ref_env)
        return observation["policy"], observation.get("critic"), reward, self.reset_buf, self.extras

    def get_observations(self) -> tuple[Tensor, Tensor | None]:
        """The observations (num_envs, num_obs), and those of the critic or None, of this moment."""
        return self.obs_buf, self.privileged_obs_buf


class LeggedRobot(BaseTask):
    """The base of legged robots: methods that a subclass does not override run as recordings of the terms in
    :mod:`legged_envs.mdp`. Commands and pushes advance before terminations and rewards."""

    _translate = classmethod(task_of)

    def _parse_cfg(self, cfg: Any) -> None:
        self.dt, self.debug, self.obs_scales = (
            self.step_dt,
            cfg.env.debug,
            cfg.normalization.obs_scales,
        )
        self.command_ranges = {name: list(span) for name, span in vars(cfg.commands.ranges).items()}
        means = (
            sum(getattr(cfg.domain_rand, f"{name}_range")) / 2.0
            for name in ("friction", "kp", "kd")
        )
        self.friction_value_offset, self.kp_scale_offset, self.kd_scale_offset = means

    def _init_buffers(self) -> None:
        self.common_step_counter, self.add_noise, scales = (
            0,
            self.cfg.noise.add_noise,
            self.obs_scales,
        )
        self.commands_scale = torch.tensor(
            (scales.lin_vel, scales.lin_vel, scales.ang_vel), device=self.device
        )
        self.fail_buf, self._last_fail_buf = (
            torch.zeros_like(self.episode_length_buf) for _ in range(2)
        )
        self.feet_air_time = torch.zeros_like(self.robot.foot_air_time)
        self.last_contacts = torch.zeros_like(self.robot.foot_contact)
        self.height_points = self._init_height_points()
        self.num_height_points = self.height_points.shape[1] * self.cfg.terrain.measure_heights
        self.noise_scale_vec = self._get_noise_scale_vec()

    def _prepare_reward_function(self) -> None:
        """Find the method of each scale that is not 0; what a subclass lacks is found out before."""
        scales = {
            name: scale * self.dt
            for name, scale in vars(self.cfg.rewards.scales).items()
            if scale != 0.0
        }
        self.reward_scales = MappingProxyType(
            scales
        )  # changing it would not change the recorded sum
        self.reward_names = [name for name in scales if name != "termination"]

    episode_sums = property(
        lambda self: dict(zip(self.rewards.names, self.rewards.episode_sums.T, strict=True))
    )
    """Σ scale · dt · ``_reward_<name>()`` over the episode by name, which may be written to. (num_envs,) each."""
    commands = property(lambda self: self.core.commands["velocity"])
    """(vx m/s, vy m/s, ωz rad/s, heading rad), which may be written to. Shape: (num_envs, num_commands)."""
    actions = property(lambda self: self.core.actions.current)
    last_actions = property(lambda self: self.core.actions.previous)
    last_last_actions = llast_actions = property(lambda self: self.core.actions.before_previous)
    """The actions that act in this step, and those of one and two steps before, 0 where the episode had none. Shape:
    (num_envs, num_actions)."""

    def _pre_sim_step(self, actions: Tensor) -> Tensor:
        """Clip the actions; what is returned acts, and is ``actions`` from then on. (num_envs, num_actions)."""
        return actions.clamp(
            -self.cfg.normalization.clip_actions, self.cfg.normalization.clip_actions
        )

    def post_physics_step(self) -> None:
        """Count, read the robots, call the callback, check terminations, compute rewards and observations. Episodes
        that ended are reset next, by ``reset_idx`` and ``compute_observations``, when this observation is kept."""
        self.episode_length_buf += 1
        self.common_step_counter += 1
        self.simulator.post_physics_step()
        self._post_physics_step_callback()
        self.check_termination()
        self.compute_reward()
        self.compute_observations()
        if self.debug:
            self._draw_debug_vis()

    def _post_physics_step_callback(self) -> None:
        """Resample commands, turn to headings and push robots that are due."""
        super(RobotCore, self.core)._advance()  # type: ignore[misc]

    def check_termination(self) -> None:
        """Set ``reset_buf`` and ``time_out_buf``. ``fail_buf`` counts the steps in succession in which an environment
        failed, or a subclass added to it; after a step without it begins anew."""
        self.core.programs["terminations"]()
        self._last_fail_buf = self.fail_buf * (self.fail_buf > self._last_fail_buf)
        self.fail_buf = self._last_fail_buf + (self.core.terminations.held_steps > 0).any(1)
        self.time_out_buf = self.core.terminations.time_outs | (
            self.episode_length_buf >= self.max_episode_length
        )
        self.reset_buf = self.core.terminations.terminated | self.time_out_buf

    def compute_reward(self) -> None:
        """Set ``rew_buf`` to Σ scale · dt · ``_reward_<name>()``."""
        self.core.commands.terms["velocity"].take_in()
        self.core.terminated()
        self.core.programs["rewards"]()
        self.rew_buf = self.core.rewards.total

    def compute_observations(self) -> None:
        """Set ``obs_buf`` and, with ``num_privileged_obs``, ``privileged_obs_buf``."""
        sim, scales = self.simulator, self.obs_scales
        parts = [
            sim.base_lin_vel * scales.lin_vel,
            sim.projected_gravity,
            sim.base_ang_vel * scales.ang_vel,
        ]
        parts += [
            self.commands[:, :3] * self.commands_scale,
            (sim.dof_pos - sim.default_dof_pos) * scales.dof_pos,
        ]
        parts += [sim.dof_vel * scales.dof_vel, self.actions]
        below = (sim.base_pos[:, 2:] - 0.5 - self.measured_heights)[:, : self.num_height_points]
        seen = below.clamp(-1.0, 1.0) * scales.height_measurements
        self.obs_buf = torch.cat((*parts, seen), dim=1)
        if self.num_privileged_obs is not None:
            parts += [
                self.last_actions,
                sim._friction_values,
                sim._added_base_mass,
                sim._base_com_bias,
            ]
            self.privileged_obs_buf = torch.cat((*parts, sim._rand_push_vels[:, :2], seen), dim=1)
        if self.add_noise:
            size = self.obs_buf.shape[1]
            self.obs_buf += self._noise(size) * self.noise_scale_vec[:size]

    def _noise(self, size: int) -> Tensor:
        """U(−1, 1) of each environment's own random numbers, 0 where nothing is observed. Shape: (num_envs, size)."""
        draw = self.random.stream("observation_noise/policy").uniform(-1.0, 1.0, size, self._rows)
        return (
            draw
            if self._rows is None
            else draw.new_zeros(self.num_envs, size).index_copy(0, self._rows, draw)
        )

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
        for buffer in (
            self.episode_length_buf,
            self.fail_buf,
            self.feet_air_time,
            self.last_contacts,
        ):
            buffer[env_ids] = 0
        self.extras["episode"] = {"max_command_x": self.command_ranges["lin_vel_x"][1]}
        self.extras["episode"] |= (
            {"terrain_level": self.terrain_levels.float().mean()} if self.custom_origins else {}
        )

    def _resample_commands(self, env_ids: Tensor) -> None:
        """Draw from ``command_ranges``."""
        if len(env_ids):
            self.core.commands.terms["velocity"].draw(env_ids, self.command_ranges)

    def _reset_dofs(self, env_ids: Tensor) -> None:
        span = self.cfg.init_state.dof_pos_random_scale
        events.reset_joints(self.core, env_ids, self.random.stream("event/joints"), span)

    def _reset_root_states(self, env_ids: Tensor) -> None:
        cfg, stream, standing = (
            self.cfg.init_state,
            self.random.stream("event/root"),
            self.core.cfg.robot.base_height,
        )
        yaw, height, away = (
            cfg.yaw_random_scale,
            cfg.pos[2] - standing if cfg.pos else 0.0,
            0.5 * self.custom_origins,
        )
        events.reset_root(
            self.core, env_ids, stream, (-yaw, yaw), (height,) * 2, cfg.velocity_random_scale, away
        )

    def _update_terrain_curriculum(self, env_ids: Tensor) -> None:
        """Move robots a level up that were half a tile away from where they began, down that went less than half of the
        way of their command; nothing on a plane, and where tiles have just been drawn."""
        if self.custom_origins and self.init_done:
            curricula.terrain_levels(
                self.core, env_ids[self.episode_length_buf[env_ids] > 0], "distance", down=0.5
            )

    def _init_height_points(self) -> Tensor:
        """Where heights are measured, ahead and to the left of the base, m, without ``cfg.terrain.measure_heights``
        under it. Shape: (1 or num_envs, points, 3)."""
        cfg = self.cfg.terrain
        lines = (
            (cfg.measured_points_x, cfg.measured_points_y)
            if cfg.measure_heights
            else ((0.0,), (0.0,))
        )
        return torch.cartesian_prod(*map(torch.Tensor, (*lines, (0.0,))))[None].to(self.device)

    def _get_heights(self, env_ids: Tensor | None = None) -> Tensor:
        """Heights of the ground there, m, the lowest of three neighbouring points. Shape: (n, points)."""
        heights = lookup_heights(self.robot, "lowest", *self.height_points.unbind(-1)[:2])[2]
        return heights if env_ids is None else heights[env_ids]

    def _update_command_curriculum(self, env_ids: Tensor) -> None:
        """Widen the range of forward commands by 0.5 m/s when those of ``env_ids`` were tracked well."""
        name, cfg = "tracking_lin_vel", self.cfg.commands
        mean = self.episode_sums[name][env_ids].mean() / self.max_episode_length
        if mean > cfg.curriculum_threshold * self.reward_scales[name]:
            low, high, limit = *self.command_ranges["lin_vel_x"], cfg.max_curriculum
            self.command_ranges["lin_vel_x"] = [max(low - 0.5, -limit), min(high + 0.5, limit)]

    def _get_noise_scale_vec(self) -> Tensor:
        """Half-widths of the noise of each element of ``obs_buf``, scaled as that is. Shape: (num_obs,)."""
        noise, scales = self.cfg.noise.noise_scales, self.obs_scales
        seen = (
            "lin_vel",
            "gravity",
            "ang_vel",
            "commands",
            "dof_pos",
            "dof_vel",
            "actions",
            "height_measurements",
        )
        widths = [getattr(noise, name, 0.0) * getattr(scales, name, 1.0) for name in seen]
        sizes = torch.tensor([3] * 4 + [self.num_actions] * 3 + [self.num_height_points])
        return (
            (torch.tensor(widths) * self.cfg.noise.noise_level)
            .repeat_interleave(sizes)
            .to(self.device)
        )

    def _get_costs(self) -> dict[str, Tensor]:
        """Cost terms beside the built-in ones by name, (num_envs,) each, as in ``cfg.costs.limits``."""
        return {}

    def _draw_debug_vis(self) -> None:
        """Called after each step with ``cfg.env.debug``."""

    def set_viewer_camera(self, pos: Any, lookat: Any) -> None:
        """Where the camera of pictures and windows is, and where it looks, m in the world frame."""
        self.core.set_viewer(tuple(map(float, pos)), tuple(map(float, lookat)))


def _built_in(name: str) -> Any:
    """A method that evaluates the term ``name`` of :mod:`legged_envs.mdp.rewards`."""

    def reward(self: LeggedRobot) -> Tensor:
        cfg, fields = self.cfg.rewards, PARAMETERS.get(name, {})
        params = {parameter: getattr(cfg, field) for parameter, field in fields.items()}
        return REWARDS[name](self.core, **(params | getattr(cfg.params, name, {})))

    return pure(reward)


for _name in REWARDS:
    setattr(LeggedRobot, f"_reward_{_name}", _built_in(_name))


class TaskRegistry(dict[str, tuple[Any, Any, Any]]):
    """Class, configuration and configuration of the training of each task, by LeggedGym-Ex's name of it."""

    def register(self, name: str, task_class: Any, env_cfg: Any, train_cfg: Any = None) -> None:
        """Register a task, also with Gymnasium as ``LeggedGym/<name>-v0``."""
        self[name] = task_class, env_cfg, train_cfg
        registration.register(f"LeggedGym/{name}-v0", task_class, partial(copy.deepcopy, env_cfg))

    def get_cfgs(self, name: str) -> tuple[Any, ...]:
        """Copies of the configurations of environment and training."""
        return copy.deepcopy(self[name][1:])

    def make_env(self, name: str, args: Any = None, env_cfg: Any = None) -> tuple[Any, Any]:
        """The task, reset, and its configuration. ``args`` may have ``num_envs``, ``seed``, ``sim_device``,
        ``headless``."""
        cfg = env_cfg or self.get_cfgs(name)[0]
        cfg.env.num_envs = getattr(args, "num_envs", None) or cfg.env.num_envs
        env = self[name][0](
            cfg, {}, getattr(args, "sim_device", "cpu"), getattr(args, "headless", True)
        )
        env.reset(getattr(args, "seed", None))
        return env, cfg


task_registry = TaskRegistry()
"""The registry that every task is entered in."""
