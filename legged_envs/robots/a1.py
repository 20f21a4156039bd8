"""Unitree A1: quadruped, 12 joints, 12.5 kg; ``a1.xml`` lists the sources of the model."""

from dataclasses import replace

from legged_envs.robots.go2 import GO2

A1 = replace(
    GO2,  # It has the names, pose and gains of Go2.
    name="a1",
    xml="a1.xml",
    base_body="trunk",
    # Held open loop at this pose for 1 s the robot sinks by 17 mm. The pose of legged_gym, with
    # hips at 0.1 and hind thighs at 1.0 instead of 0.8 rad, has its hind feet 9 mm above the
    # ground; its gains are 20 / 0.5.
    # Torques: URDF of unitree_ros, mujoco_menagerie. The URDF of legged_gym has 20 and 55.
    torque_limits=(33.5,) * 12,
    # Speeds: URDF of unitree_ros. That of legged_gym has 52.4 and 28.6.
    velocity_limits=(21.0,) * 12,
    base_height=0.3123,
    foot_radius=0.02,
    termination_bodies=("trunk",),
)
"""Configuration of the Unitree A1, a quadruped with 12 joints.

Ground contacts of thighs and calves are penalized. A ground contact of the trunk ends an episode.
"""
