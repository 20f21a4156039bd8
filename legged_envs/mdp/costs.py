"""Cost terms: ``term(env, **params)`` → (num_envs,) float32, 0 where the constraint is satisfied, never negative.
Each describes one transition; its limit in :class:`~legged_envs.managers.CostTermCfg` is an average per step. J is the
number of joints, F of feet. "Kim et al. 2024" is "Stage-Wise-CMORL"."""

import math

import torch
from torch import Tensor

from legged_envs.mdp import rewards
from legged_envs.mdp.context import Env


def _fraction(violated: Tensor) -> Tensor:
    return violated.sum(1, dtype=torch.float32).div_(violated.shape[1])


def joint_position(env: Env, soft_limit: float = 1.0) -> Tensor:
    """(1/J) Σ 1[q outside of ``soft_limit`` of its range, about its middle] (Kim et al. 2024, limit 0.025)."""
    joint_pos = env.robot.joint_pos
    return _fraction(joint_pos != joint_pos.clamp(*env.robot.soft_joint_pos_limits(soft_limit)))


def joint_velocity(env: Env, soft_limit: float = 1.0) -> Tensor:
    """(1/J) Σ 1[|q̇| > soft_limit · q̇_max] (Kim et al. 2024, limit 0.025)."""
    return _fraction(env.robot.joint_vel.abs() > env.robot.joint_vel_limits * soft_limit)


def joint_torque(env: Env, soft_limit: float = 0.8) -> Tensor:
    """(1/J) Σ 1[|τ| > soft_limit · τ_max] (Kim et al. 2024, limit 0.025); the engine applies τ_max at most."""
    return _fraction(env.robot.joint_torque.abs() > env.robot.torque_limits * soft_limit)


def torque_limits(env: Env, soft_limit: float = 0.8) -> Tensor:
    """Σ (|τ| − soft_limit · τ_max)⁺, N·m: by how much :func:`joint_torque` is violated."""
    return rewards.torque_limits(env, soft_limit)


def body_contact(env: Env, threshold: float = 1.0) -> Tensor:
    """1[any penalised or terminating body has a contact force above ``threshold`` N] (Kim et al. 2024, limit 0.025)."""
    return (env.robot.contact_force[:, env.robot.undesired_bodies] > threshold).any(1).float()


def base_orientation(env: Env, max_tilt: float = 0.35) -> Tensor:
    """1[tilt acos(−g_z) > ``max_tilt`` rad] (Kim et al. 2023, arXiv 2308.12517, "CoM frame", limit 0.025)."""
    return (env.robot.projected_gravity[:, 2] > -math.cos(max_tilt)).float()


def foot_slip(env: Env, max_speed: float = 0.2) -> Tensor:
    """(1/F) Σ over standing feet of (‖v_f,xy‖ − max_speed)⁺, m/s ("contact velocity" of Kim et al. 2023 as a hinge).
    v_f is the velocity of a foot's origin, of a wheel that of the point next to the ground, as in ``feet_slip``."""
    violation = (env.robot.foot_speed - max_speed).clamp_min_(0.0).mul_(env.robot.foot_contact)
    return violation.sum(1).div_(violation.shape[1])


def stumble(env: Env, ratio: float = 4.0) -> Tensor:
    """1[on any foot the horizontal contact force is above ``ratio`` × the vertical one] (LeggedGym-Ex ``stumble``)."""
    force = env.robot.contact_force_w[:, env.robot.feet]
    return (
        (torch.linalg.vector_norm(force[..., :2], dim=-1) > ratio * force[..., 2].abs())
        .any(1)
        .float()
    )
