"""Reward terms: ``term(env, **params)`` → (num_envs,) float32, as LeggedGym-Ex's ``_reward_<name>`` where it has one,
unless stated. q are joint positions, q0 the default pose, τ torques, a_t actions, g the unit gravity vector in the base
frame, v and ω the base's velocities in its frame, c = (vx, vy, ωz) the command. x̂ is what a reference has for x."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from legged_envs.mdp.context import Env


def _kernel(error: Tensor, sigma: float) -> Tensor:
    return error.mul_(-1.0 / sigma).exp_()


def tracking_lin_vel(env: Env, sigma: float, command: str = "velocity") -> Tensor:
    """exp(−‖c_xy − v_xy‖² / σ)."""
    return _kernel(
        (env.commands[command][:, :2] - env.robot.lin_vel_b[:, :2]).square_().sum(1), sigma
    )


def tracking_ang_vel(env: Env, sigma: float, command: str = "velocity") -> Tensor:
    """exp(−(c_ω − ω_z)² / σ)."""
    return _kernel((env.commands[command][:, 2] - env.robot.ang_vel_b[:, 2]).square_(), sigma)


def alive(env: Env) -> Tensor:
    """1 on every step (LeggedGym-Ex ``keep_balance``)."""
    return torch.ones(env.num_envs, dtype=torch.float32, device=env.device)


def termination(env: Env) -> Tensor:
    """1 where a termination term, not the time limit, ended the episode in this step."""
    return env.terminations.terminated.float()


def lin_vel_z(env: Env) -> Tensor:
    """v_z²."""
    return env.robot.lin_vel_b[:, 2].square()


def ang_vel_xy(env: Env) -> Tensor:
    """ω_x² + ω_y²."""
    return env.robot.ang_vel_b[:, :2].square().sum(1)


def orientation(env: Env) -> Tensor:
    """g_x² + g_y²."""
    return env.robot.projected_gravity[:, :2].square().sum(1)


def base_height(env: Env, target: float) -> Tensor:
    """(z − z*)², z the height of the base above the ground, m."""
    return (env.robot.base_height - target).square_()


def torques(env: Env) -> Tensor:
    """Σ τ²."""
    return env.robot.joint_torque.square().sum(1)


def torque_limits(env: Env, soft_limit: float = 0.9) -> Tensor:
    """Σ (|τ| − soft_limit · τ_max)⁺, N·m."""
    return (
        (env.robot.joint_torque.abs() - env.robot.torque_limits * soft_limit).clamp_min_(0.0).sum(1)
    )


def dof_power(env: Env) -> Tensor:
    """Σ |τ q̇|, W."""
    return (env.robot.joint_torque * env.robot.joint_vel).abs_().sum(1)


def dof_vel(env: Env) -> Tensor:
    """Σ q̇²."""
    return env.robot.joint_vel.square().sum(1)


def dof_acc(env: Env) -> Tensor:
    """Σ ((q̇_t − q̇_{t−1}) / dt)²."""
    return (
        (env.robot.joint_vel - env.robot.previous_joint_vel).square_().sum(1).mul_(env.step_dt**-2)
    )


def action_rate(env: Env) -> Tensor:
    """Σ (a_t − a_{t−1})²."""
    return (env.actions.current - env.actions.previous).square_().sum(1)


def action_smoothness(env: Env) -> Tensor:
    """Σ (a_t − 2 a_{t−1} + a_{t−2})²."""
    before, previous = env.actions.before_previous, env.actions.previous
    return (env.actions.current + before).sub_(previous + previous).square_().sum(1)


def collision(env: Env, threshold: float = 0.1) -> Tensor:
    """Number of penalised bodies with a contact force above ``threshold`` N."""
    return (env.robot.contact_force[:, env.robot.penalized_bodies] > threshold).sum(
        1, dtype=torch.float32
    )


def dof_pos_limits(env: Env, soft_limit: float = 0.9) -> Tensor:
    """Σ distance outside of the soft joint limits, rad."""
    joint_pos = env.robot.joint_pos
    return (joint_pos - joint_pos.clamp(*env.robot.soft_joint_pos_limits(soft_limit))).abs_().sum(1)


def feet_air_time(
    env: Env, target: float, longest: float = math.inf, command: str = "velocity"
) -> Tensor:
    """Σ over feet that land of (min(swing duration, longest) − target), s, while the command asks to move, if only to
    turn on the spot. LeggedGym-Ex's has no ``longest``, which keeps training from stretching swings ever further."""
    swing = env.robot.foot_air_time.clamp(max=longest) - target
    return (swing * env.robot.foot_landed).sum(1).mul_(env.commands.terms[command].moving)


def _mode_time(env: Env) -> Tensor:
    """The shortest time for which a foot has been in its present mode, standing or swinging, s. Shape: (num_envs,)."""
    robot = env.robot
    return torch.where(robot.foot_contact, robot.foot_contact_time, robot.foot_air_time).amin(1)


