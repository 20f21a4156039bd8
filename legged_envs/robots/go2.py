"""Unitree Go2: quadruped, 12 joints, 15.2 kg; ``go2.xml`` lists the sources of the model."""

from legged_envs.robots.robot import RobotCfg

# Each leg, and the leg at its place when left and right are swapped.
_LEGS = {
    "FR": "FL",
    "FL": "FR",
    "RR": "RL",
    "RL": "RR",
}
# Joints of a leg. -1: its position changes its sign when left and right are swapped.
_JOINTS = {"hip": -1.0, "thigh": 1.0, "calf": 1.0}

GO2 = RobotCfg(
    name="go2",
    xml="go2.xml",
    base_body="base",
    # Order of LeggedGym-Ex, so that its policies and this package's policies read the same vectors.
    joint_names=tuple(f"{leg}_{joint}_joint" for leg in _LEGS for joint in _JOINTS),
    default_joint_pos=(0.0, 0.8, -1.5) * 4,  # LeggedGym-Ex `GO2Cfg`
    # LeggedGym-Ex has 20 / 0.5: held open loop at this pose, the robot then sinks until its knees
    # touch the ground. 40 / 1 holds it at 0.30 m; unitree_rl_mjlab has 40 for the calf, which
    # carries most of the load.
    kp=(40.0,) * 12,
    kd=(1.0,) * 12,
    # The motors of a leg are alike; the knee linkage multiplies torque and divides speed by 1.917.
    # Two pairs of calf limits are published: 45.43 / 15.7 (URDF of unitree_ros, MJCF of
    # unitree_mujoco, LeggedGym-Ex) and 35.55 / 20.07 (URDF of unitree_rl_gym). The first is used:
    # it has more sources, including the sources of the model in go2.xml.
    torque_limits=(23.7, 23.7, 45.43) * 4,
    velocity_limits=(30.1, 30.1, 15.7) * 4,
    base_height=0.3346,
    foot_names=tuple(f"{leg}_foot" for leg in _LEGS),
    foot_radius=0.022,
    penalized_bodies=tuple(f"{leg}_{link}" for leg in _LEGS for link in ("thigh", "calf")),
    termination_bodies=("base",),
    mirror=tuple(
        (f"{leg}_{joint}_joint", sign) for leg in _LEGS.values() for joint, sign in _JOINTS.items()
    ),
    foot_mirror=(1, 0, 3, 2),
    diagonals=(("FR_foot", "RL_foot"), ("FL_foot", "RR_foot")),
)
"""Configuration of the Unitree Go2, a quadruped with 12 joints.

Ground contacts of thighs and calves are penalized. A ground contact of the base ends an episode.
"""
