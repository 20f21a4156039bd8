"""Cost terms: ``term(env, **params)`` → (num_envs,) float32, 0 where the constraint is satisfied.

Costs are never negative. Each describes one transition. Its limit in
:class:`~legged_envs.managers.CostTermCfg` is an average per step. J is the number of joints, F that
of feet, q are joint positions, τ torques, g the unit gravity vector in the base frame, v_f the
velocity of a foot, and 1[…] is 1 where the condition holds and else 0. "Kim et al. 2024" is
"Stage-Wise-CMORL".
"""

import math

import torch
from torch import Tensor

from legged_envs.mdp import rewards
from legged_envs.mdp.context import Env


def _fraction(violated: Tensor) -> Tensor:
    """Return the part of the columns that are True. Shape: (num_envs,)."""
    # Summed in float32: a mean of bools would need a copy first.
    return violated.sum(1, dtype=torch.float32).div_(violated.shape[1])


def joint_position(env: Env, soft_limit: float = 1.0) -> Tensor:
    """Return the fraction of joints outside of their allowed range: (1/J) Σ 1[q outside].

    Args:
        soft_limit: Fraction of a joint's range, around its middle, that is allowed. Source: Kim et
            al. 2024, with a limit of 0.025 for this cost.
    """
    joint_pos = env.robot.joint_pos
    low, high = env.robot.soft_joint_pos_limits(soft_limit)
    # Clamping changes exactly the positions outside.
    return _fraction(joint_pos != joint_pos.clamp(low, high))


def joint_velocity(env: Env, soft_limit: float = 1.0) -> Tensor:
    """Return the fraction of joints that are too fast: (1/J) Σ 1[|q̇| > ``soft_limit`` · q̇_max].

    Args:
        soft_limit: Fraction of the speed limit q̇_max that is allowed. Source: Kim et al. 2024,
            with a limit of 0.025 for this cost.
    """
    limit = env.robot.joint_vel_limits * soft_limit
    return _fraction(env.robot.joint_vel.abs() > limit)


def joint_torque(env: Env, soft_limit: float = 0.8) -> Tensor:
    """Return the fraction of joints with a high torque: (1/J) Σ 1[|τ| > ``soft_limit`` · τ_max].

    The engine clips torques to ±τ_max, so the cost is always 0 for ``soft_limit`` 1 or above.

    Args:
        soft_limit: Fraction of the torque limit τ_max that is allowed. Source: Kim et al. 2024,
            with a limit of 0.025 for this cost.
    """
    limit = env.robot.torque_limits * soft_limit
    return _fraction(env.robot.joint_torque.abs() > limit)


def torque_limits(env: Env, soft_limit: float = 0.8) -> Tensor:
    """Return the sum of torques above their allowed values, N·m: Σ (|τ| − ``soft_limit`` · τ_max)⁺.

    :func:`joint_torque` counts the same violations and does not measure them.

    Args:
        soft_limit: Fraction of the torque limit τ_max that is allowed.
    """
    return rewards.torque_limits(env, soft_limit)


def body_contact(env: Env, threshold: float = 1.0) -> Tensor:
    """Return 1 if a body that should touch nothing has a contact force above ``threshold``.

    The bodies are the penalised and the terminating ones of the robot's configuration.

    Args:
        threshold: Contact force, N. Source: Kim et al. 2024, with a limit of 0.025 for this cost.
    """
    force = env.robot.contact_force[:, env.robot.undesired_bodies]
    return (force > threshold).any(1).float()


def base_orientation(env: Env, max_tilt: float = 0.35) -> Tensor:
    """Return 1 if the base is tilted too far: 1[acos(−g_z) > ``max_tilt``].

    Args:
        max_tilt: Largest allowed angle between the base's z axis and the vertical, rad. Source: Kim
            et al. 2023, arXiv 2308.12517, "CoM frame", with a limit of 0.025 for this cost.
    """
    # Cosines are compared: an arc cosine loses accuracy near 0.
    gravity_z = env.robot.projected_gravity[:, 2]
    return (gravity_z > -math.cos(max_tilt)).float()


def foot_slip(env: Env, max_speed: float = 0.2) -> Tensor:
    """Return the mean excess speed of feet on the ground: (1/F) Σ (‖v_f,xy‖ − ``max_speed``)⁺, m/s.

    Feet in the air count as 0. v_f is the velocity of a foot's origin. For a wheel, v_f is the
    velocity of its point next to the ground, which is 0 while the wheel rolls. Source: "contact
    velocity" of Kim et al. 2023, here only above a threshold.

    Args:
        max_speed: Allowed horizontal speed of a foot on the ground, m/s.
    """
    robot = env.robot
    violation = (robot.foot_speed - max_speed).clamp_min_(0.0).mul_(robot.foot_contact)
    return violation.sum(1).div_(violation.shape[1])


def stumble(env: Env, ratio: float = 4.0) -> Tensor:
    """Return 1 if a foot hits an obstacle from the side.

    That is: the horizontal contact force of a foot is larger than ``ratio`` times its vertical
    contact force. Source: LeggedGym-Ex ``stumble``.

    Args:
        ratio: Largest allowed ratio of the horizontal to the vertical force.
    """
    force = env.robot.contact_force_w[:, env.robot.feet]
    horizontal = torch.linalg.vector_norm(force[..., :2], dim=-1)
    vertical = force[..., 2].abs()
    # Friction alone, with a coefficient below the ratio, cannot cause it.
    return (horizontal > ratio * vertical).any(1).float()
