"""Unitree H1, a tall humanoid: 19 joints, 51.4 kg; ``h1.xml`` lists the sources of the model."""

from legged_envs.robots.robot import RobotCfg, mirror_left_and_right

_SIDES = ("left", "right")
_LEG = ("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle")
_ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow")
_PENALIZED_LINKS = ("hip_pitch", "knee", "shoulder_yaw", "elbow")
_JOINTS = (
    *(f"{side}_{joint}_joint" for side in _SIDES for joint in _LEG),
    "torso_joint",
    *(f"{side}_{joint}_joint" for side in _SIDES for joint in _ARM),
)

H1 = RobotCfg(
    name="h1",
    xml="h1.xml",
    base_body="pelvis",
    joint_names=_JOINTS,
    # unitree_rl_gym `H1RoughCfg` with hip pitch and knee 0.05 rad straighter. There, at -0.1 and
    # 0.3, the mass is only 2 cm ahead of the ankles (here 3.5 cm): held stiffly, the robot falls
    # backwards. mujoco_menagerie has a squat of -0.4, 0.8, -0.4, on which the knees sag by
    # 0.35 rad; Isaac Lab's soles are not level.
    default_joint_pos=(*(0.0, 0.0, -0.05, 0.25, -0.2) * 2, 0.0, *(0.0, 0.0, 0.0, 0.0) * 2),
    # Legs and torso: unitree_rl_lab `UNITREE_H1_CFG`, but the knees, 200 / 4 there, sag by
    # 0.15 rad. Arms: Isaac Lab `H1_CFG`.
    kp=(*(150.0, 150.0, 150.0, 300.0, 40.0) * 2, 300.0, *(40.0,) * 8),
    kd=(*(2.0, 2.0, 2.0, 6.0, 2.0) * 2, 6.0, *(10.0,) * 8),
    torque_limits=(*(200.0, 200.0, 200.0, 300.0, 40.0) * 2, 200.0, *(40.0, 40.0, 18.0, 18.0) * 2),
    velocity_limits=(*(23.0, 23.0, 23.0, 14.0, 9.0) * 2, 23.0, *(9.0, 9.0, 20.0, 20.0) * 2),
    base_height=1.0357,
    foot_names=tuple(f"{side}_foot" for side in _SIDES),
    foot_radius=0.014,
    penalized_bodies=tuple(f"{side}_{link}_link" for side in _SIDES for link in _PENALIZED_LINKS),
    termination_bodies=("pelvis", "torso_link"),
    mirror=mirror_left_and_right(_JOINTS, sideways=("roll", "yaw", "torso")),
    foot_mirror=(1, 0),
)
"""Configuration of the Unitree H1, a humanoid with 19 joints. Its ankles have no roll joint.

Torque and velocity limits are taken from the URDF of unitree_ros. A ground contact of the torso, as
in Isaac Lab, or of the pelvis ends an episode. Ground contacts of every other link with a collision
shape, except the feet, are penalized: thigh (``hip_pitch``), shin (``knee``), upper arm
(``shoulder_yaw``), forearm with hand (``elbow``).
"""

LONG_SOLES = "h1_long_soles.xml"
"""Model of the H1 with soles of 0.30 m, as in its maker's mesh, for policies of other frameworks.

Those of `H1` are 0.215 m long. On them unitree_rl_gym's policy falls after 2 s, in its own loop and
with its own masses too.
"""
