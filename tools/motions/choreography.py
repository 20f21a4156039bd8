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
"""Orientation of a base that is level and faces along x, (w, x, y, z)."""

VELOCITY_HALF_SPAN = 1e-3
"""Half of the time over which velocities are measured, s."""

BALANCE_TOLERANCE = 1e-8
"""Distance of the centre of mass from its plan, m. Velocities need it that small."""

MAX_ITERATIONS = 50
"""Most corrections of the base towards a planned centre of mass."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Base and feet at T times, float64."""

    root_pos_w: torch.Tensor
    """Position of the base, m. Shape: (T, 3)."""

    root_quat_w: torch.Tensor
    """Orientation of the base, (w, x, y, z). Shape: (T, 4)."""

    foot_pos_w: torch.Tensor
    """Foot origins, m. Shape: (T, num_feet, 3)."""

    foot_quat_w: torch.Tensor
    """Orientations of the feet, (w, x, y, z). Shape: (T, num_feet, 4)."""

    joint_pos: torch.Tensor
    """Positions of the joints that move no foot, rad; positions of the legs are a first guess.
    Shape: (T, num_joints)."""


Choreography = Callable[[torch.Tensor], Plan]
"""Returns the plan at times (T,), s, which increase and may lie a little outside of the clip."""


@dataclass(frozen=True)
class Stance:
    """A robot in its default pose, with the base above the origin of the ground."""

    base_height: float
    """Height of the base, m."""

    foot_pos: torch.Tensor
    """Foot origins, m. Shape: (num_feet, 3)."""

    joint_pos: torch.Tensor
    """Joint positions, rad. Shape: (num_joints,)."""


def default_stance(robot: RobotCfg) -> Stance:
    """Return the stance of :attr:`RobotCfg.default_joint_pos`, with the feet on the ground."""
    qpos = _standing_qpos(robot.base_height, robot.default_joint_pos)
    at_rest = torch.zeros(1, 6 + robot.num_joints, dtype=torch.float64)
    names = body_names(robot)
    feet = [names.index(foot) for foot in robot.foot_names]
    body_pos = forward_kinematics(robot, qpos, at_rest)["body_pos_w"]
    foot_pos = body_pos[0, feet].clone()
    foot_pos[:, 2] = robot.foot_radius
    return Stance(base_height=robot.base_height, foot_pos=foot_pos, joint_pos=qpos[0, 7:])


def _standing_qpos(base_height: float, joint_pos: torch.Tensor | tuple[float, ...]) -> torch.Tensor:
    """Return the coordinates of a robot above the origin. Shape: (1, 7 + num_joints), float64."""
    base = (0.0, 0.0, base_height, *UPRIGHT)
    return torch.tensor([(*base, *joint_pos)], dtype=torch.float64)


@dataclass(frozen=True)
class Clip:
    """A motion to make."""

    name: str
    """Name of the motion."""

    robot: RobotCfg
    """Robot that moves."""

    duration: float
    """Duration, s; a whole number of frames."""

    choreography: Choreography
    """The plan of base and feet."""

    loop: bool = False
    """True if the motion begins again after its end."""

    massive_axes: int = 0
    """Number of axes of the plan's base position that the centre of mass follows instead.

    2 keeps a slow motion in balance. 3 makes flight a parabola, and leaves no unexplained force
    when legs swing. The centre of mass is then as far in front of the plan as the middle of the
    feet is in the default stance, and as high above it as there.
    """


