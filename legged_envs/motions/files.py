"""Motions from files; here are NumPy archives, the package's own and those of BeyondMimic and mjlab. Our own hold one
clip: ``format``, ``name``, ``robot``, ``frame_rate``, ``loop``, ``weight``, ``joint_names`` and the arrays
``root_pos_w``, ``root_quat_w`` (w, x, y, z), ``root_lin_vel_w``, ``root_ang_vel_b``, ``joint_pos``, ``joint_vel``,
``valid`` of a :class:`Motion`. The robot's model gives the poses of the bodies.
BeyondMimic's files have no names: ``fps``, ``joint_pos`` and ``joint_vel`` (T, J), ``body_pos_w`` (T, B, 3),
``body_quat_w`` (T, B, 4) (w, x, y, z), ``body_lin_vel_w``, ``body_ang_vel_w``; body 0 is the base. mjlab numbers joints
and bodies limb by limb as MuJoCo does, BeyondMimic's own files number them level by level as Isaac Lab does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
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
_OWN = {"name": "text", "robot": "text", "frame_rate": "number", "loop": "bool", "weight": "number"}
_OWN |= {
    "joint_names": "texts",
    **dict.fromkeys(FIELDS["root"] + FIELDS["joint"], "numbers"),
    "valid": "bools",
}
_BEYONDMIMIC = {"fps": "number", **dict.fromkeys(FIELDS["body"] + FIELDS["joint"], "numbers")}
"""What stands under each key of our own files, but ``format``, and of BeyondMimic's: one entry, or an array of them."""
_DTYPES = {
    "number": "fiu",
    "bool": "b",
    "text": "U",
}  # entry → the ``numpy.dtype.kind`` of arrays that hold it
_SAME_PLACE = 0.05  # m that a body may be from where a file has one: more than models differ, less than a limb


@dataclass(frozen=True)
class MotionFiles:
    """The clips of a task from files: ``cfg={"commands.motion.motions": MotionFiles(("kick.npz",))}``. ``.npz`` is our
    own format or BeyondMimic's, ``.csv`` LAFAN1 retargeted to the G1, ``.json`` and ``.txt`` AMP's."""

    paths: Sequence[str | Path]

    def __call__(self, robot: RobotCfg) -> list[Motion]:
        """The clips of ``robot``; raises MotionError for another ending, or a file that its loader does not take."""
        return [_load(Path(path), robot) for path in self.paths]


def _load(path: Path, robot: RobotCfg) -> Motion:
    loaders = {
        ".npz": load_motion,
        ".csv": load_lafan1_csv,
        ".json": load_amp_json,
        ".txt": load_amp_json,
    }
    require(
        path.suffix in loaders,
        str(path),
        "the ending",
        ".npz, .csv, .json or .txt",
        repr(path.suffix),
    )
    if path.suffix == ".npz" and "fps" in _read_arrays(path):
        return load_beyondmimic_npz(path, robot)
    return loaders[path.suffix](path, robot)


def save_motion(path: str | Path, motion: Motion) -> None:
    """Write ``motion`` to ``path``, which must end in ``.npz`` (else a ValueError). The same motion gives the same
    bytes."""
    if Path(path).suffix != ".npz":
        raise ValueError(f"a motion file must end in .npz, got {path}")
    arrays: dict[str, Any] = {key: getattr(motion, key) for key in _OWN}
    arrays |= {key: value.cpu() for key, value in arrays.items() if isinstance(value, torch.Tensor)}
    np.savez_compressed(path, format=FORMAT, **arrays)


def load_motion(path: str | Path, robot: RobotCfg) -> Motion:
    """Read a file of :func:`save_motion`; MotionError for another format or robot, wrong keys, or wrong joints."""
    content = _read_archive(path, {"format": "text", **_OWN})
    for field, expected in (("format", FORMAT), ("robot", robot.name)):
        got = content.pop(field)
        require(got == expected, str(path), field, repr(expected), repr(got))
    return motion_from_coordinates(robot, **content, source=str(path))


