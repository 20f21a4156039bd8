"""Observation terms of a gait command: ``term(env, **params)`` → (num_envs, size) float32."""

import math

import torch
from torch import Tensor

from legged_envs.mdp.context import Env


def gait_offsets(env: Env, gait: str = "gait") -> Tensor:
    """Return cos 2π θ_i of the gait's three offsets: 1 for 0, and −1 for half a stride. Size: 3.

    A mirror image of a robot has the offsets (−θ1, θ2, −θ3) if the time of its stride is later by
    θ1 + θ3. Therefore a robot and its mirror image have the same cosines.

    Args:
        gait: Name of the gait command.
    """
    offsets = env.commands.terms[gait].offsets
    return torch.cos(offsets * (2.0 * math.pi))


def gait_style(env: Env, gait: str = "gait") -> Tensor:
    """Return the commanded period, s, clearance, m, height, m, and pitch, rad. Size: 4.

    Args:
        gait: Name of the gait command.
    """
    return env.commands[gait][:, 3:]


def foot_clock_sin(env: Env, gait: str = "gait") -> Tensor:
    """Return sin(2π φ_f) of the phase φ_f of each foot. Size: num_feet.

    It is 0 while the robot should stand still.

    Args:
        gait: Name of the gait command.
    """
    term = env.commands.terms[gait]
    angle = term.foot_phase * (2.0 * math.pi)
    return angle.sin_() * term.moving.unsqueeze(1)


def foot_clock_cos(env: Env, gait: str = "gait") -> Tensor:
    """Return cos(2π φ_f) of the phase φ_f of each foot. Size: num_feet.

    It is 0 while the robot should stand still.

    Args:
        gait: Name of the gait command.
    """
    term = env.commands.terms[gait]
    angle = term.foot_phase * (2.0 * math.pi)
    return angle.cos_() * term.moving.unsqueeze(1)
