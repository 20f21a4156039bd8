"""Unitree Go1: quadruped, 12 joints, 12.7 kg; ``go1.xml`` lists the sources of the model."""

from dataclasses import replace

from legged_envs.robots.go2 import GO2

GO1 = replace(
    # It has the names, pose and gains of Go2, as its legs are as long, 0.213 m and 0.213 m.
    GO2,
    name="go1",
    xml="go1.xml",
    base_body="trunk",
    # Held open loop at this pose for 1 s the robot sinks by 19 mm; crouched as in mjlab and
    # mujoco_menagerie, 0.9 and -1.8 rad, by 28 mm. mjlab has gains of 15.9 / 1.0, at the calf
    # 35.8 / 2.3.
    # Torques and speeds: URDF of unitree_ros, mjlab.
    torque_limits=(23.7, 23.7, 35.55) * 4,
    velocity_limits=(30.1, 30.1, 20.06) * 4,
    base_height=0.3343,
    foot_radius=0.023,
    termination_bodies=("trunk",),
)
"""Configuration of the Unitree Go1, a quadruped with 12 joints.

Ground contacts of thighs and calves are penalized. A ground contact of the trunk ends an episode.
"""
