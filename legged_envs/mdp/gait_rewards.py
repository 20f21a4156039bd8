"""Reward terms of a gait command: when feet should stand and swing, and how the base is carried.

Source, unless a term states otherwise: Margolis and Agrawal 2022, "Walk These Ways"
(https://arxiv.org/abs/2212.03238), Table 1, with the numbers of its published code
(``walk-these-ways``, MIT). Symbols: C_f probability that foot f should be on the ground
(:func:`~legged_envs.mdp.gait_command.contact_probability`); F_f contact force, N; v_f velocity, m/s;
z_f height above the ground, m; φ_f phase of the foot.

The terms of the paper for contacts are penalties. Here 1 is added, so that their values are in
0 to 1: the sum of the rewards is floored at 0, and robots that learn would not see them there.
"""

import math

from torch import Tensor

from legged_envs.mdp.context import Env
from legged_envs.mdp.gait_command import STANCE
from legged_envs.mdp.kernels import exponential


def tracking_contacts_shaped_force(env: Env, sigma: float = 100.0, gait: str = "gait") -> Tensor:
    """Return the reward for no force on feet that should swing, 0 to 1.

    It is 1 − Σ_f (1 − C_f) (1 − exp(−F_f² / σ)) / 4.

    Args:
        sigma: σ, N².
        gait: Name of the gait command.
    """
    swing = 1.0 - env.commands.terms[gait].contact_schedule
    force = env.robot.contact_force[:, env.robot.feet]
    penalty = 1.0 - exponential(force.square(), sigma)
    return 1.0 - (swing * penalty).mean(1)


def tracking_contacts_shaped_vel(env: Env, sigma: float = 10.0, gait: str = "gait") -> Tensor:
    """Return the reward for feet at rest that should stand, 0 to 1.

    It is 1 − Σ_f C_f (1 − exp(−‖v_f‖² / σ)) / 4.

    Args:
        sigma: σ, (m/s)².
        gait: Name of the gait command.
    """
    stance = env.commands.terms[gait].contact_schedule
    speed_squared = env.robot.foot_lin_vel_w.square().sum(2)
    penalty = 1.0 - exponential(speed_squared, sigma)
    return 1.0 - (stance * penalty).mean(1)


def tracking_foot_clearance(env: Env, sigma: float, gait: str = "gait") -> Tensor:
    """Return the reward for the commanded height of swinging feet, 0 to 1.

    It is exp(−Σ_f (1 − C_f) (z_f − z*_f)² / σ). z*_f is the commanded clearance times sin² of the
    time of the swing, from 0 to π: the foot leaves the ground and lands at rest. In the paper, z*_f
    rises and falls linearly, and the sum is a penalty.

    Args:
        sigma: σ, m².
        gait: Name of the gait command.
    """
    term = env.commands.terms[gait]
    swing_time = (term.foot_phase - STANCE).clamp_(min=0.0) / (1.0 - STANCE)
    lift = (swing_time * math.pi).sin_().square_()
    target = term.clearance.unsqueeze(1) * lift
    # A foot's origin is its radius above the ground in stance.
    height = env.robot.foot_height - env.sim.robot.foot_radius
    swing = 1.0 - term.contact_schedule
    error = swing * (height - target).square_()
    return exponential(error.sum(1), sigma)


def tracking_base_height(env: Env, sigma: float, gait: str = "gait") -> Tensor:
    """Return the reward for the commanded height of the base: exp(−(h − h*)² / σ).

    The paper has a penalty of the same error (``jump`` in its code); LeggedGym-Ex's ``go2_wtw`` has
    this kernel.

    Args:
        sigma: σ, m².
        gait: Name of the gait command.
    """
    error = env.robot.base_height - env.commands.terms[gait].height
    return exponential(error.square_(), sigma)


def tracking_orientation(env: Env, sigma: float, gait: str = "gait") -> Tensor:
    """Return the reward for the commanded pitch p*, without roll: exp(−‖g_xy − g*_xy‖² / σ).

    g is the unit gravity vector in the base frame. With the pitch p* and no roll it is
    g* = (sin p*, 0, −cos p*). The paper has a penalty of the same error (``orientation_control`` in
    its code).

    Args:
        sigma: σ, a squared sine.
        gait: Name of the gait command.
    """
    gravity = env.robot.projected_gravity
    pitch = env.commands.terms[gait].pitch
    error = (gravity[:, 0] - pitch.sin()).square_() + gravity[:, 1].square()
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
    1986, "Legged Robots That Balance"). The paper leaves v_y out and has ω_z in the second component
    only. While the command is to stand still, p*_f is p⁰_f.

    Args:
        length: Distance of front and rear feet, m.
        width: Distance of left and right feet, m.
        gait: Name of the gait command.
        command: Name of the velocity command.
    """
    term = env.commands.terms[gait]
    velocity = env.commands[command]
    half_size = velocity.new_tensor((0.5 * length, 0.5 * width))
    hips = term.sides * half_size
    turn = velocity[:, 2:3]
    speed_x = velocity[:, 0:1] - turn * hips[:, 1]
    speed_y = velocity[:, 1:2] + turn * hips[:, 0]
    stance_time = (STANCE * term.period * term.moving).unsqueeze(1)
    share = (1.0 - 2.0 * term.foot_phase).abs_() - 0.5
    step = share * stance_time
    target_x = hips[:, 0] + step * speed_x
    target_y = hips[:, 1] + step * speed_y

    way = env.robot.foot_pos_w - env.robot.root_pos_w.unsqueeze(1)
    yaw = env.robot.heading().unsqueeze(1)
    cos = yaw.cos()
    sin = yaw.sin()
    ahead = cos * way[..., 0] + sin * way[..., 1]
    left = cos * way[..., 1] - sin * way[..., 0]
    distance = (ahead - target_x).square_() + (left - target_y).square_()
    return distance.sum(1)
