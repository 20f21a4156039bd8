"""Reward terms of a gait command: functions ``term(env, **params)`` → (num_envs,) float32.

These terms reward feet that stand and swing at the commanded times, and a base that is carried as
commanded.

Source, unless a term states otherwise: Margolis and Agrawal 2022, "Walk These Ways"
(https://arxiv.org/abs/2212.03238), Table 1, with the numbers of its published code
(``walk-these-ways``, MIT). Symbols: C_f probability that foot f should be on the ground
(:func:`~legged_envs.mdp.gait_command.contact_probability`); F_f contact force, N; v_f velocity,
m/s; z_f height above the ground, m; φ_f phase of the foot.

The terms of the paper for contacts are penalties. Here 1 is added, so that their values are in
0 to 1: the sum of the rewards is floored at 0, and robots that learn would not see them there.
"""

import math

import torch
from torch import Tensor

from legged_envs.mdp.context import Env
from legged_envs.mdp.gait_command import STANCE
from legged_envs.mdp.kernels import exponential


def tracking_contacts_shaped_force(
    env: Env,
    sigma: float,
    gait: str = "gait",
) -> Tensor:
    """Return the reward for feet without contact force while they should swing, 0 to 1.

    The reward is 1 − Σ_f (1 − C_f) (1 − exp(−F_f² / σ)) / 4.

    Args:
        sigma: σ, N², which should be near the squared force on a foot of a standing robot: with a
            much smaller one, a foot earns nothing until it has left the ground.
        gait: Name of the gait command.
    """
    term = env.commands.terms[gait]
    robot = env.robot
    swing = 1.0 - term.contact_schedule
    force = robot.contact_force[:, robot.feet]
    without_force = exponential(force.square(), sigma)
    penalty = swing * (1.0 - without_force)
    return 1.0 - penalty.mean(1)


def tracking_contacts_shaped_vel(
    env: Env,
    sigma: float,
    gait: str = "gait",
) -> Tensor:
    """Return the reward for feet that do not move while they should be on the ground, 0 to 1.

    The reward is 1 − Σ_f C_f (1 − exp(−‖v_f‖² / σ)) / 4.

    Args:
        sigma: σ, (m/s)².
        gait: Name of the gait command.
    """
    term = env.commands.terms[gait]
    stance = term.contact_schedule
    velocity = env.robot.foot_lin_vel_w
    speed_squared = velocity.square().sum(2)
    at_rest = exponential(speed_squared, sigma)
    penalty = stance * (1.0 - at_rest)
    return 1.0 - penalty.mean(1)


def tracking_stance(
    env: Env,
    gait: str = "gait",
) -> Tensor:
    """Return the reward for feet that touch the ground while they should, 0 to 1.

    The reward is 1 − Σ_f C_f (1 − c_f) / 4, with c_f = 1 if foot f touches the ground, otherwise 0.
    The paper has no term for the stance. Without this term, robots hop twice in a long stride of a
    pronk.

    Args:
        gait: Name of the gait command.
    """
    stance = env.commands.terms[gait].contact_schedule
    is_in_air = ~env.robot.foot_contact
    penalty = stance * is_in_air
    return 1.0 - penalty.mean(1)


def tracking_foot_clearance(
    env: Env,
    sigma: float,
    gait: str = "gait",
) -> Tensor:
    """Return the reward for the commanded height of swinging feet, 0 to 1.

    The reward is 1 − Σ_f (1 − C_f) (1 − exp(−(z_f − z*_f)² / σ)) / 4. z*_f is the commanded
    clearance times sin² of the time of the swing, from 0 to π: the foot leaves the ground and lands
    at rest. In the paper, z*_f rises and falls linearly, and Σ_f (1 − C_f) (z_f − z*_f)² is a
    penalty.

    Args:
        sigma: σ, m².
        gait: Name of the gait command.
    """
    term = env.commands.terms[gait]
    since_stance = term.foot_phase - STANCE
    swing_time = since_stance.clamp_(min=0.0)
    swing_angle = swing_time * (math.pi / (1.0 - STANCE))
    lift = swing_angle.sin().square()
    target = term.clearance.unsqueeze(1) * lift
    # A foot's origin is its radius above the ground in stance.
    height = env.robot.foot_height - env.sim.robot.foot_radius
    error = height - target
    at_height = exponential(error.square(), sigma)
    # Each foot earns its own reward: a kernel of the sum has no gradient while all feet stand.
    swing = 1.0 - term.contact_schedule
    penalty = swing * (1.0 - at_height)
    return 1.0 - penalty.mean(1)


