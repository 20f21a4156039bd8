"""Unitree G1 with 12 actuated leg joints: biped, 32.1 kg, waist and arms fixed."""

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
    # URDF `g1_12dof` of unitree_rl_gym.
    torque_limits=(88.0, 139.0, 88.0, 139.0, 50.0, 50.0) * 2,
    velocity_limits=(32.0, 20.0, 32.0, 20.0, 37.0, 37.0) * 2,
    base_height=0.7842,
    foot_names=tuple(f"{side}_foot" for side in _SIDES),
    foot_radius=0.005,
    penalized_bodies=tuple(f"{side}_{link}_link" for side in _SIDES for link in ("hip_yaw", "knee")),
    termination_bodies=("pelvis",),
    mirror=mirror_left_and_right(_JOINTS),
    foot_mirror=(1, 0),
)
"""G1 as in Unitree's own training; sources of the model are listed in ``g1.xml``.

Thigh (``hip_yaw``) and shin (``knee``) are the leg links that carry collision shapes, hence the penalised ones. Waist,
arms and head are part of ``pelvis``.
"""
