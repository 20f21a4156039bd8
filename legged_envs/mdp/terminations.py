"""Termination terms: functions ``term(env, **params)`` → (num_envs,) bool, True ends the episode.

g is the unit gravity vector in the base frame. x̂ is the value of x in the motion clip to imitate.
"""

import torch
from torch import Tensor

from legged_envs.mdp.context import Env
from legged_envs.mdp.reference_rewards import foot_height_error


def illegal_contact(env: Env, threshold: float = 10.0) -> Tensor:
    """Return True if a terminating body has a contact force above ``threshold``.

    The robot's configuration defines the terminating bodies, for example the trunk.

    Args:
        threshold: Contact force, N. Source: 10 N in LeggedGym-Ex.
    """
    force = env.robot.contact_force[:, env.robot.termination_bodies]
    return (force > threshold).any(1)


def fallen(env: Env, max_projected_gravity: float = -0.1) -> Tensor:
    """Return True if the base is tilted too far: g_z > ``max_projected_gravity``.

    Args:
        max_projected_gravity: Largest g_z; −1 is upright and −0.1 a tilt of 84°. Source:
            LeggedGym-Ex ``max_projected_gravity``.
    """
    return env.robot.projected_gravity[:, 2] > max_projected_gravity


def reference_lost(
    env: Env,
    height: float = 0.25,
    tilt: float = 0.8,
    key_body: float = 0.25,
    foot_height: float | None = None,
    motion: str = "motion",
) -> Tensor:
    """Return True for each robot that imitates a motion clip and is too far from the clip's pose.

    That is: |z − ẑ| > ``height`` for the height z of the base, or ‖g − ĝ‖ > ``tilt`` for the unit
    gravity vector g in the base frame, or the distance of a key body from its target is above
    ``key_body``, or |z_f − ẑ_f| > ``foot_height`` for the height z_f of a foot. A hat marks the
    clip's value. It is False for robots without a clip. Source: BeyondMimic, which has 0.25 m, 0.8
    and 0.25 m and does not check the feet.

    Args:
        height: Largest allowed difference of the base's height above the ground, m.
        tilt: Largest allowed norm of the difference of the unit gravity vectors.
        key_body: Largest allowed distance of a key body from its target in the base frame, m.
        foot_height: Largest allowed difference of a foot's height above the ground, m. If it is
            smaller than the height to which the clip lifts a foot, robots that drag their feet are
            lost too. None: no limit. All feet must be key bodies.
        motion: Name of the motion command.
    """
    robot = env.robot
    reference = env.commands.terms[motion]
    target_height = reference.window_root_pos_w[:, 0, 2]
    is_lost = (robot.base_height - target_height).abs() > height
    gravity_error = robot.projected_gravity - reference.target_gravity
    is_lost = is_lost | (gravity_error.square().sum(1) > tilt**2)
    key_error = robot.bodies(reference.key_bodies).pos_b - reference.target_key_pos_b
    key_is_lost = key_error.square().sum(2) > key_body**2
    if foot_height is not None:
        foot_is_lost = foot_height_error(env, motion).abs() > foot_height
        key_is_lost = torch.cat((key_is_lost, foot_is_lost), dim=1)
    # A robot without a reference cannot lose it.
    return (is_lost | key_is_lost.any(1)) & (reference.available > 0.0)


def left_terrain(env: Env, margin: float = 0.5) -> Tensor:
    """Return True if the base is near or beyond the outer boundary of the terrain.

    Leaving the terrain is not a failure of the robot: tasks use the term to truncate an episode.
    The result is always False on a plane, which has no boundary.

    Args:
        margin: Distance from the boundary below which an episode ends, m.
    """
    x, y, _ = env.robot.root_pos_w.unbind(1)
    if env.sim.ground is None:
        return torch.zeros_like(x, dtype=torch.bool)
    # The field is centred on the world's origin.
    half_x, half_y = env.sim.ground.half_extent
    is_beyond_x = x.abs() > half_x - margin
    is_beyond_y = y.abs() > half_y - margin
    return is_beyond_x | is_beyond_y
