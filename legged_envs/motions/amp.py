"""Motions of AMP for quadrupeds (AMP_for_hardware and what builds on it): JSON, named ``.txt`` or ``.json``.

Keys: ``LoopMode`` ("Wrap" or "Clamp"), ``FrameDuration`` [s], ``EnableCycleOffsetPosition``,
``EnableCycleOffsetRotation``, ``MotionWeight``, ``Frames``. A frame is base position, base orientation (x, y, z, w),
joint positions, foot positions in the base frame, linear and angular velocity of the base in its own frame, joint
velocities, foot velocities: 61 numbers for a quadruped with 12 joints. Files of Peng et al. 2020
("Learning agile robotic locomotion skills by imitating animals") end after the joint positions: 19 numbers.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from legged_envs import rotation
from legged_envs.motions.coordinates import motion_from_coordinates
from legged_envs.motions.motion import Motion, MotionError, check_keys
from legged_envs.motions.table import ROOT_COLUMNS, is_finite, read_table
from legged_envs.robots import RobotCfg

QUADRUPED_JOINTS = tuple(
    f"{leg}_{joint}_joint" for leg in ("FR", "FL", "RR", "RL") for joint in ("hip", "thigh", "calf")
)
"""Joint order of the files of AMP_for_hardware. Forks of it have others, such as FL, FR, RL, RR."""

_REQUIRED = ("LoopMode", "FrameDuration", "Frames")
_OPTIONAL = ("EnableCycleOffsetPosition", "EnableCycleOffsetRotation", "MotionWeight")


def load_amp_json(
    path: str | Path, robot: RobotCfg, *, joint_names: Sequence[str] = QUADRUPED_JOINTS, num_feet: int = 4
) -> Motion:
    """Read a clip, named after the file.

    Velocities are the file's where it has them. Foot positions and velocities are not used: they are those of the
    robot that the file was made for, and ``robot``'s model gives its own. But where a file has a foot for each of
    ``robot``'s, they must lie on the sides where its legs are, or the joints are in another order.

    Args:
        path: The file.
        robot: The robot that moves.
        joint_names: The joints in the order of the file's columns.
        num_feet: How many feet the file has columns for.

    Raises:
        MotionError: Text that is no JSON, missing or unknown keys, frames of an unknown width, numbers that are not
            finite, quaternions that are not unit, joints that do not match the robot.
    """
    content = _read(path)
    frames, num_joints = content["Frames"], len(joint_names)
    columns = _columns(joint_names, num_feet)
    sizes = (3, 4, num_joints, 3 * num_feet, 3, 3, num_joints, 3 * num_feet)
    width = len(frames[0]) if isinstance(frames[0], list) else 0
    if width not in (sum(sizes[:3]), len(columns)):
        raise MotionError(f"{path}: frame 0: Frames must have {sum(sizes[:3])} or {len(columns)} columns, got {width}")
    table = read_table(frames, columns[:width], str(path))
    pos, quat, joint_pos, *rest = table.split(sizes if width == len(columns) else sizes[:3], dim=1)
    quat = quat[:, [3, 0, 1, 2]]
    velocities: dict[str, Any] = {}
    if rest:
        feet, lin_vel_b, ang_vel_b, joint_vel, _ = rest
        lin_vel_w = rotation.rotate(quat, lin_vel_b)
        velocities = {"root_lin_vel_w": lin_vel_w, "root_ang_vel_b": ang_vel_b, "joint_vel": joint_vel}
    motion = motion_from_coordinates(
        robot,
        Path(path).stem,
        1.0 / content["FrameDuration"],
        pos,
        quat,
        joint_pos,
        **velocities,
        joint_names=joint_names,
        loop=content["LoopMode"] == "Wrap",
        weight=content.get("MotionWeight", 1.0),
        source=str(path),
    )
    if rest and num_feet == len(robot.foot_names):
        _check_sides(feet.unflatten(1, (num_feet, 3)), motion, robot, joint_names)
    return motion


def _check_sides(feet: torch.Tensor, motion: Motion, robot: RobotCfg, joint_names: Sequence[str]) -> None:
    """Raise if the file's feet (T, num_feet, 3), in the base frame, are left where the robot's legs are right."""
    legs = list(dict.fromkeys(name.split("_")[0] for name in joint_names))
    bodies = [motion.body_names.index(foot) for leg in legs for foot in robot.foot_names if foot.startswith(leg)]
    if not len(legs) == len(bodies) == feet.shape[1]:
        return  # joints that are not called after their legs tell nothing
    from_base = motion.body_pos_w[:, bodies] - motion.root_pos_w.unsqueeze(1)
    ours = rotation.rotate_inverse(motion.root_quat_w, from_base).mean(0)[:, 1].tolist()
    theirs = feet.mean(0)[:, 1].tolist()
    for k, leg in enumerate(legs):
        if ours[k] * theirs[k] < 0.0:
            raise MotionError(
                f"{motion.origin}: foot {k} of the file lies at y = {theirs[k]:.3f} m in the base frame, but leg "
                f"{leg!r} of {robot.name!r} puts it at {ours[k]:.3f} m: the file's joints are not in the order "
                f"{', '.join(legs)}; give their order as joint_names"
            )


def _read(path: str | Path) -> dict[str, Any]:
    """The file's content, every entry checked, of the frames only that there are at least two."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise MotionError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise MotionError(f"{path}: must be a JSON object, got {type(content).__name__}")
    check_keys(content, _REQUIRED, str(path), _OPTIONAL)
    if content["LoopMode"] not in ("Wrap", "Clamp"):
        raise MotionError(f"{path}: LoopMode must be 'Wrap' or 'Clamp', got {content['LoopMode']!r}")
    for key in ("FrameDuration", "MotionWeight"):
        value = content.get(key, 1.0)
        if not (is_finite(value) and value > 0.0):
            raise MotionError(f"{path}: {key} must be a positive number and finite, got {reprlib.repr(value)}")
    for key in _OPTIONAL[:2]:
        if content["LoopMode"] == "Wrap" and content.get(key, True) is not True:
            raise MotionError(
                f"{path}: {key} must be true in a file that wraps, because loops go on from where they end"
            )
    if not isinstance(content["Frames"], list) or len(content["Frames"]) < 2:
        raise MotionError(f"{path}: Frames must be a list of at least 2 frames")
    return content


def _columns(joint_names: Sequence[str], num_feet: int) -> list[str]:
    """Names of the numbers of a whole frame."""
    feet = [f"foot {foot} {axis}" for foot in range(num_feet) for axis in "xyz"]
    of_root = [f"root {kind} velocity {axis}" for kind in ("linear", "angular") for axis in "xyz"]
    return [*ROOT_COLUMNS, *joint_names, *feet, *of_root, *(f"{column} velocity" for column in (*joint_names, *feet))]
