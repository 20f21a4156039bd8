"""Change the frame rate of a motion."""

from __future__ import annotations

from dataclasses import fields, replace

import torch

from legged_envs.motions.coordinates import continuous
from legged_envs.motions.library import MotionLibrary
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.robots import RobotCfg


def resample(motion: Motion, robot: RobotCfg, frame_rate: float) -> Motion:
    """The motion interpolated at another frame rate.

    Up to one new frame of time is lost at the end of a clip that does not loop. A looping clip must last a whole
    number of new frames, for otherwise it would not close.
    """
    if not frame_rate > 0.0:
        raise ValueError(f"frame_rate must be positive, got {frame_rate}")
    frames = motion.duration * frame_rate
    if motion.loop and abs(frames - round(frames)) > 1e-6 * frames:
        raise MotionError(
            f"{motion.origin}: a loop of {motion.duration:g} s does not last a whole number of frames at "
            f"{frame_rate:g} Hz"
        )
    times = torch.arange(int(frames + 1e-6) + 1, dtype=torch.float64) / frame_rate
    sample = MotionLibrary([motion], robot, end="hold").sample(torch.zeros(1, dtype=torch.long), times)
    sampled = {field.name: getattr(sample, field.name) for field in fields(sample) if field.name != "ended"}
    for field in ("root_quat_w", "body_quat_w"):
        quats = sampled[field]
        sampled[field] = (
            continuous(quats) if quats.ndim == 2 else torch.stack([continuous(quat) for quat in quats.unbind(1)], dim=1)
        )
    return replace(motion, frame_rate=frame_rate, **sampled)
