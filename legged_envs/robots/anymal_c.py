"""ANYbotics ANYmal C: quadruped, 12 joints, 52.1 kg.

``anymal_c.xml`` lists the sources of the model.
"""

from legged_envs.robots.robot import RobotCfg

# Each leg, and the leg at its place when left and right are swapped.
_LEGS = {
    "LF": "RF",
    "RF": "LF",
    "LH": "RH",
    "RH": "LH",
}
# Joints of a leg. -1: its position changes its sign when left and right are swapped.
_JOINTS = {"HAA": -1.0, "HFE": 1.0, "KFE": 1.0}

ANYMAL_C = RobotCfg(
    name="anymal_c",
    xml="anymal_c.xml",
    base_body="base",
    # Order of the URDF.
    joint_names=tuple(f"{leg}_{joint}" for leg in _LEGS for joint in _JOINTS),
    # Standing pose of mujoco_menagerie: the feet are below the hips. legged_gym has 0.4 / -0.8.
    default_joint_pos=(0.0, 0.5236, -0.7854) * 2 + (0.0, -0.5236, 0.7854) * 2,
    # Held open loop for 1 s the robot sinks by 19 mm; with Newton's gains, 150 / 5, by 27 mm, and
    # with legged_gym's gains, 80 / 2, by 44 mm. Its feet stand 0.2 m outside of its hip axes and
    # creep outwards: 36 mm after 4 s.
    kp=(250.0,) * 12,
    kd=(5.0,) * 12,
    torque_limits=(80.0,) * 12,  # URDF of legged_gym, mujoco_menagerie, Isaac Lab
    velocity_limits=(7.5,) * 12,  # Isaac Lab `ANYDRIVE_3_SIMPLE_ACTUATOR_CFG`; the URDF has 20
    base_height=0.5588,
    foot_names=tuple(f"{leg}_FOOT" for leg in _LEGS),
    foot_radius=0.03,
    penalized_bodies=tuple(f"{leg}_{link}" for leg in _LEGS for link in ("THIGH", "SHANK")),
    termination_bodies=("base",),
    mirror=tuple(
        (f"{leg}_{joint}", sign) for leg in _LEGS.values() for joint, sign in _JOINTS.items()
    ),
    foot_mirror=(1, 0, 3, 2),
    diagonals=(("LF_FOOT", "RH_FOOT"), ("RF_FOOT", "LH_FOOT")),
)
"""Configuration of the ANYbotics ANYmal C, a quadruped with 12 joints.

Ground contacts of thighs and shanks are penalized. A ground contact of the base ends an episode.
"""
