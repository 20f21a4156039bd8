"""Reward terms: functions ``term(env, **params)`` → (num_envs,) float32.

A term with the name of a ``_reward_<name>`` in LeggedGym-Ex has the same formula, unless its
docstring states otherwise. Symbols: q joint positions, q0 default joint pose, rad; τ joint torques,
N·m; a_t actions; g unit gravity vector in the base frame; v and ω linear and angular velocity of
the base in the base frame; v_f velocity of a foot's origin; c = (vx, vy, ωz) velocity command; 1[…]
is 1 if the condition holds, otherwise 0.

Terms for motion clips (``reference_rewards.py``) and for goals (``goal_rewards.py``) can be
imported from this module as well.
"""

import math

import torch
from torch import Tensor

from legged_envs.mdp.commands import STILL_COMMAND
from legged_envs.mdp.context import Env
from legged_envs.mdp.goal_rewards import goal_heading as goal_heading
from legged_envs.mdp.goal_rewards import goal_position as goal_position
from legged_envs.mdp.goal_rewards import goal_stand_still as goal_stand_still
from legged_envs.mdp.goal_rewards import move_in_direction as move_in_direction
from legged_envs.mdp.goal_rewards import stall as stall
from legged_envs.mdp.kernels import exponential
from legged_envs.mdp.reference_rewards import reference_foot_height as reference_foot_height
from legged_envs.mdp.reference_rewards import reference_joint_pos as reference_joint_pos
from legged_envs.mdp.reference_rewards import reference_joint_vel as reference_joint_vel
from legged_envs.mdp.reference_rewards import reference_key_pos as reference_key_pos
from legged_envs.mdp.reference_rewards import reference_root_pose as reference_root_pose
from legged_envs.mdp.reference_rewards import reference_root_vel as reference_root_vel
from legged_envs.mdp.reference_rewards import without_reference as without_reference


def tracking_lin_vel(
    env: Env,
    sigma: float,
    command: str = "velocity",
) -> Tensor:
    """Return the reward for following the commanded linear velocity: exp(−‖c_xy − v_xy‖² / σ).

    c is the velocity command and v the velocity of the base in the base frame, m/s.

    Args:
        sigma: σ, (m/s)².
        command: Name of the velocity command.
    """
    commanded = env.commands[command][:, :2]
    velocity = env.robot.lin_vel_b[:, :2]
    error = (commanded - velocity).square_().sum(1)
    return exponential(error, sigma)


def tracking_ang_vel(
    env: Env,
    sigma: float,
    command: str = "velocity",
) -> Tensor:
    """Return the reward for following the commanded turning velocity: exp(−(c_ω − ω_z)² / σ).

    Args:
        sigma: σ, (rad/s)².
        command: Name of the velocity command.
    """
    commanded = env.commands[command][:, 2]
    turn = env.robot.ang_vel_b[:, 2]
    error = (commanded - turn).square_()
    return exponential(error, sigma)


def no_progress(env: Env, share: float = 0.2, command: str = "velocity") -> Tensor:
    """Return 1 for a robot that should move but does not: 1[v · c_xy < ``share`` ‖c_xy‖²].

    The reward is 0 while the commanded speed ‖c_xy‖ is too small to count as a command to move.

    Args:
        share: Share of the commanded speed below which a robot makes no progress.
        command: Name of the velocity command.
    """
    commanded = env.commands[command][:, :2]
    velocity = env.robot.lin_vel_b[:, :2]
    squared_speed = commanded.square().sum(1)
    along = (velocity * commanded).sum(1)
    is_slow = along < share * squared_speed
    return (is_slow & (squared_speed > STILL_COMMAND**2)).float()


def alive(env: Env) -> Tensor:
    """Return 1 on every step (LeggedGym-Ex ``keep_balance``)."""
    return torch.ones(env.num_envs, dtype=torch.float32, device=env.device)


def termination(env: Env) -> Tensor:
    """Return 1 if a termination term ended the episode in this step: the robot failed.

    The reward is 0 if the time limit truncated the episode.
    """
    return env.terminations.terminated.float()


def lin_vel_z(env: Env) -> Tensor:
    """Return the squared vertical velocity of the base, (m/s)²: v_z²."""
    velocity = env.robot.lin_vel_b
    return velocity[:, 2].square()


