"""Termination terms: ``term(env, **params)`` → (num_envs,) bool."""

from torch import Tensor

from legged_envs.mdp.context import Env


def illegal_contact(env: Env, threshold: float = 10.0) -> Tensor:
    """A terminating body has a contact force above ``threshold`` N (LeggedGym-Ex: 10 N)."""
    return (env.robot.contact_force[:, env.robot.termination_bodies] > threshold).any(1)


def fallen(env: Env, max_projected_gravity: float = -0.1) -> Tensor:
    """g_z > ``max_projected_gravity``: −0.1 is a tilt of 84° (LeggedGym-Ex ``max_projected_gravity``)."""
    return env.robot.projected_gravity[:, 2] > max_projected_gravity


def reference_lost(
    env: Env,
    height: float = 0.25,
    tilt: float = 0.8,
    key_body: float = 0.25,
    motion: str = "motion",
) -> Tensor:
    """Too far from the reference, where there is one (BeyondMimic: 0.25 m, 0.8, 0.25 m): |z − ẑ| > ``height``,
    ‖g − ĝ‖ > ``tilt``, or a key body more than ``key_body`` from its target, g and target in the base frames."""
    reference, robot = env.commands.terms[motion], env.robot
    lost = (robot.base_height - reference.window_root_pos_w[:, 0, 2]).abs() > height
    lost = lost | ((robot.projected_gravity - reference.target_gravity).square().sum(1) > tilt**2)
    distance = (
        (robot.bodies(reference.key_bodies).pos_b - reference.target_key_pos_b).square().sum(2)
    )
    return (lost | (distance > key_body**2).any(1)) & (reference.available > 0.0)


def left_terrain(env: Env, margin: float = 0.5) -> Tensor:
    """The base is within ``margin`` m of the end of the terrain, or beyond it: cut off, for nothing failed."""
    x, y, _ = env.robot.root_pos_w.unbind(1)
    if env.sim.ground is None:
        return x != x  # a plane has no end
    half_x, half_y = env.sim.ground.half_extent
    return (x.abs() > half_x - margin) | (y.abs() > half_y - margin)
