"""Reward terms for imitating a motion clip: functions ``term(env, **params)`` → (num_envs,).

A :class:`~legged_envs.mdp.motion_command.MotionCommand` gives the reference. All terms except
:func:`without_reference` are 0 for robots without a reference. x̂ is the value of x in the
reference. q are joint positions, rad. g is the unit gravity vector in the base frame. v and ω are
the linear and angular velocity of the base in the base frame, m/s and rad/s.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from legged_envs.mdp.context import Env
from legged_envs.mdp.kernels import exponential


def without_reference(
    env: Env,
    term: Callable[..., Tensor],
    motion: str = "motion",
    **params: Any,
) -> Tensor:
    """Return ``term`` for robots that imitate no motion clip at present, and 0 for all other
    robots.

    Args:
        term: Reward term to evaluate, for example one for the commanded velocity.
        motion: Name of the motion command.
        **params: Parameters of ``term``.
    """
    is_free = 1.0 - env.commands.terms[motion].available
    return term(env, **params) * is_free


def reference_joint_pos(
    env: Env,
    sigma: float,
    motion: str = "motion",
) -> Tensor:
    """Return the reward for imitating the clip's joint positions: exp(−Σ (q − q̂)² / σ).

    q̂ are the joint positions of the clip, rad. The reward is 0 for robots without a clip.

    Args:
        sigma: σ, rad². Source: 4 in LeggedGym-Ex ``tracking_ref_dof_pos``.
        motion: Name of the motion command.
    """
    reference = env.commands.terms[motion]
    error = env.robot.joint_pos - reference.target_joint_pos
    reward = exponential(error.square_().sum(1), sigma)
    return reward.mul_(reference.available)


def reference_joint_vel(
    env: Env,
    sigma: float,
    motion: str = "motion",
) -> Tensor:
    """Return the reward for imitating the clip's joint velocities: exp(−Σ |q̇ − q̇̂| / σ).

    q̇̂ are the joint velocities of the clip, rad/s. The reward is 0 for robots without a clip.

    Args:
        sigma: σ, rad/s. Source: 100 in LeggedGym-Ex ``tracking_ref_dof_vel``.
        motion: Name of the motion command.
    """
    reference = env.commands.terms[motion]
    error = env.robot.joint_vel - reference.target_joint_vel
    reward = exponential(error.abs_().sum(1), sigma)
    return reward.mul_(reference.available)


def reference_root_pose(
    env: Env,
    sigma: float,
    planar: bool = False,
    motion: str = "motion",
) -> Tensor:
    """Return the reward for imitating the clip's base pose: exp(−(‖p − p̂‖² + 0.1 d²) / σ).

    p̂ is the position of the base in the clip, and d the difference of the orientations. With
    ``planar``, p is the position in the world frame and d² = 2 (1 − |⟨quat, quat̂⟩|), as in
    LeggedGym-Ex ``tracking_ref_root_pose``. Without ``planar``, p is the height of the base only
    and d² = ‖g − ĝ‖² / 4. Both d² agree for small tilts with equal heading. The reward is 0 for
    robots without a clip.

    Args:
        sigma: σ, m². Source: 0.2 in LeggedGym-Ex.
        planar: True if the horizontal position and the heading count too. Use False for policies
            that do not observe their position in the world.
        motion: Name of the motion command.
    """
    robot = env.robot
    reference = env.commands.terms[motion]
    if planar:
        target_pos = reference.window_root_pos_w[:, 0]
        target_quat = reference.window_root_quat_w[:, 0]
        distance = (robot.root_pos_w - target_pos).square_().sum(1)
        # q and −q are the same rotation.
        cosine = (robot.root_quat_w * target_quat).sum(1).abs_()
        turn = 2.0 * (1.0 - cosine)
    else:
        target_height = reference.window_root_pos_w[:, 0, 2]
        distance = (robot.base_height - target_height).square_()
        tilt = robot.projected_gravity - reference.target_gravity
        turn = 0.25 * tilt.square_().sum(1)
    error = torch.add(distance, turn, alpha=0.1)
    return exponential(error, sigma).mul_(reference.available)


def reference_root_vel(
    env: Env,
    sigma: float,
    angular: float = 1.0,
    motion: str = "motion",
) -> Tensor:
    """Return the reward for imitating the velocity of the clip's base, each in its own base frame.

    The reward is exp(−(‖v − v̂‖² + angular ‖ω − ω̂‖²) / σ), with the clip's velocities v̂ and ω̂,
    and 0 for robots without a clip. Source: LeggedGym-Ex ``tracking_ref_root_vel``.

    Args:
        sigma: σ, (m/s)². Source: 1 in LeggedGym-Ex.
        angular: Weight of the angular velocity, m²/rad². LeggedGym-Ex has 1. With 1, the fast
            rocking of the base in a gait dominates the error.
        motion: Name of the motion command.
    """
    robot = env.robot
    reference = env.commands.terms[motion]
    linear_error = (robot.lin_vel_b - reference.target_lin_vel_b).square_().sum(1)
    angular_error = (robot.ang_vel_b - reference.target_ang_vel_b).square_().sum(1)
    error = torch.add(linear_error, angular_error, alpha=angular)
    return exponential(error, sigma).mul_(reference.available)


def reference_key_pos(
    env: Env,
    sigma: float,
    motion: str = "motion",
) -> Tensor:
    """Return the reward for imitating the positions of the clip's key bodies: exp(−Σ ‖x − x̂‖² / σ).

    x are the positions of the key bodies (``MotionCommandCfg.key_bodies``) in the base frame, m,
    and x̂ the positions in the clip. LeggedGym-Ex compares the positions in the world frame. The
    reward is 0 for robots without a clip.

    Args:
        sigma: σ, m². Source: 0.1 in LeggedGym-Ex.
        motion: Name of the motion command.
    """
    reference = env.commands.terms[motion]
    error = env.robot.bodies(reference.key_bodies).pos_b - reference.target_key_pos_b
    reward = exponential(error.square_().sum((1, 2)), sigma)
    return reward.mul_(reference.available)


def reference_foot_height(
    env: Env,
    sigma: float,
    motion: str = "motion",
) -> Tensor:
    """Return the reward for lifting the feet as the clip does: exp(−Σ (z − ẑ)² / σ).

    z are the heights of the feet's origins above the ground, m, and ẑ the heights in the clip. All
    feet must be key bodies of the motion command. The reward is 0 for robots without a clip. A
    robot that shuffles along instead of stepping loses little of the other rewards, but most of
    this one.

    Args:
        sigma: σ, m².
        motion: Name of the motion command.
    """
    reference = env.commands.terms[motion]
    error = foot_height_error(env, motion)
    reward = exponential(error.square_().sum(1), sigma)
    return reward.mul_(reference.available)


def foot_height_error(env: Env, motion: str = "motion") -> Tensor:
    """Return the heights of the feet's origins above the ground minus the heights in the clip, m.

    Shape: (num_envs, num_feet).

    Args:
        motion: Name of the motion command.

    Raises:
        ValueError: A foot is not a key body of the motion command.
    """
    reference = env.commands.terms[motion]
    if not reference.foot_columns:
        raise ValueError(
            f"all feet, {', '.join(env.sim.robot.foot_names)}, must be among "
            f"MotionCommandCfg.key_bodies, got {', '.join(reference.key_bodies)}"
        )
    return env.robot.foot_height - reference.target_key_height[:, reference.foot_columns]
