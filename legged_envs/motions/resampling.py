"""A motion at another frame rate."""

from dataclasses import replace

import torch

from legged_envs.motions.kinematics import continuous
from legged_envs.motions.library import MotionLibrary
from legged_envs.motions.motion import Motion, check_frame_rate, require
from legged_envs.robots import RobotCfg


def resample(motion: Motion, robot: RobotCfg, frame_rate: float) -> Motion:
    """Return the motion interpolated at another frame rate.

    A motion that does not loop loses up to one new frame at its end.

    Args:
        motion: The motion.
        robot: Its robot.
        frame_rate: New frames per second.

    Raises:
        MotionError: The frame rate is not positive and finite, or does not divide a loop into whole
            frames.
    """
    check_frame_rate(frame_rate, motion.origin)
    frames = motion.duration * frame_rate
    is_whole = abs(frames - round(frames)) <= 1e-6 * frames
    require(
        not motion.loop or is_whole,
        motion.origin,
        "frame rate",
        f"one for which the loop of {motion.duration:g} s lasts a whole number of frames",
        f"{frame_rate:g} Hz",
    )
    times = torch.arange(int(frames + 1e-6) + 1, dtype=torch.float64) / frame_rate
    # Held, because the displacement of a repetition is not part of the clip.
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
