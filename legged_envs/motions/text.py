"""Motions in text files: one frame a row, that is base position, base orientation (x, y, z, w), joint positions, more.
Unitree's LAFAN1 retargeting dataset is CSV without a header, in m and rad, 30 frames a second. G1 has 29 joints, so 36
columns, in the order of :data:`~legged_envs.robots.G1_29`.
AMP for quadrupeds (AMP_for_hardware and what builds on it) is JSON, named ``.txt`` or ``.json``: ``LoopMode`` ("Wrap"
or "Clamp"), ``FrameDuration`` [s], ``EnableCycleOffsetPosition``, ``EnableCycleOffsetRotation``, ``MotionWeight``,
``Frames``. A frame goes on with foot positions, linear and angular velocity of the base, all in the base frame, joint
velocities, foot velocities: 61 numbers for 12 joints. Files of Peng et al. 2020 end after the joint positions."""

import json
import reprlib
import sys
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import motion_from_coordinates
from legged_envs.motions.motion import Motion, MotionError, check_keys, check_unit, require
from legged_envs.robots import G1_29, GO2, RobotCfg

G1_LIMB_BY_LIMB = G1_29.joint_names
"""Joint order depth first, as in MJCF and URDF: Unitree's SDK, its LAFAN1 retargeting, mjlab and this package."""
_LEVELS = (*range(6), *range(6), *range(3), *range(3, 10), *range(3, 10))
"""How many joints are before each of those, from the base on: legs, waist, and the arms that go on from the waist."""
G1_LEVEL_BY_LEVEL = tuple(
    joint for _, joint in sorted(zip(_LEVELS, G1_LIMB_BY_LIMB, strict=True), key=itemgetter(0))
)
"""The same joints breadth first, as PhysX numbers them: Isaac Lab and the BeyondMimic files made with it."""
_ROOT = ("root x", "root y", "root z", "root qx", "root qy", "root qz", "root qw")
_CYCLE_OFFSETS = ("EnableCycleOffsetPosition", "EnableCycleOffsetRotation")


def load_lafan1_csv(
    path: str | Path,
    robot: RobotCfg,
    *,
    frame_rate: float = 30.0,
    joint_names: Sequence[str] = G1_LIMB_BY_LIMB,
    ignore_extra_joints: bool = False,
    lines: tuple[int, int] | None = None,
) -> Motion:
    """Read a clip of ``robot``, named after the file: ``frame_rate`` lines per second, with columns ``joint_names``.
    ``ignore_extra_joints`` leaves out joints that the robot lacks, as the 12-joint G1 does; ``lines`` are the first and
    last to read, from 1. MotionError, naming the line, for bytes that are no UTF-8, another number of columns, text
    that is no finite number, a quaternion that is not unit, or joints that do not match the robot."""
    origin = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8").rstrip().splitlines()
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise MotionError(f"{origin}: line {number}: not UTF-8 text: {error}") from error
    first, last = lines or (1, len(text))
    fine = lines is None or 1 <= first < last <= len(text)
    require(fine, origin, "lines", f"within 1 and {len(text)}, the first before the last", lines)
    rows = [[_number(cell) for cell in line.split(",")] for line in text[first - 1 : last]]
    poses = _read_frames(rows, joint_names, origin, "line", first)
    joints: dict[str, Any] = {
        "joint_names": joint_names,
        "ignore_extra_joints": ignore_extra_joints,
    }
    return motion_from_coordinates(
        robot, Path(path).stem, frame_rate, *poses, **joints, source=origin
    )


def load_amp_json(
    path: str | Path,
    robot: RobotCfg,
    *,
    joint_names: Sequence[str] = GO2.joint_names,
    num_feet: int = 4,
) -> Motion:
    """Read a clip of ``robot``, named after the file, with columns ``joint_names`` and of ``num_feet`` feet. The
    default order is that of AMP_for_hardware; forks have others, such as FL, FR, RL, RR. Velocities are the file's
    where it has them; feet are ``robot``'s, but where a file has one for each of them, they must lie on the sides where
    its legs are, or the joints are in another order. MotionError for text that is no JSON, wrong keys, frames of an
    unknown width, bad numbers or quaternions, or joints that do not match the robot."""
    content, origin = _read_amp(path), str(path)
    rows = content["Frames"]
    feet = [f"foot {foot} {axis}" for foot in range(num_feet) for axis in "xyz"]
    of_root = [f"root {kind} velocity {axis}" for kind in ("linear", "angular") for axis in "xyz"]
    columns = (
        *joint_names,
        *feet,
        *of_root,
        *(f"{column} velocity" for column in (*joint_names, *feet)),
    )
    short, long = (len(_ROOT) + len(names) for names in (joint_names, columns))
    width = len(rows[0]) if isinstance(rows[0], list) else 0
    require(width in (short, long), origin, "frame 0", f"{short} or {long} columns wide", width)
    pos, quat, others = _read_frames(rows, columns[: width - len(_ROOT)], origin)
    joint_pos, rest = others[:, : len(joint_names)], others[:, len(joint_names) :]
    fields: dict[str, Any] = {
        "loop": content["LoopMode"] == "Wrap",
        "weight": content.get("MotionWeight", 1.0),
    }
    if width == long:
        foot_pos, lin_vel, ang_vel, joint_vel, _ = rest.split(
            [len(feet), 3, 3, len(joint_names), len(feet)], dim=1
        )
        fields |= {
            "root_lin_vel_w": rotation.rotate(quat, lin_vel),
            "root_ang_vel_b": ang_vel,
            "joint_vel": joint_vel,
        }
    fields |= {"joint_names": joint_names, "source": origin}
    frame_rate = 1.0 / content["FrameDuration"]
    motion = motion_from_coordinates(
        robot, Path(path).stem, frame_rate, pos, quat, joint_pos, **fields
    )
    if width == long and num_feet == len(robot.foot_names):
        _check_sides(foot_pos.unflatten(1, (num_feet, 3)), motion, robot, joint_names)
    return motion


