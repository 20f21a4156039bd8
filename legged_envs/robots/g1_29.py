"""Unitree G1 with 29 actuated joints: humanoid of 33.3 kg with legs, waist and arms."""

from dataclasses import replace

from legged_envs.robots.g1 import G1
from legged_envs.robots.robot import mirror_left_and_right

_SIDES = ("left", "right")
_WAIST = ("waist_yaw_joint", "waist_roll_joint", "waist_pitch_joint")
_ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw")
_JOINTS = (*G1.joint_names, *_WAIST, *(f"{side}_{joint}_joint" for side in _SIDES for joint in _ARM))

G1_29 = replace(
    G1,  # whose legs, pelvis and feet it has
    name="g1_29",
    xml="g1_29.xml",
    joint_names=_JOINTS,
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
    # Motors as listed by mjlab `g1_constants`; why not those of the URDF, see `g1_29.xml`.
    torque_limits=(*G1.torque_limits, 88.0, 50.0, 50.0, *(25.0, 25.0, 25.0, 25.0, 25.0, 5.0, 5.0) * 2),
    velocity_limits=(*G1.velocity_limits, 32.0, 37.0, 37.0, *(37.0, 37.0, 37.0, 37.0, 37.0, 22.0, 22.0) * 2),
    penalized_bodies=(
        *G1.penalized_bodies,
        "torso_link",
        *(f"{side}_{link}_link" for side in _SIDES for link in ("shoulder_yaw", "elbow", "wrist_yaw")),
    ),
    mirror=mirror_left_and_right(_JOINTS),
)
"""G1 with waist and arms; sources of the model are listed in ``g1_29.xml``.

Joints are limb by limb, the order of Unitree's SDK: left leg, right leg, waist, left arm, right arm. As in
LeggedGym-Ex `G1MimicCfg` only the pelvis ends an episode; every other link that carries a collision shape is a
penalised one: thigh (``hip_yaw``), shin (``knee``), torso with head, upper arm (``shoulder_yaw``), forearm (``elbow``)
and hand (``wrist_yaw``).
"""
