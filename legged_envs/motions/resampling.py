"""Changes the frame rate of a motion."""

from dataclasses import replace

import torch

from legged_envs.motions.kinematics import continuous
from legged_envs.motions.library import MotionLibrary
from legged_envs.motions.motion import Motion, MotionError, check_frame_rate, require
from legged_envs.robots import RobotCfg

MOST_FRAMES = 1_000_000
"""Largest number of frames of a motion at its new rate: more than five hours at 50 Hz."""


def resample(motion: Motion, robot: RobotCfg, frame_rate: float) -> Motion:
    """Return a copy of a motion at another frame rate, with interpolated frames.

    If the duration is not a whole number of new frames, the rest at the end of the motion, less
    than one new frame, is lost.

    Args:
        motion: The motion.
        robot: Robot of the motion.
        frame_rate: New frame rate, Hz.

    Raises:
        MotionError: The frame rate is not positive and finite, there would be more than
            ``MOST_FRAMES``, or the duration of a motion that loops is not a whole number of frames.
    """
    check_frame_rate(frame_rate, motion.origin)
    frames = motion.duration * frame_rate
    if frames > MOST_FRAMES:
        raise MotionError(
            f"{motion.origin}: lasts {motion.duration:g} s at {motion.frame_rate:g} Hz, which is "
            f"{frames:.3g} frames of {frame_rate:g} Hz, more than the limit of {MOST_FRAMES:,}: "
            "give its frames per second with --motion.rate (rate=…)"
        )
    is_whole = abs(frames - round(frames)) <= 1e-6 * frames
    require(
        not motion.loop or is_whole,
        motion.origin,
        "frame rate",
        f"one for which the loop of {motion.duration:g} s lasts a whole number of frames",
        f"{frame_rate:g} Hz",
    )
    times = torch.arange(int(frames + 1e-6) + 1, dtype=torch.float64) / frame_rate
    # "hold", not "loop": at its end a loop would be sampled as the start of a moved repetition.
    library = MotionLibrary([motion], robot, end="hold")
    clip = torch.zeros(1, dtype=torch.long)
    base = library.sample(clip, times)
    bodies = library.sample_bodies(clip, times)
    return replace(
        motion,
        frame_rate=frame_rate,
        root_pos_w=base.root_pos_w,
        # Interpolation keeps the length 1 only up to rounding.
        root_quat_w=continuous(base.root_quat_w),
        root_lin_vel_w=base.root_lin_vel_w,
        root_ang_vel_b=base.root_ang_vel_b,
        joint_pos=base.joint_pos,
        joint_vel=base.joint_vel,
        body_pos_w=bodies.pos_w,
        body_quat_w=continuous(bodies.quat_w),
        body_lin_vel_w=bodies.lin_vel_w,
        body_ang_vel_w=bodies.ang_vel_w,
        valid=base.valid,
    )