def make_motion(clip: Clip, frame_rate: float = FRAME_RATE) -> Motion:
    """Solve a clip for joint positions, and measure its velocities around each frame.

    Args:
        clip: The clip.
        frame_rate: Frames per second.

    Raises:
        ValueError: If the clip does not last a whole number of frames.
        MotionError: If a leg does not reach its foot.
        RuntimeError: If the centre of mass does not come to its plan.
    """
    num_frames = round(clip.duration * frame_rate)
    if abs(clip.duration * frame_rate - num_frames) > 1e-6:
        raise ValueError(
            f"clip {clip.name!r} must last a whole number of frames, "
            f"got {clip.duration:g} s at {frame_rate:g} Hz"
        )
    times = torch.arange(num_frames + 1, dtype=torch.float64) / frame_rate
    # Each frame is solved three times: shortly before, at and shortly after its time.
    span = torch.tensor([-VELOCITY_HALF_SPAN, 0.0, VELOCITY_HALF_SPAN], dtype=torch.float64)
    solved_times = (times.unsqueeze(1) + span).flatten()
    pos, joint_pos, quat = solve(clip, solved_times)
    before = slice(0, None, 3)
    now = slice(1, None, 3)
    after = slice(2, None, 3)
    turned = rotation.multiply(rotation.conjugate(quat[before]), quat[after])
    seconds = 2.0 * VELOCITY_HALF_SPAN
    return motion_from_coordinates(
        clip.robot,
        clip.name,
        frame_rate,
        pos[now],
        quat[now],
        joint_pos[now],
        root_lin_vel_w=(pos[after] - pos[before]) / seconds,
        root_ang_vel_b=rotation.to_rotation_vector(turned) / seconds,
        joint_vel=(joint_pos[after] - joint_pos[before]) / seconds,
        loop=clip.loop,
        source=f"clip {clip.name!r} of {clip.robot.name!r}",
    )


def solve(clip: Clip, times: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Solve a clip at some times.

    Args:
        clip: The clip.
        times: Times, s. Shape: (T,), float64.

    Returns:
        Base positions (T, 3), joint positions (T, num_joints), and base orientations (T, 4).

    Raises:
        MotionError: If a leg does not reach its foot.
        RuntimeError: If the centre of mass does not come to its plan.
    """
    plan = clip.choreography(times)
    ik = FootIK(clip.robot)
    offset = _default_centre_of_mass(clip.robot)
    heading = rotation.from_yaw(rotation.twist_about_z(plan.root_quat_w))
    planned_mass = plan.root_pos_w + rotation.rotate(heading, offset)
    pos = plan.root_pos_w
    for _ in range(MAX_ITERATIONS):
        joint_pos = ik.solve(
            pos, plan.root_quat_w, plan.foot_pos_w, plan.foot_quat_w, plan.joint_pos
        )
        qpos = torch.cat((pos, plan.root_quat_w, joint_pos), dim=1)
        gap = planned_mass - centre_of_mass(clip.robot, qpos)
        gap = gap[:, : clip.massive_axes]
        if clip.massive_axes == 0 or gap.abs().max() < BALANCE_TOLERANCE:
            return pos, joint_pos, continuous(plan.root_quat_w)
        # Moving the base by the gap moves the centre of mass by almost as much.
        pos = pos + torch.nn.functional.pad(gap, (0, 3 - clip.massive_axes))
    raise RuntimeError(
        f"clip {clip.name!r}: the centre of mass is still {gap.abs().max():.2g} m "
        "away from its plan"
    )


def centre_of_mass(robot: RobotCfg, qpos: torch.Tensor) -> torch.Tensor:
    """Return the centre of mass of the robot, m.

    Args:
        robot: The robot.
        qpos: Base position and orientation, joint positions. Shape: (T, 7 + num_joints).

    Returns:
        Shape: (T, 3), float64.
    """
    centres = [data.subtree_com[1].copy() for data in posed(robot, qpos)]
    return torch.from_numpy(np.array(centres))


def _default_centre_of_mass(robot: RobotCfg) -> torch.Tensor:
    """Return the middle of the feet and the height of the centre of mass in the default stance.

    Both are measured from the base. Shape: (3,).
    """
    stance = default_stance(robot)
    mass = centre_of_mass(robot, _standing_qpos(stance.base_height, stance.joint_pos))[0]
    middle = stance.foot_pos.mean(0)
    height = mass[2] - stance.base_height
    return torch.stack((middle[0], middle[1], height))
