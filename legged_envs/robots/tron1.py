"""LimX TRON1, a biped in three versions, which differ in their feet.

* ``TRON1_PF``: point feet, 6 joints, 18.6 kg.
* ``TRON1_SF``: flat soles, 8 joints, 20.8 kg.
* ``TRON1_WF``: wheels, 8 joints, 22.3 kg.
"""

from dataclasses import replace

from legged_envs.robots.robot import RobotCfg, mirror_left_and_right

_SIDES = ("L", "R")
# The joints of a leg with a point foot. The position of each changes its sign when left and right
# are swapped.
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
    # Gains kp / kd of LimX's tron1-rl-isaacgym: 42 / 2.5 on points and wheels, 45 / 1.5 on soles.
    # Those of LeggedGym-Ex, which has no wheels, are the same. Held open loop at this pose, with
    # its base kept upright, the robot then sinks within 1 s by 5 cm on points, 11 cm on wheels and
    # 4 cm on soles. With 150 / 5 it sinks by at most 2 cm. With a free base it tips over; on soles
    # a kp of 300 at all joints prevents this.
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
"""Configuration of the LimX TRON1 with point feet, a biped with 6 joints.

It cannot stand still without stepping. As in LeggedGym-Ex `TRON1PFCfg`, ground contacts of thighs
(``hip``) and shanks (``knee``) are penalized, and one of the base or of a hip link (``abad``) ends
an episode. ``tron1_pf.xml`` lists the sources of the model.
"""

TRON1_SF = replace(
    TRON1_PF,
    name="tron1_sf",
    xml="tron1_sf.xml",
    joint_names=_joint_names(_SOLE_LEG),
    actuators=(),
    default_joint_pos=(0.0,) * 8,
    # The gains of the ankles are LimX's.
    kp=(150.0, 150.0, 150.0, 45.0) * 2,
    kd=(5.0, 5.0, 5.0, 0.8) * 2,
    torque_limits=(80.0, 80.0, 80.0, 20.0) * 2,
    velocity_limits=(15.0,) * 8,
    base_height=0.8397,
    foot_radius=0.01,
    mirror=mirror_left_and_right(_joint_names(_SOLE_LEG), _LEG),
)
"""Configuration of the LimX TRON1 with flat soles, a biped with 8 joints.

It is ``TRON1_PF`` with an ankle joint in each leg. Each sole touches the ground with four balls;
the origin of the foot body is in their middle. Contacts are treated as in ``TRON1_PF``: one of the
base or of a hip link (``abad``) ends an episode. (LeggedGym-Ex `TRON1SFCfg` penalizes contacts of
these bodies, and no contact ends an episode.) ``tron1_sf.xml`` lists the sources of the model.
"""

TRON1_WF = replace(
    TRON1_PF,
    name="tron1_wf",
    xml="tron1_wf.xml",
    joint_names=_joint_names(_WHEEL_LEG),
    actuators=("position", "position", "position", "velocity") * 2,
    default_joint_pos=(0.0,) * 8,
    kp=(150.0, 150.0, 150.0, 0.0) * 2,
    kd=(5.0, 5.0, 5.0, 0.8) * 2,  # The wheels have LimX's value.
    torque_limits=(80.0, 80.0, 80.0, 40.0) * 2,
    velocity_limits=(15.0, 15.0, 15.0, 40.0) * 2,
    base_height=0.9068,
    foot_radius=0.127,
    wheels=True,
    mirror=mirror_left_and_right(_joint_names(_WHEEL_LEG), _LEG),
)
"""Configuration of the LimX TRON1 with wheels, a biped with 8 joints that balances on two wheels.

It is ``TRON1_PF`` with a wheel at the end of each leg. The wheels are its feet. Their joints have
velocity actuators and no position limits. ``tron1_wf.xml`` lists the sources of the model.
"""