def ang_vel_xy(env: Env) -> Tensor:
    """Return the squared roll and pitch velocity of the base, (rad/s)²: ω_x² + ω_y²."""
    velocity = env.robot.ang_vel_b
    return velocity[:, :2].square().sum(1)


def orientation(env: Env) -> Tensor:
    """Return the squared tilt of the base, 0 when upright: g_x² + g_y²."""
    gravity = env.robot.projected_gravity
    return gravity[:, :2].square().sum(1)


def base_height(env: Env, target: float) -> Tensor:
    """Return the squared error of the base's height above the ground, m²: (z − ``target``)².

    Args:
        target: Height, m.
    """
    error = env.robot.base_height - target
    # In place: the difference is a new tensor.
    return error.square_()


def joint_torque(env: Env) -> Tensor:
    """Return the sum of squared joint torques, (N·m)²: Σ τ²."""
    return env.robot.joint_torque.square().sum(1)


def torque_limits(env: Env, soft_limit: float = 0.9) -> Tensor:
    """Return the sum of torques above their soft limits, N·m: Σ (|τ| − ``soft_limit`` · τ_max)⁺.

    Args:
        soft_limit: Fraction of the torque limit τ_max that is not penalized.
    """
    limit = env.robot.torque_limits * soft_limit
    # (x)⁺ is max(x, 0). abs() makes a new tensor, so the rest may be in place.
    excess = env.robot.joint_torque.abs() - limit
    return excess.clamp_min_(0.0).sum(1)


def joint_power(env: Env) -> Tensor:
    """Return the mechanical power of the joints, W: Σ |τ q̇|."""
    # Braking counts too.
    power = env.robot.joint_torque * env.robot.joint_vel
    return power.abs_().sum(1)


def joint_vel(env: Env) -> Tensor:
    """Return the sum of squared joint velocities, (rad/s)²: Σ q̇²."""
    return env.robot.joint_vel.square().sum(1)


def joint_acc(env: Env) -> Tensor:
    """Return the sum of squared joint accelerations, (rad/s²)²: Σ ((q̇_t − q̇_{t−1}) / dt)²."""
    # Over a control step, not a physics step.
    change = env.robot.joint_vel - env.robot.previous_joint_vel
    # One multiplication after the sum instead of J divisions.
    return change.square_().sum(1).mul_(env.step_dt**-2)


def action_rate(env: Env) -> Tensor:
    """Return the squared change of the action: Σ (a_t − a_{t−1})²."""
    actions = env.actions
    change = actions.current - actions.previous
    return change.square_().sum(1)


def action_smoothness(env: Env) -> Tensor:
    """Return the squared second difference of the action: Σ (a_t − 2 a_{t−1} + a_{t−2})²."""
    actions = env.actions
    # a + a is 2 a without rounding.
    twice_previous = actions.previous + actions.previous
    change = (actions.current + actions.before_previous).sub_(twice_previous)
    return change.square_().sum(1)


def collision(env: Env, threshold: float = 0.1) -> Tensor:
    """Return the number of penalized bodies with a contact force above ``threshold``.

    The robot's configuration defines the penalized bodies, for example thighs and shanks.

    Args:
        threshold: Contact force, N.
    """
    force = env.robot.contact_force[:, env.robot.penalized_bodies]
    # A count in the dtype of rewards.
    return (force > threshold).sum(1, dtype=torch.float32)


def joint_pos_limits(env: Env, soft_limit: float = 0.9) -> Tensor:
    """Return the sum over joints of the distance by which they exceed their soft ranges, rad.

    Args:
        soft_limit: Fraction of a joint's range, around its middle, that is not penalized.
    """
    joint_pos = env.robot.joint_pos
    low, high = env.robot.soft_joint_pos_limits(soft_limit)
    # Clamping gives the nearest allowed position, also of joints without limits.
    distance = joint_pos - joint_pos.clamp(low, high)
    return distance.abs_().sum(1)


