"""Reads the skeleton and the motion of a .bvh file, and computes the positions of its joints."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from legged_envs.motions.formats.tables import plain_rate
from legged_envs.motions.motion import MotionError

AXES = {"X": 0, "Y": 1, "Z": 2}
"""First letter of a channel → its axis."""
LARGEST_SKELETON = 1000
"""Largest number of joints of a skeleton."""


@dataclass
class Skeleton:
    """Joints of a .bvh file in the order of the file, which puts parents first."""

    names: list[str] = field(default_factory=list)
    """Names of the joints, and of the ends of limbs: the parent's name and `_end`."""
    parents: list[int] = field(default_factory=list)
    """Index of the parent of each joint; -1 for the root."""
    offsets: list[np.ndarray] = field(default_factory=list)
    """Place of each joint in the frame of its parent, in the file's unit. Shape: (3,)."""
    channels: list[list[str]] = field(default_factory=list)
    """Channels of each joint, such as `Zrotation`, in the order of the columns."""

    def add(self, words: list[str], open_joints: list[int]) -> None:
        """Add a joint, or the end of a limb.

        Args:
            words: Words of its line, such as `JOINT LeftLeg` or `End Site`.
            open_joints: Indices of the joints with open braces. The last is the parent.
        """
        parent = -1
        if open_joints:
            parent = open_joints[-1]
        name = " ".join(words[1:])
        if words[0].upper() == "END":
            name = f"{self.names[parent]}_end"
        self.names.append(name)
        self.parents.append(parent)
        self.offsets.append(np.zeros(3))
        self.channels.append([])


def read_bvh(path: Path) -> tuple[tuple[str, ...], np.ndarray, float]:
    """Read a .bvh file.

    Returns:
        Names of the joints, their positions in the file's axes and unit, (T, number of joints, 3),
        and frames per second.

    Raises:
        MotionError: The file is damaged. The message names the line or the frame.
    """
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    lines = [line.split() for line in text.splitlines()]
    starts = [number for number, words in enumerate(lines) if words[:1] == ["MOTION"]]
    if not starts:
        raise MotionError(f"{path}: lacks the line MOTION, so it is not a .bvh file")
    skeleton = _read_hierarchy(lines[: starts[0]], str(path))
    table, rate = _read_table(lines, starts[0] + 1, skeleton, str(path))
    return tuple(skeleton.names), _place_joints(skeleton, table), rate


def _read_hierarchy(lines: list[list[str]], origin: str) -> Skeleton:
    skeleton = Skeleton()
    # Indices of the joints with open braces.
    open_joints: list[int] = []
    for number, words in enumerate(lines, start=1):
        word = words[0].upper() if words else ""
        try:
            if word in ("ROOT", "JOINT", "END"):
                skeleton.add(words, open_joints)
            elif word == "{":
                open_joints.append(len(skeleton.names) - 1)
            elif word == "}":
                open_joints.pop()
            elif word == "OFFSET":
                x, y, z = words[1:4]
                offset = [float(x), float(y), float(z)]
                skeleton.offsets[-1] = np.array(offset)
            elif word == "CHANNELS":
                number_of_channels = int(words[1])
                skeleton.channels[-1] = _known_channels(words[2 : 2 + number_of_channels])
        except (IndexError, ValueError) as error:
            raise MotionError(f"{origin}: line {number}: {' '.join(words)!r}: {error}") from error
    if not 1 < len(skeleton.names) <= LARGEST_SKELETON:
        raise MotionError(
            f"{origin}: must have 2 to {LARGEST_SKELETON} joints, got {len(skeleton.names)}"
        )
    return skeleton


def _known_channels(channels: list[str]) -> list[str]:
    """Return the channels of a joint.

    Raises:
        ValueError: One of them is neither a position nor a rotation along an axis.
    """
    for channel in channels:
        kind = channel[1:].lower()
        if channel[:1].upper() not in AXES or kind not in ("position", "rotation"):
            raise ValueError(f"no channel of a joint is called {channel!r}")
    return channels


def _read_table(
    lines: list[list[str]], first: int, skeleton: Skeleton, origin: str
) -> tuple[np.ndarray, float]:
    """Return the numbers of all channels, (T, number of channels), and frames per second."""
    width = sum(len(channels) for channels in skeleton.channels)
    step = 0.0
    expected: int | None = None
    rows = []
    for number, words in enumerate(lines[first:], start=first + 1):
        if not words:
            continue
        try:
            if words[0].startswith("Frames"):
                expected = int(words[-1].removeprefix("Frames:"))
                continue
            if words[0] == "Frame":
                step = float(words[-1])
                continue
            row = [float(word) for word in words]
        except ValueError as error:
            raise MotionError(f"{origin}: line {number}: {error}") from error
        if len(row) != width:
            raise MotionError(
                f"{origin}: line {number}: must have {width} numbers, one for each channel, "
                f"got {len(row)}"
            )
        rows.append(row)
    if expected is not None and len(rows) != expected:
        raise MotionError(
            f"{origin}: says Frames: {expected}, but has {len(rows)} lines of numbers: the file is "
            "cut short or damaged"
        )
    table = np.array(rows).reshape(-1, width)
    # The rate of a step that is nearly 0 would be infinite.
    is_step = 0.0 < step < np.inf and np.isfinite(1.0 / step)
    if len(rows) < 2 or not is_step or not np.isfinite(table).all():
        raise MotionError(
            f"{origin}: must have at least 2 frames of finite numbers and a positive Frame Time, "
            f"got {len(rows)} frames and {step:g} s"
        )
    return table, plain_rate(1.0 / step)


def _place_joints(skeleton: Skeleton, table: np.ndarray) -> np.ndarray:
    """Return the positions of all joints in the world. Shape: (T, number of joints, 3)."""
    num_frames = len(table)
    num_joints = len(skeleton.names)
    positions = np.zeros((num_frames, num_joints, 3))
    rotations = np.zeros((num_frames, num_joints, 3, 3))
    column = 0
    for joint, parent in enumerate(skeleton.parents):
        local = np.tile(np.eye(3), (num_frames, 1, 1))
        offset = np.tile(skeleton.offsets[joint], (num_frames, 1))
        for channel in skeleton.channels[joint]:
            axis = AXES[channel[0].upper()]
            values = table[:, column]
            column += 1
            if channel.lower().endswith("position"):
                # A position stands instead of the offset.
                offset[:, axis] = values
            else:
                local = local @ _turns(axis, np.radians(values))
        if parent < 0:
            positions[:, joint] = offset
            rotations[:, joint] = local
        else:
            above = rotations[:, parent]
            turned = above @ offset[:, :, None]
            positions[:, joint] = positions[:, parent] + turned[:, :, 0]
            rotations[:, joint] = above @ local
    return positions


def _turns(axis: int, angles: np.ndarray) -> np.ndarray:
    """Return rotation matrices about an axis. Shape: (T, 3, 3)."""
    first = (axis + 1) % 3
    second = (axis + 2) % 3
    cosine = np.cos(angles)
    sine = np.sin(angles)
    matrices = np.tile(np.eye(3), (len(angles), 1, 1))
    matrices[:, first, first] = cosine
    matrices[:, second, second] = cosine
    matrices[:, first, second] = -sine
    matrices[:, second, first] = sine
    return matrices
