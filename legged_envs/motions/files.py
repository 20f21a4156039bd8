"""Loads and saves motions in NumPy archives (.npz): the package's format, and BeyondMimic's.

The package's files hold one clip: ``format``, ``name``, ``robot``, ``frame_rate``, ``loop``,
``weight``, ``joint_names``, and the arrays ``root_pos_w``, ``root_quat_w`` (w, x, y, z),
``root_lin_vel_w``, ``root_ang_vel_b``, ``joint_pos``, ``joint_vel``, ``valid`` of a
:class:`Motion`. The robot's model gives the poses of the bodies.

BeyondMimic's files, which mjlab also writes, have no names: ``fps``, ``joint_pos`` and
``joint_vel`` (T, J), ``body_pos_w`` (T, B, 3), ``body_quat_w`` (T, B, 4) (w, x, y, z),
``body_lin_vel_w``, ``body_ang_vel_w``. Body 0 is the base. mjlab numbers joints and bodies limb by
limb as MuJoCo does. BeyondMimic's files number them level by level as Isaac Lab does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from legged_envs import rotation
from legged_envs.motions.kinematics import motion_from_coordinates
from legged_envs.motions.motion import (
    FIELDS,
    Motion,
    MotionError,
    check_frames,
    check_keys,
    require,
)
from legged_envs.motions.text import G1_LIMB_BY_LIMB, load_amp_json, load_lafan1_csv
from legged_envs.robots import RobotCfg

FORMAT = "legged-envs motion 1"
"""Value of the key ``format`` in the package's files: name and version of the format."""
OWN_FIELDS = {
    "name": "text",
    "robot": "text",
    "frame_rate": "number",
    "loop": "bool",
    "weight": "number",
    "joint_names": "texts",
    **dict.fromkeys(FIELDS["root"] + FIELDS["joint"], "numbers"),
    "valid": "bools",
}
"""Keys of the package's files, except ``format``, and the kind of each value.

``"number"``, ``"bool"`` and ``"text"`` are single values. The plurals are arrays of them.
"""
BEYONDMIMIC_FIELDS = {
    "fps": "number",
    **dict.fromkeys(FIELDS["body"] + FIELDS["joint"], "numbers"),
}
"""Keys of BeyondMimic's files, and the kind of each value, as in ``OWN_FIELDS``."""
DTYPE_KINDS = {"number": "fiu", "bool": "b", "text": "U"}
"""Kind of a value → the codes ``numpy.dtype.kind`` that arrays of it can have."""
BODY_TOLERANCE = 0.05
"""Largest distance of a robot's body from the nearest body in a file, m.

Two models of the same robot differ by less. A wrong order of joints gives larger distances.
"""


@dataclass(frozen=True)
class MotionFiles:
    """Motion files that an imitation task uses as its reference clips.

    It is the value of a task's configuration: ``gym.make_vec(id, cfg={"commands.motion.motions":
    MotionFiles(("kick.npz",))})``.
    """

    paths: Sequence[str | Path]
    """Paths of the files, one clip each.

    ``.npz`` is the package's format or BeyondMimic's, ``.csv`` is LAFAN1 retargeted to the G1,
    ``.json`` and ``.txt`` are AMP's.
    """

    def __call__(self, robot: RobotCfg) -> list[Motion]:
        """Load the clips from the files, for a robot.

        Raises:
            MotionError: A path has an unknown ending, or its file cannot be used.
        """
        return [_load(Path(path), robot) for path in self.paths]


def _load(path: Path, robot: RobotCfg) -> Motion:
    if path.suffix == ".npz":
        # Only BeyondMimic's archives have this key.
        if "fps" in _read_arrays(path):
            return load_beyondmimic_npz(path, robot)
        return load_motion(path, robot)
    if path.suffix == ".csv":
        return load_lafan1_csv(path, robot)
    if path.suffix in (".json", ".txt"):
        return load_amp_json(path, robot)
    raise MotionError(f"{path}: the ending must be .npz, .csv, .json or .txt, got {path.suffix!r}")


def save_motion(path: str | Path, motion: Motion) -> None:
    """Write a motion to a file in the package's format.

    Files of equal motions are equal byte for byte.

    Args:
        path: The file. Its ending must be ``.npz``.
        motion: The motion.

    Raises:
        ValueError: ``path`` has another ending.
    """
    if Path(path).suffix != ".npz":
        raise ValueError(f"a motion file must end in .npz, got {path}")
    # Bodies are left out: they follow from the robot's model, which may be corrected later.
    arrays: dict[str, Any] = {}
    for key in OWN_FIELDS:
        value = getattr(motion, key)
        arrays[key] = value.cpu() if isinstance(value, torch.Tensor) else value
    np.savez_compressed(path, format=FORMAT, **arrays)


def load_motion(path: str | Path, robot: RobotCfg) -> Motion:
    """Load a motion from a file that :func:`save_motion` has written.

    Args:
        path: The file.
        robot: Robot of the motion. Its model gives the poses of the bodies.

    Raises:
        MotionError: The file has another format, or is of another robot or other joints.
    """
    content = _read_archive(path, {"format": "text", **OWN_FIELDS})
    file_format = content.pop("format")
    file_robot = content.pop("robot")
    require(file_format == FORMAT, str(path), "format", repr(FORMAT), repr(file_format))
    require(file_robot == robot.name, str(path), "robot", repr(robot.name), repr(file_robot))
    return motion_from_coordinates(robot, **content, source=str(path))


