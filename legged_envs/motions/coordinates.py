"""Make a :class:`Motion` from generalised coordinates: base pose and joint positions over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import body_names, forward_kinematics
from legged_envs.motions.motion import Motion, MotionError, check_frame_rate, check_frames, frame_columns, require
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
    joint_names: Sequence[str] | None = None,
    ignore_extra_joints: bool = False,
    valid: torch.Tensor | None = None,
    loop: bool = False,
    weight: float = 1.0,
    source: str = "",
) -> Motion:
    """A motion with the robot's own body poses.

    Velocities that are not given are finite differences of the frames, across the seam where the clip loops.
    Quaternions are made exactly unit and continuous in sign. Computed in float64, kept in float32.

    Args:
        robot: The robot that moves.
        name, frame_rate, loop, weight, source: As in a :class:`Motion`.
        root_pos_w, root_lin_vel_w, root_ang_vel_b: Shape: (T, 3).
        root_quat_w: (w, x, y, z). Shape: (T, 4).
        joint_pos, joint_vel: Shape: (T, len(joint_names)).
        joint_names: The joints of the columns of ``joint_pos`` and ``joint_vel``, default the robot's in its order.
        ignore_extra_joints: Leave out joints that the robot lacks.
        valid: Frames that may be imitated, default all. Shape: (T,), bool.

    Raises:
        MotionError: Less than two frames, wrong shapes, numbers that are not finite, quaternions that are not unit,
            joints that do not match the robot.
    """
    origin = source or f"motion {name!r}"
    check_frame_rate(frame_rate, origin)
    joint_names = robot.joint_names if joint_names is None else joint_names
    joints = _joint_columns(robot, joint_names, origin, ignore_extra_joints)
    given = {"root_pos_w": root_pos_w, "root_quat_w": root_quat_w, "joint_pos": joint_pos}
    velocities = {"root_lin_vel_w": root_lin_vel_w, "root_ang_vel_b": root_ang_vel_b, "joint_vel": joint_vel}
    given |= {field: values for field, values in velocities.items() if values is not None}
    frames = {field: values.double() for field, values in given.items()}
    check_frames(frames, frame_columns(joint_names, ()), origin)
    for field in frames.keys() & {"joint_pos", "joint_vel"}:
        frames[field] = frames[field][:, joints]
    pos, quat = frames["root_pos_w"], continuous(frames["root_quat_w"])
    frames = {
        "root_lin_vel_w": linear_velocity(pos, frame_rate, loop, quat),
        "root_ang_vel_b": angular_velocity_b(quat, frame_rate, loop),
        "joint_vel": linear_velocity(frames["joint_pos"], frame_rate, loop),
        **frames,
        "root_quat_w": quat,
    }
    qpos = torch.cat([frames[field] for field in ("root_pos_w", "root_quat_w", "joint_pos")], dim=1)
    qvel = torch.cat([frames[field] for field in ("root_lin_vel_w", "root_ang_vel_b", "joint_vel")], dim=1)
    frames |= forward_kinematics(robot, qpos, qvel)
    fields: dict[str, Any] = {field: values.float() for field, values in frames.items()}
    valid = torch.ones(len(pos), dtype=torch.bool) if valid is None else valid
    header = (name, robot.name, frame_rate, robot.joint_names, body_names(robot))
    return Motion(*header, **fields, valid=valid, loop=loop, weight=weight, source=source)


def continuous(quat: torch.Tensor) -> torch.Tensor:
    """The rotations ``quat`` (T, …, 4) with length 1 and each in the half space of the one before."""
    quat = quat / torch.linalg.vector_norm(quat, dim=-1, keepdim=True)
    turns_over = (quat[1:] * quat[:-1]).sum(-1) < 0.0
    sign = torch.where(turns_over.cumsum(0) % 2 == 1, -1.0, 1.0)
    return torch.cat((quat[:1], quat[1:] * sign.unsqueeze(-1)))


def linear_velocity(
    values: torch.Tensor, frame_rate: float, loop: bool = False, quat: torch.Tensor | None = None
) -> torch.Tensor:
    """Central differences of ``values`` (T, n), one-sided at both ends; those two are averaged in a loop.

    Where a loop turns about z, by the orientations ``quat`` (T, 4) of a base, its end is turned back before that.
    """
    velocity = torch.gradient(values, spacing=1.0 / frame_rate, dim=0)[0]
    if loop and quat is not None:
        turn = rotation.twist_about_z(rotation.multiply(quat[-1], rotation.conjugate(quat[0])))
        velocity[0] = (velocity[0] + rotation.rotate(rotation.from_yaw(-turn), velocity[-1])) / 2.0
        velocity[-1] = rotation.rotate(rotation.from_yaw(turn), velocity[0])
    elif loop:
        velocity[[0, -1]] = (velocity[0] + velocity[-1]) / 2.0
    return velocity


def angular_velocity_b(quat: torch.Tensor, frame_rate: float, loop: bool = False) -> torch.Tensor:
    """Angular velocity in the turning frame by differences log(q₋⁻¹ q₊) / (t₊ − t₋): (T, 4) → (T, 3).

    They are central, but one-sided at both ends; a loop's are central across its seam.
    """
    before = torch.cat((quat[:1], quat[:-1]))
    after = torch.cat((quat[1:], quat[-1:]))
    turned = rotation.multiply(rotation.conjugate(before), after)
    spacing = torch.full((len(quat), 1), 2.0 / frame_rate, dtype=quat.dtype)
    if loop:
        turned[[0, -1]] = rotation.multiply(turned[-1], turned[0])
    else:
        spacing[0] = spacing[-1] = 1.0 / frame_rate
    return rotation.to_rotation_vector(turned) / spacing


def _joint_columns(robot: RobotCfg, columns: Sequence[str], origin: str, ignore_extra: bool) -> list[int]:
    """Which of ``columns``, the joints of a file, each of the robot's is; raises MotionError if they do not match."""
    twice = next((joint for i, joint in enumerate(columns) if joint in columns[:i]), None)
    require(twice is None, origin, "joint_names", "unique", f"{twice!r} twice")
    missing = next((joint for joint in robot.joint_names if joint not in columns), None)
    wanted = f"in the file, as robot {robot.name!r} has it"
    require(missing is None, origin, f"joint {missing!r}", wanted, f"only {', '.join(columns)}")
    extra = [joint for joint in columns if joint not in robot.joint_names]
    if extra and not ignore_extra:
        raise MotionError(
            f"{origin}: robot {robot.name!r} has no joint {extra[0]!r} ({len(extra)} such columns); load it for a "
            "robot that has them, or pass ignore_extra_joints=True"
        )
    return [list(columns).index(joint) for joint in robot.joint_names]
