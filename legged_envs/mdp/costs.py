"""Cost terms: ``term(env, **params)`` → (num_envs,) float32, 0 where the constraint is satisfied.

Costs are never negative. Each describes one transition. Its limit in
:class:`~legged_envs.managers.CostTermCfg` is an average per step. J is the number of joints, F the
number of feet, q are joint positions, τ torques, g the unit gravity vector in the base frame, v_f
the velocity of a foot, and 1[…] is 1 where the condition holds and 0 elsewhere. "Kim et al. 2024"
is "Stage-Wise-CMORL".
"""

import math

import torch
from torch import Tensor

from legged_envs.mdp import rewards
from legged_envs.mdp.context import Env

GRAVITY = 9.81
"""Acceleration of free fall, m/s²."""


def _fraction(violated: Tensor) -> Tensor:
    """Return the part of the columns that are True. Shape: (num_envs,)."""
    # Summed in float32: a mean of bools would need a copy first.
    return violated.sum(1, dtype=torch.float32).div_(violated.shape[1])


def _excess(values: Tensor, allowed: float) -> Tensor:
    """Return (values − ``allowed``)⁺, in place. Shape: (num_envs,)."""
    return values.sub_(allowed).clamp_min_(0.0)


def joint_position(
    env: Env,
    soft_limit: float = 1.0,
) -> Tensor:
    """Return the fraction of joints outside of their allowed range: (1/J) Σ 1[q outside].

    Args:
        soft_limit: Fraction of a joint's range, around its middle, that is allowed. Source: Kim et
            al. 2024, with a limit of 0.025 for this cost.
    """
    joint_pos = env.robot.joint_pos
    low, high = env.robot.soft_joint_pos_limits(soft_limit)
    # Clamping changes exactly the positions outside.
    return _fraction(joint_pos != joint_pos.clamp(low, high))


def joint_velocity(
    env: Env,
    soft_limit: float = 1.0,
) -> Tensor:
    """Return the fraction of joints that are too fast: (1/J) Σ 1[|q̇| > ``soft_limit`` · q̇_max].

    Args:
        soft_limit: Fraction of the speed limit q̇_max that is allowed. Source: Kim et al. 2024,
            with a limit of 0.025 for this cost.
    """
    limit = env.robot.joint_vel_limits * soft_limit
    return _fraction(env.robot.joint_vel.abs() > limit)


def joint_torque(
    env: Env,
    soft_limit: float = 0.8,
) -> Tensor:
    """Return the fraction of joints with a high torque: (1/J) Σ 1[|τ| > ``soft_limit`` · τ_max].

    The engine clips torques to ±τ_max, so the cost is always 0 for ``soft_limit`` 1 or above.

    Args:
        soft_limit: Fraction of the torque limit τ_max that is allowed. Source: Kim et al. 2024,
            with a limit of 0.025 for this cost.
    """
    limit = env.robot.torque_limits * soft_limit
    return _fraction(env.robot.joint_torque.abs() > limit)


def torque_limits(
    env: Env,
    soft_limit: float = 0.8,
) -> Tensor:
    """Return the sum of torques above their allowed values, N·m: Σ (|τ| − ``soft_limit`` · τ_max)⁺.

    :func:`joint_torque` counts the same violations and does not measure them.

    Args:
        soft_limit: Fraction of the torque limit τ_max that is allowed.
    """
    return rewards.torque_limits(env, soft_limit)


def body_contact(
    env: Env,
    threshold: float = 1.0,
) -> Tensor:
    """Return 1 if a body that should touch nothing has a contact force above ``threshold``.

    The bodies are the penalized and the terminating ones of the robot's configuration.

    Args:
        threshold: Contact force, N. Source: Kim et al. 2024, with a limit of 0.025 for this cost.
    """
    force = env.robot.contact_force[:, env.robot.undesired_bodies]
    return (force > threshold).any(1).float()


def base_orientation(
    env: Env,
    max_tilt: float = 0.35,
) -> Tensor:
    """Return 1 if the base is tilted too far: 1[acos(−g_z) > ``max_tilt``].

    Args:
        max_tilt: Largest allowed angle between the base's z axis and the vertical, rad. Source: Kim
            et al. 2023, arXiv 2308.12517, "CoM frame", with a limit of 0.025 for this cost.
    """
    # Cosines are compared: an arc cosine loses accuracy near 0.
    gravity_z = env.robot.projected_gravity[:, 2]
    return (gravity_z > -math.cos(max_tilt)).float()


def foot_slip(
    env: Env,
    max_speed: float = 0.2,
) -> Tensor:
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


def stumble(
    env: Env,
    ratio: float = 4.0,
) -> Tensor:
    """Return 1 if a foot hits an obstacle from the side.

    That is: the horizontal contact force of a foot is larger than ``ratio`` times its vertical
    contact force. Source: LeggedGym-Ex ``stumble``.

    Args:
        ratio: Largest allowed ratio of the horizontal to the vertical force.
    """
    force = env.robot.contact_force_w[:, env.robot.feet]
    horizontal = torch.linalg.vector_norm(force[..., :2], dim=-1)
    vertical = force[..., 2].abs()
    # Friction with a coefficient below the ratio cannot cause it.
    return (horizontal > ratio * vertical).any(1).float()


