"""A small dog: quadruped, 12 joints, 6.3 kg. ``legged-envs check own_robot.urdf --write src/own_robot/own_robot.py``
wrote it, except for the lines with a comment. Its figures are invented."""

from pathlib import Path

from legged_envs.robots import RobotCfg

OWN_ROBOT = RobotCfg(
    name="own_robot",
    xml=str(Path(__file__).with_name("own_robot.xml")),
    base_body="trunk",
    joint_names=tuple(f"{leg}_{joint}" for leg in ("FL", "FR", "RL", "RR") for joint in ("hip", "thigh", "knee")),
    # By hand: a URDF has no pose, and with the guess, knees 0.1 rad from their end, there is no room to step.
    default_joint_pos=(0.0, 0.75, -1.45) * 4,
    # By hand: the guess, 9.1 and 0.23, carries the robot; with 20 a foot is where it should be within 1 cm.
    kp=(20.0,) * 12,
    kd=(0.5,) * 12,
    torque_limits=(12.0, 12.0, 14.0) * 4,
    velocity_limits=(22.0, 22.0, 20.0) * 4,
    base_height=0.2275,  # by hand: the height at which the new pose touches the ground, by `check`
    foot_names=("FL_foot", "FR_foot", "RL_foot", "RR_foot"),
    foot_radius=0.018,
    penalized_bodies=tuple(f"{leg}_{link}_link" for leg in ("FL", "FR", "RL", "RR") for link in ("thigh", "shank")),
    termination_bodies=("trunk",),
    mirror=tuple(
        (f"{leg}_{joint}", sign)
        for leg in ("FR", "FL", "RR", "RL")
        for joint, sign in (("hip", -1.0), ("thigh", 1.0), ("knee", 1.0))
    ),
    foot_mirror=(1, 0, 3, 2),
    diagonals=(("FL_foot", "RR_foot"), ("FR_foot", "RL_foot")),
)