def tracking_base_height(
    env: Env,
    sigma: float,
    gait: str = "gait",
) -> Tensor:
    """Return the reward for the commanded height of the base: exp(−(h − h*)² / σ).

    The paper has a penalty of the same error (``jump`` in its code); LeggedGym-Ex's ``go2_wtw`` has
    this kernel.

    Args:
        sigma: σ, m².
        gait: Name of the gait command.
    """
    term = env.commands.terms[gait]
    error = env.robot.base_height - term.height
    return exponential(error.square(), sigma)


def tracking_orientation(
    env: Env,
    sigma: float,
    gait: str = "gait",
) -> Tensor:
    """Return the reward for the commanded pitch p*, without roll: exp(−‖g_xy − g*_xy‖² / σ).

    g is the unit gravity vector in the base frame. With the pitch p* and no roll it is
    g* = (sin p*, 0, −cos p*). The paper has a penalty of the same error (``orientation_control`` in
    its code).

    Args:
        sigma: σ, a squared sine.
        gait: Name of the gait command.
    """
    gravity = env.robot.projected_gravity
    term = env.commands.terms[gait]
    pitch_error = gravity[:, 0] - term.pitch.sin()
    roll_error = gravity[:, 1]
    error = pitch_error.square() + roll_error.square()
    return exponential(error, sigma)


def raibert_heuristic(
    env: Env,
    length: float,
    width: float,
    gait: str = "gait",
    command: str = "velocity",
) -> Tensor:
    """Return the squared distances of feet from the places of Raibert's heuristic, m²: Σ_f ‖p_f −
    p*_f‖².

    p_f is the horizontal place of foot f relative to the base, in axes that turn with the heading.
    p*_f is p⁰_f + (|1 − 2 φ_f| − ½) T_s c_f. Here p⁰_f = (± ``length`` / 2, ± ``width`` / 2) is the
    place below the hip, T_s the duration of a stance, and c_f the commanded velocity of the body at
    p⁰_f, (v_x − ω_z y⁰_f, v_y + ω_z x⁰_f). So a foot lands T_s c_f / 2 ahead of its hip (Raibert
    1986, "Legged Robots That Balance"). The paper leaves v_y out and has ω_z in the second
    component only. While the command is zero, p*_f is p⁰_f.

    Args:
        length: Distance of front and rear feet, m.
        width: Distance of left and right feet, m.
        gait: Name of the gait command.
        command: Name of the velocity command.
    """
    term = env.commands.terms[gait]
    hips = term.hip_places(length, width)
    velocity = _velocity_at(hips, env.commands[command])
    # 1/2 as the foot lands, −1/2 as it leaves the ground.
    share = (1.0 - 2.0 * term.foot_phase).abs() - 0.5
    stance_time = STANCE * term.period * term.moving
    time = share * stance_time.unsqueeze(1)
    target = hips + time.unsqueeze(2) * velocity
    error = _feet_in_heading_frame(env) - target
    return error.square().sum((1, 2))


def _velocity_at(points: Tensor, command: Tensor) -> Tensor:
    """Return the commanded velocity of points of the body, m/s. Shape: (num_envs, n, 2).

    Args:
        points: Places of the points relative to the base, m. Shape: (n, 2).
        command: Velocity command (vx, vy, ωz). Shape: (num_envs, 3).
    """
    x, y = points.unbind(1)
    vx, vy, turn = command[:, :3].split(1, dim=1)
    ahead = vx - turn * y
    left = vy + turn * x
    return torch.stack((ahead, left), dim=2)


def _feet_in_heading_frame(env: Env) -> Tensor:
    """Return where the feet are from the base, in axes that turn with the heading, m.

    Shape: (num_envs, num_feet, 2).
    """
    robot = env.robot
    base = robot.root_pos_w.unsqueeze(1)
    way = robot.foot_pos_w - base
    x = way[..., 0]
    y = way[..., 1]
    yaw = robot.heading().unsqueeze(1)
    cos = yaw.cos()
    sin = yaw.sin()
    ahead = cos * x + sin * y
    left = cos * y - sin * x
    return torch.stack((ahead, left), dim=2)