def energy(
    env: Env,
    allowed: float = 0.0,
) -> Tensor:
    """Return the mechanical power of the joints above an allowance, W: (Σ |τ q̇| − ``allowed``)⁺.

    Braking counts too, because few robots recover its energy. Source: the energy term of Fu et al.
    2021, arXiv 2111.01674, which is Σ τ q̇.

    Args:
        allowed: Power without a cost, W. 0: the mean cost is the mean power.
    """
    power = rewards.joint_power(env)
    return _excess(power, allowed)


def energy_per_metre(
    env: Env,
    allowed: float = 0.0,
    lowest_speed: float = 0.1,
) -> Tensor:
    """Return the energy for each metre of travel, J/m: (Σ |τ q̇| / max(‖v_xy‖, v_min) − allowed)⁺.

    v_xy is the horizontal velocity of the base in the base frame. Divided by the robot's weight it
    is the mechanical cost of transport. Source: "specific resistance" of Gabrielli and von Kármán
    1950.

    Args:
        allowed: Energy for each metre without a cost, J/m.
        lowest_speed: v_min, m/s, which bounds the cost of a robot that stands or turns on the spot.
    """
    velocity = env.robot.lin_vel_b[:, :2]
    speed = torch.linalg.vector_norm(velocity, dim=1).clamp_min_(lowest_speed)
    power = rewards.joint_power(env)
    per_metre = power.div_(speed)
    return _excess(per_metre, allowed)


def foot_contact_force(
    env: Env,
    allowed: float = 2.0,
) -> Tensor:
    """Return the largest force on a foot above an allowance, in body weights: (max F_f / mg − a)⁺.

    F_f is the magnitude of the contact force on a foot, m the mass of the robot without payload,
    g = 9.81 m/s², and a ``allowed``.

    Args:
        allowed: Force without a cost, body weights. Source: Chane-Sane et al. 2024 (CaT), which
            allow 50 N for Solo-12, twice the weight of this robot.
    """
    robot = env.robot
    weight = robot.table("body_weight", lambda: _body_weight(env))
    force = robot.contact_force[:, robot.feet]
    largest = force.amax(1).div_(weight)
    return _excess(largest, allowed)


def touchdown_speed(
    env: Env,
    allowed: float = 0.0,
    threshold: float = 0.03,
) -> Tensor:
    """Return the largest downward speed of a foot that is about to land, m/s: (max −v_f,z − a)⁺.

    The maximum is over feet without contact that are less than ``threshold`` above the ground, and
    a is ``allowed``. The impact itself is shorter than a control step, so that the speed after it
    is nearly 0. Source: LeggedGym-Ex ``foot_landing_vel``, here a speed and not its square.

    Args:
        allowed: Downward speed without a cost, m/s.
        threshold: Height of a foot above the ground below which it is about to land, m.
    """
    robot = env.robot
    height = robot.foot_height - env.sim.robot.foot_radius
    is_low = height < threshold
    is_landing = is_low & ~robot.foot_contact
    upward = robot.foot_lin_vel_w[..., 2]
    downward = upward.neg().mul_(is_landing)
    fastest = downward.amax(1)
    return _excess(fastest, allowed)


def joint_acceleration(
    env: Env,
    max_acceleration: float = 800.0,
) -> Tensor:
    """Return the fraction of joints that accelerate too fast: (1/J) Σ 1[|q̈| > max_acceleration].

    q̈ is the change of the joint velocity over a control step, divided by its duration.

    Args:
        max_acceleration: Allowed acceleration, rad/s². Source: Chane-Sane et al. 2024 (CaT).
    """
    change = env.robot.joint_vel - env.robot.previous_joint_vel
    largest = max_acceleration * env.step_dt
    return _fraction(change.abs_() > largest)


def action_rate(
    env: Env,
    max_rate: float = 40.0,
) -> Tensor:
    """Return the fraction of actions that change too fast: mean 1[|a_t − a_{t−1}| / dt > max_rate].

    Args:
        max_rate: Allowed rate of an action, 1/s. Actions are in −1 to 1. Source: Chane-Sane et al.
            2024 (CaT), with 80 for the scale of their actions.
    """
    change = env.actions.current - env.actions.previous
    largest = max_rate * env.step_dt
    return _fraction(change.abs_() > largest)


