"""LimX TRON1, a biped on points, soles or wheels.

It has 6 joints and 18.6 kg on points, 8 joints and 20.8 kg on soles, 8 joints and 22.3 kg on
wheels.
"""

from dataclasses import replace

from legged_envs.robots.robot import RobotCfg, mirror_left_and_right

_SIDES = ("L", "R")
# The joints of a leg on points. Each of them turns the other way in the mirror.
_LEG = ("abad", "hip", "knee")
_SOLE_LEG = (*_LEG, "ankle")
_WHEEL_LEG = (*_LEG, "wheel")


def _joint_names(leg: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{joint}_{side}_Joint" for side in _SIDES for joint in leg)


TRON1_PF = RobotCfg(
    name="tron1_pf",
    xml="tron1_pf.xml",
    base_body="base_Link",
    # Order and pose of LeggedGym-Ex `TRON1PFCfg` and `TRON1SFCfg`.
    joint_names=_joint_names(_LEG),
    default_joint_pos=(0.0,) * 6,
    # LimX's tron1-rl-isaacgym has 42 / 2.5 on points and wheels and 45 / 1.5 on soles; so has
    # LeggedGym-Ex, without wheels. Open loop at this pose, its base kept upright, the robot then
    # sinks in 1 s by 5 cm on points, 11 on wheels and 4 on soles; 150 / 5 holds it within 2 cm.
    # Its base free, it tips over; on soles 300 at all joints hold it.
    kp=(150.0,) * 6,
    kd=(5.0,) * 6,
    # Torques and speeds: LimX's URDFs.
    torque_limits=(80.0,) * 6,
    velocity_limits=(15.0,) * 6,
    base_height=0.8118,
    foot_names=tuple(f"{side}_foot" for side in _SIDES),
    foot_radius=0.032,
    penalized_bodies=tuple(f"{link}_{side}_Link" for side in _SIDES for link in ("hip", "knee")),
    termination_bodies=("base_Link", *(f"abad_{side}_Link" for side in _SIDES)),
    mirror=mirror_left_and_right(_joint_names(_LEG), _LEG),
    foot_mirror=(1, 0),
)
"""TRON1 on two points. It cannot stand still without stepping.

The bodies that are penalised, thigh (``hip``) and shank (``knee``), and those that end an episode
are those of LeggedGym-Ex `TRON1PFCfg`. ``tron1_pf.xml`` lists the sources.
"""

TRON1_SF = replace(
    TRON1_PF,
    name="tron1_sf",
    xml="tron1_sf.xml",
    joint_names=_joint_names(_SOLE_LEG),
    actuators=(),
    default_joint_pos=(0.0,) * 8,
    # The gains of the ankles are those of LimX.
    kp=(150.0, 150.0, 150.0, 45.0) * 2,
    kd=(5.0, 5.0, 5.0, 0.8) * 2,
    torque_limits=(80.0, 80.0, 80.0, 20.0) * 2,
    velocity_limits=(15.0,) * 8,
    base_height=0.8397,
    foot_radius=0.01,
    mirror=mirror_left_and_right(_joint_names(_SOLE_LEG), _LEG),
)
"""TRON1 on soles. A foot is the middle of four balls under the sole.

LeggedGym-Ex `TRON1SFCfg` ends no episode for contacts: it penalises base and abduction too.
``tron1_sf.xml`` lists the sources.
"""

TRON1_WF = replace(
    TRON1_PF,
    name="tron1_wf",
    xml="tron1_wf.xml",
    joint_names=_joint_names(_WHEEL_LEG),
    actuators=("position", "position", "position", "velocity") * 2,
    default_joint_pos=(0.0,) * 8,
    kp=(150.0, 150.0, 150.0, 0.0) * 2,
    kd=(5.0, 5.0, 5.0, 0.8) * 2,  # The wheels have that of LimX.
    torque_limits=(80.0, 80.0, 80.0, 40.0) * 2,
    velocity_limits=(15.0, 15.0, 15.0, 40.0) * 2,
    base_height=0.9068,
    foot_radius=0.127,
    wheels=True,
    mirror=mirror_left_and_right(_joint_names(_WHEEL_LEG), _LEG),
)
"""TRON1 on wheels, on which it balances. The wheels are its feet, and their joints have no limits.

``tron1_wf.xml`` lists the sources.
"""