def load_beyondmimic_npz(
    path: str | Path,
    robot: RobotCfg,
    *,
    joint_names: Sequence[str] = G1_LIMB_BY_LIMB,
    ignore_extra_joints: bool = False,
) -> Motion:
    """Load a clip from a NumPy archive of BeyondMimic or mjlab.

    The name of the clip is the name of the file without its ending. The pose and the angular
    velocity of the base, and the joints, are read from the file. Poses and velocities of the bodies
    are computed from them with the model of ``robot``. The bodies of the file must be near the
    computed ones; a wrong order of joints is found by this. The linear velocity of the base is
    computed from its positions, because Isaac Lab writes the velocity of the centre of mass.

    Args:
        path: The file.
        robot: Robot of the clip.
        joint_names: Names of the joint columns: ``G1_LIMB_BY_LIMB`` for files of mjlab,
            ``G1_LEVEL_BY_LEVEL`` for files that were made with Isaac Lab.
        ignore_extra_joints: True to leave out columns of joints that the robot does not have.

    Raises:
        MotionError: The keys, numbers, shapes, joints or bodies of the file are wrong.
    """
    origin = str(path)
    content = _read_archive(path, BEYONDMIMIC_FIELDS)
    frame_rate = content.pop("fps")
    body_pos = content["body_pos_w"]
    num_frames = body_pos.shape[0] if body_pos.ndim > 0 else 0
    num_bodies = body_pos.shape[1] if body_pos.ndim > 1 else 0
    got = f"{num_frames} frames of {num_bodies} bodies"
    require(num_bodies > 0, origin, "body_pos_w", "of the base at least", got)
    # Bodies have no names in these files: errors give their numbers.
    file_bodies = [str(body) for body in range(num_bodies)]
    check_frames(content, joint_names, file_bodies, origin)
    quat = content["body_quat_w"][:, 0]
    ang_vel_w = content["body_ang_vel_w"][:, 0]
    motion = motion_from_coordinates(
        robot,
        name=Path(path).stem,
        frame_rate=frame_rate,
        root_pos_w=body_pos[:, 0],
        root_quat_w=quat,
        joint_pos=content["joint_pos"],
        root_ang_vel_b=rotation.rotate(rotation.conjugate(quat), ang_vel_w),
        joint_vel=content["joint_vel"],
        joint_names=joint_names,
        ignore_extra_joints=ignore_extra_joints,
        source=origin,
    )
    _check_bodies(motion, body_pos, robot)
    return motion


def _check_bodies(motion: Motion, file_pos: torch.Tensor, robot: RobotCfg) -> None:
    """Raise a MotionError unless each body of the robot is near a body of the file.

    Args:
        motion: The motion, with computed bodies.
        file_pos: Positions of the bodies in the file, m. Shape: (T, B, 3).
        robot: The robot.
    """
    # The files have no feet.
    bodies = []
    for index, name in enumerate(motion.body_names):
        if name not in robot.foot_names:
            bodies.append(index)
    # The nearest body of the file counts, because the files have no names of bodies.
    distance = torch.cdist(motion.body_pos_w[:, bodies], file_pos.float()).amin(2)
    if distance.max() > BODY_TOLERANCE:
        frame, body = divmod(int(distance.argmax()), len(bodies))
        raise MotionError(
            f"{motion.origin}: frame {frame}: body_pos_w has no body within {BODY_TOLERANCE:g} m "
            f"of robot {robot.name!r}'s {motion.body_names[bodies[body]]!r} "
            f"({distance.max():.2f} m to the nearest): the file is of another robot, or its joints "
            "are in another order; give their order as joint_names"
        )


def _read_arrays(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {}
    key = ""
    with open(path, "rb") as file:
        try:
            # Without pickles, which could run code.
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise ValueError("it holds a single array without a name, as an .npy file does")
            for key in archive.files:
                arrays[key] = archive[key]
                if not isinstance(arrays[key], np.ndarray):
                    raise ValueError("it is not an array")
        # Damaged bytes make zipfile, zlib and NumPy raise more kinds of errors than can be named.
        except Exception as error:
            if key:
                raise MotionError(
                    f"{path}: not a NumPy archive of plain arrays: field {key!r}: {error}"
                ) from error
            raise MotionError(f"{path}: not a NumPy archive of plain arrays: {error}") from error
    return arrays


def _read_archive(path: str | Path, kinds: Mapping[str, str]) -> dict[str, Any]:
    """Read an archive with the keys of ``kinds``.

    Returns:
        Key → a float, bool, text, list of texts, or tensor. Tensors of numbers are float64.
    """
    arrays = _read_arrays(path)
    check_keys(arrays, tuple(kinds), str(path))
    content: dict[str, Any] = {}
    for key, kind in kinds.items():
        content[key] = _convert_entry(arrays[key], key, kind, str(path))
    return content


def _convert_entry(array: npt.NDArray[Any], key: str, kind: str, origin: str) -> Any:
    """Check an array and convert it to one value, a list of texts or a tensor."""
    # Only the kinds of single values are keys; a plural, such as "numbers", is an array.
    is_one = kind in DTYPE_KINDS
    if is_one:
        has_shape = array.size == 1
        expected = f"one {kind}"
    else:
        has_shape = array.ndim == 1 or kind == "numbers"
        expected = f"an array of {kind}"
    has_dtype = array.dtype.kind in DTYPE_KINDS[kind.removesuffix("s")]
    got = repr(array.item()) if array.size == 1 else f"{array.dtype} of shape {array.shape}"
    require(has_shape and has_dtype, origin, key, expected, got)
    if kind == "texts":
        return array.tolist()
    if kind in ("number", "numbers"):
        array = array.astype(np.float64)
    if is_one:
        return array.item()
    return torch.from_numpy(array)