def load_beyondmimic_npz(
    path: str | Path,
    robot: RobotCfg,
    *,
    joint_names: Sequence[str] = G1_LIMB_BY_LIMB,
    ignore_extra_joints: bool = False,
) -> Motion:
    """Read a clip of ``robot``, named after the file. Base pose, angular velocity and joints are the file's. Other body
    states are ``robot``'s, after a check that the file's agree, which fails when joints are in another order. The
    base's linear velocity comes from its position, as Isaac Lab writes that of its centre of mass. The file's joints
    are ``joint_names``: ``G1_LIMB_BY_LIMB`` for mjlab, ``G1_LEVEL_BY_LEVEL`` for Isaac Lab; ``ignore_extra_joints``
    leaves out those that the robot lacks. MotionError for wrong keys, numbers, shapes, joints or bodies."""
    content, origin = _read_archive(path, _BEYONDMIMIC), str(path)
    frame_rate, body_pos = content.pop("fps"), content["body_pos_w"]
    num_frames, num_bodies = (*body_pos.shape, 0, 0)[:2]
    require(
        num_bodies > 0,
        origin,
        "body_pos_w",
        "of the base at least",
        f"{num_frames} frames of 0 bodies",
    )
    check_frames(content, joint_names, [str(body) for body in range(num_bodies)], origin)
    pos, quat, ang_vel = (content[f"body_{field}_w"][:, 0] for field in ("pos", "quat", "ang_vel"))
    fields: dict[str, Any] = {
        "root_pos_w": pos,
        "root_quat_w": quat,
        "joint_pos": content["joint_pos"],
    }
    fields |= {
        "root_ang_vel_b": rotation.rotate(rotation.conjugate(quat), ang_vel),
        "joint_vel": content["joint_vel"],
    }
    fields |= {
        "joint_names": joint_names,
        "ignore_extra_joints": ignore_extra_joints,
        "source": origin,
    }
    motion = motion_from_coordinates(robot, Path(path).stem, frame_rate, **fields)
    ours = [
        i for i, name in enumerate(motion.body_names) if name not in robot.foot_names
    ]  # the file has no feet
    distance = torch.cdist(motion.body_pos_w[:, ours], body_pos.float()).amin(2)
    if distance.max() > _SAME_PLACE:
        frame, body = divmod(int(distance.argmax()), len(ours))
        near = (
            f"within {_SAME_PLACE:g} m of robot {robot.name!r}'s {motion.body_names[ours[body]]!r}"
        )
        wrong = f"has no body {near} ({distance.max():.2f} m to the nearest)"
        why = "another robot, or its joints are in another order; say which with joint_names"
        raise MotionError(f"{origin}: frame {frame}: body_pos_w {wrong}: {why}")
    return motion


def _read_arrays(path: str | Path) -> dict[str, np.ndarray[Any, Any]]:
    arrays, key = dict[str, np.ndarray[Any, Any]](), ""
    with open(path, "rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise ValueError("it holds a single array without a name, as an .npy file does")
            for key in archive.files:
                arrays[key] = archive[key]
                if not isinstance(arrays[key], np.ndarray):
                    raise ValueError("it is no array")
        except (
            Exception
        ) as error:  # bytes are damaged in too many ways to name what zipfile, zlib and NumPy raise
            of_field = f": field {key!r}" if key else ""
            raise MotionError(
                f"{path}: not a NumPy archive of plain arrays{of_field}: {error}"
            ) from error
    return arrays


def _read_archive(path: str | Path, kinds: Mapping[str, str]) -> dict[str, Any]:
    """What an archive holds, of the ``kinds``: a float, bool, text, list of texts, or tensor, of numbers in float64."""
    arrays = _read_arrays(path)
    check_keys(arrays, tuple(kinds), str(path))
    content: dict[str, Any] = {}
    for key, kind in kinds.items():
        array, is_one = arrays[key], kind in _DTYPES
        fits = array.size == 1 if is_one else array.ndim == 1 or kind == "numbers"
        fine = fits and array.dtype.kind in _DTYPES[kind.removesuffix("s")]
        got = repr(array.item()) if array.size == 1 else f"{array.dtype} of shape {array.shape}"
        require(fine, str(path), key, f"one {kind}" if is_one else f"an array of {kind}", got)
        if "number" in kind:
            array = array.astype(np.float64)
        content[key] = (
            array.item()
            if is_one
            else array.tolist()
            if kind == "texts"
            else torch.from_numpy(array)
        )
    return content
