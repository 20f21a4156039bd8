"""Contents of a motion file, and the robot motion that is made from it.

A reader of ``legged_envs.motions.formats`` returns a :class:`Recording`. What files of all formats
have in common is done once, in :func:`motion_of`: joint order, quaternion order, units, frame rate.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from legged_envs import rotation
from legged_envs.motion_reading import MotionReading
from legged_envs.motions.kinematics import motion_from_coordinates, robot_model
from legged_envs.motions.motion import Motion, MotionError, check_unit, require
from legged_envs.motions.orders import named_order
from legged_envs.robots import RobotCfg

UPRIGHT = 0.7
"""Median of the vertical component of the base's z axis above which a clip is upright."""
LYING = 0.3
"""Median of the vertical component of the base's z axis below which a clip is not upright."""
DEGREES_BEYOND = 3.0
"""Distance of a joint beyond its range above which its positions may be degrees, rad."""
DEGREES_FIT = 0.35
"""Distance of a joint beyond its range up to which positions fit a robot, rad."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The numbers of a motion file: T frames of a base and J joints. All tensors are float64."""

    path: Path
    """The file. Its name without the ending is the name of the clip."""
    frame_rate: float
    """Frames per second."""
    root_pos_w: torch.Tensor
    """Position of the base, m. Shape: (T, 3)."""
    root_quat: torch.Tensor
    """Orientation of the base as in the file. Shape: (T, 4)."""
    quaternion: str
    """Order of the components of ``root_quat`` by the file's format: xyzw or wxyz."""
    joint_pos: torch.Tensor
    """Joint positions as in the file. Shape: (T, J)."""
    joint_names: tuple[str, ...]
    """Names of the joints, in the order of the columns."""
    root_lin_vel_w: torch.Tensor | None = None
    """Velocity of the base in the world frame, m/s. Shape: (T, 3)."""
    root_ang_vel_b: torch.Tensor | None = None
    """Angular velocity of the base in the base frame, rad/s. Shape: (T, 3)."""
    joint_vel: torch.Tensor | None = None
    """Joint velocities. Shape: (T, J)."""
    loop: bool = False
    """True if the clip can be repeated."""
    weight: float = 1.0
    """Probability with which episodes start in the clip, relative to other clips."""
    row: str = "frame"
    """Name of a row in error messages, such as ``"line"``."""
    first: int = 0
    """Number of the first row in error messages."""
    says_rate: bool = True
    """False if the frame rate is only what files of this kind usually have."""


def motion_of(recording: Recording, robot: RobotCfg, reading: MotionReading) -> Motion:
    """Return the motion of a robot that a file holds.

    Args:
        recording: Contents of the file.
        robot: The robot.
        reading: Options that replace entries of the file.

    Raises:
        MotionError: The numbers are wrong, or do not fit the robot.
    """
    origin = str(recording.path)
    if reading.frames is not None:
        recording = _cut(recording, reading.frames)
    recording = _with_rate(recording, reading)
    quat = _root_quat_w(recording, reading)
    names = recording.joint_names
    if reading.order:
        names = named_order(reading.order, robot)
    recording = _in_radians(recording, names, robot, reading)
    if reading.hold_missing_joints:
        recording, names = _hold_missing(recording, names, robot)
    lift = recording.root_pos_w.new_tensor([0.0, 0.0, reading.lift])
    return motion_from_coordinates(
        robot,
        name=recording.path.stem,
        frame_rate=recording.frame_rate,
        root_pos_w=recording.root_pos_w + lift,
        root_quat_w=quat,
        joint_pos=recording.joint_pos,
        root_lin_vel_w=recording.root_lin_vel_w,
        root_ang_vel_b=recording.root_ang_vel_b,
        joint_vel=recording.joint_vel,
        joint_names=names,
        ignore_extra_joints=reading.ignore_extra_joints,
        loop=recording.loop,
        weight=recording.weight,
        source=origin,
    )


def _cut(recording: Recording, frames: tuple[int, int]) -> Recording:
    """Return the frames from ``frames[0]`` to ``frames[1]``, counted from 1."""
    first, last = frames
    number = len(recording.root_pos_w)
    is_inside = 1 <= first < last <= number
    expected = f"within 1 and {number}, the first before the last"
    require(is_inside, str(recording.path), "frames (--motion.frames)", expected, frames)
    part = slice(first - 1, last)
    changes = {}
    for field in (
        "root_pos_w",
        "root_quat",
        "joint_pos",
        "root_lin_vel_w",
        "root_ang_vel_b",
        "joint_vel",
    ):
        values = getattr(recording, field)
        if values is not None:
            changes[field] = values[part]
    # A part of a loop does not close.
    is_whole = first == 1 and last == number
    first_row = recording.first + first - 1
    return replace(recording, loop=recording.loop and is_whole, first=first_row, **changes)


