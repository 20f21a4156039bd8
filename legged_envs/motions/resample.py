"""Change the frame rate of a motion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from legged_envs.motions.coordinates import continuous
from legged_envs.motions.library import MotionLibrary
from legged_envs.motions.motion import Motion, MotionError, check_frame_rate
from legged_envs.robots import RobotCfg


def resample(motion: Motion, robot: RobotCfg, frame_rate: float) -> Motion:
    """The motion interpolated at another frame rate.

    Up to one new frame of time is lost at the end of a clip that does not loop. A looping clip must last a whole
    number of new frames, for otherwise it would not close.

    Raises:
        MotionError: The frame rate is not positive and finite, or the clip loops and would not close.
    """
    check_frame_rate(frame_rate, motion.origin)
    frames = motion.duration * frame_rate
    if motion.loop and abs(frames - round(frames)) > 1e-6 * frames:
        raise MotionError(
            f"{motion.origin}: a loop of {motion.duration:g} s does not last a whole number of frames at "
            f"{frame_rate:g} Hz"
        )
    times = torch.arange(int(frames + 1e-6) + 1, dtype=torch.float64) / frame_rate
    library, clip = MotionLibrary([motion], robot, end="hold"), torch.zeros(1, dtype=torch.long)
    bodies = {f"body_{field}": values for field, values in vars(library.sample_bodies(clip, times)).items()}
    fields: dict[str, Any] = vars(library.sample(clip, times)) | bodies
    del fields["ended"]
    for field in ("root_quat_w", "body_quat_w"):
        fields[field] = continuous(fields[field])
    return replace(motion, frame_rate=frame_rate, **fields)
