"""The built-in rewards of LeggedGym-Ex as methods."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from legged_envs.compat.legged_gym.terms import BUILTIN_REWARDS

CFG_FIELDS = {
    "tracking_lin_vel": {"sigma": "tracking_sigma"},
    "tracking_ang_vel": {"sigma": "tracking_sigma"},
    "base_height": {"target": "base_height_target"},
    "torque_limits": {"soft_limit": "soft_torque_limit"},
    "dof_pos_limits": {"soft_limit": "soft_dof_pos_limit"},
}
"""Parameters of a reward that are fields of ``cfg.rewards``: parameter mapped to field."""


class BuiltinRewards:
    """Methods ``_reward_<name>`` that evaluate the terms of :mod:`legged_envs.mdp.rewards`.

    Each returns shape (num_envs,). Further parameters of a term are read from
    ``cfg.rewards.params``.
    """

    core: Any
    cfg: Any
    simulator: Any

    def _builtin_reward(self, name: str) -> Tensor:
        # Read in every step, so that values may be changed while a task runs.
        cfg = self.cfg.rewards
        params = {}
        for parameter, field in CFG_FIELDS.get(name, {}).items():
            params[parameter] = getattr(cfg, field)
        params.update(getattr(cfg.params, name, {}))
        return BUILTIN_REWARDS[name](self.core, **params)

    def _reward_method(self, name: str) -> Callable[[], Tensor]:
        """Return the method ``_reward_<name>`` if it exists, otherwise the built-in term."""
        own = getattr(type(self), f"_reward_{name}", None)
        return partial(self._builtin_reward, name) if own is None else partial(own, self)

    def _reward_action_rate(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.action_rate`."""
        return self._builtin_reward("action_rate")

    def _reward_action_smoothness(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.action_smoothness`."""
        return self._builtin_reward("action_smoothness")

    def _reward_alive(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.alive`."""
        return self._builtin_reward("alive")

    def _reward_ang_vel_xy(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.ang_vel_xy`."""
        return self._builtin_reward("ang_vel_xy")

    def _reward_base_height(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.base_height`."""
        return self._builtin_reward("base_height")

    def _reward_collision(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.collision`."""
        return self._builtin_reward("collision")

    def _reward_dof_acc(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.joint_acc`."""
        return self._builtin_reward("dof_acc")

    def _reward_dof_close_to_default(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.joint_deviation`."""
        return self._builtin_reward("dof_close_to_default")

    def _reward_dof_pos_limits(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.joint_pos_limits`."""
        return self._builtin_reward("dof_pos_limits")

    def _reward_dof_pos_stand_still(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.joint_pos_stand_still`."""
        return self._builtin_reward("dof_pos_stand_still")

    def _reward_dof_power(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.joint_power`."""
        return self._builtin_reward("dof_power")

    def _reward_dof_vel(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.joint_vel`."""
        return self._builtin_reward("dof_vel")

    def _reward_dof_vel_stand_still(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.joint_vel_stand_still`."""
        return self._builtin_reward("dof_vel_stand_still")

    def _reward_feet_air_time(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.foot_air_time`."""
        return self._builtin_reward("feet_air_time")

    def _reward_feet_contact_stand_still(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.foot_contact_stand_still`."""
        return self._builtin_reward("feet_contact_stand_still")

    def _reward_feet_slip(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.foot_slip`."""
        return self._builtin_reward("feet_slip")

    def _reward_foot_acc(self) -> Tensor:
        """Return the sum of the squared accelerations a_f of the feet, (m/s²)²: Σ ‖a_f‖²."""
        simulator = self.simulator
        change = simulator.feet_vel - simulator.last_feet_vel
        return (change / self.core.step_dt).square().sum(dim=(1, 2))

    def _reward_foot_clearance(self) -> Tensor:
        """Return exp(−Σ ‖v_f,xy‖ (z_f − target − offset)² / sigma), as in LeggedGym-Ex.

        z_f is the height of a foot's origin above the ground, m. With ``cfg.rewards.params`` it is
        :func:`~legged_envs.mdp.rewards.foot_clearance`.
        """
        cfg = self.cfg.rewards
        if hasattr(cfg.params, "foot_clearance"):
            return self._builtin_reward("foot_clearance")
        # The engine's height is measured from the ground to the foot's origin.
        error = self.core.robot.foot_height - cfg.foot_clearance_target - cfg.foot_height_offset
        speed = self.simulator.feet_vel[..., :2].norm(dim=-1)
        weighted = error.square() * speed
        return torch.exp(-weighted.sum(1) / cfg.foot_clearance_tracking_sigma)

    def _reward_feet_contact_forces(self) -> Tensor:
        """Return the forces on the feet above ``max_contact_force``, N, each at most 450."""
        robot = self.core.robot
        forces = robot.contact_force[:, robot.feet]
        excess = forces - self.cfg.rewards.max_contact_force
        return excess.clamp(0.0, 450.0).sum(1)

    def _reward_foot_landing_vel(self) -> Tensor:
        """Return the squared vertical velocities of feet that are about to land, summed, (m/s)².

        A foot is about to land if it has no contact, moves down, and its height is less than
        ``cfg.rewards.about_landing_threshold``. The height of a foot is the height of its origin
        above the ground minus ``cfg.rewards.foot_height_offset``. Source: LeggedGym-Ex.
        """
        cfg = self.cfg.rewards
        robot = self.core.robot
        velocity = robot.foot_lin_vel_w[..., 2]
        height = robot.foot_height - cfg.foot_height_offset
        lands = (height < cfg.about_landing_threshold) & (velocity < 0.0) & ~robot.foot_contact
        return (velocity.square() * lands).sum(1)

    def _reward_gait_contact(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.gait_contact`."""
        return self._builtin_reward("gait_contact")

    def _reward_goal_heading(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.goal_heading`."""
        return self._builtin_reward("goal_heading")

    def _reward_goal_position(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.goal_position`."""
        return self._builtin_reward("goal_position")

    def _reward_goal_stand_still(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.goal_stand_still`."""
        return self._builtin_reward("goal_stand_still")

    def _reward_keep_balance(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.alive`."""
        return self._builtin_reward("keep_balance")

    def _reward_lin_vel_z(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.lin_vel_z`."""
        return self._builtin_reward("lin_vel_z")

    def _reward_move_in_direction(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.move_in_direction`."""
        return self._builtin_reward("move_in_direction")

    def _reward_orientation(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.orientation`."""
        return self._builtin_reward("orientation")

    def _reward_posture(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.posture`."""
        return self._builtin_reward("posture")

    def _reward_reference_joint_pos(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.reference_joint_pos`."""
        return self._builtin_reward("reference_joint_pos")

    def _reward_reference_joint_vel(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.reference_joint_vel`."""
        return self._builtin_reward("reference_joint_vel")

    def _reward_reference_foot_height(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.reference_foot_height`."""
        return self._builtin_reward("reference_foot_height")

    def _reward_reference_key_pos(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.reference_key_pos`."""
        return self._builtin_reward("reference_key_pos")

    def _reward_reference_root_pose(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.reference_root_pose`."""
        return self._builtin_reward("reference_root_pose")

    def _reward_reference_root_vel(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.reference_root_vel`."""
        return self._builtin_reward("reference_root_vel")

    def _reward_single_stance_time(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.single_stance_time`."""
        return self._builtin_reward("single_stance_time")

    def _reward_stall(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.stall`."""
        return self._builtin_reward("stall")

    def _reward_stand_still(self) -> Tensor:
        """Return :func:`~legged_envs.compat.legged_gym.terms.stand_still`."""
        return self._builtin_reward("stand_still")

    def _reward_termination(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.termination`."""
        return self._builtin_reward("termination")

    def _reward_torque_limits(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.torque_limits`."""
        return self._builtin_reward("torque_limits")

    def _reward_torques(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.joint_torque`."""
        return self._builtin_reward("torques")

    def _reward_tracking_ang_vel(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.tracking_ang_vel`."""
        return self._builtin_reward("tracking_ang_vel")

    def _reward_tracking_lin_vel(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.tracking_lin_vel`."""
        return self._builtin_reward("tracking_lin_vel")

    def _reward_trot(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.trot`."""
        return self._builtin_reward("trot")

    def _reward_without_reference(self) -> Tensor:
        """Return :func:`~legged_envs.mdp.rewards.without_reference`."""
        return self._builtin_reward("without_reference")
