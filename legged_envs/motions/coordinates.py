"""Make a :class:`Motion` from generalised coordinates: base pose and joint positions over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import body_names, forward_kinematics
from legged_envs.motions.motion import Motion, MotionError, check_finite, check_unit
from legged_envs.robots import RobotCfg


def motion_from_coordinates(
    robot: RobotCfg,
    name: str,
    frame_rate: float,
    root_pos_w: torch.Tensor,
    root_quat_w: torch.Tensor,
    joint_pos: torch.Tensor,
    *,
    root_lin_vel_w: torch.Tensor | None = None,
    root_ang_vel_b: torch.Tensor | None = None,
    joint_vel: torch.Tensor | None = None,
    valid: torch.Tensor | None = None,
    loop: bool = False,
    weight: float = 1.0,
    source: str = "",
) -> Motion:
    """A motion with the robot's own body poses.

    Velocities that are not given are finite differences of the frames, across the seam where the clip loops.
    Quaternions are made exactly unit and continuous in sign. Computed in float64, kept in float32.

    Args:
        robot: The robot, whose joints ``joint_pos`` follows.
        name: Name of the clip.
        frame_rate: Frames per second.
        root_pos_w: Shape: (T, 3).
        root_quat_w: (w, x, y, z). Shape: (T, 4).
        joint_pos: Shape: (T, num_joints).
        root_lin_vel_w: Shape: (T, 3).
        root_ang_vel_b: Shape: (T, 3).
        joint_vel: Shape: (T, num_joints).
        valid: Frames that may be imitated, default all. Shape: (T,), bool.
        loop: See :attr:`Motion.loop`.
        weight: See :attr:`Motion.weight`.
        source: See :attr:`Motion.source`.

    Raises:
        MotionError: Less than two frames, wrong shapes, numbers that are not finite, quaternions that are not unit.
    """
    origin = source or f"motion {name!r}"
    if not (math.isfinite(frame_rate) and frame_rate > 0.0):
        raise MotionError(f"{origin}: frame rate must be finite and positive, got {frame_rate}")
    pos, quat, joints = root_pos_w.double(), root_quat_w.double(), joint_pos.double()
    given = {"root_pos_w": (pos, 3), "root_quat_w": (quat, 4), "joint_pos": (joints, robot.num_joints)}
    for field, (values, width) in given.items():
        if values.ndim != 2 or values.shape != (len(pos), width):
            raise MotionError(f"{origin}: {field} must be (T, {width}), got {tuple(values.shape)}")
        columns = robot.joint_names if field == "joint_pos" else [str(axis) for axis in range(width)]
        check_finite(values, columns, origin, field)
    if len(pos) < 2:
        raise MotionError(f"{origin}: a motion needs at least 2 frames, got {len(pos)}")
    check_unit(quat.unsqueeze(1), origin, "root_quat_w")

    quat = continuous(quat)
    lin_vel = root_velocity(pos, quat, frame_rate, loop) if root_lin_vel_w is None else root_lin_vel_w.double()
    ang_vel = angular_velocity_b(quat, frame_rate, loop) if root_ang_vel_b is None else root_ang_vel_b.double()
    joint_speed = linear_velocity(joints, frame_rate, loop) if joint_vel is None else joint_vel.double()
    for field, values, width in (
        ("root_lin_vel_w", lin_vel, 3),
        ("root_ang_vel_b", ang_vel, 3),
        ("joint_vel", joint_speed, robot.num_joints),
    ):
        if values.shape != (len(pos), width):
            raise MotionError(f"{origin}: {field} must be {(len(pos), width)}, got {tuple(values.shape)}")
    bodies = forward_kinematics(robot, pos, quat, joints, lin_vel, ang_vel, joint_speed)
    return Motion(
        name=name,
        robot=robot.name,
        frame_rate=frame_rate,
        joint_names=robot.joint_names,
        body_names=body_names(robot),
        root_pos_w=pos.float(),
        root_quat_w=quat.float(),
        root_lin_vel_w=lin_vel.float(),
        root_ang_vel_b=ang_vel.float(),
        joint_pos=joints.float(),
        joint_vel=joint_speed.float(),
        body_pos_w=bodies.pos_w.float(),
        body_quat_w=bodies.quat_w.float(),
        body_lin_vel_w=bodies.lin_vel_w.float(),
        body_ang_vel_w=bodies.ang_vel_w.float(),
        valid=torch.ones(len(pos), dtype=torch.bool) if valid is None else valid,
        loop=loop,
        weight=weight,
        source=source,
    )


def continuous(quat: torch.Tensor) -> torch.Tensor:
    """The same rotations (T, 4), of length 1 and each in the half space of the one before."""
    quat = quat / torch.linalg.vector_norm(quat, dim=-1, keepdim=True)
    turns_over = (quat[1:] * quat[:-1]).sum(-1) < 0.0
    sign = torch.where(torch.cumsum(turns_over, 0) % 2 == 1, -1.0, 1.0)
    return torch.cat((quat[:1], quat[1:] * sign.unsqueeze(-1)))


def linear_velocity(values: torch.Tensor, frame_rate: float, loop: bool = False) -> torch.Tensor:
    """Central differences of ``values`` (T, n), one-sided at both ends; those two are averaged in a loop."""
    velocity = torch.gradient(values, spacing=1.0 / frame_rate, dim=0)[0]
    if loop:
        velocity[[0, -1]] = (velocity[0] + velocity[-1]) / 2.0
    return velocity


def root_velocity(pos: torch.Tensor, quat: torch.Tensor, frame_rate: float, loop: bool = False) -> torch.Tensor:
    """The same of the base's positions (T, 3); where a loop turns about z, the average is that without the turn."""
    velocity = linear_velocity(pos, frame_rate)
    if loop:
        turn = rotation.twist_about_z(rotation.multiply(quat[-1], rotation.conjugate(quat[0])))
        velocity[0] = (velocity[0] + rotation.rotate(rotation.from_yaw(-turn), velocity[-1])) / 2.0
        velocity[-1] = rotation.rotate(rotation.from_yaw(turn), velocity[0])
    return velocity


