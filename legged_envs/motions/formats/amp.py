"""Reads motions of AMP for quadrupeds and of Peng et al. 2020 (.json, .txt).

JSON: ``LoopMode`` ("Wrap" or "Clamp"), ``FrameDuration`` [s], ``EnableCycleOffsetPosition``,
``EnableCycleOffsetRotation``, ``MotionWeight``, ``Frames``. Each frame has base position, base
orientation (x, y, z, w) and joint positions. In AMP_for_hardware and projects that build on it,
foot positions, linear and angular velocity of the base, all in the base frame, joint velocities and
foot velocities follow: 61 numbers for 12 joints. Some projects leave the feet out: 37 numbers.
Files of Peng et al. 2020 end after the joint positions.

DeepMimic's files, with ``Loop`` instead of ``LoopMode``, move a human or animal that is not a
robot.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.amp_content import read_content
from legged_envs.motions.formats.amp_frames import read_frames
from legged_envs.motions.formats.body_fit import check_sides
from legged_envs.motions.formats.tables import plain_rate
from legged_envs.motions.motion import Motion
from legged_envs.motions.orders import column_joints
from legged_envs.motions.recording import Recording, motion_of
from legged_envs.robots import RobotCfg


def read_amp(
    path: Path,
    robot: RobotCfg,
    reading: MotionReading,
    joint_names: Sequence[str] | None = None,
    num_feet: int | None = None,
) -> Motion:
    """Read a motion clip in AMP's JSON format.

    Args:
        path: The file.
        robot: Robot that the clip was recorded for.
        reading: Information of the user about the file, such as its frame rate.
        joint_names: Names of the joint columns. None: the robot's.
        num_feet: Number of feet with positions and velocities in the file. None: the robot's.

    Raises:
        MotionError: The text is not JSON, a key is wrong, a frame has an unknown width, a number or
            a quaternion is bad, or the joints do not match the robot.
    """
    content = read_content(path)
    names = joint_names or robot.joint_names
    joints = column_joints(reading, names, (len(names),), robot)
    if num_feet is None:
        num_feet = len(robot.foot_names)
    w_first = reading.quaternion == "wxyz"
    parts = read_frames(content, joints, num_feet, str(path), w_first)
    if w_first:
        # Those of the parts are (x, y, z, w).
        reading = replace(reading, quaternion="xyzw")
    recording = Recording(
        path=path,
        frame_rate=plain_rate(1.0 / content["FrameDuration"]),
        root_pos_w=parts["pos"],
        root_quat=parts["quat"],
        quaternion="xyzw",
        joint_pos=parts["joint_pos"],
        joint_names=joints,
        root_lin_vel_w=parts.get("lin_vel_w"),
        root_ang_vel_b=parts.get("ang_vel_b"),
        joint_vel=parts.get("joint_vel"),
        loop=content["LoopMode"] == "Wrap",
        weight=content.get("MotionWeight", 1.0),
    )
    motion = motion_of(recording, robot, reading)
    if "feet" in parts and num_feet == len(robot.foot_names) and reading.frames is None:
        check_sides(parts["feet"].unflatten(1, (num_feet, 3)), motion, robot, joints)
    return motion
