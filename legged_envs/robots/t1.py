"""Booster T1, a humanoid: 23 joints, 31.7 kg; ``t1.xml`` lists the sources of the model."""

from legged_envs.robots.robot import RobotCfg, mirror_left_and_right

_SIDES = ("Left", "Right")
_ARM = ("Shoulder_Pitch", "Shoulder_Roll", "Elbow_Pitch", "Elbow_Yaw")
_LEG = ("Hip_Pitch", "Hip_Roll", "Hip_Yaw", "Knee_Pitch", "Ankle_Pitch", "Ankle_Roll")
_JOINTS = (
    *("AAHead_yaw", "Head_pitch"),
    *(f"{side}_{joint}" for side in _SIDES for joint in _ARM),
    "Waist",
    *(f"{side}_{joint}" for side in _SIDES for joint in _LEG),
)

T1 = RobotCfg(
    name="t1",
    xml="t1.xml",
    base_body="Trunk",
    joint_names=_JOINTS,
    # Key frame `home` of mujoco_menagerie. booster_gym has -0.25 for the ankles: its soles are then
    # not level.
    default_joint_pos=(
        *(0.0, 0.0),
        *(0.0, -1.4, 0.0, -0.4, 0.0, 1.4, 0.0, 0.4),
        0.0,
        *(-0.2, 0.0, 0.0, 0.4, -0.2, 0.0) * 2,
    ),
    # Gains, torques and speeds of booster_train `BOOSTER_T1_CFG`. booster_gym has the same gains
    # for the legs. The URDF of booster_assets has the same torques, but speeds of 7.1 to 15.2 in
    # the legs and 18 in the arms.
    kp=(10.0, 10.0, *(50.0,) * 8, 200.0, *(200.0, 200.0, 200.0, 200.0, 50.0, 50.0) * 2),
    kd=(1.0, 1.0, *(1.0,) * 8, 5.0, *(5.0, 5.0, 5.0, 5.0, 1.0, 1.0) * 2),
    torque_limits=(7.0, 7.0, *(18.0,) * 8, 25.0, *(45.0, 25.0, 25.0, 60.0, 24.0, 15.0) * 2),
    velocity_limits=(
        *(20.0, 20.0),
        *(7.33,) * 8,
        12.57,
        *(16.76, 12.57, 12.57, 12.57, 18.8, 12.4) * 2,
    ),
    base_height=0.6659,
    foot_names=("left_foot", "right_foot"),
    foot_radius=0.005,
    penalized_bodies=(
        *("H2", "AL3", "left_hand_link", "AR3", "right_hand_link", "Waist"),
        *(f"{link}_{side}" for side in _SIDES for link in ("Hip_Yaw", "Shank")),
    ),
    termination_bodies=("Trunk",),
    mirror=mirror_left_and_right(_JOINTS, sideways=("roll", "yaw", "waist")),
    foot_mirror=(1, 0),
)
"""Configuration of the Booster T1, a humanoid with 23 joints.

A ground contact of the trunk ends an episode. Ground contacts of every other link with a collision
shape, except the feet, are penalized: head (``H2``), upper arms (``AL3``, ``AR3``), forearm and
hand (``hand_link``), hips (``Waist``), thigh (``Hip_Yaw``), shin (``Shank``).
"""
