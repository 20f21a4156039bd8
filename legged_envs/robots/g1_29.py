"""Unitree G1 with 29 actuated joints: humanoid of 33.3 kg with legs, waist and arms."""

from legged_envs.robots.robot import RobotCfg, mirror_left_and_right

__all__ = ["G1_29"]

_SIDES = ("left", "right")
_LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
_WAIST = ("waist_yaw", "waist_roll", "waist_pitch")
_ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw")
_JOINTS = (
    *(f"{side}_{joint}_joint" for side in _SIDES for joint in _LEG),
    *(f"{joint}_joint" for joint in _WAIST),
    *(f"{side}_{joint}_joint" for side in _SIDES for joint in _ARM),
)

G1_29 = RobotCfg(
    name="g1_29",
    xml="g1_29.xml",
    base_body="pelvis",
    joint_names=_JOINTS,
    # Pose and gains of LeggedGym-Ex `G1MimicCfg`; its legs are those of Unitree's `G1RoughCfg`.
    default_joint_pos=(
        *(-0.1, 0.0, 0.0, 0.3, -0.2, 0.0) * 2,
        *(0.0, 0.0, 0.0),
        *(0.3, 0.25, 0.0, 0.97, 0.15, 0.0, 0.0),
        *(0.3, -0.25, 0.0, 0.97, -0.15, 0.0, 0.0),
    ),
    kp=(*(100.0, 100.0, 100.0, 150.0, 40.0, 40.0) * 2, 200.0, 40.0, 40.0, *(40.0,) * 14),
    kd=(*(2.0, 2.0, 2.0, 4.0, 2.0, 2.0) * 2, 5.0, 5.0, 5.0, *(1.0,) * 14),
    # Motors as listed by mjlab `g1_constants`; why not those of the URDF, see `g1_29.xml`.
    torque_limits=(
        *(88.0, 139.0, 88.0, 139.0, 50.0, 50.0) * 2,
        *(88.0, 50.0, 50.0),
        *(25.0, 25.0, 25.0, 25.0, 25.0, 5.0, 5.0) * 2,
    ),
    velocity_limits=(
        *(32.0, 20.0, 32.0, 20.0, 37.0, 37.0) * 2,
        *(32.0, 37.0, 37.0),
        *(37.0, 37.0, 37.0, 37.0, 37.0, 22.0, 22.0) * 2,
    ),
    base_height=0.7842,
    foot_names=tuple(f"{side}_foot" for side in _SIDES),
    foot_radius=0.005,
    penalized_bodies=(
        *(f"{side}_{link}_link" for side in _SIDES for link in ("hip_yaw", "knee")),
        "torso_link",
        *(f"{side}_{link}_link" for side in _SIDES for link in ("shoulder_yaw", "elbow", "wrist_yaw")),
    ),
    termination_bodies=("pelvis",),
    mirror=mirror_left_and_right(_JOINTS),
    foot_mirror=(1, 0),
)
"""G1 with waist and arms; sources of the model are listed in ``g1_29.xml``.

Joints are limb by limb, the order of Unitree's SDK: left leg, right leg, waist, left arm, right arm. As in
LeggedGym-Ex `G1MimicCfg` only the pelvis ends an episode; every other link that carries a collision shape is a
penalised one: thigh (``hip_yaw``), shin (``knee``), torso with head, upper arm (``shoulder_yaw``), forearm (``elbow``)
and hand (``wrist_yaw``).
"""
