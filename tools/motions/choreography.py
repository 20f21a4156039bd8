"""From a plan of base and feet over time to a motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import (
    body_names,
    continuous,
    forward_kinematics,
    motion_from_coordinates,
    posed,
)
from legged_envs.motions.motion import Motion
from legged_envs.robots import RobotCfg
from tools.motions.inverse_kinematics import FootIK

FRAME_RATE = 50.0
"""Frames per second of the clips that the package makes: one per control step."""

UPRIGHT = (1.0, 0.0, 0.0, 0.0)
"""The orientation of a base that is level and looks along x, (w, x, y, z)."""

_DELTA = 1e-3
"""Half of the time over which velocities are measured, s."""
_BALANCED = 1e-8
"""How close to its plan the centre of mass is brought, m; velocities need it that close."""
_MAX_ITERATIONS = 50


@dataclass(frozen=True, eq=False)
class Plan:
    """Base and feet at T times, float64."""

    root_pos_w: torch.Tensor
    """Shape: (T, 3)."""
    root_quat_w: torch.Tensor
    """Shape: (T, 4)."""
    foot_pos_w: torch.Tensor
    """Foot origins. Shape: (T, num_feet, 3)."""
    foot_quat_w: torch.Tensor
    """Shape: (T, num_feet, 4)."""
    joint_pos: torch.Tensor
    """Positions of the joints that move no foot; those of the legs are a first guess. Shape: (T, num_joints)."""


Choreography = Callable[[torch.Tensor], Plan]
"""The plan at some times (T,), s, which increase and may lie a little outside of the clip."""


@dataclass(frozen=True)
class Stance:
    """How a robot stands in its default pose, base above the origin of the ground."""

    base_height: float
    foot_pos: torch.Tensor
    """Shape: (num_feet, 3)."""
    joint_pos: torch.Tensor
    """Shape: (num_joints,)."""


def default_stance(robot: RobotCfg) -> Stance:
    """The stance of :attr:`RobotCfg.default_joint_pos`, feet on the ground."""
    qpos = torch.tensor(
        [(0.0, 0.0, robot.base_height, *UPRIGHT, *robot.default_joint_pos)], dtype=torch.float64
    )
    at_rest = torch.zeros(1, 6 + robot.num_joints, dtype=torch.float64)
    feet = [body_names(robot).index(foot) for foot in robot.foot_names]
    foot_pos = forward_kinematics(robot, qpos, at_rest)["body_pos_w"][0, feet].clone()
    foot_pos[:, 2] = robot.foot_radius
    return Stance(robot.base_height, foot_pos, qpos[0, 7:])


@dataclass(frozen=True)
class Clip:
    """A motion to make."""

    name: str
    robot: RobotCfg
    duration: float
    """s; a whole number of frames."""
    choreography: Choreography
    loop: bool = False
    massive_axes: int = 0
    """How many axes of the plan's base position are meant for the centre of mass instead: 2 keeps a slow motion in
    balance, 3 makes flight a parabola and leaves no unexplained force when legs swing. The centre of mass is then
    ahead of the plan as far as the middle of the feet is in the default stance, and as high above it as there."""


def make_motion(clip: Clip, frame_rate: float = FRAME_RATE) -> Motion:
    """Solve the clip for joint positions and measure its velocities around each frame."""
    frames = clip.duration * frame_rate
    if abs(frames - round(frames)) > 1e-6:
        raise ValueError(
            f"clip {clip.name!r}: {clip.duration:g} s is no whole number of frames at {frame_rate:g} Hz"
        )
    times = torch.arange(round(frames) + 1, dtype=torch.float64) / frame_rate
    around = (
        times.unsqueeze(1) + torch.tensor([-_DELTA, 0.0, _DELTA], dtype=torch.float64)
    ).flatten()
    pos, joint_pos, quat = solve(clip, around)
    before, now, after = slice(0, None, 3), slice(1, None, 3), slice(2, None, 3)
    turned = rotation.multiply(rotation.conjugate(quat[before]), quat[after])
    return motion_from_coordinates(
        clip.robot,
        clip.name,
        frame_rate,
        pos[now],
        quat[now],
        joint_pos[now],
        root_lin_vel_w=(pos[after] - pos[before]) / (2.0 * _DELTA),
        root_ang_vel_b=rotation.to_rotation_vector(turned) / (2.0 * _DELTA),
        joint_vel=(joint_pos[after] - joint_pos[before]) / (2.0 * _DELTA),
        loop=clip.loop,
        source=f"clip {clip.name!r} of {clip.robot.name!r}",
    )


def solve(clip: Clip, times: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Base positions (T, 3), joint positions (T, num_joints), base orientations (T, 4) at ``times`` (T,), float64."""
    plan = clip.choreography(times)
    ik = FootIK(clip.robot)
    offset = _default_centre_of_mass(clip.robot)
    heading = rotation.from_yaw(rotation.twist_about_z(plan.root_quat_w))
    wanted = plan.root_pos_w + rotation.rotate(heading, offset)
    pos = plan.root_pos_w
    for _ in range(_MAX_ITERATIONS):
        joint_pos = ik.solve(
            pos, plan.root_quat_w, plan.foot_pos_w, plan.foot_quat_w, plan.joint_pos
        )
        qpos = torch.cat((pos, plan.root_quat_w, joint_pos), dim=1)
        gap = (wanted - centre_of_mass(clip.robot, qpos))[:, : clip.massive_axes]
        if not gap.numel() or gap.abs().max() < _BALANCED:
            return pos, joint_pos, continuous(plan.root_quat_w)
        pos = pos + torch.nn.functional.pad(gap, (0, 3 - clip.massive_axes))
    raise RuntimeError(
        f"clip {clip.name!r}: the centre of mass is still {gap.abs().max():.2g} m away from its plan"
    )


def centre_of_mass(robot: RobotCfg, qpos: torch.Tensor) -> torch.Tensor:
    """Centre of mass of the robot, m, float64. Shape: (T, 3).

    Args:
        robot: The robot.
        qpos: Base position and orientation, joint positions. Shape: (T, 7 + num_joints).
    """
    return torch.from_numpy(np.array([data.subtree_com[1].copy() for data in posed(robot, qpos)]))


def _default_centre_of_mass(robot: RobotCfg) -> torch.Tensor:
    """Middle of the feet and height of the centre of mass, both from the base in the default stance. Shape: (3,)."""
    stance = default_stance(robot)
    qpos = torch.tensor(
        [(0.0, 0.0, stance.base_height, *UPRIGHT, *stance.joint_pos)], dtype=torch.float64
    )
    mass = centre_of_mass(robot, qpos)[0]
    return torch.stack((*stance.foot_pos.mean(0)[:2], mass[2] - stance.base_height))