def single_stance_time(env: Env, limit: float, command: str = "velocity") -> Tensor:
    """How long a biped told to move stands on one foot, ≤ ``limit`` s (Isaac Lab ``feet_air_time_positive_biped``)."""
    single = env.robot.foot_contact.sum(1) == 1
    return _mode_time(env).clamp_max_(limit).mul_(single).mul_(env.commands.terms[command].moving)


def foot_clearance(env: Env, target: float) -> Tensor:
    """Σ ‖v_f,xy‖ (z_f − z*)², z_f the height of a foot's origin above its height in stance, m. LeggedGym-Ex's is
    exp(−Σ ‖v_f,xy‖ (z_f − z*)² / 0.01), which fades where the foot is far from the target."""
    error = env.robot.foot_height - (target + env.sim.robot.foot_radius)
    return error.square_().mul_(env.robot.foot_speed).sum(1)


def feet_slip(env: Env) -> Tensor:
    """Σ over standing feet of ‖v_f,xy‖², (m/s)² (LeggedGym-Ex: the norm, not squared); a wheel's is that of the point
    next to the ground, which does not move while it rolls."""
    return env.robot.foot_speed.square().mul_(env.robot.foot_contact).sum(1)


def trot(
    env: Env, pairs: tuple[tuple[int, int], ...], phase_time: float, command: str = "velocity"
) -> Tensor:
    """How much the contacts look like an unhurried trot while moving, 0 to 1: (1[b_i = b_j] + 1[b_k = b_l]) / 2
    · 1[b_i ≠ b_k] · (1 + min(T / phase_time, 1)) / 2 for two pairs of feet (i, j) and (k, l) with contacts b, and T the
    shortest time for which a foot has been standing or swinging."""
    scores = env.robot.table(("trot", pairs), lambda: _trot_scores(pairs, env.device))
    unhurried = _mode_time(env).clamp_max_(phase_time).mul_(0.5 / phase_time).add_(0.5)
    return scores[env.robot.contact_code()].mul_(unhurried).mul_(env.commands.terms[command].moving)


def _trot_scores(pairs: tuple[tuple[int, int], ...], device: torch.device) -> Tensor:
    """The part of ``trot`` that depends on the contacts alone, by ``RobotState.contact_code``. Shape: (16,)."""
    (i, j), (k, m) = pairs
    scores = []
    for code in range(16):
        contact = [code >> foot & 1 for foot in range(4)]
        agreement = ((contact[i] == contact[j]) + (contact[k] == contact[m])) / 2
        scores.append(agreement * (contact[i] != contact[k]))
    return torch.tensor(scores, dtype=torch.float32, device=device)


def gait_contact(env: Env, gait: str = "gait") -> Tensor:
    """Number of feet that stand or swing as the clock ``gait`` asks (LeggedGym-Ex ``contact`` of its ``g1``)."""
    return (env.robot.foot_contact == env.commands.terms[gait].stance).sum(1, dtype=torch.float32)


def dof_pos_stand_still(env: Env, command: str = "velocity") -> Tensor:
    """Σ (q − q0)² while the command is to stand still."""
    return env.robot.joint_offset.square().sum(1).mul_(env.commands.terms[command].still)


def dof_vel_stand_still(env: Env, command: str = "velocity") -> Tensor:
    """Σ |q̇| while the command is to stand still."""
    return env.robot.joint_vel.abs().sum(1).mul_(env.commands.terms[command].still)


def feet_contact_stand_still(env: Env, command: str = "velocity") -> Tensor:
    """1 with all feet on the ground while the command is to stand still."""
    return env.commands.terms[command].still * env.robot.foot_contact.all(1)


def posture(env: Env, gait: str = "gait") -> Tensor:
    """Σ (q − q0)² over the joints that the clock ``gait`` leaves where they are: sideways, arms, head and waist."""
    return env.robot.joint_offset.square().mul_(env.commands.terms[gait].held).sum(1)


def dof_close_to_default(env: Env, joints: tuple[int, ...] | None = None) -> Tensor:
    """Σ (q − q0)², over ``joints`` if given (LeggedGym-Ex ``hip_pos`` with the hips)."""
    offset = env.robot.joint_offset
    if joints is not None:
        offset = offset[:, env.robot.joint_index(joints)]
    return offset.square().sum(1)


def without_reference(
    env: Env, term: Callable[..., Any], motion: str = "motion", **params: Any
) -> Tensor:
    """``term(env, **params)`` of this module where there is no reference to imitate, else 0."""
    return term(env, **params) * (1.0 - env.commands.terms[motion].available)


def reference_joint_pos(env: Env, sigma: float, motion: str = "motion") -> Tensor:
    """exp(−Σ (q − q̂)² / σ) (LeggedGym-Ex ``tracking_ref_dof_pos``, σ 4), 0 without a reference."""
    reference = env.commands.terms[motion]
    error = (env.robot.joint_pos - reference.target_joint_pos).square_().sum(1)
    return _kernel(error, sigma).mul_(reference.available)


def reference_joint_vel(env: Env, sigma: float, motion: str = "motion") -> Tensor:
    """exp(−Σ |q̇ − q̇̂| / σ) (LeggedGym-Ex ``tracking_ref_dof_vel``, σ 100), 0 without a reference."""
    reference = env.commands.terms[motion]
    error = (env.robot.joint_vel - reference.target_joint_vel).abs_().sum(1)
    return _kernel(error, sigma).mul_(reference.available)