def foot_air_time(
    env: Env,
    target: float,
    longest: float = math.inf,
    command: str = "velocity",
) -> Tensor:
    """Return the reward for long swings, s: Σ (min(T_swing, ``longest``) − ``target``).

    The sum is over the feet that land in this step, after a swing of T_swing, s. The reward is 0
    while the command is zero. A command to turn on the spot counts as a command to move.

    Args:
        target: Swing time above which a swing is rewarded, s. Shorter swings are penalized.
        longest: Largest swing time that counts, s. A finite value prevents that training makes
            swings longer and longer. LeggedGym-Ex has no bound.
        command: Name of the velocity command.
    """
    robot = env.robot
    moving = env.commands.terms[command].moving
    # A foot that lands still has the time of the swing that ended.
    swing = robot.foot_air_time.clamp(max=longest) - target
    landed = swing * robot.foot_landed
    return landed.sum(1).mul_(moving)


def _shortest_mode_time(env: Env) -> Tensor:
    """Return the shortest time for which a foot has been standing or swinging, s. Shape:
    (num_envs,)."""
    robot = env.robot
    contact_time = robot.foot_contact_time
    mode_time = torch.where(robot.foot_contact, contact_time, robot.foot_air_time)
    return mode_time.amin(1)


def single_stance_time(
    env: Env,
    limit: float,
    command: str = "velocity",
) -> Tensor:
    """Return the time for which a biped has been standing on one foot, s, at most ``limit``.

    The reward is 0 while both feet or no feet are on the ground, and while the command is zero.
    Source: Isaac Lab ``feet_air_time_positive_biped``.

    Args:
        limit: Longest time that counts, s.
        command: Name of the velocity command.
    """
    moving = env.commands.terms[command].moving
    is_single = env.robot.foot_contact.sum(1) == 1
    # With the bound, standing on one foot for ever is no better than a long step.
    time = _shortest_mode_time(env).clamp_max_(limit)
    return time.mul_(is_single).mul_(moving)


def foot_clearance(env: Env, target: float) -> Tensor:
    """Return the height error of moving feet, m³/s: Σ ‖v_f,xy‖ (z_f − ``target``)².

    v_f is the velocity of a foot, m/s. z_f is the height of a foot's origin relative to a foot on
    the ground, m. LeggedGym-Ex has exp(−Σ ‖v_f,xy‖ (z_f − target)² / 0.01). That has almost no
    gradient for feet far from ``target``.

    Args:
        target: Height that a moving foot should have, m.
    """
    # A foot's origin is its radius above the ground in stance.
    target_height = target + env.sim.robot.foot_radius
    error = env.robot.foot_height - target_height
    weighted = error.square_().mul_(env.robot.foot_speed)
    return weighted.sum(1)


def foot_landing_vel(env: Env, threshold: float = 0.05) -> Tensor:
    """Return the squared downward speeds of feet that are about to land, (m/s)²: Σ v_f,z².

    v_f is the velocity of a foot, m/s. The sum is over feet without contact that move down and are
    less than ``threshold`` above the ground. Source: LeggedGym-Ex ``foot_landing_vel``.

    Args:
        threshold: Height of a foot above the ground below which it is about to land, m.
    """
    robot = env.robot
    velocity = robot.foot_lin_vel_w[..., 2]
    height = robot.foot_height - env.sim.robot.foot_radius
    lands = (height < threshold) & (velocity < 0.0) & ~robot.foot_contact
    return (velocity.square() * lands).sum(1)


def foot_slip(env: Env) -> Tensor:
    """Return the sum of squared horizontal speeds of feet on the ground, (m/s)²: Σ ‖v_f,xy‖².

    v_f is the velocity of a foot's origin. For a wheel, it is the velocity of the wheel's point
    next to the ground, which is 0 while the wheel rolls. LeggedGym-Ex sums speeds without a square.
    """
    robot = env.robot
    slip = robot.foot_speed.square().mul_(robot.foot_contact)
    return slip.sum(1)


