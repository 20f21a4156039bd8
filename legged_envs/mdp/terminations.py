"""Termination terms: ``term(env, **params)`` → (num_envs,) bool."""

from __future__ import annotations

import torch

from legged_envs.mdp.context import Env


def illegal_contact(env: Env, threshold: float = 10.0) -> torch.Tensor:
    """A terminating body has a contact force above ``threshold`` N (LeggedGym-Ex: 10 N)."""
    return (env.robot.contact_force[:, env.robot.termination_bodies] > threshold).any(1)


def fallen(env: Env, max_projected_gravity: float = -0.1) -> torch.Tensor:
    """g_z > ``max_projected_gravity``: −0.1 is a tilt of 84° (LeggedGym-Ex ``max_projected_gravity``)."""
    return env.robot.projected_gravity[:, 2] > max_projected_gravity
