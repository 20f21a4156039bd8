"""Clips of robots and of a human, made by hand for the tests of motion files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import torch

from legged_envs.motions import Motion, motion_from_coordinates, shipped_motions
from legged_envs.robots import G1_29, GO2, RobotCfg

Coordinates = tuple[np.ndarray, np.ndarray, np.ndarray]


def walk(
    frame_rate: float = 30.0, seconds: float = 3.0, robot: RobotCfg = G1_29, speed: float = 0.8
) -> Coordinates:
    """Positions, orientations (x, y, z, w) and joints of a robot that glides ahead and turns."""
    times = np.arange(round(seconds * frame_rate) + 1) / frame_rate
    zero = 0.0 * times
    pos = np.stack([speed * times, zero, zero + robot.base_height], axis=1)
    quat = np.stack([zero, zero, np.sin(0.15 * times), np.cos(0.15 * times)], axis=1)
    joints = np.tile(np.array(robot.default_joint_pos), (len(times), 1))
    joints[:, 3] += 0.3 * np.sin(2 * np.pi * times) ** 2
    joints[:, 5] += 0.1 * np.sin(3 * np.pi * times)
    return pos, quat, joints


def as_motion(frame_rate: float, coordinates: Coordinates, robot: RobotCfg = G1_29) -> Motion:
    """The motion of these coordinates, which readers should find."""
    pos, quat, joints = (torch.from_numpy(values) for values in coordinates)
    return motion_from_coordinates(robot, "walk", frame_rate, pos, quat[:, [3, 0, 1, 2]], joints)


def write_csv(path: Path, table: np.ndarray, separator: str = ",", header: str = "") -> Path:
    lines = [separator.join(f"{value:.7f}" for value in row) for row in table]
    path.write_text("\n".join([header, *lines] if header else lines) + "\n", encoding="utf-8")
    return path


def beyondmimic_arrays(motion: Motion, order: tuple[str, ...], robot: RobotCfg) -> dict:
    """Return the arrays that mjlab and Isaac Lab write for a motion: without names and feet."""
    kept = [i for i, body in enumerate(motion.body_names) if body not in robot.foot_names]
    columns = [robot.joint_names.index(joint) for joint in order]
    arrays = {"fps": np.array([motion.frame_rate])}
    for field in ("joint_pos", "joint_vel"):
        arrays[field] = getattr(motion, field).numpy()[:, columns]
    for field in ("pos", "quat", "lin_vel", "ang_vel"):
        arrays[f"body_{field}_w"] = getattr(motion, f"body_{field}_w").numpy()[:, kept]
    return arrays


def dog_file(path: Path, turn: float, rotates: bool, mode: str = "Wrap") -> Path:
    """A pace of Peng et al.'s form: 19 numbers, 60 Hz, a loop that drifts by ``turn`` rad."""
    pace = shipped_motions(GO2, "pace")[0]
    count = pace.num_frames
    yaw = turn * np.linspace(0.0, 1.0, count)
    quat = np.stack([0 * yaw, 0 * yaw, np.sin(yaw / 2), np.cos(yaw / 2)], axis=1)
    pos = pace.root_pos_w.numpy()
    content = {
        "LoopMode": mode,
        "FrameDuration": 1.0 / 60.0,
        "EnableCycleOffsetPosition": True,
        "EnableCycleOffsetRotation": rotates,
        "Frames": np.concatenate([pos, quat, pace.joint_pos.numpy()], axis=1).tolist(),
    }
    path.write_text(json.dumps(content))
    return path


