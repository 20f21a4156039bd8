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
from legged_envs.motions.archive import Archive
from legged_envs.motions.coordinates import motion_from_coordinates
from legged_envs.motions.g1_joints import G1_LIMB_BY_LIMB
from legged_envs.motions.motion import Motion, MotionError, check_frames, frame_columns
from legged_envs.robots import RobotCfg

_ARRAYS = ("body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w", "joint_pos", "joint_vel")
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
    archive = Archive(path, ("fps", *_ARRAYS))
    arrays = {key: archive.tensor(key) for key in _ARRAYS}
    num_frames, num_bodies = (*arrays["body_pos_w"].shape, 0, 0)[:2]
    if num_bodies == 0:
        raise MotionError(f"{path}: body_pos_w must have at least the base, got {num_frames} frames of 0 bodies")
    check_frames(arrays, frame_columns(joint_names, [str(body) for body in range(num_bodies)]), str(path))
    root_quat = arrays["body_quat_w"][:, 0]
    motion = motion_from_coordinates(
        robot,
        Path(path).stem,
        float(archive.only("fps", "number")),
        arrays["body_pos_w"][:, 0],
        root_quat,
        arrays["joint_pos"],
        root_ang_vel_b=rotation.rotate(rotation.conjugate(root_quat), arrays["body_ang_vel_w"][:, 0]),
        joint_vel=arrays["joint_vel"],
        joint_names=joint_names,
        ignore_extra_joints=ignore_extra_joints,
        source=str(path),
    )
    _check_bodies(motion, arrays["body_pos_w"], robot)
    return motion


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
