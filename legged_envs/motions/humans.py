"""Key points of a human: from a .bvh file, or from positions of joints in an archive (.npz)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from legged_envs import rotation
from legged_envs.motions.formats.archives import archive_names, convert_entry, read_arrays
from legged_envs.motions.formats.bvh import read_bvh
from legged_envs.motions.key_points import KeyPoints
from legged_envs.motions.motion import MotionError, check_frame_rate, require

SMPL_JOINTS = (
    "pelvis",
    "left_hip",
    "right_hip",
    "spine1",
    "left_knee",
    "right_knee",
    "spine2",
    "left_ankle",
    "right_ankle",
    "spine3",
    "left_toe",
    "right_toe",
    "neck",
    "left_collar",
    "right_collar",
    "head",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_hand",
    "right_hand",
)
"""The first joints of SMPL, SMPL-H and SMPL-X, in the order of AMASS."""
WORDS = {
    "pelvis": ("hips", "pelvis", "hip", "root"),
    "chest": ("spine3", "spine2", "chest", "upperchest", "spine1", "thorax", "spine", "neck"),
    "hip": ("upleg", "hip", "thigh", "upperleg", "femur", "hipjoint"),
    "knee": ("leg", "knee", "shin", "lowerleg", "calf", "tibia"),
    "ankle": ("foot", "ankle"),
    "toe": ("toebase", "toe", "toe0", "ball", "footend", "ankleend", "toes"),
    "shoulder": ("arm", "upperarm", "uarm", "humerus", "shldr", "shoulder"),
    "elbow": ("forearm", "farm", "radius", "elbow", "lowerarm"),
    "hand": ("hand", "wrist"),
}
"""Part of a body → words for it in the names of joints, the best first, without the side."""
SIDES = {"left": ("left", "l"), "right": ("right", "r")}
"""Side → what stands before or behind the word."""
JOINT_KEYS = ("joints", "human_joints")
"""Keys of positions of joints in an archive. Shape: (T, 22 or more, 3)."""
RATE_KEYS = ("fps", "mocap_frame_rate", "mocap_framerate")
"""Keys of the frame rate in an archive."""
LOWEST_SHARE = 0.05
"""Quantile of the height of the ankles at which a foot is on the ground."""


def is_human(path: Path) -> bool:
    """Return True for a file with the motion of a human that :func:`load_human` reads."""
    if path.suffix.lower() == ".bvh":
        return True
    return (
        path.suffix.lower() == ".npz"
        and any(key in archive_names(path) for key in JOINT_KEYS)
        and ("qpos" not in archive_names(path))
    )


def load_human(path: str | Path, frame_rate: float | None = None) -> KeyPoints:
    """Load the key points of a human.

    Args:
        path: A .bvh file, or an archive with ``joints`` (T, 22 or more, 3) in the order of SMPL and
            ``fps``. Any unit and any axis that points up.
        frame_rate: Frames per second. None: the rate of the file.

    Raises:
        MotionError: The file is damaged, or lacks a joint.
    """
    path = Path(path)
    if path.suffix.lower() == ".bvh":
        names, positions, rate = read_bvh(path)
    else:
        names, positions, rate = _read_joints(path, frame_rate)
    rate = rate if frame_rate is None else frame_rate
    check_frame_rate(rate, str(path))
    joints = _by_part(names, positions, str(path))
    return _key_points(joints, path.stem, rate, str(path))


def _read_joints(path: Path, frame_rate: float | None) -> tuple[tuple[str, ...], np.ndarray, float]:
    origin = str(path)
    arrays = read_arrays(path, (*JOINT_KEYS, *RATE_KEYS))
    key = next(key for key in JOINT_KEYS if key in arrays)
    positions = convert_entry(arrays[key], key, "numbers", origin).numpy()
    number = len(SMPL_JOINTS)
    is_right = positions.ndim == 3 and positions.shape[1] >= number and positions.shape[2] == 3
    expected = f"of shape (T, {number} or more, 3)"
    require(is_right and len(positions) > 1, origin, key, expected, positions.shape)
    positions = positions[:, :number]
    bad = np.argwhere(~np.isfinite(positions).all(axis=2))
    if len(bad) > 0:
        frame, joint = bad[0]
        place = positions[frame, joint].tolist()
        where = f"{key}: frame {frame}: {SMPL_JOINTS[joint]}"
        raise MotionError(f"{origin}: {where} must be three finite numbers, got {place}")
    for rate_key in RATE_KEYS:
        if rate_key in arrays:
            rate = convert_entry(arrays[rate_key], rate_key, "number", origin)
            return SMPL_JOINTS, positions, rate
    if frame_rate is None:
        raise MotionError(
            f"{origin}: lacks field 'fps': give the frames per second with --motion.rate"
        )
    return SMPL_JOINTS, positions, frame_rate


def _by_part(names: Sequence[str], positions: np.ndarray, origin: str) -> dict[str, np.ndarray]:
    """Return the positions of the joints that are needed: ``pelvis``, ``left knee``, …"""
    plain: dict[str, int] = {}
    # Bip01 L Thigh and Character1_LeftUpLeg carry the name of the character.
    start = _length_of_common_start(names)
    for index, name in enumerate(names):
        # mixamorig:LeftUpLeg, left_hip and LHip differ only in letters.
        letters = name[start:].rpartition(":")[2].lower()
        plain.setdefault("".join(c for c in letters if c.isalnum()), index)
    joints = {}
    for part, words in WORDS.items():
        if part in ("pelvis", "chest"):
            candidates = {part: list(words)}
        else:
            candidates = {
                f"{side} {part}": _with_side(words, beginnings)
                for side, beginnings in SIDES.items()
            }
        for place, spellings in candidates.items():
            found = [plain[spelling] for spelling in spellings if spelling in plain]
            if not found:
                raise MotionError(
                    f"{origin}: lacks a joint for {place!r}, such as {spellings[0]!r}; "
                    f"it has {', '.join(names[:30])}: rename its joints"
                )
            joints[place] = positions[:, found[0]]
    return joints


def _length_of_common_start(names: Sequence[str]) -> int:
    """Return the number of letters with which all names start."""
    length = 0
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        length += 1
    return length


def _with_side(words: Sequence[str], beginnings: Sequence[str]) -> list[str]:
    spellings = []
    for word in words:
        for beginning in beginnings:
            spellings.append(beginning + word)
            spellings.append(word + beginning)
    return spellings


def _key_points(joints: dict[str, np.ndarray], name: str, rate: float, origin: str) -> KeyPoints:
    turn = _upright(joints)
    points = {place: torch.from_numpy(values @ turn.T) for place, values in joints.items()}
    ankles = torch.stack((points["left ankle"][:, 2], points["right ankle"][:, 2]))
    limbs = {}
    ends: dict[str, torch.Tensor] = {}
    lengths = {}
    for side in SIDES:
        leg = [points[f"{side} {part}"] for part in ("hip", "knee", "ankle")]
        arm = [points[f"{side} {part}"] for part in ("shoulder", "elbow", "hand")]
        limbs[f"{side} leg"] = torch.stack(leg, dim=1)
        limbs[f"{side} arm"] = torch.stack(arm, dim=1)
        for role in (f"{side} leg", f"{side} arm"):
            bones = limbs[role].diff(dim=1).norm(dim=2).median(dim=0).values
            lengths[role] = (bones[0].item(), bones[1].item())
            is_long = min(lengths[role]) > 0.0
            require(is_long, origin, f"lengths of the {role}", "above 0", lengths[role])
    to_left = points["left hip"] - points["right hip"]
    base = _frame(to_left, points["chest"] - points["pelvis"])
    shoulders = points["left shoulder"] - points["right shoulder"]
    middle = (points["left shoulder"] + points["right shoulder"]) / 2.0
    ground = torch.quantile(ankles, LOWEST_SHARE).item()
    result = KeyPoints(
        name=name,
        frame_rate=rate,
        base_quat_w=base,
        limbs=limbs,
        lengths=lengths,
        ground=ground,
        end_quat_w=ends,
        torso_quat_w=_frame(shoulders, middle - points["pelvis"]),
    )
    for side in SIDES:
        toe = points[f"{side} toe"] - points[f"{side} ankle"]
        ends[f"{side} leg"] = _foot_rotation(toe, result.planted(f"{side} leg"))
    return result


def _upright(joints: dict[str, np.ndarray]) -> np.ndarray:
    """Return the rotation from the file's axes to those with z up. Shape: (3, 3)."""
    feet = (joints["left ankle"] + joints["right ankle"]) / 2.0
    up = np.median(joints["chest"] - feet, axis=0)
    axis = int(abs(up).argmax())
    sign = np.sign(up[axis])
    # The axes after the vertical axis become x and y, so that right stays right.
    turn = np.zeros((3, 3))
    turn[2, axis] = sign
    turn[0, (axis + 1) % 3] = 1.0
    turn[1, (axis + 2) % 3] = sign
    return turn


