"""LeggedGym-Ex's ``LeggedRobot``: callbacks, ``_reward_<name>`` methods and buffers."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from legged_envs.compat.legged_gym.base_task import BaseTask
from legged_envs.compat.legged_gym.builtin_rewards import BuiltinRewards
from legged_envs.compat.legged_gym.translation import task_of
from legged_envs.envs.cfg import TaskCfg
from legged_envs.mdp import curricula, events
from legged_envs.mdp.scan import lookup_heights

COMMAND_STEP = 0.5
"""Step by which the command curriculum widens the range of forward velocities, m/s."""
HEIGHT_CLIP = 1.0
"""Bound of the observed heights relative to 0.5 m below the base, m."""
BASE_ABOVE_GROUND = 0.5
"""Height of the base that is observed as 0, m."""


class LeggedRobot(BuiltinRewards, BaseTask):
    """The base of legged robots. A subclass overrides its methods.

    Commands and pushes advance before terminations and rewards are evaluated.
    """

    @classmethod
    def _translate(cls, cfg: Any) -> TaskCfg:
        return task_of(cls, cfg)

    def _parse_cfg(self, cfg: Any) -> None:
        self.dt = self.core.step_dt
        """Duration of a control step, s."""
        self.debug = cfg.env.debug
        """True if ``_draw_debug_vis`` is called after each step."""
        self.obs_scales = cfg.normalization.obs_scales
        """Factors of the observed quantities."""
        self.command_ranges: dict[str, list[float]] = {}
        """[low, high] of each command, which curricula change."""
        for name, span in vars(cfg.commands.ranges).items():
            # Lists, not the tuples of the configuration: LeggedGym-Ex's curricula write into them.
            self.command_ranges[name] = list(span)
        self.friction_value_offset = sum(cfg.domain_rand.friction_range) / 2.0
        """Middle of the range of friction coefficients."""
        self.kp_scale_offset = sum(cfg.domain_rand.kp_range) / 2.0
        """Middle of the range of relative position gains."""
        self.kd_scale_offset = sum(cfg.domain_rand.kd_range) / 2.0
        """Middle of the range of relative velocity gains."""

    def _init_buffers(self) -> None:
        core = self.core
        scales = self.obs_scales

        self.common_step_counter = 0
        """Control steps since the task was made."""
        self.add_noise = self.cfg.noise.add_noise
        """True if observations are noisy."""
        command_scales = (scales.lin_vel, scales.lin_vel, scales.ang_vel)

        self.commands_scale = torch.tensor(command_scales, device=core.device)
        """Factors of the observed commands. Shape: (3,)."""
        self.fail_buf = torch.zeros_like(self.episode_length_buf)
        """Consecutive steps in which an environment failed. Shape: (num_envs,), int64."""
        # Time limits that had passed when the command curriculum was last updated.
        self._curriculum_period = -1
        # Counts before this step and before what a subclass adds: see check_termination.
        self._last_fail_buf = torch.zeros_like(self.episode_length_buf)

        self.feet_air_time = torch.zeros_like(core.robot.foot_air_time)
        """For a subclass: times for which the feet are in the air, s. Shape: (num_envs, feet)."""
        self.last_contacts = torch.zeros_like(core.robot.foot_contact)
        """For a subclass: contacts of the last step. Shape: (num_envs, feet), bool."""
        self.height_points = self._init_height_points()
        """Points where heights are measured. Shape: (1 or num_envs, points, 3)."""
        is_measured = self.cfg.terrain.measure_heights

        self.num_height_points = self.height_points.shape[1] if is_measured else 0
        """Number of observed heights."""
        # Last: a subclass's method may read any of the buffers above.
        self.noise_scale_vec = self._get_noise_scale_vec()
        """Half-widths of the observation noise. Shape: (num_obs,)."""

    def _prepare_reward_function(self) -> None:
        scales = {}
        for name, scale in vars(self.cfg.rewards.scales).items():
            if scale != 0.0:
                scales[name] = scale * self.dt
        # Read-only: the reward manager has separate weights, which a change would not reach.
        self.reward_scales = MappingProxyType(scales)
        """Name of each reward mapped to its scale per step."""
        # LeggedGym-Ex adds `termination` apart from the others, after the floor.
        self.reward_names = [name for name in scales if name != "termination"]
        """Names of the rewards."""

    @property
    def reward_functions(self) -> list[Callable[[], Tensor]]:
        """Functions of the rewards in ``reward_names``, in the same order.

        Each returns the reward without its scale. Shape: (num_envs,).
        """
        return [self._reward_method(name) for name in self.reward_names]

    @property
    def episode_sums(self) -> dict[str, Tensor]:
        """Σ scale · dt · ``_reward_<name>()`` over the episode, (num_envs,) each, by name.

        The tensors may be written to.
        """
        rewards = self.core.rewards
        return dict(zip(rewards.names, rewards.episode_sums.T, strict=True))

    @property
    def commands(self) -> Tensor:
        """Commands: vx m/s, vy m/s, ωz rad/s, heading rad. Shape: (num_envs, num_commands).

        The tensor may be written to.
        """
        return self.core.commands["velocity"]

    # These are copies. Tasks of legged_gym update the history by `last_actions[:] = actions`. The
    # action manager already updates it, and such a write must not change the manager's buffers.
    @property
    def actions(self) -> Tensor:
        """Copy of the actions of this step. Shape: (num_envs, num_actions)."""
        return self.core.actions.current.clone()

    @property
    def last_actions(self) -> Tensor:
        """Copy of the actions of one step ago, 0 where the episode had none.

        Shape: (num_envs, num_actions).
        """
        return self.core.actions.previous.clone()

    @property
    def last_last_actions(self) -> Tensor:
        """Copy of the actions of two steps ago, 0 where the episode had none.

        Shape: (num_envs, num_actions).
        """
        return self.core.actions.before_previous.clone()

    @property
    def llast_actions(self) -> Tensor:
        """Another name of :attr:`last_last_actions`. Shape: (num_envs, num_actions)."""
        return self.last_last_actions

    def _pre_sim_step(self, actions: Tensor) -> Tensor:
        """Clip the actions.

        Args:
            actions: Actions, shape (num_envs, num_actions).

        Returns:
            The actions that act, and that ``actions`` is from then on.
        """
        limit = self.cfg.normalization.clip_actions
        return actions.clamp(-limit, limit)

    def post_physics_step(self) -> None:
        """Evaluate a step.

        Episodes that ended are reset afterwards, by ``reset_idx`` and ``compute_observations``,
        when the observation of this step has been kept.
        """
        self.episode_length_buf += 1
        self.common_step_counter += 1
        self.simulator.post_physics_step()
        # New commands come before the rewards, so that a step is rewarded for the command that its
        # observation shows.
        self._post_physics_step_callback()
        # Rewards may read which episodes end.
        self.check_termination()
        self.compute_reward()
        self.compute_observations()
        if self.debug:
            self._draw_debug_vis()

    def _post_physics_step_callback(self) -> None:
        """Draw commands, turn to headings and push robots where it is time."""
        self.adapter.advance_commands_and_events()

    def check_termination(self) -> None:
        """Set ``reset_buf`` and ``time_out_buf``.

        ``fail_buf`` counts the consecutive steps in which an environment failed, or to which a
        subclass added; a step without a failure starts it again at 0.
        """
        terminations = self.core.terminations
        terminations.compute()
        # A count that did not rise in the last step starts again. The comparison is with the count
        # before that step, so that also what a subclass added after this method is a rise.
        self._last_fail_buf = self.fail_buf * (self.fail_buf > self._last_fail_buf)
        self.fail_buf = self._last_fail_buf + (terminations.held_steps > 0).any(1)
        # >= and not >, as in LeggedGym-Ex: an episode has T steps, as TimeLimit counts them.
        is_late = self.episode_length_buf >= self.core.max_episode_length
        self.time_out_buf = terminations.time_outs | is_late
        self.reset_buf = terminations.terminated | self.time_out_buf

    def compute_reward(self) -> None:
        """Set ``rew_buf`` to Σ scale · dt · ``_reward_<name>()``."""
        # Methods may have written commands and flags; the terms read them from their managers.
        self.adapter.apply_written_command()
        self.adapter.apply_terminations()
        self.core.rewards.compute()
        self.rew_buf = self.core.rewards.total

    def compute_observations(self) -> None:
        """Set ``obs_buf`` and, with ``num_privileged_obs``, ``privileged_obs_buf``."""
        sim = self.simulator
        scales = self.obs_scales
        # The order of LeggedGym-Ex's document; heights are the last part.
        parts = [
            sim.base_lin_vel * scales.lin_vel,
            sim.projected_gravity,
            sim.base_ang_vel * scales.ang_vel,
            self.commands[:, :3] * self.commands_scale,
            (sim.dof_pos - sim.default_dof_pos) * scales.dof_pos,
            sim.dof_vel * scales.dof_vel,
            self.actions,
        ]
        heights = sim.base_pos[:, 2:] - BASE_ABOVE_GROUND - self.measured_heights
        # Without measure_heights there is one point, and none of it is observed.
        heights = heights[:, : self.num_height_points].clamp(-HEIGHT_CLIP, HEIGHT_CLIP)
        heights = heights * scales.height_measurements
        self.obs_buf = torch.cat((*parts, heights), dim=1)
        if self.num_privileged_obs is not None:
            parts += [
                self.last_actions,
                sim._friction_values,
                sim._added_base_mass,
                sim._base_com_bias,
                sim._rand_push_vels[:, :2],
            ]
            self.privileged_obs_buf = torch.cat((*parts, heights), dim=1)
        # The critic's observation has no noise. A subclass may have cut obs_buf.
        if self.add_noise:
            size = self.obs_buf.shape[1]
            self.obs_buf += self._noise(size) * self.noise_scale_vec[:size]

    def _noise(self, size: int) -> Tensor:
        """Return U(−1, 1) of each environment's random stream, (num_envs, size).

        When episodes start, only their rows are drawn; the others are 0.
        """
        # The name of the manager form's stream, so that both forms draw the same numbers.
        stream = self.core.random.stream("observation_noise/policy")
        drawn = stream.uniform(-1.0, 1.0, size, self._rows)
        if self._rows is None:
            return drawn
        noise = drawn.new_zeros(self.core.num_envs, size)
        return noise.index_copy(0, self._rows, drawn)

    def reset_idx(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids`` (n,).

        Updates curricula, draws commands, places and randomizes the robots, clears buffers and
        logs into ``extras``.
        """
        cfg = self.cfg
        # Curricula read what the ended episodes did, so they come before buffers are cleared; and
        # before the poses, which depend on the levels, and the commands, which depend on the
        # ranges.
        if cfg.terrain.curriculum:
            self._update_terrain_curriculum(env_ids)
        # All robots share the ranges, so these change at most once in the time of an episode.
        if cfg.commands.curriculum:
            period = self.common_step_counter // self.core.max_episode_length
            if period != self._curriculum_period:
                self._curriculum_period = period
                self._update_command_curriculum(env_ids)
        self.core.commands.reset(env_ids)
        self._reset_dofs(env_ids)
        self._reset_root_states(env_ids)
        self.simulator.reset_idx(env_ids)
        self.episode_length_buf[env_ids] = 0
        self.fail_buf[env_ids] = 0
        self.feet_air_time[env_ids] = 0
        self.last_contacts[env_ids] = 0
        log = {"max_command_x": self.command_ranges["lin_vel_x"][1]}
        if self.custom_origins:
            log["terrain_level"] = self.terrain_levels.float().mean()
        self.extras["episode"] = log

    def _resample_commands(self, env_ids: Tensor) -> None:
        """Draw commands of ``env_ids`` (n,) from ``command_ranges``."""
        if len(env_ids):
            self.core.commands.terms["velocity"].draw(env_ids, self.command_ranges)

    def _reset_dofs(self, env_ids: Tensor) -> None:
        """Place the joints of ``env_ids`` (n,) around the default pose."""
        # Named as the event of the manager form, so that both draw the same numbers.
        stream = self.core.random.stream("event/joints")
        span = self.cfg.init_state.dof_pos_random_scale
        events.reset_joints(self.core, env_ids, stream, span)

    def _reset_root_states(self, env_ids: Tensor) -> None:
        """Place the bases of ``env_ids`` (n,), on rough ground up to 0.5 m from a tile's middle."""
        cfg = self.cfg.init_state
        stream = self.core.random.stream("event/root")
        height = 0.0
        if cfg.pos:
            # The event takes the height above the standing pose.
            height = cfg.pos[2] - self.core.cfg.robot.base_height
        events.reset_root(
            self.core,
            env_ids,
            stream,
            (-cfg.yaw_random_scale, cfg.yaw_random_scale),
            (height, height),
            cfg.velocity_random_scale,
            0.5 if self.custom_origins else 0.0,
        )

    def _update_terrain_curriculum(self, env_ids: Tensor) -> None:
        """Move robots to other levels when their episodes end.

        Robots that came half a tile away from their start move up; robots that went less than half
        the way of their command move down. Nothing happens on a plane, or where tiles have just
        been drawn.
        """
        if self.custom_origins and self.init_done:
            ended = env_ids[self.episode_length_buf[env_ids] > 0]
            curricula.terrain_levels(self.core, ended, "distance", down=0.5)

    def _init_height_points(self) -> Tensor:
        """Return the points where heights are measured, (1 or num_envs, points, 3).

        x ahead and y to the left of the base, m. Without ``cfg.terrain.measure_heights``, the one
        point below the base.
        """
        cfg = self.cfg.terrain
        # There always is a point: rewards may read the height below the base.
        x = torch.zeros(1)
        y = torch.zeros(1)
        if cfg.measure_heights:
            x = torch.Tensor(cfg.measured_points_x)
            y = torch.Tensor(cfg.measured_points_y)
        points = torch.cartesian_prod(x, y, torch.zeros(1))
        return points[None].to(self.core.device)

    def _get_heights(self, env_ids: Tensor | None = None) -> Tensor:
        """Return heights of the ground, m: the lowest of three neighbouring points.

        Args:
            env_ids: Environments, shape (n,); None for all.

        Returns:
            Heights, shape (n, points).
        """
        x = self.height_points[..., 0]
        y = self.height_points[..., 1]
        heights = lookup_heights(self.core.robot, "lowest", x, y)[2]
        return heights if env_ids is None else heights[env_ids]

    def _update_command_curriculum(self, env_ids: Tensor) -> None:
        """Widen the range of forward commands if the commands of ``env_ids`` (n,) were tracked
        well."""
        name = "tracking_lin_vel"
        cfg = self.cfg.commands
        # The sums hold scale · dt · reward, so the greatest mean per step is the scale itself.
        mean = self.episode_sums[name][env_ids].mean() / self.core.max_episode_length
        if mean > cfg.curriculum_threshold * self.reward_scales[name]:
            low, high = self.command_ranges["lin_vel_x"]
            limit = cfg.max_curriculum
            self.command_ranges["lin_vel_x"] = [
                max(low - COMMAND_STEP, -limit),
                min(high + COMMAND_STEP, limit),
            ]

    def _get_noise_scale_vec(self) -> Tensor:
        """Return half-widths of the noise of ``obs_buf``, in its scale, (num_obs,)."""
        sizes = {
            "lin_vel": 3,
            "gravity": 3,
            "ang_vel": 3,
            "commands": 3,
            "dof_pos": self.num_actions,
            "dof_vel": self.num_actions,
            "actions": self.num_actions,
            "height_measurements": self.num_height_points,
        }
        return self._noise_widths(sizes)

    def _noise_widths(self, sizes: Mapping[str, int]) -> Tensor:
        """Return half-widths of the noise of quantities side by side, in their scale.

        Args:
            sizes: Size of each quantity, by its name in ``cfg.noise.noise_scales``.
        """
        noise = self.cfg.noise.noise_scales
        scales = self.obs_scales
        widths = []
        for name in sizes:
            # Commands and actions have no noise; gravity has no scale.
            widths.append(getattr(noise, name, 0.0) * getattr(scales, name, 1.0))
        row = torch.tensor(widths) * self.cfg.noise.noise_level
        repeats = torch.tensor(list(sizes.values()))
        return row.repeat_interleave(repeats).to(self.core.device)

    def _get_costs(self) -> dict[str, Tensor]:
        """Return costs in addition to the built-in ones, (num_envs,) each, by name.

        The names are the entries of ``cfg.costs.limits`` that are not built in.
        """
        return {}

    def _draw_debug_vis(self) -> None:
        """Draw something; called after each step with ``cfg.env.debug``."""

    def set_viewer_camera(self, pos: Any, lookat: Any) -> None:
        """Move the camera of pictures and windows.

        Args:
            pos: Position of the camera in the world frame, m.
            lookat: Point that it looks at, m.
        """
        eye_x, eye_y, eye_z = pos
        x, y, z = lookat
        eye = (float(eye_x), float(eye_y), float(eye_z))
        self.core.set_viewer(eye, (float(x), float(y), float(z)))