def _with_rate(recording: Recording, reading: MotionReading) -> Recording:
    if reading.rate is None or math.isclose(reading.rate, recording.frame_rate, rel_tol=1e-3):
        return recording
    # Velocities in the file belong to its own rate. They are computed again.
    return replace(
        recording,
        frame_rate=reading.rate,
        root_lin_vel_w=None,
        root_ang_vel_b=None,
        joint_vel=None,
    )


def _root_quat_w(recording: Recording, reading: MotionReading) -> torch.Tensor:
    """Return the base's orientations in the order w, x, y, z, and check that they are upright."""
    origin = str(recording.path)
    order = recording.quaternion if reading.quaternion == "auto" else reading.quaternion
    spelled = ", ".join(order)
    field = f"root quaternion ({spelled})"
    check_unit(recording.root_quat, origin, field, recording.row, recording.first)
    quat = _w_first(recording.root_quat, order)
    other = "wxyz" if order == "xyzw" else "xyzw"
    lies = len(quat) > 0 and _uprightness(quat) < LYING
    if reading.quaternion == "auto" and lies:
        if _uprightness(_w_first(recording.root_quat, other)) > UPRIGHT:
            raise MotionError(
                f"{origin}: the root quaternion, read as {order}, lays the base on its side or "
                f"turns it upside down, and is upright as {other}: read the file with "
                f"--motion.quaternion {other} (quaternion={other!r}), or {order} if it is right"
            )
    return quat


def _w_first(quat: torch.Tensor, order: str) -> torch.Tensor:
    if order == "wxyz":
        return quat
    return quat[:, [3, 0, 1, 2]]


def _uprightness(quat: torch.Tensor) -> float:
    """Return the median of the vertical component of the base's z axis, 1 if it is upright."""
    up = rotation.rotate(quat, quat.new_tensor([0.0, 0.0, 1.0]))
    return up[:, 2].median().item()


def _in_radians(
    recording: Recording, names: tuple[str, ...], robot: RobotCfg, reading: MotionReading
) -> Recording:
    """Return the recording with joints in rad, or raise a MotionError if they seem to be degrees.

    Args:
        recording: Contents of the file.
        names: Names of the joint columns.
        robot: The robot; its joint ranges distinguish rad from degrees.
        reading: Options of the user.
    """
    factor = math.pi / 180.0
    if reading.degrees:
        velocity = recording.joint_vel
        return replace(
            recording,
            joint_pos=recording.joint_pos * factor,
            joint_vel=None if velocity is None else velocity * factor,
        )
    as_rad, joint = _beyond_ranges(recording.joint_pos, names, robot)
    as_degrees, _ = _beyond_ranges(recording.joint_pos * factor, names, robot)
    if as_rad > DEGREES_BEYOND and as_degrees < DEGREES_FIT:
        raise MotionError(
            f"{recording.path}: {joint!r} is {as_rad:.1f} rad beyond its range, and all joints of "
            f"{robot.name!r} fit as degrees: read the file with --motion.degrees (degrees=True)"
        )
    return recording


def _beyond_ranges(
    joint_pos: torch.Tensor, names: tuple[str, ...], robot: RobotCfg
) -> tuple[float, str]:
    """Return the largest distance of a joint beyond its range, rad, and the joint's name."""
    model = robot_model(robot)
    largest = -math.inf
    worst = ""
    # Wrong numbers of columns and numbers that are not finite are found later, by name.
    if joint_pos.ndim != 2 or joint_pos.shape[1] != len(names) or not joint_pos.isfinite().all():
        return largest, worst
    for column, name in enumerate(names):
        if name not in robot.joint_names or not model.joint(name).limited[0]:
            continue
        low, high = model.joint(name).range
        values = joint_pos[:, column]
        beyond = max(low - values.min().item(), values.max().item() - high)
        if beyond > largest:
            largest = beyond
            worst = name
    return largest, worst


def _hold_missing(
    recording: Recording, names: tuple[str, ...], robot: RobotCfg
) -> tuple[Recording, tuple[str, ...]]:
    """Return the recording with the joints that the file lacks, at rest, and the names of all
    joints."""
    missing = [name for name in robot.joint_names if name not in names]
    defaults = dict(zip(robot.joint_names, robot.default_joint_pos, strict=True))
    pose = recording.joint_pos.new_tensor([defaults[name] for name in missing])
    held = pose.expand(len(recording.joint_pos), len(missing))
    velocity = recording.joint_vel
    if velocity is not None:
        velocity = torch.cat((velocity, torch.zeros_like(held)), dim=1)
    joint_pos = torch.cat((recording.joint_pos, held), dim=1)
    return replace(recording, joint_pos=joint_pos, joint_vel=velocity), (*names, *missing)
