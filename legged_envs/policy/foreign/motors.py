"""Order of the motors of robots as their maker's software counts them.

Files of Unitree's repositories give joints by these numbers.
"""

from legged_envs.robots import A1, G1_29, GO1, GO2, RobotCfg

H1_MOTORS = (
    "right_hip_roll_joint",
    "right_hip_pitch_joint",
    "right_knee_joint",
    "left_hip_roll_joint",
    "left_hip_pitch_joint",
    "left_knee_joint",
    "torso_joint",
    "left_hip_yaw_joint",
    "right_hip_yaw_joint",
    "",
    "left_ankle_joint",
    "right_ankle_joint",
    "right_shoulder_pitch_joint",
    "right_shoulder_roll_joint",
    "right_shoulder_yaw_joint",
    "right_elbow_joint",
    "left_shoulder_pitch_joint",
    "left_shoulder_roll_joint",
    "left_shoulder_yaw_joint",
    "left_elbow_joint",
)
"""Joints of the motors of an H1 in Unitree's SDK. Number 9 is not used."""

MOTORS = {
    "go2": GO2.joint_names,
    "go1": GO1.joint_names,
    "a1": A1.joint_names,
    "g1": G1_29.joint_names,
    "g1_29": G1_29.joint_names,
    "h1": H1_MOTORS,
}
"""Name of a robot → the joints of its motors, in the order of Unitree's SDK.

Source: the enumerations of unitree_sdk2 and the files of unitree_rl_lab. Our quadrupeds and the G1
have their joints in this order.
"""


def motor_joints(robot: RobotCfg) -> tuple[str, ...]:
    """Return the joint of each motor of a robot.

    For a robot that Unitree's software does not know, motors are in the order of its joints.
    """
    return MOTORS.get(robot.name, robot.joint_names)


def motor_numbers(robot: RobotCfg, joints: tuple[str, ...]) -> list[int]:
    """Return the number of the motor of each joint."""
    motors = motor_joints(robot)
    return [motors.index(joint) for joint in joints]
