"""Reads motions of AMP for quadrupeds and of Peng et al. 2020 (.json, .txt).

JSON: ``LoopMode`` ("Wrap" or "Clamp"), ``FrameDuration`` [s], ``EnableCycleOffsetPosition``,
``EnableCycleOffsetRotation``, ``MotionWeight``, ``Frames``. Each frame has base position, base
orientation (x, y, z, w) and joint positions. In AMP_for_hardware and projects that build on it,
foot positions, linear and angular velocity of the base, all in the base frame, joint velocities and
foot velocities follow: 61 numbers for 12 joints. Some projects leave the feet out: 37 numbers.
Files of Peng et al. 2020 end after the joint positions.

DeepMimic's files, with ``Loop`` in place of ``LoopMode``, move a human or animal of its own.
"""

import json
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from legged_envs import rotation
from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.body_fit import check_sides
from legged_envs.motions.formats.loops import CYCLE_POSITION, CYCLE_ROTATION, close_loop
from legged_envs.motions.formats.tables import ROOT_COLUMNS, check_table, is_finite
from legged_envs.motions.motion import Motion, MotionError, check_keys, check_unit, require
from legged_envs.motions.orders import named_order
from legged_envs.motions.recording import Recording, motion_of
from legged_envs.robots import RobotCfg

REQUIRED = ("LoopMode", "FrameDuration", "Frames")
"""Keys that a file must have."""


def read_amp(
    path: Path,
    robot: RobotCfg,
    reading: MotionReading,
    joint_names: Sequence[str] | None = None,
    num_feet: int | None = None,
) -> Motion:
    """Read a motion clip in AMP's JSON format.

    Args:
        path: The file.
        robot: Robot that the clip was recorded for.
        reading: What the user says about the file, such as its frame rate.
        joint_names: Names of the joint columns. None: the robot's.
        num_feet: Number of feet with positions and velocities in the file. None: the robot's.

    Raises:
        MotionError: The text is not JSON, a key is wrong, a frame has an unknown width, a number or
            a quaternion is bad, or the joints do not match the robot.
    """
    content = _read_content(path)
    joints = tuple(joint_names or robot.joint_names)
    if reading.order:
        joints = named_order(reading.order, robot)
    if num_feet is None:
        num_feet = len(robot.foot_names)
    parts = _read_parts(content, joints, num_feet, str(path))
    recording = Recording(
        path=path,
        frame_rate=1.0 / content["FrameDuration"],
        root_pos_w=parts["pos"],
        root_quat=parts["quat"],
        quaternion="xyzw",
        joint_pos=parts["joint_pos"],
        joint_names=joints,
        root_lin_vel_w=parts.get("lin_vel_w"),
        root_ang_vel_b=parts.get("ang_vel_b"),
        joint_vel=parts.get("joint_vel"),
        loop=content["LoopMode"] == "Wrap",
        weight=content.get("MotionWeight", 1.0),
    )
    motion = motion_of(recording, robot, reading)
    if "feet" in parts and num_feet == len(robot.foot_names) and reading.frames is None:
        check_sides(parts["feet"].unflatten(1, (num_feet, 3)), motion, robot, joints)
    return motion


def _read_content(path: Path) -> dict[str, Any]:
    """Read a file, and check its keys and values, but not the numbers in its frames."""
    origin = str(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    # Deeply nested brackets are a RecursionError.
    except (ValueError, RecursionError) as error:
        raise MotionError(f"{origin}: not JSON: {error}") from error
    require(isinstance(content, dict), origin, "the text", "a JSON object", type(content).__name__)
    if "Loop" in content and "LoopMode" not in content:
        raise MotionError(
            f"{origin}: is a clip of DeepMimic ('Loop'), whose character is no robot: export it as "
            ".bvh, which `legged-envs motion` turns into the motion of a robot"
        )
    optional = ("MotionWeight", CYCLE_POSITION, CYCLE_ROTATION)
    check_keys(content, REQUIRED, origin, optional=optional)
    mode = content["LoopMode"]
    frames = content["Frames"]
    require(mode in ("Wrap", "Clamp"), origin, "LoopMode", "'Wrap' or 'Clamp'", reprlib.repr(mode))
    for key in ("FrameDuration", "MotionWeight"):
        value = content.get(key, 1.0)
        is_positive = is_finite(value) and value > 0.0
        require(is_positive, origin, key, "a positive number and finite", reprlib.repr(value))
    for key in (CYCLE_POSITION, CYCLE_ROTATION):
        value = content.get(key, True)
        require(isinstance(value, bool), origin, key, "true or false", reprlib.repr(value))
    has_frames = isinstance(frames, list) and len(frames) >= 2
    require(has_frames, origin, "Frames", "a list of at least 2 frames", reprlib.repr(frames))
    return content


def _read_parts(
    content: dict[str, Any], joints: Sequence[str], num_feet: int, origin: str
) -> dict[str, torch.Tensor]:
    """Return the parts of the frames by name: ``pos``, ``quat`` (x, y, z, w), ``joint_pos``, …"""
    rows = content["Frames"]
    feet = [f"foot {foot} {axis}" for foot in range(num_feet) for axis in "xyz"]
    base = [f"root {kind} velocity {axis}" for kind in ("linear", "angular") for axis in "xyz"]
    of_joints = [f"{joint} velocity" for joint in joints]
    of_feet = [f"{foot} velocity" for foot in feet]
    forms = (
        [*ROOT_COLUMNS, *joints],
        [*ROOT_COLUMNS, *joints, *base, *of_joints],
        [*ROOT_COLUMNS, *joints, *feet, *base, *of_joints, *of_feet],
    )
    # The first frame decides which of the forms the file has.
    width = len(rows[0]) if isinstance(rows[0], list) else 0
    widths = [len(form) for form in forms]
    expected = f"{' or '.join(str(number) for number in widths)} columns wide"
    require(width in widths, origin, "frame 0", expected, width)
    columns = forms[widths.index(width)]
    table = check_table(rows, columns, origin)
    check_unit(table[:, 3:7], origin, "root quaternion (x, y, z, w)")
    place = {column: number for number, column in enumerate(columns)}

    def part(names: Sequence[str]) -> torch.Tensor:
        return table[:, [place[name] for name in names]]

    quat_w = table[:, [6, 3, 4, 5]]
    parts = {"pos": table[:, :3], "joint_pos": part(joints)}
    if width > widths[0]:
        parts["ang_vel_b"] = part(base[3:])
        parts["joint_vel"] = part(of_joints)
    if width == widths[2]:
        parts["feet"] = part(feet)
    if content["LoopMode"] == "Wrap":
        parts["pos"], quat_w = close_loop(content, parts["pos"], quat_w, origin)
        if not content.get(CYCLE_ROTATION, True):
            # It is that of the loop as it turned.
            parts.pop("ang_vel_b", None)
    parts["quat"] = quat_w[:, [1, 2, 3, 0]]
    if width > widths[0]:
        parts["lin_vel_w"] = rotation.rotate(quat_w, part(base[:3]))
    return parts