def _frame(to_left: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Return the orientations with y along ``to_left`` and z near ``up``. Shape: (T, 4)."""
    y = torch.nn.functional.normalize(to_left, dim=1)
    x = torch.nn.functional.normalize(torch.linalg.cross(y, up), dim=1)
    z = torch.linalg.cross(x, y)
    return _quaternions(torch.stack((x, y, z), dim=2))


def _quaternions(matrices: torch.Tensor) -> torch.Tensor:
    """Return rotation matrices, (T, 3, 3), as quaternions. Shape: (T, 4)."""
    import mujoco

    quats = np.zeros((len(matrices), 4))
    for row, matrix in zip(quats, matrices.numpy(), strict=True):
        mujoco.mju_mat2Quat(row, matrix.flatten())
    return torch.from_numpy(quats)


def _foot_rotation(toe: torch.Tensor, planted: torch.Tensor) -> torch.Tensor:
    """Return the rotations of a foot since it stood flat ahead: its heading, and its pitch.

    Args:
        toe: Vector from the ankle to the toe. Shape: (T, 3).
        planted: True where the foot is planted, which is where it is flat. Shape: (T,).
    """
    pitch = -torch.atan2(toe[:, 2], toe[:, :2].norm(dim=1))
    flat = pitch[planted].median() if planted.any() else pitch.median()
    yaw = torch.atan2(toe[:, 1], toe[:, 0])
    # A planted foot is flat; where it is not, heel and toe turn it.
    tilt = torch.where(planted, 0.0, pitch - flat)
    return rotation.multiply(rotation.from_yaw(yaw), rotation.from_pitch(tilt))