def foot_clearance(
    env: Env,
    target: float = 0.05,
) -> Tensor:
    """Return how far swinging feet are too low, m²/s: (1/F) Σ ‖v_f,xy‖ (``target`` − z_f)⁺.

    z_f is the height of a foot relative to a foot on the ground, m. Feet with contact count as 0.
    Source: "foot clearance" of Kim et al. 2023, here weighted by the speed of the foot, so that
    only the middle of a swing must be high.

    Args:
        target: Height of a swinging foot without a cost, m.
    """
    robot = env.robot
    # A foot's origin is its radius above the ground in stance.
    target_height = target + env.sim.robot.foot_radius
    missing = target_height - robot.foot_height
    missing.clamp_min_(0.0)
    is_swinging = ~robot.foot_contact
    weighted = missing.mul_(robot.foot_speed).mul_(is_swinging)
    return weighted.sum(1).div_(weighted.shape[1])


def base_height(
    env: Env,
    lowest: float,
    highest: float = math.inf,
) -> Tensor:
    """Return 1 if the base is too low or too high: 1[h < ``lowest`` or h > ``highest``].

    h is the height of the base above the ground. Source: "body height" of Kim et al. 2024, with a
    limit of 0.025 for this cost.

    Args:
        lowest: Smallest allowed height, m.
        highest: Largest allowed height, m.
    """
    height = env.robot.base_height
    is_low = height < lowest
    is_high = height > highest
    return (is_low | is_high).float()


def symmetry(
    env: Env,
    allowed: float = 0.0,
) -> Tensor:
    """Return the mean difference of left and right joints, rad: ((1/J) Σ |o_j − s_j o_m(j)| − a)⁺.

    o is the distance of a joint from the default pose, m(j) the partner of joint j on the other
    side, s_j its sign in the mirror image of ``RobotCfg.mirror``, and a is ``allowed``. It is 0 for
    a robot that equals its mirror image, as in standing, pronking and bounding. Source: "symmetry"
    of Kim et al. 2023, here of positions and not of actions.

    Args:
        allowed: Mean difference without a cost, rad. A trot or a walk needs some.
    """
    offset = env.robot.joint_offset
    partners, signs = env.robot.table("mirrored_joints", lambda: _mirrored_joints(env))
    mirrored = offset[:, partners] * signs
    difference = (offset - mirrored).abs_()
    return _excess(difference.mean(1), allowed)


def self_collision(
    env: Env,
    bodies: tuple[str, ...] = (),
    distance: float = 0.1,
) -> Tensor:
    """Return 1 if two bodies of the robot are too close: 1[min ‖p_i − p_j‖ < ``distance``].

    p are the origins of the bodies. Engines report the net force on a body, not the pair of a
    contact, so distances replace forces. Source: "feet distance" of Gu et al. 2024
    (Humanoid-Gym), arXiv 2404.05695.

    Args:
        bodies: Names of two or more bodies, for example feet or shanks. Empty: the feet.
        distance: Smallest allowed distance of two origins, m.

    Raises:
        ValueError: If there are fewer than two bodies.
    """
    robot = env.robot
    points = robot.foot_pos_w
    if bodies:
        points = robot.bodies(bodies).pos_b
    count = points.shape[1]
    if count < 2:
        raise ValueError(
            f"self_collision needs two or more bodies, got {bodies or 'the only foot'}: "
            "name them in its parameter bodies"
        )
    first, second = robot.table(("pairs", count), lambda: _pairs(count, env.device))
    between = points[:, first] - points[:, second]
    apart = torch.linalg.vector_norm(between, dim=-1)
    is_close = apart < distance
    return is_close.any(1).float()


def com_frame(
    env: Env,
    height: tuple[float, float],
    max_tilt: float = 0.35,
) -> Tensor:
    """Return 1 if the base leaves its frame: 1[h outside ``height`` or acos(−g_z) > ``max_tilt``].

    h is the height of the base above the ground.

    Args:
        height: Smallest and largest allowed height, m.
        max_tilt: Largest allowed angle between the base's z axis and the vertical, rad. Source: Kim
            et al. 2023, arXiv 2308.12517, "CoM frame", with a limit of 0.025 for this cost.
    """
    lowest, highest = height
    outside = base_height(env, lowest, highest)
    tilted = base_orientation(env, max_tilt)
    return torch.maximum(outside, tilted)


def _body_weight(env: Env) -> Tensor:
    """Return the weight of each robot without payload, N. Shape: (num_envs,)."""
    # Without the changes of events, so that a payload makes a step harder and not lighter.
    mass = env.robot.sim.default_parameter("body_mass")
    return mass.sum(1).mul_(GRAVITY)


def _mirrored_joints(env: Env) -> tuple[Tensor, Tensor]:
    """Return the partner of each joint on the other side, and its sign. Shapes: (J,)."""
    robot = env.robot.sim.robot
    partners = []
    signs = []
    for partner, sign in robot.mirror:
        partners.append(robot.joint_names.index(partner))
        signs.append(sign)
    columns = torch.tensor(partners, device=env.device)
    return columns, torch.tensor(signs, dtype=torch.float32, device=env.device)


def _pairs(count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the two indices of each pair of ``count`` points. Shapes: (number of pairs,)."""
    first, second = torch.triu_indices(count, count, offset=1, device=device)
    return first, second
