"""Unitree A1: quadruped, 12 joints, 12.5 kg; ``a1.xml`` lists the sources of the model."""

from dataclasses import replace

from legged_envs.robots.go2 import GO2

A1 = replace(
    GO2,  # whose names, pose and gains it has
    name="a1",
    xml="a1.xml",
    base_body="trunk",
    # Held open loop at this pose for 1 s the robot sinks by 17 mm. That of legged_gym, with hips at 0.1 and hind thighs
    # at 1.0 instead of 0.8 rad, has its hind feet 9 mm above the ground; its gains are 20 / 0.5.
    torque_limits=(33.5,)
    * 12,  # URDF of unitree_ros, mujoco_menagerie; that of legged_gym has 20 and 55
    velocity_limits=(21.0,) * 12,  # URDF of unitree_ros; that of legged_gym has 52.4 and 28.6
    base_height=0.3123,
    foot_radius=0.02,
    termination_bodies=("trunk",),
)
"""A1; penalised are thighs and calves, the trunk ends an episode."""