def trot(
    env: Env,
    pairs: tuple[tuple[int, int], ...],
    phase_time: float,
    command: str = "velocity",
) -> Tensor:
    """Return the similarity of the foot contacts to a slow trot, 0 to 1.

    In a trot, two diagonal feet stand while the other two swing. For the pairs of feet (i, j) and
    (k, l) with contacts b, the value is
    (1[b_i = b_j] + 1[b_k = b_l]) / 2 · 1[b_i ≠ b_k] · (1 + min(T / ``phase_time``, 1)) / 2. T is
    the time since the last change of the contact of any foot, s. The reward is 0 while the command
    is zero.

    Args:
        pairs: Indices of the feet of both diagonal pairs.
        phase_time: Duration of a stance from which a trot counts as slow, s.
        command: Name of the velocity command.
    """
    # A table of all 16 contact patterns takes one lookup instead of ten small operations.
    scores = env.robot.table(("trot", pairs), lambda: _trot_scores(pairs, env.device))
    score = scores[env.robot.contact_code()]
    unhurried = _shortest_mode_time(env).clamp_max_(phase_time)
    unhurried = unhurried.mul_(0.5 / phase_time).add_(0.5)
    # Indexing made a copy of the scores, so the table is not changed.
    moving = env.commands.terms[command].moving
    return score.mul_(unhurried).mul_(moving)


def _trot_scores(pairs: tuple[tuple[int, int], ...], device: torch.device) -> Tensor:
    """Return the part of ``trot`` that depends only on contacts, by contact code. Shape: (16,)."""
    (i, j), (k, m) = pairs
    scores = []
    for code in range(16):
        # Bit f of the code is the contact of foot f.
        contact = [code >> foot & 1 for foot in range(4)]
        first_agrees = contact[i] == contact[j]
        second_agrees = contact[k] == contact[m]
        agreement = (first_agrees + second_agrees) / 2
        alternates = contact[i] != contact[k]
        scores.append(agreement * alternates)
    return torch.tensor(scores, dtype=torch.float32, device=device)


def gait_contact(env: Env, gait: str = "gait") -> Tensor:
    """Return the number of feet with the contact, on the ground or in the air, of the gait clock.

    The gait clock is a command that prescribes when each foot stands. Source: LeggedGym-Ex
    ``contact`` of its ``g1``.

    Args:
        gait: Name of the gait clock.
    """
    stance = env.commands.terms[gait].stance
    agrees = env.robot.foot_contact == stance
    return agrees.sum(1, dtype=torch.float32)


def joint_pos_stand_still(env: Env, command: str = "velocity") -> Tensor:
    """Return Σ (q − q0)², rad², while the command is zero, otherwise 0.

    The term is the squared distance of the joints from the default pose q0.

    Args:
        command: Name of the velocity command.
    """
    still = env.commands.terms[command].still
    distance = env.robot.joint_offset.square().sum(1)
    return distance.mul_(still)


def joint_vel_stand_still(env: Env, command: str = "velocity") -> Tensor:
    """Return the sum of joint speeds Σ |q̇|, rad/s, while the command is zero, otherwise 0.

    Args:
        command: Name of the velocity command.
    """
    still = env.commands.terms[command].still
    speed = env.robot.joint_vel.abs().sum(1)
    return speed.mul_(still)


def foot_contact_stand_still(env: Env, command: str = "velocity") -> Tensor:
    """Return 1 if the command is zero and all feet are on the ground, otherwise 0.

    Args:
        command: Name of the velocity command.
    """
    still = env.commands.terms[command].still
    return still * env.robot.foot_contact.all(1)


def posture(env: Env, gait: str = "gait") -> Tensor:
    """Return Σ (q − q0)², rad², over the joints that the gait does not move.

    The term is the squared distance from the default pose q0, over the joints that move the legs
    sideways, and the joints of arms, head and waist.

    Args:
        gait: Name of the gait clock.
    """
    is_stationary = env.commands.terms[gait].is_stationary
    distance = env.robot.joint_offset.square()
    return distance.mul_(is_stationary).sum(1)


def joint_deviation(env: Env, joints: tuple[int, ...] | None = None) -> Tensor:
    """Return the squared distance from the default pose, rad²: Σ (q − q0)².

    Args:
        joints: Indices of the joints to sum over. None: all joints. The hip joints give ``hip_pos``
            of LeggedGym-Ex.
    """
    offset = env.robot.joint_offset
    if joints is not None:
        offset = offset[:, env.robot.joint_index(joints)]
    return offset.square().sum(1)
