"""Motions of BeyondMimic and mjlab: NumPy archives with ``fps``, joint and body states, and no names.

Keys: ``fps``, ``joint_pos`` and ``joint_vel`` (T, J), ``body_pos_w`` (T, B, 3), ``body_quat_w`` (T, B, 4)
(w, x, y, z), ``body_lin_vel_w``, ``body_ang_vel_w``; body 0 is the base. mjlab numbers joints and bodies limb by limb
as MuJoCo does, BeyondMimic's own files number them level by level as Isaac Lab does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from legged_envs import rotation
from legged_envs.motions.archive import as_tensor, one_number, read_archive
from legged_envs.motions.coordinates import joint_columns, motion_from_coordinates
from legged_envs.motions.g1_joints import G1_LIMB_BY_LIMB
from legged_envs.motions.motion import Motion, MotionError, check_finite, check_unit
from legged_envs.robots import RobotCfg

_PER_BODY = {"body_pos_w": 3, "body_quat_w": 4, "body_lin_vel_w": 3, "body_ang_vel_w": 3}
_KEYS = ("fps", "joint_pos", "joint_vel", *_PER_BODY)
_SAME_PLACE = 0.05
"""How far a body may be from where the file has one, m: more than models of one robot differ, less than a limb."""


def load_beyondmimic_npz(
    path: str | Path,
    robot: RobotCfg,
    *,
    joint_names: Sequence[str] = G1_LIMB_BY_LIMB,
    ignore_extra_joints: bool = False,
) -> Motion:
    """Read a clip, named after the file.

    Base pose, angular velocity and joints are the file's. Its other body states are replaced by those of ``robot``,
    after a check that they agree, which fails when the joints are in another order. The base's linear velocity is
    computed from its position, because Isaac Lab writes that of the base's centre of mass.

    Args:
        path: The file.
        robot: The robot that moves.
        joint_names: The joints of the file's columns: ``G1_LIMB_BY_LIMB`` for mjlab, ``G1_LEVEL_BY_LEVEL`` for files
            made with Isaac Lab.
        ignore_extra_joints: Leave out joints that the robot lacks.

    Raises:
        MotionError: Missing or unknown keys, wrong shapes, numbers that are not finite, quaternions that are not
            unit, joints or bodies that do not match the robot.
    """
    origin = str(path)
    content = read_archive(path, _KEYS)
    frame_rate = one_number(content["fps"], origin, "fps")
    arrays = {key: as_tensor(content[key], origin, key) for key in _KEYS[1:]}
    _check_shapes(arrays, len(joint_names), origin)
    for key in _KEYS[1:]:
        flat = arrays[key].flatten(1)
        check_finite(flat, joint_names if "joint" in key else [str(j) for j in range(flat.shape[1])], origin, key)
    check_unit(arrays["body_quat_w"], origin, "body_quat_w")
    wanted = joint_columns(robot, joint_names, origin, ignore_extra_joints)
    root_quat = arrays["body_quat_w"][:, 0]
    motion = motion_from_coordinates(
        robot,
        Path(path).stem,
        frame_rate,
        arrays["body_pos_w"][:, 0],
        root_quat,
        arrays["joint_pos"][:, wanted],
        root_ang_vel_b=rotation.rotate(rotation.conjugate(root_quat), arrays["body_ang_vel_w"][:, 0]),
        joint_vel=arrays["joint_vel"][:, wanted],
        source=origin,
    )
    _check_bodies(motion, arrays["body_pos_w"], robot)
    return motion


def _check_shapes(arrays: dict[str, torch.Tensor], num_joints: int, origin: str) -> None:
    for key in _KEYS[1:]:
        dimensions = 2 if "joint" in key else 3
        if arrays[key].ndim != dimensions:
            raise MotionError(f"{origin}: {key} must have {dimensions} dimensions, got {tuple(arrays[key].shape)}")
    num_frames, num_bodies = arrays["body_pos_w"].shape[:2]
    if num_bodies == 0:
        raise MotionError(f"{origin}: body_pos_w must have at least the base, got {num_frames} frames of 0 bodies")
    shapes = {"joint_pos": (num_frames, num_joints), "joint_vel": (num_frames, num_joints)}
    for key, expected in {**shapes, **{key: (num_frames, num_bodies, axes) for key, axes in _PER_BODY.items()}}.items():
        if arrays[key].shape != expected:
            raise MotionError(f"{origin}: {key} must be {expected}, got {tuple(arrays[key].shape)}")


def _check_bodies(motion: Motion, file_bodies: torch.Tensor, robot: RobotCfg) -> None:
    """Raise where a body of the robot is far from every body of the file; feet are bodies in this package only."""
    ours = [i for i, name in enumerate(motion.body_names) if name not in robot.foot_names]
    distance = torch.cdist(motion.body_pos_w[:, ours], file_bodies.float()).amin(2)
    worst = distance.max()
    if worst > _SAME_PLACE:
        frame, body = divmod(int(distance.argmax()), len(ours))
        raise MotionError(
            f"{motion.source}: frame {frame}: body_pos_w has no body within {_SAME_PLACE:g} m of robot "
            f"{robot.name!r}'s {motion.body_names[ours[body]]!r} ({worst.item():.2f} m to the nearest): another robot, "
            "or its joints are in another order; say which with joint_names"
        )