HUMAN = {
    "Hips": (None, (0, 90, 0)),
    "LeftUpLeg": ("Hips", (10, -2, 0)),
    "LeftLeg": ("LeftUpLeg", (0, -42, 0)),
    "LeftFoot": ("LeftLeg", (0, -42, 0)),
    "LeftToe": ("LeftFoot", (0, -4, 14)),
    "RightUpLeg": ("Hips", (-10, -2, 0)),
    "RightLeg": ("RightUpLeg", (0, -42, 0)),
    "RightFoot": ("RightLeg", (0, -42, 0)),
    "RightToe": ("RightFoot", (0, -4, 14)),
    "Spine": ("Hips", (0, 15, 0)),
    "Spine2": ("Spine", (0, 30, 0)),
    "LeftArm": ("Spine2", (18, 5, 0)),
    "LeftForeArm": ("LeftArm", (0, -28, 0)),
    "LeftHand": ("LeftForeArm", (0, -26, 0)),
    "RightArm": ("Spine2", (-18, 5, 0)),
    "RightForeArm": ("RightArm", (0, -28, 0)),
    "RightHand": ("RightForeArm", (0, -26, 0)),
}
"""A human of 1.7 m in cm, y up and z ahead, arms down: joint → parent and offset."""


def walking_human(frames: int = 91, frame_rate: float = 30.0) -> dict[str, np.ndarray]:
    """Angles about x, degrees, of a human that marches: each thigh swings and each knee bends."""
    times = np.arange(frames) / frame_rate
    angles = {joint: np.zeros(frames) for joint in HUMAN}
    for side, phase in (("Left", 0.0), ("Right", math.pi)):
        lift = np.clip(np.sin(2 * np.pi * times + phase), 0.0, None)
        angles[f"{side}UpLeg"] = -35.0 * lift
        angles[f"{side}Leg"] = 70.0 * lift
        angles[f"{side}Foot"] = -35.0 * lift
        angles[f"{side}Arm"] = 20.0 * np.sin(2 * np.pi * times + phase)
    return angles


def write_bvh(path: Path, angles: dict[str, np.ndarray], frame_rate: float = 30.0) -> Path:
    """Write a .bvh file of the human, who marches on the spot."""
    lines = ["HIERARCHY"]

    def add(joint: str, depth: int) -> None:
        parent, offset = HUMAN[joint]
        pad = "  " * depth
        lines.append(f"{pad}{'ROOT' if parent is None else 'JOINT'} {joint}")
        lines.append(f"{pad}{{")
        lines.append(f"{pad}  OFFSET {' '.join(str(value) for value in offset)}")
        places = "6 Xposition Yposition Zposition" if parent is None else "3"
        lines.append(f"{pad}  CHANNELS {places} Zrotation Yrotation Xrotation")
        children = [name for name, (above, _) in HUMAN.items() if above == joint]
        for child in children:
            add(child, depth + 1)
        if not children:
            lines.append(f"{pad}  End Site\n{pad}  {{\n{pad}    OFFSET 0 -5 0\n{pad}  }}")
        lines.append(f"{pad}}}")

    add("Hips", 0)
    order = [line.split()[1] for line in lines if line.split()[0] in ("ROOT", "JOINT")]
    count = len(angles["Hips"])
    lines += ["MOTION", f"Frames: {count}", f"Frame Time: {1.0 / frame_rate:.7f}"]
    for frame in range(count):
        numbers = []
        for joint in order:
            if joint == "Hips":
                numbers += [0.0, 90.0, 0.0]
            numbers += [0.0, 0.0, angles[joint][frame]]
        lines.append(" ".join(f"{value:.5f}" for value in numbers))
    path.write_text("\n".join(lines) + "\n")
    return path


def human_positions(angles: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Positions of the human's joints, m, z up and x ahead, by plain trigonometry.

    All joints turn only about the lateral axis, so angles add up along a chain.
    """
    places: dict[str, np.ndarray] = {}
    turned: dict[str, np.ndarray] = {}
    for joint, (parent, offset) in HUMAN.items():
        x, y, z = (0.01 * value for value in offset)
        angle = np.radians(angles[joint])
        if parent is None:
            turned[joint] = angle
            places[joint] = np.stack([0 * angle + z, 0 * angle + x, 0 * angle + y], axis=1)
            continue
        above = turned[parent]
        ahead = z * np.cos(above) + y * np.sin(above)
        up = y * np.cos(above) - z * np.sin(above)
        step = np.stack([ahead, 0 * ahead + x, up], axis=1)
        places[joint] = places[parent] + step
        turned[joint] = above + angle
    return places
