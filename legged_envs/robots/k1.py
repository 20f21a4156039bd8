"""Booster K1, a small humanoid: 22 joints, 19.7 kg; ``k1.xml`` lists the sources of the model."""

from legged_envs.robots.robot import RobotCfg, mirror_left_and_right

_SIDES = ("Left", "Right")
_ARM = ("Shoulder_Roll", "Elbow_Pitch", "Elbow_Yaw")
_LEG = ("Hip_Pitch", "Hip_Roll", "Hip_Yaw", "Knee_Pitch", "Ankle_Pitch", "Ankle_Roll")
# Order and names of LeggedGym-Ex and of Booster's files, where the shoulder pitch has an A.
_JOINTS = (
    "AAHead_yaw",
    "Head_pitch",
    "ALeft_Shoulder_Pitch",
    *(f"Left_{joint}" for joint in _ARM),
    "ARight_Shoulder_Pitch",
    *(f"Right_{joint}" for joint in _ARM),
    *(f"{side}_{joint}" for side in _SIDES for joint in _LEG),
)

K1 = RobotCfg(
    name="k1",
    xml="k1.xml",
    base_body="Trunk",
    joint_names=_JOINTS,
    # Pose of LeggedGym-Ex `K1Cfg`: the arms hang down, the forearms point a little forwards.
    default_joint_pos=(
        *(0.0, 0.0),
        *(0.0, -1.3, 0.0, -0.5),
        *(0.0, 1.3, 0.0, 0.5),
        *(-0.15, 0.0, 0.0, 0.3, -0.15, 0.0) * 2,
    ),
    # LeggedGym-Ex and booster_train. Their arms, 4 / 1, sag by 0.07 rad at the shoulders.
    kp=(4.0, 4.0, *(10.0,) * 8, *(80.0, 80.0, 80.0, 80.0, 30.0, 30.0) * 2),
    kd=(1.0, 1.0, *(1.0,) * 8, *(2.0,) * 12),
    # Torques and speeds of the URDF `K1_22dof`. booster_train has the same torques, and speeds of
    # 8 rad/s at hip pitch and 20 at the head.
    torque_limits=(6.0, 6.0, *(14.0,) * 8, *(30.0, 35.0, 20.0, 40.0, 20.0, 20.0) * 2),
    velocity_limits=(18.0, 18.0, *(18.0,) * 8, *(7.1, 12.9, 18.1, 12.5, 18.1, 18.1) * 2),
    base_height=0.5471,
    foot_names=("left_foot", "right_foot"),
    foot_radius=0.005,
    penalized_bodies=(
        "Head_2",
        *("Left_Arm_3", "left_hand_link", "Right_Arm_3", "right_hand_link"),
        *(f"{side}_{link}" for side in _SIDES for link in ("Hip_Yaw", "Shank")),
    ),
    termination_bodies=("Trunk",),
    mirror=mirror_left_and_right(_JOINTS),
    foot_mirror=(1, 0),
)
"""Configuration of the Booster K1, a humanoid with 22 joints.

A ground contact of the trunk ends an episode. (LeggedGym-Ex penalizes it, and ends an episode when
the trunk tilts too far.) Ground contacts of every other link with a collision shape, except the
feet, are penalized: head (``Head_2``), upper arm (``Arm_3``), forearm and hand (``hand_link``),
thigh (``Hip_Yaw``), shin (``Shank``).
"""