def angular_velocity_b(quat: torch.Tensor, frame_rate: float, loop: bool = False) -> torch.Tensor:
    """Angular velocity in the turning frame, by the same differences: log(q₋⁻¹ q₊) / (t₊ − t₋). (T, 4) → (T, 3)."""
    before = torch.cat((quat[:1], quat[:-1]))
    after = torch.cat((quat[1:], quat[-1:]))
    turned = rotation.multiply(rotation.conjugate(before), after)
    spacing = torch.full((len(quat), 1), 2.0 / frame_rate, dtype=quat.dtype)
    if loop:
        turned[[0, -1]] = rotation.multiply(turned[-1], turned[0])
    else:
        spacing[0] = spacing[-1] = 1.0 / frame_rate
    return rotation.to_rotation_vector(turned) / spacing


def joint_columns(
    robot: RobotCfg, file_joints: Sequence[str], origin: str, ignore_extra_joints: bool = False
) -> list[int]:
    """Which of ``file_joints`` each joint of the robot is.

    Raises:
        MotionError: A joint is named twice, one of the robot is missing, or the file has more joints and they are not
            to be ignored.
    """
    twice = [joint for i, joint in enumerate(file_joints) if joint in file_joints[:i]]
    if twice:
        raise MotionError(f"{origin}: joint_names must be unique, but {twice[0]!r} is there twice")
    missing = [joint for joint in robot.joint_names if joint not in file_joints]
    if missing:
        raise MotionError(
            f"{origin}: joint {missing[0]!r} of robot {robot.name!r} is missing; the file has {', '.join(file_joints)}"
        )
    extra = [joint for joint in file_joints if joint not in robot.joint_names]
    if extra and not ignore_extra_joints:
        raise MotionError(
            f"{origin}: robot {robot.name!r} has no joint {extra[0]!r} ({len(extra)} such columns); load it for a "
            "robot that has them, or pass ignore_extra_joints=True"
        )
    return [list(file_joints).index(joint) for joint in robot.joint_names]