def reference_root_pose(
    env: Env, sigma: float, planar: bool = False, motion: str = "motion"
) -> Tensor:
    """exp(−(‖p − p̂‖² + 0.1 d²) / σ), 0 without a reference, d² = 2 (1 − |⟨quat, quat̂⟩|) (LeggedGym-Ex
    ``tracking_ref_root_pose``, σ 0.2). Without ``planar``, for policies that cannot know where on the ground they are,
    the heights alone are compared, and d² = ‖g − ĝ‖² / 4, the same for small tilts without a turn."""
    reference, robot = env.commands.terms[motion], env.robot
    if planar:
        distance = (robot.root_pos_w - reference.window_root_pos_w[:, 0]).square_().sum(1)
        turn = 2.0 * (1.0 - (robot.root_quat_w * reference.window_root_quat_w[:, 0]).sum(1).abs_())
    else:
        distance = (robot.base_height - reference.window_root_pos_w[:, 0, 2]).square_()
        turn = 0.25 * (robot.projected_gravity - reference.target_gravity).square_().sum(1)
    return _kernel(torch.add(distance, turn, alpha=0.1), sigma).mul_(reference.available)


def reference_root_vel(
    env: Env, sigma: float, angular: float = 1.0, motion: str = "motion"
) -> Tensor:
    """exp(−(‖v − v̂‖² + angular ‖ω − ω̂‖²) / σ) in the base frame, 0 without a reference (LeggedGym-Ex
    ``tracking_ref_root_vel``: σ 1, ``angular`` 1, where a gait's fast rocking hides the rest)."""
    reference, robot = env.commands.terms[motion], env.robot
    error = (robot.lin_vel_b - reference.target_lin_vel_b).square_().sum(1)
    turning = (robot.ang_vel_b - reference.target_ang_vel_b).square_().sum(1)
    return _kernel(torch.add(error, turning, alpha=angular), sigma).mul_(reference.available)


def reference_key_pos(env: Env, sigma: float, motion: str = "motion") -> Tensor:
    """exp(−Σ ‖x − x̂‖² / σ), x the key bodies in the base frame (LeggedGym-Ex: world, σ 0.1), 0 without a reference."""
    reference = env.commands.terms[motion]
    error = env.robot.bodies(reference.key_bodies).pos_b - reference.target_key_pos_b
    return _kernel(error.square_().sum((1, 2)), sigma).mul_(reference.available)


def _due(env: Env, duration: float, command: str) -> Tensor:
    """1 in the last ``duration`` s of the time for a goal, divided by that."""
    return (env.commands[command][:, 4] < duration).float() / duration


def goal_position(env: Env, duration: float = 4.0, command: str = "goal") -> Tensor:
    """1 / (1 + ‖way to the goal‖²) / T_d in the last T_d = ``duration`` s (Rudin et al. 2022)."""
    return _due(env, duration, command) / (1.0 + env.commands[command][:, :3].square().sum(1))


def goal_heading(
    env: Env, duration: float = 6.0, near: float = 2.0, command: str = "goal"
) -> Tensor:
    """1 / (1 + Δψ²) / T_d in the last T_d = ``duration`` s, less than ``near`` m from the goal."""
    way = env.commands[command]
    close = (way[:, :2].square().sum(1) < near**2).float()
    return _due(env, duration, command) * close / (1.0 + way[:, 3].square())


def stall(env: Env, distance: float = 1.0, speed: float = 0.1, command: str = "goal") -> Tensor:
    """1[more than ``distance`` m from the goal and slower than ``speed`` m/s]."""
    far = env.commands[command][:, :2].square().sum(1) > distance**2
    return (far & (env.robot.lin_vel_b[:, :2].square().sum(1) < speed**2)).float()


def move_in_direction(env: Env, command: str = "goal") -> Tensor:
    """v · d / max(‖v‖ ‖d‖, 0.05) of the velocity v, m/s, and the way d to the goal, m, horizontally: the cosine of the
    angle between them, less near the goal and at rest."""
    way, velocity = env.commands[command][:, :2], env.robot.lin_vel_b[:, :2]
    sizes = torch.linalg.vector_norm(way, dim=1) * torch.linalg.vector_norm(velocity, dim=1)
    return (way * velocity).sum(1) / sizes.clamp(min=0.05)


def goal_stand_still(
    env: Env, near: float = 0.25, turn: float = 0.5, last: float = 1.0, command: str = "goal"
) -> Tensor:
    """2.5 ‖v‖ + ‖ω‖ in the ``last`` s, less than ``near`` m and ``turn`` rad from the goal."""
    way = env.commands[command]
    there = (way[:, 4] < last) & (way[:, :2].square().sum(1) < near**2) & (way[:, 3].abs() < turn)
    speed = torch.linalg.vector_norm(env.robot.lin_vel_b, dim=1)
    return (2.5 * speed + torch.linalg.vector_norm(env.robot.ang_vel_b, dim=1)) * there
