"""Unitree G1, a biped, in two versions.

``G1`` has 12 joints, all in the legs, and 32.1 kg. Its waist and arms are fixed. ``G1_29`` has
29 joints, with waist and arms, and 33.3 kg.
"""

from dataclasses import replace

from legged_envs.robots.robot import RobotCfg, mirror_left_and_right

_SIDES = ("left", "right")
_LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
_JOINTS = tuple(f"{side}_{joint}_joint" for side in _SIDES for joint in _LEG)

G1 = RobotCfg(
    name="g1",
    xml="g1.xml",
    base_body="pelvis",
    joint_names=_JOINTS,
    # Pose and gains of unitree_rl_gym `G1RoughCfg` and LeggedGym-Ex `G1RoughCfg` (they agree).
    default_joint_pos=(-0.1, 0.0, 0.0, 0.3, -0.2, 0.0) * 2,
    kp=(100.0, 100.0, 100.0, 150.0, 40.0, 40.0) * 2,
    kd=(2.0, 2.0, 2.0, 4.0, 2.0, 2.0) * 2,
    # Torques and speeds: URDF `g1_12dof` of unitree_rl_gym.
    torque_limits=(88.0, 139.0, 88.0, 139.0, 50.0, 50.0) * 2,
    velocity_limits=(32.0, 20.0, 32.0, 20.0, 37.0, 37.0) * 2,
    base_height=0.7842,
    foot_names=tuple(f"{side}_foot" for side in _SIDES),
    foot_radius=0.005,
    penalized_bodies=tuple(
        f"{side}_{link}_link" for side in _SIDES for link in ("hip_yaw", "knee")
    ),
    termination_bodies=("pelvis",),
    mirror=mirror_left_and_right(_JOINTS),
    foot_mirror=(1, 0),
)
"""Configuration of the Unitree G1 with 12 leg joints, as in Unitree's own training.

Ground contacts of thighs (``hip_yaw``) and shins (``knee``) are penalized. A ground contact of the
body ``pelvis``, which includes the fixed waist, arms and head, ends an episode. ``g1.xml`` lists
the sources of the model.
"""

_WAIST = ("waist_yaw_joint", "waist_roll_joint", "waist_pitch_joint")
_ARM = (
    "shoulder_pitch",
    "shoulder_roll",
    "shoulder_yaw",
    "elbow",
    "wrist_roll",
    "wrist_pitch",
    "wrist_yaw",
)
_ARM_LINKS = tuple(
    f"{side}_{link}_link" for side in _SIDES for link in ("shoulder_yaw", "elbow", "wrist_yaw")
)
_ALL_JOINTS = (
    *G1.joint_names,
    *_WAIST,
    *(f"{side}_{joint}_joint" for side in _SIDES for joint in _ARM),
)

G1_29 = replace(
    G1,  # It has the legs, the pelvis and the feet of G1.
    name="g1_29",
    xml="g1_29.xml",
    joint_names=_ALL_JOINTS,
    actuators=(),
    # Pose and gains of LeggedGym-Ex `G1MimicCfg`.
    default_joint_pos=(
        *G1.default_joint_pos,
        *(0.0, 0.0, 0.0),
        *(0.3, 0.25, 0.0, 0.97, 0.15, 0.0, 0.0),
        *(0.3, -0.25, 0.0, 0.97, -0.15, 0.0, 0.0),
    ),
    kp=(*G1.kp, 200.0, 40.0, 40.0, *(40.0,) * 14),
    kd=(*G1.kd, 5.0, 5.0, 5.0, *(1.0,) * 14),
    # Motors as listed by mjlab `g1_constants`; `g1_29.xml` explains why not as in the URDF.
    torque_limits=(
        *G1.torque_limits,
        *(88.0, 50.0, 50.0),
        *(25.0, 25.0, 25.0, 25.0, 25.0, 5.0, 5.0) * 2,
    ),
    velocity_limits=(
        *G1.velocity_limits,
        *(32.0, 37.0, 37.0),
        *(37.0, 37.0, 37.0, 37.0, 37.0, 22.0, 22.0) * 2,
    ),
    penalized_bodies=(*G1.penalized_bodies, "torso_link", *_ARM_LINKS),
    mirror=mirror_left_and_right(_ALL_JOINTS),
)
"""Configuration of the Unitree G1 with 29 joints: legs, waist and arms.

The joints are in the order of Unitree's SDK, limb by limb. Only a ground contact of the pelvis ends
an episode, as in LeggedGym-Ex `G1MimicCfg`. Ground contacts of every other link with a collision
shape, except the feet, are penalized: thigh (``hip_yaw``), shin (``knee``), torso with head, upper
arm (``shoulder_yaw``), forearm (``elbow``), hand (``wrist_yaw``). ``g1_29.xml`` lists the sources
of the model.
"""