def _read_amp(path: str | Path) -> dict[str, Any]:
    origin = str(path)
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise MotionError(f"{origin}: not JSON: {error}") from error
    require(isinstance(content, dict), origin, "the text", "a JSON object", type(content).__name__)
    check_keys(
        content, ("LoopMode", "FrameDuration", "Frames"), origin, ("MotionWeight", *_CYCLE_OFFSETS)
    )
    mode, frames = content["LoopMode"], content["Frames"]
    require(mode in ("Wrap", "Clamp"), origin, "LoopMode", "'Wrap' or 'Clamp'", reprlib.repr(mode))
    for key in ("FrameDuration", "MotionWeight"):
        value = content.get(key, 1.0)
        fine = _is_finite(value) and value > 0.0
        require(fine, origin, key, "a positive number and finite", reprlib.repr(value))
    for key in _CYCLE_OFFSETS:
        value = content.get(key, True)
        expected = "true in a file that wraps, because loops go on from where they end"
        require(mode == "Clamp" or value is True, origin, key, expected, reprlib.repr(value))
    fine = isinstance(frames, list) and len(frames) >= 2
    require(fine, origin, "Frames", "a list of at least 2 frames", reprlib.repr(frames))
    return content


def _check_sides(
    feet: torch.Tensor, motion: Motion, robot: RobotCfg, joint_names: Sequence[str]
) -> None:
    """Raise if the file's feet (T, num_feet, 3), in the base frame, are left where the robot's legs are right."""
    legs = list(dict.fromkeys(name.split("_")[0] for name in joint_names))
    bodies = [
        motion.body_names.index(foot)
        for leg in legs
        for foot in robot.foot_names
        if foot.startswith(leg)
    ]
    if not len(legs) == len(bodies) == feet.shape[1]:
        return  # joints that are not called after their legs tell nothing
    from_base = motion.body_pos_w[:, bodies] - motion.root_pos_w.unsqueeze(1)
    ours = rotation.rotate_inverse(motion.root_quat_w, from_base).mean(0)[:, 1].tolist()
    theirs = feet.mean(0)[:, 1].tolist()
    for k, leg in enumerate(legs):
        if ours[k] * theirs[k] < 0.0:
            file = f"foot {k} of the file lies at y = {theirs[k]:.3f} m in the base frame"
            model = f"leg {leg!r} of {robot.name!r} puts it at {ours[k]:.3f} m"
            how = f"the file's joints are not in the order {', '.join(legs)}; give their order as joint_names"
            raise MotionError(f"{motion.origin}: {file}, but {model}: {how}")


def _read_frames(
    rows: Sequence[Any], columns: Sequence[str], origin: str, row: str = "frame", first: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Base positions (T, 3), orientations (w, x, y, z) (T, 4) and other ``columns`` of checked ``rows``, float64."""
    columns = (*_ROOT, *columns)
    for i, values in enumerate(rows, first):
        got = len(values) if isinstance(values, list) else type(values).__name__
        require(got == len(columns), origin, f"{row} {i}", f"{len(columns)} columns wide", got)
        for column, value in zip(columns, values, strict=True):
            if not _is_finite(value):
                require(
                    False,
                    f"{origin}: {row} {i}",
                    f"column[{column}]",
                    "a finite number",
                    reprlib.repr(value),
                )
    table = torch.tensor(rows, dtype=torch.float64).reshape(-1, len(columns))
    check_unit(table[:, 3:7], origin, "root quaternion (x, y, z, w)", row, first)
    return table[:, :3], table[:, [6, 3, 4, 5]], table[:, 7:]


def _is_finite(value: object) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def _number(cell: str) -> float | str:
    try:
        return cell.strip() if "_" in cell else float(cell)  # float() would read 1_0 as 10
    except ValueError:
        return cell.strip()
