"""The task that calls the methods of a :class:`~legged_envs.compat.legged_gym.LeggedRobot`."""

from typing import Any

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs import rotation
from legged_envs.checks import check_known
from legged_envs.compat.adapter import AdapterTask
from legged_envs.compat.legged_gym.command import Command
from legged_envs.compat.legged_gym.terms import BUILTIN_COSTS
from legged_envs.envs import Evaluation, Spaces
from legged_envs.envs.manager_task import check_evaluation
from legged_envs.envs.task import Space


class LeggedGymTask(AdapterTask):
    """Calls the methods of a user's ``LeggedRobot``."""

    is_evaluating = False
    """True from the evaluation of a step until its observation is returned.

    The evaluation makes the observation too. Episodes that the methods reset in this time are reset
    after the step.
    """

    def build_evaluation(self) -> Spaces:
        user = self.user
        own_cfg = user.cfg
        limit = own_cfg.normalization.clip_observations
        self.managers.observation_limit = limit
        # A clone: the engine's arrays change in place.
        self.last_feet_vel = self.env.robot.foot_lin_vel_w.clone()
        """Velocities of the feet before this step, m/s. Shape: (num_envs, feet, 3)."""
        self.own_costs = self._checked_costs()
        """Costs that ``_get_costs`` returned in this step, by name."""
        limits = vars(own_cfg.costs.limits)
        unknown = self.own_costs.keys() ^ (limits.keys() - BUILTIN_COSTS.keys())
        check_known(
            f"{type(user).__name__}._get_costs and cfg.costs.limits differ in",
            unknown,
            BUILTIN_COSTS,
            "built in",
        )
        # Rewards and observations are tried below, and may read phases that this method computes.
        user._post_physics_step_callback()
        spaces = super().build_evaluation()
        # LeggedGym-Ex's names of the sums, in addition to the means that every task logs.
        rewards = self.managers.rewards.names
        self.log_names = (*self.log_names, *(f"rew_{name}" for name in rewards))
        groups: dict[str, Space] = {}
        for group, buffer in user.BUFFERS.items():
            size = getattr(own_cfg.env, buffer.size_field)
            if size is not None:
                groups[group] = gym.spaces.Box(-limit, limit, (size,))
        return spaces._replace(observations=groups)

    def _checked_costs(self) -> dict[str, Tensor]:
        costs = {}
        for name, cost in self.user._get_costs().items():
            costs[name] = self.check_result("_get_costs", name, cost, least=0.0)
        return costs

    @property
    def actions_are_targets(self) -> bool:  # type: ignore[override]
        # A subclass's _pre_sim_step may depend on anything.
        return type(self.user)._pre_sim_step.__module__.startswith("legged_envs.compat.")

    def act(self, action: Tensor) -> None:
        # Before the physics step: rewards compare the velocities of two control steps.
        self.last_feet_vel = self.env.robot.foot_lin_vel_w.clone()
        clipped = self.user._pre_sim_step(action)
        size = self.managers.actions.size
        super().act(self.check_result("_pre_sim_step", "actions", clipped, size))

    def advance(self) -> None:
        """Do nothing: ``_post_physics_step_callback`` advances commands and pushes."""

    def advance_commands_and_events(self) -> None:
        """Advance commands and pushes by one control step.

        Nothing happens while :meth:`build_evaluation` tries the user's methods.
        """
        if self.env.is_built:
            super().advance()

    def compute_robots(self) -> None:
        """Derive the quantities of the robots from what was read."""
        for robot in self.env.robots.values():
            robot.compute()

    def evaluate(self) -> Evaluation:
        user = self.user
        managers = self.managers
        # Set before the user's methods: reset_idx, if they call it, waits until after the step.
        self.is_evaluating = True
        user.post_physics_step()
        self.check_result("check_termination", "reset_buf", user.reset_buf, flags=True)
        self.check_result("check_termination", "time_out_buf", user.time_out_buf, flags=True)
        self.own_costs = self._checked_costs()
        managers.costs.compute()
        check_evaluation(managers, self.env.recovered)
        reward = self.check_result("compute_reward", "rew_buf", user.rew_buf)
        # The time limit is a wrapper's; what else ran out of time is the task's.
        is_within_limit = self.env.episode_steps < user.max_episode_length
        return Evaluation(
            terminated=self.apply_terminations(),
            reward=reward,
            cost=managers.costs.total,
            costs=managers.costs.values,
            truncated=user.time_out_buf.bool() & is_within_limit,
        )

    def apply_terminations(self) -> Tensor:
        """Return the episodes that ended by more than the end of their time, (num_envs,), bool.

        ``check_termination`` has flagged them; the termination manager keeps the result.
        """
        # reset_buf is what counts, as a subclass may change it; a mere time-out is a truncation.
        terminations = self.managers.terminations
        is_only_late = self.user.time_out_buf.bool() & ~terminations.terminated
        terminations.terminated = self.user.reset_buf.bool() & ~is_only_late
        return terminations.terminated

    def apply_written_command(self) -> None:
        """Let numbers that were written into ``commands`` act."""
        command = self.managers.commands.terms["velocity"]
        assert isinstance(command, Command)
        command.apply_written_value()

    def observe(self, env_ids: Tensor | None) -> dict[str, Tensor]:
        user = self.user
        rows = self.env.all_ids if env_ids is None else env_ids
        # In a step post_physics_step has just made the observation, noise included.
        if env_ids is not None or not self.is_evaluating:
            user._rows = rows
            self.observe_first(rows, user.compute_observations)
            user._rows = None
        self.is_evaluating = False
        limit = self.managers.observation_limit
        shown = {}
        for group, size in self.env.group_sizes.items():
            buffer = user.BUFFERS[group]
            what = f"{buffer.name} (cfg.env.{buffer.size_field})"
            value = getattr(user, buffer.name)
            self.check_result("compute_observations", what, value, size)
            if group in self.env.last_observation:
                shown[group] = value[rows].clamp(-limit, limit)
        return shown

    def end_episodes(self, env_ids: Tensor, steps: Tensor) -> Tensor:
        values = super().end_episodes(env_ids, steps)
        sums = self.managers.rewards.episode_sums[env_ids] / self.env.max_episode_length_s
        return torch.cat((values, sums), dim=1)

    def place(self, env_ids: Tensor, seeded: bool) -> None:
        # Seeding has just drawn tiles: a curriculum must not move robots away from them.
        self.user.init_done = not seeded
        super().place(env_ids, seeded)

    def choose_start(self, env_ids: Tensor) -> None:
        # The method of the class: the attribute of the object asks for a reset, and would come back
        # here.
        type(self.user).reset_idx(self.user, env_ids)

    @property
    def custom_origins(self) -> bool:
        """True if robots start on tiles of rough ground."""
        return self.env.ground is not None

    @property
    def terrain(self) -> Any:
        """The rough ground."""
        return self._ground.terrain

    @property
    def measured_heights(self) -> Tensor:
        """Heights of the ground around each robot, m. Shape: (num_envs, points)."""
        heights: Tensor = self.user._get_heights()
        return heights

    @property
    def root_states(self) -> Tensor:
        """Positions, quaternions (x, y, z, w) and velocities of the bases. Shape: (num_envs, 13).

        Velocities are in the world frame.
        """
        robot = self.env.robot
        quat = robot.root_quat_w
        parts = (
            robot.root_pos_w,
            quat.roll(-1, 1),  # LeggedGym-Ex has w last
            robot.root_lin_vel_w,
            rotation.rotate(quat, robot.root_ang_vel_b),
        )
        return torch.cat(parts, 1)
